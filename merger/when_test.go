package merger

import (
	"testing"
	"time"

	"applier/batcher"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// mergeOf reads clauses.
func mergeOf(t require.TestingT, skip bool, lines ...string) *Merge {
	clauses, err := ParseMerge(lines)
	require.NoError(t, err)
	return &Merge{Clauses: clauses, SkipUnchanged: skip}
}

// Clauses with current_timestamp() have one time a batch, also when it is planned again.
func TestMerge_TheTimeIsThatOfTheBatch(t *testing.T) {
	fields := append(kv(), types.Field{ID: 2, Name: "at", Type: types.TimestampLTZType(3)})
	r := newRig(t, rigOptions{apply: batcher.Merge, key: []int{0}, fields: fields, settings: func(s *Settings) {
		s.Merge = mergeOf(t, false, "NOT MATCHED THEN INSERT (k, v, at) VALUES (s.k, concat(s.__op, s.__topic, s.__partition, s.__offset), current_timestamp())")
	}})
	defer func() { r.close() }()
	r.begin()
	raced := false
	r.onStage = func(name string) {
		if name == "plan" && !raced {
			raced = true
			r.foreign([]types.Datum{types.IntDatum(7), types.StringDatum("foreign"), types.Null})
			r.now = r.now.Add(time.Hour)
		}
	}
	for k := range int64(2) {
		r.b.Changes().Cols[2].AppendNull()
		r.put(0, k, "v")
	}
	r.commit()
	require.True(t, raced)
	require.Equal(t, []string{"k=0 v=ut00 at=2027-01-15T08:00:00.000Z", "k=1 v=ut01 at=2027-01-15T08:00:00.000Z", "k=7 v=foreign at=NULL"}, r.rows())
}

// Rows that are updated keep their ids; rows that come anew get new ones.
func TestMerge_RowsKeepTheirIDs(t *testing.T) {
	for name, options := range tableModes {
		if options["row-tracking.enabled"] == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigOptions{apply: batcher.Merge, key: []int{0}, fields: append(kv(), types.Field{ID: 2, Name: "p", Type: types.StringType()}), options: options, settings: func(s *Settings) {
				s.Merge = mergeOf(t, true, "MATCHED AND s.v = 'gone' THEN DELETE", "MATCHED THEN UPDATE SET *", "NOT MATCHED THEN INSERT *")
			}})
			defer func() { r.close() }()
			r.begin()
			put := func(k int64, v string) {
				r.b.Changes().Cols[2].AppendNull()
				r.put(0, k, v)
			}
			for k := range int64(3) {
				put(k, "old")
			}
			r.commit()
			before := r.trackedRows()
			put(0, "new")
			put(1, "gone")
			put(1, "again")
			put(2, "old") // the same
			r.commit()
			after := r.trackedRows()
			require.Equal(t, before[0].id, after[0].id)
			require.NotContains(t, []int64{before[0].id, before[1].id, before[2].id}, after[1].id)
			require.Equal(t, before[2], after[2], "the row was not written")
			require.Greater(t, after[0].sequence, before[0].sequence)
		})
	}
}

func TestParseMerge_OneClauseALine(t *testing.T) {
	list, err := ParseMerge([]string{"MATCHED\n  AND s.a = 1 THEN DELETE", "NOT MATCHED BY TARGET THEN INSERT *"})
	require.NoError(t, err)
	m := Merge{Clauses: list}
	again, err := ParseMerge([]string{"matched and S.a=1 then delete -- a comment", "not matched then insert *"})
	require.NoError(t, err)
	require.NotEqual(t, m.text(), (&Merge{Clauses: again}).text(), "S.a and s.a are spelled differently")
	again, err = ParseMerge([]string{"matched and s.a=1 then delete -- a comment", "not matched then insert *"})
	require.NoError(t, err)
	require.Equal(t, m.text(), (&Merge{Clauses: again}).text())
}
