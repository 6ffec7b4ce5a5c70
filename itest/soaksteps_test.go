//go:build itest

package itest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

const (
	soakKeys       = 80
	soakPartitions = 2
)

// soakStep is one kind of step. do carries it out on the table and on the model, and
// says what it was.
type soakStep struct {
	name   string
	weight int
	do     func(s *soak) string
}

func soakSteps() []soakStep {
	steps := []soakStep{
		{"batch", 30, (*soak).batch},
		{"race", 4, (*soak).race},
		{"sql", 9, (*soak).sql},
		{"insert", 8, (*soak).insert},
		{"double", 2, (*soak).double},
		{"delete", 6, (*soak).deleteRows},
		{"update", 5, (*soak).updateRows},
		{"overwrite", 1, (*soak).overwrite},
		{"compact", 5, (*soak).compact},
		{"our compact", 4, (*soak).ourCompact},
		{"manifests", 2, (*soak).manifests},
		{"expire", 3, (*soak).expire},
		{"our expire", 3, (*soak).ourExpire},
		{"orphans", 2, (*soak).orphans},
		{"alter", 9, (*soak).alter},
		{"mistake", 1, (*soak).mistake},
		{"tag", 5, (*soak).tag},
		{"rollback", 5, (*soak).rollback},
		{"siege", 6, (*soak).siege},
		{"branch", 2, (*soak).branch},
		{"restart", 3, (*soak).restart},
		{"kill", 3, (*soak).kill},
	}
	if fullMatrix {
		steps = append(steps, soakStep{"flink insert", 3, (*soak).flinkInsert}, soakStep{"flink compact", 2, (*soak).flinkCompact},
			soakStep{"flink alter", 1, (*soak).flinkAlter}, soakStep{"flink tag", 1, (*soak).flinkTag})
	}
	return steps
}

// ---- the daemon

// cells draws values for columns, those of the model or some of them.
func (s *soak) cells(key int, all bool) map[string]string {
	out := map[string]string{}
	for _, c := range s.m.columns {
		if c.name != "id" && (all || s.rnd.IntN(2) == 0) {
			out[c.name] = s.value(c.name, key)
		}
	}
	out["id"] = fmt.Sprint(key)
	return out
}

