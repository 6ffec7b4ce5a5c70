package verify

import (
	"context"
	"math"
	"testing"

	"applier/batcher"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

// keysOf reads the keys of a golden table into an index.
func keysOf(t *testing.T) (*keyTable, *Section) {
	b, err := objstore.NewLocal(golden+"/spec_dv/warehouse/spec_dv.db/my_table", objstore.LocalOptions{})
	require.NoError(t, err)
	tab, err := paimon.OpenTable(context.Background(), b, paimon.Read)
	require.NoError(t, err)
	v := &verifier{Target: Target{ID: "p", Table: tab, Apply: batcher.Mirror, Key: []int{0}}, r: &Report{}}
	require.NoError(t, v.snapshots(context.Background()))
	v.files(context.Background())
	require.NotNil(t, v.last)
	k := &keyTable{v: v, ix: &Section{Status: OK}}
	require.NoError(t, k.open())
	t.Cleanup(k.close)
	sec := &Section{Status: OK}
	require.True(t, k.read(context.Background(), sec))
	require.Greater(t, len(k.rows), 2)
	return k, sec
}

func TestKeys_AnIndexThatHasLostARowOrKeptOneIsFound(t *testing.T) {
	k, _ := keysOf(t)
	k.compare(context.Background())
	require.Equal(t, OK, k.ix.Status, "%+v", k.ix.Findings)
	lost := k.rows[len(k.rows)-1].loc
	dead, err := k.v.vectorOf(context.Background(), k.v.last, k.files[lost.Segment()])
	require.NoError(t, err)
	if dead == nil {
		dead = roaring.New()
	}
	more := dead.Clone()
	more.Add(lost.Pos())
	require.NoError(t, k.index.SetDeleted(lost.Segment(), more))
	k.compare(context.Background())
	require.Equal(t, Failed, k.ix.Status)
	require.Contains(t, k.ix.Findings[0].What, "is live: true, the index finds it: false")
	require.NotEmpty(t, k.ix.Findings[0].File)

	k, _ = keysOf(t)
	k.rows = k.rows[:len(k.rows)-1]
	k.compare(context.Background())
	require.Equal(t, Failed, k.ix.Status)
	require.Contains(t, k.ix.Findings[0].What, "is live: false, the index finds it: true")
}

func TestKeyText_IsEqualWhereSQLSaysSo(t *testing.T) {
	c := types.Field{Name: "c", Type: types.CharType(5)}
	f := types.Field{Name: "f", Type: types.DoubleType()}
	text := func(s string, x float64) string {
		return keyText([]types.Field{c, f}, []types.Datum{types.StringDatum(s), types.FloatDatum(x)})
	}
	require.Equal(t, text("a", 0), text("a   ", math.Copysign(0, -1)))
	require.NotEqual(t, text("a", 0), text(" a", 0))
	require.NotEqual(t, text("a", 0), text("a", 1))
}
