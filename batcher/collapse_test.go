package batcher

import (
	"fmt"
	"testing"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// keyCase is a merge key and its values; few of them, so that keys meet, with
// those that look different and are equal to SQL.
type keyCase struct {
	name   string
	types  []types.Type
	values [][]types.Datum
}

func keyCases() []keyCase {
	s, f, i := types.StringDatum, types.FloatDatum, types.IntDatum
	nan, nan2 := 0.0, 0.0
	nan, nan2 = nan/nan, -(nan2 / nan2)
	zero := 0.0
	one := func(ds ...types.Datum) (out [][]types.Datum) {
		for _, d := range append(ds, types.Null) {
			out = append(out, []types.Datum{d})
		}
		return out
	}
	return []keyCase{
		{"BIGINT", []types.Type{types.BigIntType()}, one(i(1), i(2), i(-1), i(1<<53+1))},
		{"DOUBLE", []types.Type{types.DoubleType()}, one(f(zero), f(-zero*1), f(nan), f(nan2), f(1.5))},
		{"CHAR", []types.Type{types.CharType(4)}, one(s("a"), s("a  "), s(" a"), s(""), s("  "))},
		{"STRING", []types.Type{types.StringType()}, one(s("a"), s("a  "), s(""), s("ä"))},
		{"DECIMAL(30,2)", []types.Type{types.DecimalType(30, 2)}, one(types.Datum{D: types.Int128{Lo: 100}}, types.Datum{D: types.Int128{Hi: 1, Lo: 100}})},
		{
			"INT,STRING",
			[]types.Type{types.IntType(), types.StringType()},
			[][]types.Datum{{i(1), s("a")}, {i(1), s("b")}, {i(2), s("a")}, {types.Null, s("a")}, {i(1), types.Null}},
		},
		{"INT,INT", []types.Type{types.IntType(), types.IntType()}, [][]types.Datum{{i(1), i(2)}, {i(2), i(1)}, {i(-1), i(-1)}}},
	}
}

// drawRows draws a stream of changes.
func drawRows(t *rapid.T, kc keyCase) []row {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) row {
		r := row{
			key:  rapid.SampledFrom(kc.values).Draw(t, "key"),
			kind: rapid.SampledFrom([]change.Kind{change.Insert, change.Update, change.Read, change.Delete, change.Delete}).Draw(t, "kind"),
			part: rapid.Int32Range(0, 1).Draw(t, "part"),
			v:    num(rapid.Int64Range(0, 9).Draw(t, "v")),
		}
		if rapid.IntRange(0, 4).Draw(t, "has order") > 0 {
			r.ord = num(rapid.Int64Range(0, 3).Draw(t, "ord")) // ties are likely
		}
		if r.kind != change.Delete && rapid.IntRange(0, 3).Draw(t, "moved") == 0 {
			r.old = rapid.SampledFrom(kc.values).Draw(t, "old key")
		}
		return r
	}), 0, 40).Draw(t, "rows")
}

// newerThan is the model's order: NULL first, then by number.
func newerThan(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	case *a < *b:
		return -1
	case *a > *b:
		return 1
	}
	return 0
}

// group is what the model knows of one key of a batch.
type group struct {
	rows   []int // in arrival order
	winner int
}

// modelCollapse goes through the changes one by one, as a table would that
// applies them at once.
func modelCollapse(kc keyCase, fields []types.Field, rows []row, a Apply, ordered bool, o Order) (map[string]*group, Counts) {
	groups := map[string]*group{}
	c := Counts{Changes: int64(len(rows))}
	for i, r := range rows {
		k, ok := canonical(fields, r.key)
		if !ok || r.kind == change.Delete && (a == Upsert || a == InsertOnly) {
			c.Ignored++
			continue
		}
		g := groups[k]
		if g == nil {
			groups[k] = &group{rows: []int{i}, winner: i}
			continue
		}
		if last := g.rows[len(g.rows)-1]; rows[last].part != r.part {
			c.TwoPartitions++
		}
		g.rows = append(g.rows, i)
		switch {
		case a == InsertOnly:
			c.Ignored++
		case ordered && o.Late != LateApply && newerThan(r.ord, rows[g.winner].ord) < 0:
			c.Late++
		case ordered && o.Tie != TieLast && newerThan(r.ord, rows[g.winner].ord) == 0:
			c.Tied++
		default:
			g.winner = i
			c.Collapsed++
		}
	}
	return groups, c
}

