//go:build itest

package itest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// readers are all who can read the table.
func (s *soak) readers() []harness.Judge {
	out := []harness.Judge{cat(s.t), s.java}
	if s.mode.options["deletion-vectors.bitmap64"] == "" {
		out = append(out, harness.PyPaimon(s.t))
	}
	if fullMatrix {
		out = append(out, harness.Flink(s.t))
	}
	return out
}

// compare reads the table, every tag, and one of the snapshots that steps left, with our
// reader and Java's; now and then with all.
func (s *soak) compare() {
	s.t.Helper()
	judges := []harness.Judge{cat(s.t), s.java}
	if s.step%20 == 0 {
		judges = s.readers()
	}
	harness.SameRows(s.t.Context(), s.t, textsOf(s.m.columns, s.m.rows), s.ref(), harness.Query{}, judges...)
	for name, was := range s.tags {
		columns := s.columnsOf(filepath.Join("tag", "tag-"+name))
		harness.SameRows(s.t.Context(), s.t, textsOf(columns, was.rows), s.ref(), harness.Query{Tag: name}, cat(s.t), s.java)
	}
	if then, ok := s.former(len(s.past)); ok && s.step%3 == 0 {
		columns := s.columnsOf(filepath.Join("snapshot", "snapshot-"+strconv.FormatInt(then.snapshot, 10)))
		harness.SameRows(s.t.Context(), s.t, textsOf(columns, then.rows), s.ref(), harness.Query{Snapshot: then.snapshot}, cat(s.t), s.java)
	}
}

// former draws one of the last n states whose snapshots are still there; false: none is.
func (s *soak) former(n int) (soakState, bool) {
	there := map[int64]bool{}
	for _, id := range snapshotIDs(s.ref()) {
		there[id] = true
	}
	var of []soakState
	for _, st := range s.past[max(0, len(s.past)-n):] {
		if there[st.snapshot] {
			of = append(of, st)
		}
	}
	if len(of) == 0 {
		return soakState{}, false
	}
	return of[s.rnd.IntN(len(of))], true
}

// snapshotFacts are what the model takes from the file of a snapshot or a tag: who
// wrote it chose the schema, and ids are counted by it.
type snapshotFacts struct {
	SchemaID  int64 `json:"schemaId"`
	NextRowID int64 `json:"nextRowId"`
}

func (s *soak) facts(file string) (f snapshotFacts) {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(tableDir(s.ref()), file))
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(b, &f))
	return f
}

// columnsOf are the columns of a snapshot's or tag's own schema.
func (s *soak) columnsOf(file string) []soakColumn {
	s.t.Helper()
	id := s.facts(file).SchemaID
	require.Contains(s.t, s.schemas, id)
	return s.schemas[id]
}

// followIDs reads the hidden columns and compares them with those before the step, as
// row-level.md §5 has it: an id is given once; a row keeps it, and its sequence number
// is the snapshot that changed it last.
func (s *soak) followIDs(now *soakState) {
	s.t.Helper()
	t := s.t
	now.hidden = s.readIDs()
	now.nextID = s.facts(filepath.Join("snapshot", "snapshot-"+strconv.FormatInt(now.snapshot, 10))).NextRowID
	kept := map[int][2]int{} // rows by key: before, and with the same id now
	for _, old := range s.ids.hidden {
		k := kept[old.key()]
		kept[old.key()] = [2]int{k[0] + 1, k[1]}
	}
	for id, h := range now.hidden {
		old, there := s.ids.hidden[id]
		updated, touched := s.touched[h.key()]
		fresh := h.Sequence > s.from && h.Sequence <= now.snapshot
		switch {
		case !there:
			require.True(t, touched && !updated, "key %d, which was not inserted, got the new row id %d", h.key(), id)
			require.GreaterOrEqual(t, id, s.ids.nextID, "key %d got a row id that was given before", h.key())
			require.True(t, fresh, "the new row %d of key %d has the sequence number %d, and not one of snapshots %d to %d", id, h.key(), h.Sequence, s.from+1, now.snapshot)
			continue
		case !touched:
			require.Equal(t, old, h, "nothing has changed row %d", id)
		case updated:
			require.True(t, fresh, "row %d of key %d was changed in snapshots %d to %d, and its sequence number is %d", id, h.key(), s.from+1, now.snapshot, h.Sequence)
		default:
			require.True(t, fresh || h.Sequence == old.Sequence, "row %d of key %d has the sequence number %d", id, h.key(), h.Sequence)
		}
		require.Equal(t, old.ID, h.ID, "row %d went to another key", id)
		k := kept[h.key()]
		kept[h.key()] = [2]int{k[0], k[1] + 1}
	}
	for key, n := range kept {
		if updated, touched := s.touched[key]; !touched || updated {
			require.Equal(t, n[0], n[1], "key %d has lost row ids", key)
		}
	}
}

func (h hidden) key() int {
	n, err := strconv.Atoi(string(h.ID))
	if err != nil {
		return -1
	}
	return n
}

// readIDs takes the hidden columns by row id from Java, which must agree with ourselves.
func (s *soak) readIDs() map[int64]hidden {
	s.t.Helper()
	q := harness.Query{Columns: []string{"id", "_ROW_ID", "_SEQUENCE_NUMBER"}}
	tracking := s.ref()
	tracking.Table += "$row_tracking"
	theirs, err := s.java.Read(s.t.Context(), tracking, q)
	require.NoError(s.t, err)
	ours, err := cat(s.t).Read(s.t.Context(), s.ref(), q)
	require.NoError(s.t, err)
	require.Empty(s.t, harness.DiffRows("java", theirs.Texts(), "applier", ours.Texts()))
	out := map[int64]hidden{}
	for _, text := range theirs.Texts() {
		var h hidden
		require.NoError(s.t, json.Unmarshal([]byte(text), &h))
		require.NotContains(s.t, out, h.RowID, "a row id is there twice")
		out[h.RowID] = h
	}
	return out
}
