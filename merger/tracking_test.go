package merger

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/batcher"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// trackedRow is a row with its hidden columns.
type trackedRow struct {
	value, partition string
	id, sequence     int64
}

func (r *rig) trackedRows() map[int64]trackedRow {
	out := map[int64]trackedRow{}
	cols := []int{0, 1, 2, paimon.RowIDColumn, paimon.SequenceColumn}
	require.NoError(r.t, r.table.Scan(bg, r.latest(), paimon.ScanOptions{Columns: cols}, func(b *types.Batch) error {
		for i := range b.Len() {
			row := b.Row(i)
			require.NotContains(r.t, out, row[0].I)
			out[row[0].I] = trackedRow{string(row[1].B), string(row[2].B), row[3].I, row[4].I}
		}
		return nil
	}))
	return out
}

// TestRowTracking_AgainstAModel: a row keeps its id through updates and moves
// between partitions until a delete ends it; its sequence number is the snapshot of
// its last change; ids of new rows go on where the snapshot before ended and are
// never given twice.
func TestRowTracking_AgainstAModel(t *testing.T) {
	for _, mode := range []string{"tracked, vectors", "tracked, copy on write"} {
		t.Run(mode, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkTracking(t, tableModes[mode]) })
		})
	}
}

func checkTracking(t *rapid.T, options map[string]string) {
	o := rigOptions{apply: batcher.Mirror, key: []int{0}, options: options}
	o.fields = append(kv(), types.Field{ID: 2, Name: "p", Type: types.StringType()})
	if rapid.Bool().Draw(t, "partitioned") {
		o.partition = []string{"p"}
	}
	r := newRig(t, o)
	defer r.close()
	r.begin()
	model, given := map[int64]trackedRow{}, map[int64]bool{}
	for step := range rapid.IntRange(2, 8).Draw(t, "commits") {
		next := *r.latest().Snapshot.NextRowID
		ended := map[int64]bool{} // keys whose row a delete of this commit ended
		touched := map[int64]bool{}
		if step%4 == 3 {
			k := int64(100 + step)
			r.foreign([]types.Datum{types.IntDatum(k), types.StringDatum("f"), types.StringDatum("p0")})
			model[k], touched[k], ended[k] = trackedRow{value: "f", partition: "p0"}, true, true
		} else {
			for range rapid.IntRange(1, 8).Draw(t, "changes") {
				k, v := rapid.Int64Range(0, 9).Draw(t, "key"), rapid.StringMatching(`[a-z]{2}|-`).Draw(t, "value")
				p := rapid.SampledFrom([]string{"p0", "p1"}).Draw(t, "partition")
				r.b.Changes().Cols[2].AppendString(p)
				r.put(0, k, v)
				if v == "-" {
					delete(model, k)
					ended[k] = true
					continue
				}
				row, there := model[k]
				ended[k] = ended[k] || !there
				row.value, row.partition, touched[k] = v, p, true
				model[k] = row
			}
			r.commit()
			r.checkIndex()
		}
		snap := r.latest().Snapshot
		got := r.trackedRows()
		require.ElementsMatch(t, slices.Collect(maps.Keys(model)), slices.Collect(maps.Keys(got)))
		for k, want := range model {
			have := got[k]
			if touched[k] {
				want.sequence = snap.ID
			}
			if ended[k] && touched[k] {
				require.False(t, given[have.id], "id %d was given before", have.id)
				require.True(t, have.id >= next && have.id < *snap.NextRowID, "id %d of %d to %d", have.id, next, *snap.NextRowID)
				given[have.id] = true
				want.id = have.id
			}
			require.Equal(t, want, have, "key %d", k)
			model[k] = want
		}
	}
}

// A table whose row tracking was switched on later has rows without ids; so has one
// that somebody compacted who does not know of them.
func TestRowTracking_RowsWithoutIDsAreRefusedByName(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "a")
	r.commit()
	r.close()
	s := *r.table.Schema()
	s.ID, s.Options = 1, maps.Clone(s.Options)
	s.Options["row-tracking.enabled"] = "true"
	b, err := s.Encode()
	require.NoError(t, err)
	require.NoError(t, r.disk.PutIfAbsent(bg, paimon.Paths{}.Schema(1), b))
	_, err = paimon.OpenTable(bg, r.disk, paimon.Write)
	require.ErrorIs(t, err, paimon.ErrRefused)
	require.ErrorContains(t, err, "row ids begin with a table")

	r = kvRig(t, rigOptions{apply: batcher.Mirror, options: tableModes["tracked, vectors"]})
	r.begin()
	r.put(0, 1, "a")
	r.commit()
	live, err := r.table.Files(bg, r.latest(), nil)
	require.NoError(t, err)
	lost := live[0]
	lost.File.Name, lost.File.FirstRowID = "data-lost-0.parquet", nil
	lost.File.Source = new(manifest.SourceCompact)
	key, err := r.table.Paths().Data(&live[0])
	require.NoError(t, err)
	data, err := r.disk.Get(bg, key)
	require.NoError(t, err)
	key, err = r.table.Paths().Data(&lost)
	require.NoError(t, err)
	r.publishForeign(bg, paimon.Changes{Add: []manifest.Entry{lost}, Delete: live[:1], Compact: true}, []objstore.Object{{Key: key, Data: data}})
	r.put(0, 1, "b")
	r.flush()
	require.Equal(t, CodeOptions, r.a.state.Halt.Code)
	require.Contains(t, r.a.state.Halt.Facts, "row tracking begins with a table")
}
