package merger

import (
	"context"
	"fmt"
	"slices"

	"applier/merger/keyindex"
	"applier/storage/paimon"
	"applier/storage/types"
)

// hasOrigins reports whether rows to be written are new versions of rows with ids.
func (p *plan) hasOrigins() bool {
	return slices.ContainsFunc(p.origins, func(l keyindex.Loc) bool { return l != 0 })
}

// split parts rows of out into new ones and new versions of rows with ids.
func (p *plan) split(rows []uint32) (fresh, old []uint32) {
	if !p.hasOrigins() {
		return rows, nil
	}
	for _, i := range rows {
		if p.origins[i] == 0 {
			fresh = append(fresh, i)
		} else {
			old = append(old, i)
		}
	}
	return fresh, old
}

// rowIDs returns the ids of rows of the table, one for each of locs; those of 0
// mean nothing.
func (v *view) rowIDs(ctx context.Context, locs []keyindex.Loc) ([]int64, error) {
	ids := make([]int64, len(locs))
	var held []keyindex.Loc // whose ids are in the file
	for i, l := range locs {
		if l == 0 {
			continue
		}
		f := v.bySeg[l.Segment()]
		if f == nil {
			return nil, &Halt{CodeMismatch, fmt.Sprintf("the index names a row of a data file (segment %d) that is not live", l.Segment())}
		}
		first, numbered, err := paimon.RowIDsFrom(&f.entry.File)
		if err != nil {
			return nil, err
		}
		if numbered {
			ids[i] = first + int64(f.place(l.Pos()))
		} else {
			held = append(held, l)
		}
	}
	if len(held) == 0 {
		return ids, nil
	}
	slices.Sort(held)
	held = slices.Compact(held)
	out := &types.Batch{Cols: []*types.Vector{types.NewVector(types.BigIntType())}}
	if err := v.readRows(ctx, held, []int{paimon.RowIDColumn}, out); err != nil {
		return nil, err
	}
	for i, l := range locs {
		if k, ok := slices.BinarySearch(held, l); ok {
			ids[i] = out.Cols[0].I64[k]
		}
	}
	return ids, nil
}
