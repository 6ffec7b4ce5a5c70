//go:build itest

package itest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// The steps that change how the table is kept: files, snapshots, schemas, tags.

func (s *soak) compact() string {
	if s.rnd.IntN(2) == 0 {
		return "full, " + s.javaDoes(harness.CompactFull())
	}
	return s.javaDoes(harness.Compact(2))
}

func (s *soak) ourCompact() string {
	args := []string{"compact", "db.t"}
	switch s.rnd.IntN(3) {
	case 0:
		args = append(args, "--full")
	case 1:
		args = append(args, "--deleted-ratio", "0.1")
	}
	how := s.beside(func() { s.must(args...) })
	return strings.Join(args[2:], " ") + " " + how
}

func (s *soak) manifests() string {
	return s.beside(func() { require.NoError(s.t, s.java.CompactManifests(s.t.Context(), s.ref())) })
}

func (s *soak) expire() string {
	most := 1 + s.rnd.IntN(8)
	how := s.beside(func() {
		_, err := s.java.Expire(s.t.Context(), s.ref(), harness.Expiry{RetainMax: most, OlderThan: -1})
		require.NoError(s.t, err)
	})
	return fmt.Sprintf("%d stay at most, %s", most, how)
}

func (s *soak) ourExpire() string {
	most := 1 + s.rnd.IntN(8)
	how := s.beside(func() {
		s.must("expire", "db.t", "--retain-min", "1", "--retain-max", fmt.Sprint(most), "--retain-time", "0s")
	})
	return fmt.Sprintf("%d stay at most, %s", most, how)
}

func (s *soak) orphans() string {
	n := 0
	how := s.beside(func() {
		gone, err := s.java.Orphans(s.t.Context(), s.ref(), true)
		require.NoError(s.t, err)
		n = len(gone)
	})
	return fmt.Sprintf("%d files, %s", n, how)
}

// altered remembers the schema's columns under its id.
func (s *soak) altered() {
	s.t.Helper()
	spec, err := s.java.Schema(s.t.Context(), s.ref())
	require.NoError(s.t, err)
	s.schemas[spec.SchemaID] = slices.Clone(s.m.columns)
}

// spare are the columns that come and go: numbers and texts.
var spare = [][]string{{"x1", "x2"}, {"x3", "x4"}}

// present returns the place of a column, -1 for none.
func (s *soak) present(name string) int {
	return slices.IndexFunc(s.m.columns, func(c soakColumn) bool { return c.name == name })
}

func (s *soak) alter() string {
	var change harness.Args
	how := s.beside(func() { change = s.change() })
	return fmt.Sprintf("%v, %s", change, how)
}

// change adds, drops, renames, widens or comments a column, or sets an option.
func (s *soak) change() harness.Args {
	s.t.Helper()
	kind := s.rnd.IntN(2)
	name := spare[kind][s.rnd.IntN(2)]
	other := spare[kind][0]
	if other == name {
		other = spare[kind][1]
	}
	at := s.present(name)
	var change harness.Args
	switch what := s.rnd.IntN(6); {
	case at < 0 && s.rnd.IntN(4) > 0:
		change = harness.Args{"op": "add_column", "name": name, "type": []string{"INT", "STRING"}[kind]}
		to := len(s.m.columns)
		switch s.rnd.IntN(3) {
		case 0:
			change["first"], to = true, 0
		case 1:
			change["after"], to = "id", s.present("id")+1
		}
		s.m.addColumn(to, name)
	case at >= 0 && what < 2:
		change = harness.Args{"op": "drop_column", "name": name}
		s.m.columns = slices.Delete(slices.Clone(s.m.columns), at, at+1)
	case at >= 0 && what < 4 && s.present(other) < 0:
		change = harness.Args{"op": "rename_column", "name": name, "to": other}
		s.m.columns[at].name = other
	case what == 4 && at >= 0 && kind == 0:
		change = harness.Args{"op": "update_type", "name": name, "type": "BIGINT"}
	case what == 5:
		change = harness.Args{"op": "set_option", "key": "compaction.min.file-num", "value": fmt.Sprint(3 + s.rnd.IntN(5))}
	default:
		change = harness.Args{"op": "update_comment", "name": "n", "comment": fmt.Sprintf("%d of step %d", s.rnd.IntN(1000), s.step)}
	}
	require.NoError(s.t, s.java.Alter(s.t.Context(), s.ref(), change))
	s.altered()
	return change
}

