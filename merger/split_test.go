package merger

import (
	"fmt"
	"slices"
	"testing"

	"applier/batcher"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBatches_TheCutDoesNotMatter: the same stream, cut into batches in any way,
// leaves the table that the model of single changes leaves.
func TestBatches_TheCutDoesNotMatter(t *testing.T) {
	for _, c := range []struct {
		apply   batcher.Apply
		ordered bool
	}{
		{batcher.Mirror, false},
		{batcher.Upsert, false},
		{batcher.Upsert, true},
		{batcher.InsertOnly, false},
		{batcher.SoftDelete, false},
		{batcher.SoftDelete, true},
		{batcher.Append, false},
	} {
		name := c.apply.String()
		if c.ordered {
			name += " order_by"
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkSplit(t, c.apply, c.ordered) })
		})
	}
}

func checkSplit(t *rapid.T, a batcher.Apply, ordered bool) {
	o := rigOptions{fields: splitFields(), apply: a, onError: "skip"}
	if rapid.Bool().Draw(t, "partitioned") {
		o.partition = []string{"d"} // rows move between partitions
	}
	if a != batcher.Append {
		o.key = []int{colK}
	}
	if ordered {
		o.orderBy = []int{colOrd}
	}
	r := newRig(t, o)
	defer r.close()
	m := &splitModel{apply: a, ordered: ordered, rows: map[int64][]splitRow{}}
	seedTable(t, r, m)
	seeded := len(r.rows())
	r.begin()

	stream := drawStream(t, a, ordered)
	cuts := drawCuts(t, stream)
	m.run(stream)
	for i, c := range stream {
		r.appendSplit(c)
		if i+1 == len(stream) || !stream[i+1].moved {
			r.record(0)
		}
		if cuts[i] || i+1 == len(stream) {
			r.commit()
		}
	}
	require.Equal(t, m.text(), r.rows(), "stream %+v", stream)
	checkCounts(t, r, seeded)
}

// seedTable lets another engine write rows first, several of one key and some
// that NULLs stand in for defaults.
func seedTable(t *rapid.T, r *rig, m *splitModel) {
	var rows [][]types.Datum
	for _, k := range []int64{9, 9, 1} {
		if !rapid.Bool().Draw(t, "seeded") {
			continue
		}
		n := int64(len(rows) + 1)
		row := splitRow{colK: num(k), colB: num(n), colC: num(n), colD: num(n), colOrd: num(2)}
		m.rows[k] = append(m.rows[k], row)
		rows = append(rows, row.datums())
	}
	if len(rows) > 0 {
		r.foreign(rows...)
	}
}

func (s splitRow) datums() []types.Datum {
	var out []types.Datum
	for col, p := range s {
		d := types.Null
		if p != nil {
			d = types.IntDatum(*p)
			switch col {
			case colB, colD:
				d = types.StringDatum(fmt.Sprint(*p))
			case colDeleted:
				d.I *= 1000
			}
		}
		out = append(out, d)
	}
	return out
}

func (m *splitModel) text() []string {
	out := []string{}
	for _, rows := range m.rows {
		for _, row := range rows {
			out = append(out, rowText(splitFields(), row.datums()))
		}
	}
	slices.Sort(out)
	return out
}

// appendSplit decodes a change, as it were.
func (r *rig) appendSplit(c splitChange) {
	out := r.b.Changes()
	row := out.Len()
	for col := range splitColumns {
		v := &out.Cols[col]
		var d types.Datum
		switch {
		case col == colK:
			d = types.IntDatum(c.key)
		case col == colOrd && (!c.delete || len(r.set.Order.By) > 0):
			d = types.IntDatum(c.ord)
		case c.delete, col == colDeleted, c.holes[col] != known:
			d = types.Null
		case col == colB, col == colD:
			d = types.StringDatum(fmt.Sprint(c.value))
		default:
			d = types.IntDatum(c.value)
		}
		v.AppendDatum(d)
		if c.holes[col] == absent {
			v.Absent.Set(row)
		} else if c.holes[col] == unavailable {
			v.Unavailable.Set(row)
		}
	}
	out.EndRow(kindOf(c), 0, r.offsets[0], c.time)
	if c.old >= 0 {
		out.LinkOldKey([]types.Datum{types.IntDatum(c.old)})
	}
}

// checkCounts: what commits say they did is what became of the number of rows.
func checkCounts(t require.TestingT, r *rig, rows int) {
	want := int64(rows)
	for _, c := range r.committed {
		if c.Batch == nil {
			continue
		}
		want += c.Counts.Inserted
		if r.set.Apply == batcher.Mirror {
			want -= c.Counts.Deleted
		}
		b := c.Batch.Counts
		require.EqualValues(t, b.Changes, b.Ignored+b.Collapsed+b.Late+int64(len(c.Batch.Winners)))
	}
	require.Len(t, r.rows(), int(want))
}
