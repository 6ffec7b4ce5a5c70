package paimon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

func TestVersion_FindsSnapshotsTagsTimesAndBranches(t *testing.T) {
	f := chain(t, 4) // rows 0 to 3, a millisecond apart
	s2, err := ReadSnapshot(bg, f.bucket, f.tab.Paths(), 2)
	require.NoError(t, err)
	require.NoError(t, CreateTag(bg, f.bucket, f.tab.Paths(), "two", &Tag{Snapshot: *s2}))
	branch, err := NewPaths(f.tab.Schema(), *f.tab.Options(), "b")
	require.NoError(t, err)
	for from, to := range map[string]string{f.tab.Paths().Schema(0): branch.Schema(0), f.tab.Paths().Snapshot(3): branch.Snapshot(3)} {
		data, err := f.bucket.Get(bg, from)
		require.NoError(t, err)
		require.NoError(t, f.bucket.PutIfAbsent(bg, to, data))
	}
	require.NoError(t, CreateTag(bg, f.bucket, branch, "one", &Tag{Snapshot: *s2}))
	// A later schema: the versions before it keep theirs.
	f.alter(func(s *Schema) {
		s.Fields = append(s.Fields, types.Field{ID: 1, Name: "more", Type: types.IntType()})
		s.HighestFieldID = 1
	})
	at := time.UnixMilli(s2.TimeMillis)
	for name, c := range map[string]struct {
		v          Version
		rows, cols int
	}{
		"the newest":                {Version{}, 4, 2},
		"main by its name":          {Version{Branch: "main"}, 4, 2},
		"a snapshot":                {Version{Snapshot: 3}, 3, 1},
		"a tag":                     {Version{Tag: "two"}, 2, 1},
		"the time of a snapshot":    {Version{At: at}, 2, 1},
		"just before the next one":  {Version{At: at.Add(time.Millisecond - 1)}, 2, 1},
		"long after the newest":     {Version{At: at.Add(time.Hour)}, 4, 1},
		"a branch":                  {Version{Branch: "b"}, 3, 1},
		"a tag of a branch":         {Version{Branch: "b", Tag: "one"}, 2, 1},
		"a time on a branch":        {Version{Branch: "b", At: at.Add(time.Hour)}, 3, 1},
		"the snapshot of a branch":  {Version{Branch: "b", Snapshot: 3}, 3, 1},
		"the newest before another": {Version{At: at.Add(-1 + 2*time.Millisecond)}, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tab, st, err := f.tab.Version(bg, c.v)
			require.NoError(t, err)
			require.Len(t, scanRows(t, tab, st, ScanOptions{Columns: []int{0}}), c.rows)
			require.Len(t, tab.Schema().Fields, c.cols)
		})
	}
	for name, v := range map[string]Version{
		"a snapshot that is not there": {Snapshot: 9}, "a tag": {Tag: "x"}, "a branch": {Branch: "x"},
		"a time before the first": {At: at.Add(-time.Hour)}, "a snapshot of main alone": {Branch: "b", Snapshot: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := f.tab.Version(bg, v)
			require.ErrorIs(t, err, ErrNoVersion)
		})
	}
	_, _, err = f.tab.Version(bg, Version{Branch: "../x"})
	require.Error(t, err)
}

func TestVersion_OfATableWithoutSnapshotsIsEmpty(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.BigIntType())}, nil)
	tab, st, err := f.tab.Version(bg, Version{})
	require.NoError(t, err)
	require.Nil(t, st.Snapshot)
	require.Empty(t, scanRows(t, tab, st, ScanOptions{Columns: []int{0}}))
	_, _, err = f.tab.Version(bg, Version{At: time.Now()})
	require.ErrorIs(t, err, ErrNoVersion)
}