// mistake renames the merge key, which no pipeline can follow, and takes it back.
func (s *soak) mistake() string {
	rename := func(from, to string) {
		require.NoError(s.t, s.java.Alter(s.t.Context(), s.ref(), harness.Args{"op": "rename_column", "name": from, "to": to}))
		s.m.columns[s.present(from)].name = to
		s.altered()
	}
	rename("id", "renamed")
	s.command("resume", "p") // it looks at once, and its answer is the halt
	s.waitHalt(s.p, "T-SCHEMA")
	rename("renamed", "id")
	s.resumed(s.p)
	return "the merge key renamed, T-SCHEMA, and back"
}

// tag tags the newest snapshot or one that a step left, or removes a tag.
func (s *soak) tag() string {
	if len(s.tags) == 3 {
		name := slices.Sorted(maps.Keys(s.tags))[s.rnd.IntN(3)]
		delete(s.tags, name)
		return name + " removed, " + s.beside(func() { require.NoError(s.t, s.java.DeleteTag(s.t.Context(), s.ref(), name)) })
	}
	was, ok := s.former(10)
	if !ok {
		return "nothing to tag"
	}
	name := fmt.Sprintf("t%d", s.step)
	s.tags[name] = was
	return fmt.Sprintf("%s is snapshot %d, ", name, was.snapshot) + s.beside(func() {
		require.NoError(s.t, s.java.CreateTag(s.t.Context(), s.ref(), name, was.snapshot, 0))
	})
}

// rollback goes back to a snapshot or a tag. What was rolled back of ours is applied
// again, what was of others is gone, and so are the tags of later snapshots.
func (s *soak) rollback() string {
	to, ok := s.former(8)
	what := fmt.Sprintf("snapshot %d", to.snapshot)
	back := func() { require.NoError(s.t, s.java.Rollback(s.t.Context(), s.ref(), to.snapshot)) }
	if fullMatrix && s.rnd.IntN(5) == 0 {
		back = func() {
			s.flink(fmt.Sprintf("CALL sys.rollback_to(`table` => 'db.t', snapshot_id => %d)", to.snapshot))
		}
	}
	if len(s.tags) > 0 && s.rnd.IntN(3) == 0 {
		name := slices.Sorted(maps.Keys(s.tags))[s.rnd.IntN(len(s.tags))]
		to, ok, what = s.tags[name], true, fmt.Sprintf("tag %s, snapshot %d", name, s.tags[name].snapshot)
		back = func() { require.NoError(s.t, s.java.RollbackToTag(s.t.Context(), s.ref(), name)) }
	}
	if !ok {
		return "nothing to go back to"
	}
	return fmt.Sprintf("to %s, %s", what, s.goBack(to, back))
}

// goBack carries a rollback out and has the model follow.
func (s *soak) goBack(to soakState, back func()) string {
	s.t.Helper()
	how := asIdle
	if !s.held {
		how = s.hold([]string{asLooking, asPaused, asStopped}[s.rnd.IntN(3)])
	}
	s.m.rows, s.touched, s.behind = cloneRows(to.rows), map[int]bool{}, to.records
	s.past = slices.DeleteFunc(s.past, func(st soakState) bool { return st.snapshot > to.snapshot })
	maps.DeleteFunc(s.tags, func(_ string, st soakState) bool { return st.snapshot > to.snapshot })
	s.ids, s.from = to, to.snapshot
	back()
	tags, err := s.java.Tags(s.t.Context(), s.ref())
	require.NoError(s.t, err)
	require.Len(s.t, tags, len(s.tags))
	if !s.held {
		s.release(how)
	}
	return fmt.Sprintf("%d records again, %s", len(s.m.records)-to.records, how)
}

// restate is the answer of the manual to a rollback to before every position record
// that is left: the positions that belong to what the table holds.
func (s *soak) restate(records int) {
	s.t.Helper()
	s.waitHalt(s.p, "T-OFFSET-LOST")
	var next [soakPartitions]int
	for _, r := range s.m.records[:records] {
		next[r.key%soakPartitions]++
	}
	args := []string{"offsets", "set", "p"}
	for part, n := range next {
		args = append(args, "--to", fmt.Sprintf("%s/%d=%d", s.pipes[0].Topic, part, n))
	}
	s.must(args...)
	s.over(s.p, "T-OFFSET-LOST")
}
