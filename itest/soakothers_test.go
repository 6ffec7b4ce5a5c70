//go:build itest

package itest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// The steps in which others change rows.

func (s *soak) javaDoes(w harness.Write) string {
	s.t.Helper()
	return s.beside(func() { do(s.t, s.java, s.ref(), w) })
}

// absent draws some keys that have no row.
func (s *soak) absent(most int) (keys []int) {
	for _, key := range s.rnd.Perm(soakKeys) {
		if len(s.m.rows[key]) == 0 && len(keys) < most {
			keys = append(keys, key)
		}
	}
	return keys
}

// fresh makes new rows of keys, in the model too, and returns their objects.
func (s *soak) fresh(keys []int) (rows []any) {
	for _, key := range keys {
		cells := s.cells(key, s.rnd.IntN(2) == 0)
		cells["p"] = s.value("p", key)
		s.touch(key, false)
		s.m.insert(key, cells)
		rows = append(rows, object(cells))
	}
	return rows
}

func (s *soak) insert() string {
	keys := s.absent(1 + s.rnd.IntN(6))
	if len(keys) == 0 {
		return "no key is free"
	}
	return fmt.Sprintf("%v, %s", keys, s.javaDoes(harness.InsertRows(s.fresh(keys)...)))
}

// double inserts a key that the table has: both rows stay, and our next change of the
// key updates both (docs/engines.md).
func (s *soak) double() string {
	var keys []int
	for key := range soakKeys {
		if len(s.m.rows[key]) == 1 {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return "no key is there"
	}
	keys = []int{keys[s.rnd.IntN(len(keys))]}
	return fmt.Sprintf("%v, %s", keys, s.javaDoes(harness.InsertRows(s.fresh(keys)...)))
}

// some draws a range of keys.
func (s *soak) some() (from, to int) {
	from = s.rnd.IntN(soakKeys)
	return from, from + s.rnd.IntN(15)
}

func (s *soak) removeRange(from, to int) {
	for key := from; key <= to; key++ {
		s.touch(key, false)
		s.m.remove(key)
	}
}

func (s *soak) updateRange(from, to int, cells map[string]string) {
	for key := from; key <= to; key++ {
		s.touch(key, true)
		s.m.update(key, cells)
	}
}

func between(from, to int) harness.Cond {
	return harness.Cond{Column: "id", Op: "between", Values: []any{from, to}}
}

func (s *soak) deleteRows() string {
	from, to := s.some()
	s.removeRange(from, to)
	return fmt.Sprintf("%d to %d, %s", from, to, s.javaDoes(harness.DeleteWhere(between(from, to))))
}

func (s *soak) updateRows() string {
	from, to := s.some()
	v := fmt.Sprintf("java in step %d", s.step)
	s.updateRange(from, to, map[string]string{"v": fmt.Sprintf("%q", v)})
	return fmt.Sprintf("%d to %d, %s", from, to, s.javaDoes(harness.UpdateWhere(map[string]any{"v": v}, between(from, to))))
}

// overwrite replaces a partition, or the table if it has none.
func (s *soak) overwrite() string {
	p, spec := s.somePartition(), map[string]string{}
	if s.mode.partitioned {
		spec["p"] = p
	}
	for key, rows := range s.m.rows {
		s.touch(key, false)
		stay := slices.DeleteFunc(slices.Clone(rows), func(row soakRow) bool { return !s.mode.partitioned || row[1] == fmt.Sprintf("%q", p) })
		if s.m.rows[key] = stay; len(stay) == 0 {
			delete(s.m.rows, key)
		}
	}
	keys := s.absent(3)
	var rows []any
	for _, key := range keys {
		cells := s.cells(key, true)
		cells["p"] = fmt.Sprintf("%q", p)
		s.touch(key, false)
		s.m.insert(key, cells)
		rows = append(rows, object(cells))
	}
	return fmt.Sprintf("%v with %v, %s", spec, keys, s.javaDoes(harness.OverwriteRows(spec, rows...)))
}

func (s *soak) sql() string {
	from, to := s.some()
	v := fmt.Sprintf("sql in step %d", s.step)
	cells := map[string]string{"v": fmt.Sprintf("%q", v)}
	var statement string
	switch s.rnd.IntN(5) {
	case 0:
		statement = fmt.Sprintf("DELETE FROM db.t WHERE id BETWEEN %d AND %d", from, to)
		s.removeRange(from, to)
	case 1: // rows move to another partition
		p := s.somePartition()
		cells["p"] = fmt.Sprintf("%q", p)
		statement = fmt.Sprintf("UPDATE db.t SET v = '%s', p = '%s' WHERE id BETWEEN %d AND %d", v, p, from, to)
		s.updateRange(from, to, cells)
	case 2:
		statement = fmt.Sprintf("UPDATE db.t SET v = '%s' WHERE id BETWEEN %d AND %d", v, from, to)
		s.updateRange(from, to, cells)
	case 3:
		keys := s.absent(4)
		if len(keys) == 0 {
			return "no key is free"
		}
		statement = "INSERT INTO db.t (id, p, v) VALUES " + s.tuples(keys, v)
		s.insertTuples(keys, v)
	default:
		keys := s.rnd.Perm(soakKeys)[:6]
		statement = "MERGE INTO db.t AS t USING (SELECT * FROM VALUES " + s.tuples(keys, v) + " AS s(id, p, v)) AS s ON t.id = s.id " +
			"WHEN MATCHED AND s.id % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, s.p, s.v)"
		s.merge(keys, v)
	}
	how := s.beside(func() {
		answers, err := harness.ApplierSQL(s.t.Context(), s.t, s.Warehouse, statement)
		require.NoError(s.t, err)
		require.Nil(s.t, answers[0].Error, "%s: %+v", statement, answers[0].Error)
	})
	return statement + ", " + how
}

// tuples are rows of keys for statements; the partition follows from the key.
func (s *soak) tuples(keys []int, v string) string {
	var out []string
	for _, key := range keys {
		out = append(out, fmt.Sprintf("(%d, 'p%d', '%s')", key, key%3, v))
	}
	return strings.Join(out, ", ")
}

func (s *soak) insertTuples(keys []int, v string) {
	for _, key := range keys {
		s.touch(key, false)
		s.m.insert(key, map[string]string{"id": fmt.Sprint(key), "p": fmt.Sprintf(`"p%d"`, key%3), "v": fmt.Sprintf("%q", v)})
	}
}

func (s *soak) merge(keys []int, v string) {
	for _, key := range keys {
		switch {
		case len(s.m.rows[key]) == 0:
			s.insertTuples([]int{key}, v)
		case key%3 == 0:
			s.removeRange(key, key)
		default:
			s.updateRange(key, key, map[string]string{"v": fmt.Sprintf("%q", v)})
		}
	}
}

func (s *soak) flink(statement string) {
	s.t.Helper()
	_, err := harness.Flink(s.t).SQL(s.t.Context(), s.Warehouse, statement)
	require.NoError(s.t, err, statement)
}

func (s *soak) flinkInsert() string {
	keys := s.absent(1 + s.rnd.IntN(6))
	if len(keys) == 0 {
		return "no key is free"
	}
	v := fmt.Sprintf("flink in step %d", s.step)
	s.insertTuples(keys, v)
	return fmt.Sprintf("%v, %s", keys, s.beside(func() { s.flink("INSERT INTO p.db.t (id, p, v) VALUES " + s.tuples(keys, v)) }))
}

func (s *soak) flinkCompact() string {
	return s.beside(func() { s.flink("CALL sys.compact(`table` => 'db.t', compact_strategy => 'full')") })
}

func (s *soak) flinkAlter() string {
	for i, name := range []string{"x1", "x3"} {
		if s.present(name) >= 0 {
			continue
		}
		s.m.addColumn(len(s.m.columns), name)
		how := s.beside(func() {
			s.flink(fmt.Sprintf("ALTER TABLE p.db.t ADD %s %s", name, []string{"INT", "STRING"}[i]))
			s.altered()
		})
		return "added " + name + ", " + how
	}
	return "nothing to add"
}

func (s *soak) flinkTag() string {
	if len(s.tags) == 3 {
		return "enough"
	}
	was, ok := s.former(5)
	if !ok {
		return "nothing to tag"
	}
	name := fmt.Sprintf("t%d", s.step)
	s.tags[name] = was
	return fmt.Sprintf("%s is snapshot %d, ", name, was.snapshot) + s.beside(func() {
		s.flink(fmt.Sprintf("CALL sys.create_tag(`table` => 'db.t', tag => '%s', snapshot_id => %d)", name, was.snapshot))
	})
}