func TestSeal_CollapsesAsASequentialModel(t *testing.T) {
	for _, kc := range keyCases() {
		for _, a := range []Apply{Mirror, Upsert, InsertOnly, SoftDelete} {
			for _, ordered := range []bool{false, true} {
				if ordered && !a.Ordered(true) {
					continue
				}
				name := kc.name + " " + a.String()
				if !ordered {
					t.Run(name, func(t *testing.T) { checkCollapse(t, kc, a, ordered, Order{}) })
					continue
				}
				for _, o := range []Order{{}, {Tie: TieFirst}, {Tie: TieDeadLetter, Late: LateDeadLetter}, {Late: LateApply}, {Tie: TieFirst, Late: LateApply}} {
					t.Run(fmt.Sprintf("%s order_by tie %d late %d", name, o.Tie, o.Late), func(t *testing.T) { checkCollapse(t, kc, a, ordered, o) })
				}
			}
		}
	}
}

func checkCollapse(t *testing.T, kc keyCase, a Apply, ordered bool, order Order) {
	fields := testFields(kc.types...)
	o := Options{Order: order, Remembers: true, Fields: fields, Key: keyIndexes(len(kc.types)), Apply: a, Limits: Limits{Rows: 1 << 20}}
	if ordered {
		o.Order.By = []int{len(kc.types)}
	}
	b := newBatcher(t, o) // reused: what one batch leaves behind must not show in the next
	rapid.Check(t, func(t *rapid.T) {
		b.Reset(change.Positions{topic0: {}, topic1: {}}, []change.Partition{topic0, topic1}, 1)
		rows := drawRows(t, kc)
		for i, r := range rows {
			add(b, r, int64(i))
		}
		want, counts := modelCollapse(kc, fields, rows, a, ordered, order)
		batch := b.Seal(FlushRows)
		defer b.Recycle(batch)
		counts.Records = int64(len(rows))
		require.Equal(t, counts, batch.Counts)
		require.EqualValues(t, counts.Changes, counts.Ignored+counts.Collapsed+counts.Late+counts.Tied+int64(len(batch.Winners)))
		require.Len(t, batch.Winners, len(want))
		require.IsIncreasing(t, append([]int64{-1}, asInts(batch.Winners)...))
		for j, w := range batch.Winners {
			k, ok := canonical(fields, rows[w].key)
			require.True(t, ok)
			g := want[k]
			require.NotNil(t, g)
			require.Equal(t, g.winner, int(w))
			require.Equal(t, g.rows, chainOf(batch, int32(batch.Head(j))))
			delete(want, k)
		}
		checkOldHeads(t, fields, rows, batch, a)
	})
}

// chainOf returns a chain in arrival order.
func chainOf(b *Batch, head int32) []int {
	var out []int
	for w := head; w >= 0; w = b.Prev[w] {
		out = append([]int{int(w)}, out...)
	}
	return out
}

func asInts(s []uint32) (out []int64) {
	for _, x := range s {
		out = append(out, int64(x))
	}
	return out
}

// checkOldHeads: a key change leads to the last change of the key it left.
func checkOldHeads(t require.TestingT, fields []types.Field, rows []row, batch *Batch, a Apply) {
	at := 0
	for i, r := range rows {
		if r.old == nil {
			require.Equal(t, -1, batch.Changes.OldKeyOf(i))
			continue
		}
		require.Equal(t, at, batch.Changes.OldKeyOf(i))
		head := -1
		if old, ok := canonical(fields, r.old); ok {
			for j, x := range rows {
				ignored := x.kind == change.Delete && (a == Upsert || a == InsertOnly)
				if k, ok := canonical(fields, x.key); ok && k == old && !ignored {
					head = j
				}
			}
		}
		require.EqualValues(t, head, batch.OldHead[at])
		at++
	}
	require.Len(t, batch.OldHead, at)
}

func TestSeal_AppendTakesEveryChange(t *testing.T) {
	fields := testFields(types.BigIntType())
	b := newBatcher(t, Options{Fields: fields, Apply: Append, Limits: Limits{Rows: 100}})
	for i := range 5 {
		add(b, row{key: []types.Datum{types.IntDatum(7)}, kind: change.Kind(i % 4), v: num(int64(i))}, int64(i))
	}
	batch := b.Seal(FlushRows)
	require.Equal(t, []uint32{0, 1, 2, 3, 4}, batch.Winners)
	require.Equal(t, []int32{-1, -1, -1, -1, -1}, batch.Prev)
	require.Nil(t, batch.Keys)
	require.Zero(t, batch.Counts.Collapsed)
	require.EqualValues(t, 3, batch.Head(3))
}

