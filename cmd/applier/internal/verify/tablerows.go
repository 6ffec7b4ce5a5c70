package verify

import (
	"context"

	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// load reads the metadata of a snapshot.
func (v *verifier) load(ctx context.Context, s *snapshot) (*content, error) {
	return loadContent(ctx, v.Table, s)
}

func loadContent(ctx context.Context, t *paimon.Table, s *snapshot) (*content, error) {
	st, err := t.State(ctx, s.s)
	if err != nil {
		return nil, err
	}
	c := &content{snap: s, state: st}
	if c.files, err = t.Files(ctx, st, nil); err != nil {
		return nil, err
	}
	c.refs, err = paimon.VectorRefs(st.Index)
	return c, err
}

// allColumns of the table.
func (v *verifier) allColumns() []int {
	cols := make([]int, len(v.Table.Schema().Fields))
	for i := range cols {
		cols[i] = i
	}
	return cols
}

// readRows hands the rows of a file that are not in dead to fn; they are valid
// during the call.
func (v *verifier) readRows(ctx context.Context, e *manifest.Entry, dead *roaring.Bitmap, fn func(pos uint32, row []types.Datum) error) error {
	row := make([]types.Datum, len(v.Table.Schema().Fields))
	return v.Table.ReadFile(ctx, e, v.allColumns(), func(start int64, b *types.Batch) error {
		for i := range b.Len() {
			pos := uint32(start) + uint32(i)
			if dead != nil && dead.Contains(pos) {
				continue
			}
			for c := range row {
				row[c] = b.Cols[c].Datum(i)
			}
			if err := fn(pos, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// liveRows hands all live rows of a snapshot to fn; they are valid during the call.
func (v *verifier) liveRows(ctx context.Context, c *content, fn func(e *manifest.Entry, pos uint32, row []types.Datum) error) error {
	for i := range c.files {
		e := &c.files[i]
		dead, err := v.vectorOf(ctx, c, e)
		if err != nil {
			return err
		}
		if err := v.readRows(ctx, e, dead, func(pos uint32, row []types.Datum) error { return fn(e, pos, row) }); err != nil {
			return err
		}
	}
	return nil
}

// difference hands the rows to fn that are live in only one of two snapshots: sign
// is -1 for those of x, +1 for those of y. Rows are valid during the call.
func (v *verifier) difference(ctx context.Context, x, y *content, fn func(sign int, row []types.Datum)) error {
	in := map[paimon.FileKey]*manifest.Entry{}
	for i := range y.files {
		in[paimon.KeyOf(&y.files[i])] = &y.files[i]
	}
	for i := range x.files {
		e := &x.files[i]
		k := paimon.KeyOf(e)
		dx, err := v.vectorOf(ctx, x, e)
		if err != nil {
			return err
		}
		if in[k] == nil {
			if err := v.readRows(ctx, e, dx, func(_ uint32, row []types.Datum) error { fn(-1, row); return nil }); err != nil {
				return err
			}
			continue
		}
		delete(in, k)
		if x.refs[k] == y.refs[k] || x.refs[k].Same(y.refs[k]) {
			continue
		}
		dy, err := v.vectorOf(ctx, y, e)
		if err != nil {
			return err
		}
		err = v.readRows(ctx, e, nil, func(pos uint32, row []types.Datum) error {
			was, is := dx == nil || !dx.Contains(pos), dy == nil || !dy.Contains(pos)
			if was && !is {
				fn(-1, row)
			} else if is && !was {
				fn(1, row)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i := range y.files {
		e := &y.files[i]
		if in[paimon.KeyOf(e)] == nil {
			continue
		}
		dy, err := v.vectorOf(ctx, y, e)
		if err != nil {
			return err
		}
		if err := v.readRows(ctx, e, dy, func(_ uint32, row []types.Datum) error { fn(1, row); return nil }); err != nil {
			return err
		}
	}
	return nil
}

func cloneRow(row []types.Datum) []types.Datum {
	out := make([]types.Datum, len(row))
	for i, d := range row {
		out[i] = clone(d)
	}
	return out
}
