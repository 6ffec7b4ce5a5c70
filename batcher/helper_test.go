package batcher

import (
	"fmt"
	"math"
	"strings"
	"time"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

var (
	start  = time.Unix(1_800_000_000, 0)
	topic0 = change.Partition{Topic: "t", Partition: 0}
	topic1 = change.Partition{Topic: "t", Partition: 1}
)

// testFields: a merge key, an order column, a value.
func testFields(key ...types.Type) []types.Field {
	var fields []types.Field
	for i, t := range key {
		fields = append(fields, types.Field{ID: i, Name: fmt.Sprintf("k%d", i), Type: t})
	}
	return append(fields, types.Field{ID: 10, Name: "ord", Type: types.BigIntType()}, types.Field{ID: 11, Name: "v", Type: types.IntType()})
}

func keyIndexes(n int) []int {
	key := make([]int, n)
	for i := range key {
		key[i] = i
	}
	return key
}

// newBatcher returns a batcher of two partitions that stand at 0.
func newBatcher(t require.TestingT, o Options) *Batcher {
	b, err := New(o)
	require.NoError(t, err)
	b.Reset(change.Positions{topic0: {Next: 0, Epoch: -1}, topic1: {Next: 0, Epoch: -1}}, []change.Partition{topic0, topic1}, 1)
	return b
}

// row is one change as the tests write it; ord and v of nil are NULL.
type row struct {
	key    []types.Datum
	old    []types.Datum // the key before, if it changed
	kind   change.Kind
	part   int32
	ord, v *int64
}

func num(n int64) *int64 { return &n }

func datum(p *int64) types.Datum {
	if p == nil {
		return types.Null
	}
	return types.IntDatum(*p)
}

// add appends one change as a decoder would and passes its record.
func add(b *Batcher, r row, offset int64) {
	c := b.Changes()
	for i, d := range r.key {
		c.Cols[i].AppendDatum(d)
	}
	c.Cols[len(r.key)].AppendDatum(datum(r.ord))
	c.Cols[len(r.key)+1].AppendDatum(datum(r.v))
	c.EndRow(r.kind, r.part, offset, offset*1000)
	if r.old != nil {
		c.LinkOldKey(r.old)
	}
	c.Bytes += 10
	b.Record(r.part, offset, 0, []byte("k"), fmt.Append(nil, offset), start)
}

// canonical is the model's own notion of key equality: SQL's.
func canonical(fields []types.Field, key []types.Datum) (string, bool) {
	var parts []string
	for i, d := range key {
		if d.Null {
			return "", false
		}
		switch t := fields[i].Type; t.Kind {
		case types.Double, types.Float:
			switch {
			case math.IsNaN(d.F):
				parts = append(parts, "NaN")
			case d.F == 0:
				parts = append(parts, "0")
			default:
				parts = append(parts, fmt.Sprint(d.F))
			}
		case types.Char:
			parts = append(parts, fmt.Sprintf("%q", strings.TrimRight(string(d.B), " ")))
		case types.VarChar, types.VarBinary, types.Binary:
			parts = append(parts, fmt.Sprintf("%q", d.B))
		case types.Decimal:
			parts = append(parts, fmt.Sprint(d.I, d.D))
		default:
			parts = append(parts, fmt.Sprint(d.I, ".", d.N))
		}
	}
	return strings.Join(parts, ","), true
}