func (s *soak) value(column string, key int) string {
	switch {
	case column == "p":
		return fmt.Sprintf("%q", s.somePartition())
	case column != "v" && s.rnd.IntN(5) == 0:
		return "null"
	case column == "n", column == "x1", column == "x2":
		return fmt.Sprint(s.rnd.IntN(2_000_000) - 1_000_000)
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%s of %d in step %d", column, key, s.step))
}

func (s *soak) somePartition() string { return fmt.Sprintf("p%d", s.rnd.IntN(3)) }

// object makes a JSON object of cells; it is the same for the same cells.
func object(cells map[string]string) string {
	var parts []string
	for name, v := range cells {
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// feedRecords has the daemon apply changes.
func (s *soak) feedRecords(n int, spare ...int) {
	s.t.Helper()
	from := len(s.m.records)
	s.produce(n, spare...)
	s.follow(from)
}

// produce makes changes, several of some keys, none of those to spare. The model does not
// know them before it follows.
func (s *soak) produce(n int, spare ...int) {
	s.t.Helper()
	var recs []*kgo.Record
	for range n {
		r := soakRecord{key: s.rnd.IntN(soakKeys)}
		if slices.Contains(spare, r.key) {
			continue
		}
		part := int32(r.key % soakPartitions)
		if s.rnd.IntN(4) == 0 {
			recs = append(recs, del(s.pipes[0].Topic, part, fmt.Sprintf(`{"id":%d}`, r.key)))
		} else {
			r.cells = s.cells(r.key, s.rnd.IntN(3) > 0)
			recs = append(recs, put(s.pipes[0].Topic, part, object(r.cells)))
		}
		s.m.records = append(s.m.records, r)
	}
	s.kafka.Produce(s.t, recs...)
}

// follow applies the records from a number on to the model.
func (s *soak) follow(from int) {
	for _, r := range s.m.records[from:] {
		s.touch(r.key, r.cells != nil && len(s.m.rows[r.key]) > 0)
		s.m.apply(r)
	}
}

// touch notes that rows of a key change: updated says that they all stay what they are
// but for values.
func (s *soak) touch(key int, updated bool) {
	before, there := s.touched[key]
	s.touched[key] = updated && (before || !there)
}

func (s *soak) batch() string {
	n := 1 + s.rnd.IntN(25)
	s.feedRecords(n)
	s.waitApplied(s.p)
	return fmt.Sprintf("%d records", n)
}

// race has Java insert other keys while a batch is under way.
func (s *soak) race() string {
	keys := s.absent(3)
	if s.upkeep || len(keys) == 0 {
		return s.batch()
	}
	s.feedRecords(25, keys...)
	wait := time.Duration(s.rnd.Int64N(int64(100 * time.Millisecond)))
	<-time.After(wait) // the random time is the point
	do(s.t, s.java, s.ref(), harness.InsertRows(s.fresh(keys)...))
	s.waitApplied(s.p)
	return fmt.Sprintf("about 25 records, %v inserted by Java after %v", keys, wait.Round(time.Millisecond))
}

func (s *soak) restart() string {
	harness.MustStop(s.t, s.p)
	return s.launched()
}

// kill is a kill -9 with a batch under way.
func (s *soak) kill() string {
	n := 1 + s.rnd.IntN(25)
	s.feedRecords(n)
	wait := time.Duration(s.rnd.Int64N(int64(200 * time.Millisecond)))
	<-time.After(wait) // the random time is the point
	s.p.Kill()
	return fmt.Sprintf("%v after %d records, ", wait.Round(time.Millisecond), n) + s.launched()
}

func (s *soak) launched() string {
	upkeep, rows := s.rnd.IntN(3) == 0, []int{4, 1000}[s.rnd.IntN(2)]
	s.launch(upkeep, rows)
	s.waitApplied(s.p)
	return fmt.Sprintf("started with upkeep %v, batches of %d", upkeep, rows)
}

// ---- others

// beside lets others work on the table: the daemon waits for records, is paused, as the
// manual asks for, or is stopped.
func (s *soak) beside(work func()) string {
	s.t.Helper()
	if s.held {
		work()
		return "too"
	}
	how := []string{asIdle, asIdle, asLooking, asLooking, asPaused, asPaused, asPaused, asStopped}[s.rnd.IntN(8)]
	how = s.hold(how)
	work()
	s.release(how)
	return how
}

// What the daemon does while others write, and what ends it.
const (
	asIdle    = "idle"    // it waits for records
	asLooking = "looked"  // the same, and is made to look at the table then
	asPaused  = "paused"  // until applier resume
	asStopped = "stopped" // until it is started again
)

// hold makes the daemon leave the table to others. One that keeps house may commit at
// any moment if it is not paused.
func (s *soak) hold(how string) string {
	s.t.Helper()
	if s.upkeep && how != asStopped {
		how = asPaused
	}
	switch how {
	case asPaused:
		s.must("pause", "p")
	case asStopped:
		harness.MustStop(s.t, s.p)
	}
	s.behind = len(s.m.records)
	return how
}

// release ends what hold began. The records that wait, those that a rollback took back
// among them, are applied to what others have left.
func (s *soak) release(how string) {
	s.t.Helper()
	record, err := lastRecord(s.ref(), s.pipes[0].ID)
	require.NoError(s.t, err)
	switch how {
	case asLooking, asPaused:
		s.command("resume", "p")
	case asStopped:
		s.p = s.start()
	}
	if record == nil && s.step > 1 {
		s.restate(s.behind)
	}
	if s.behind < len(s.m.records) || how == asStopped {
		s.follow(s.behind)
		s.waitApplied(s.p)
	}
}

// siege has others do several things while the daemon may not, with records that wait.
func (s *soak) siege() string {
	how := s.hold([]string{asPaused, asStopped}[s.rnd.IntN(2)])
	s.held = true
	what := []string{how}
	if n := s.rnd.IntN(20); n > 8 {
		s.produce(n)
		what = append(what, fmt.Sprintf("%d records", n))
	}
	others := []soakStep{
		{"insert", 0, (*soak).insert},
		{"delete", 0, (*soak).deleteRows},
		{"update", 0, (*soak).updateRows},
		{"compact", 0, (*soak).compact},
		{"our compact", 0, (*soak).ourCompact},
		{"expire", 0, (*soak).expire},
		{"alter", 0, (*soak).alter},
		{"alter", 0, (*soak).alter},
		{"sql", 0, (*soak).sql},
		{"rollback", 0, (*soak).rollback},
	}
	for range 2 + s.rnd.IntN(4) {
		st := others[s.rnd.IntN(len(others))]
		what = append(what, st.name+": "+st.do(s))
		s.doing = strings.Join(what, "; ")
		s.compare()
	}
	s.held = false
	s.release(how)
	return strings.Join(what, "; ")
}

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
