package datafile

import (
	"fmt"

	"applier/storage/types"
)

// assemble fills the vectors above the leaves from the leaves' levels; the leaf
// vectors are filled already. lv has the levels of the column's leaves.
// Source: Dremel's record assembly, column by column.
func (n *readNode) assemble(v *types.Vector, lv []levels) error {
	switch v.Layout {
	case types.LayoutStruct:
		n.structRows(v, &lv[n.first])
	case types.LayoutList, types.LayoutMap:
		if err := n.listRows(v, &lv[n.first]); err != nil {
			return err
		}
	default:
		return nil
	}
	for k, kid := range n.kids {
		if err := kid.assemble(v.Child[k], lv); err != nil {
			return err
		}
	}
	want := v.Len()
	if v.Layout != types.LayoutStruct {
		want = int(v.Off[v.Len()])
	}
	for _, k := range v.Child {
		if k.Len() != want {
			return fmt.Errorf("%w: %d values of a nested part with %d rows", ErrCorrupt, k.Len(), want)
		}
	}
	return nil
}

// structRows appends a row for every entry that is a row of v.
func (n *readNode) structRows(v *types.Vector, lv *levels) {
	rows := v.Len()
	for k, d := range lv.def {
		if lv.rep[k] > n.rep || d < n.slotDef {
			continue
		}
		if d < n.def {
			v.Nulls.Set(rows)
		}
		rows++
	}
	v.Grow(rows)
}

// listRows appends the offsets of lists.
func (n *readNode) listRows(v *types.Vector, lv *levels) error {
	rows := v.Len()
	items := v.Off[rows]
	open := false
	for k, d := range lv.def {
		r := lv.rep[k]
		if r <= n.rep {
			if open {
				v.Off = append(v.Off, items)
			}
			if open = d >= n.slotDef; !open {
				continue
			}
			if d < n.def {
				v.Nulls.Set(rows)
			}
			rows++
		}
		if r > n.rep+1 || d < n.elemDef {
			continue
		}
		if !open {
			return fmt.Errorf("%w: an element outside of its list", ErrCorrupt)
		}
		items++
	}
	if open {
		v.Off = append(v.Off, items)
	}
	v.Grow(rows)
	return nil
}