func TestNew_RefusesWhatHasNoMeaning(t *testing.T) {
	fields := testFields(types.BigIntType())
	fields = append(fields, types.Field{Name: "a", Type: types.ArrayType(types.IntType())})
	for _, c := range []struct {
		name, err string
		o         Options
	}{
		{"order_by under mirror", "order_by: apply mirror leaves no row that a late change could be compared with", Options{Key: []int{0}, Order: Order{By: []int{1}}, Apply: Mirror}},
		{"order_by under insert_only", "order_by: apply insert_only leaves no row that a late change could be compared with", Options{Key: []int{0}, Order: Order{By: []int{1}}, Remembers: true, Apply: InsertOnly}},
		{"order_by a list", "order_by: column a of type ARRAY<INT> has no order", Options{Key: []int{0}, Order: Order{By: []int{3}}, Apply: Upsert}},
		{"no key", "merge key: no columns", Options{Apply: Mirror}},
		{"a list as key", "merge key: a column of type ARRAY<INT> cannot be compared", Options{Key: []int{3}, Apply: Mirror}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Fields = fields
			_, err := New(c.o)
			require.EqualError(t, err, c.err)
		})
	}
}

func TestApply_NamesAreThoseOfTheConfiguration(t *testing.T) {
	for _, name := range []string{"mirror", "upsert", "insert_only", "soft_delete", "append"} {
		a, ok := ParseApply(name)
		require.True(t, ok)
		require.Equal(t, name, a.String())
		require.Equal(t, name == "mirror", a.Barrier())
	}
	_, ok := ParseApply("Mirror")
	require.False(t, ok)
}

// The table of verdicts: what is newer always counts, equal and older ones as the
// pipeline says.
func TestOrder_Judge(t *testing.T) {
	for _, c := range []struct {
		o            Order
		older, equal Verdict
	}{
		{Order{}, Overtaken, Newer},
		{Order{Tie: TieFirst}, Overtaken, Tied},
		{Order{Tie: TieDeadLetter}, Overtaken, Tied},
		{Order{Late: LateApply}, LateTaken, Newer},
		{Order{Tie: TieFirst, Late: LateApply}, LateTaken, Tied},
		{Order{Late: LateDeadLetter}, Overtaken, Newer},
	} {
		require.Equal(t, []Verdict{c.older, c.equal, Newer}, []Verdict{c.o.Judge(-1), c.o.Judge(0), c.o.Judge(1)}, "%+v", c.o)
	}
}

func TestApply_OrderNeedsSomethingToCompareWith(t *testing.T) {
	for a, want := range map[Apply][2]bool{Mirror: {false, true}, Upsert: {true, true}, SoftDelete: {true, true}, InsertOnly: {}, Append: {}} {
		require.Equal(t, want, [2]bool{a.Ordered(false), a.Ordered(true)}, a.String())
	}
}

func BenchmarkSeal(bb *testing.B) {
	for _, kc := range keyCases() {
		bb.Run(kc.name, func(bb *testing.B) {
			const n = 50_000
			b := newBatcher(bb, Options{Fields: testFields(kc.types...), Key: keyIndexes(len(kc.types)), Apply: Mirror, Limits: Limits{Rows: n}})
			bb.ReportAllocs()
			for bb.Loop() {
				bb.StopTimer()
				for i := range n {
					key := make([]types.Datum, len(kc.types))
					copy(key, kc.values[0])
					if kc.types[0].IsNumeric() {
						key[0] = types.IntDatum(int64(i * 7 % (n / 2)))
					} else {
						key[0] = types.IntDatum(0)
						key[0].B = []byte{byte(i), byte(i >> 8)}
					}
					add(b, row{key: key, v: num(1)}, int64(i))
				}
				bb.StartTimer()
				b.Recycle(b.Seal(FlushRows))
			}
			bb.ReportMetric(float64(bb.Elapsed().Nanoseconds())/float64(bb.N)/n, "ns/change")
		})
	}
}
