package merger

import (
	"fmt"
	"slices"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/keyindex"
	"applier/storage/types"
)

// oldRows are rows of the table by their places.
type oldRows struct {
	locs  []keyindex.Loc // ascending
	batch *types.Batch
}

func (o *oldRows) row(l keyindex.Loc) int {
	i, _ := slices.BinarySearch(o.locs, l)
	return i
}

// readOld reads columns of rows; it sorts locs.
func (pl *planner) readOld(locs []keyindex.Loc, cols []int) (*oldRows, error) {
	slices.Sort(locs)
	o := &oldRows{locs: slices.Compact(locs)}
	fields := make([]types.Field, len(cols))
	for i, c := range cols {
		fields[i] = pl.fields[c]
	}
	o.batch = types.NewBatch(fields)
	if err := pl.read.ReadRows(o.locs, cols, o.batch); err != nil {
		return nil, err
	}
	for _, v := range o.batch.Cols {
		if v.Len() != len(o.locs) {
			return nil, fmt.Errorf("reading %d old rows gave %d", len(o.locs), v.Len())
		}
	}
	return o, nil
}

// loadCarried reads the rows that holes may be filled from: those of the folded
// keys and, where a key change left another key behind, of that one.
func (pl *planner) loadCarried() error {
	var locs []keyindex.Loc
	c := pl.batch.Changes
	links, deletes := false, false
	for _, j := range pl.folded {
		locs = append(locs, pl.rows(j)...)
		for w := int32(pl.batch.Head(j)); w >= 0; w = pl.batch.Prev[w] {
			links = links || pl.links(int(w))
			deletes = deletes || c.Kind[w] == change.Delete
		}
	}
	pl.old.Start, pl.old.Loc = pl.old.Start[:0], pl.old.Loc[:0]
	if links {
		if err := pl.find(pl.batch.OldKeys, nil, &pl.old); err != nil {
			return err
		}
		locs = append(locs, pl.old.Loc...)
	}
	var err error
	pl.carried, err = pl.readOld(locs, pl.holeColumns(deletes && pl.s.Apply == batcher.SoftDelete))
	return err
}

// links reports whether a change needs what the row of its old key held.
func (pl *planner) links(w int) bool {
	return pl.s.Apply != batcher.Append && pl.batch.Changes.Holes.Get(w) && pl.batch.Changes.OldKeyOf(w) >= 0
}

// holeColumns lists the columns that some change of the batch has a hole in, and
// remembers their places in carried; all: a soft delete says nothing about any.
func (pl *planner) holeColumns(all bool) []int {
	pl.carriedAt = slices.Grow(pl.carriedAt[:0], len(pl.fields))[:len(pl.fields)]
	var cols []int
	for c := range pl.fields {
		pl.carriedAt[c] = -1
		col := &pl.batch.Changes.Cols[c]
		if all || col.Absent.Any() || col.Unavailable.Any() {
			pl.carriedAt[c] = len(cols)
			cols = append(cols, c)
		}
	}
	return cols
}

func (pl *planner) carriedCell(row, c int) cell {
	return cell{from: pl.carried.batch.Cols[pl.carriedAt[c]], row: row, asIs: true}
}

// foldLinked folds the keys that key changes connect, all together in the order
// of arrival: a row that moves takes along what the old key's row holds at that
// moment, which changes of another key may have decided.
func (pl *planner) foldLinked() {
	var changes []int
	for _, j := range pl.folded {
		if head := int32(pl.batch.Head(j)); pl.chainLinks(head) {
			changes = pl.connect(changes, head, pl.rows(j))
		}
	}
	for _, j := range pl.folded {
		if st := pl.linked[int32(pl.batch.Head(j))]; st != nil {
			st.planned = true
		}
	}
	slices.Sort(changes)
	heads := make(map[int]int32, len(changes))
	for head := range pl.linked {
		for w := head; w >= 0; w = pl.batch.Prev[w] {
			heads[int(w)] = head
		}
	}
	for _, w := range changes {
		pl.apply(pl.linked[heads[w]], w)
	}
}

// chainLinks reports whether a change of a chain needs another key's row.
func (pl *planner) chainLinks(head int32) bool {
	for w := head; w >= 0; w = pl.batch.Prev[w] {
		if pl.links(int(w)) {
			return true
		}
	}
	return false
}

// connect adds the changes of a chain, and of those that it leads to, to changes.
func (pl *planner) connect(changes []int, head int32, rows []keyindex.Loc) []int {
	if pl.linked == nil {
		pl.linked = map[int32]*keyState{}
	}
	type key struct {
		head int32
		rows []keyindex.Loc
	}
	for todo := []key{{head, rows}}; len(todo) > 0; {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if pl.linked[k.head] != nil {
			continue
		}
		st := &keyState{}
		st.begin(len(pl.fields), pl.placeOf(uint32(k.head), k.rows))
		st.linked = true
		pl.linked[k.head] = st
		for w := k.head; w >= 0; w = pl.batch.Prev[w] {
			changes = append(changes, int(w))
			if !pl.links(int(w)) {
				continue
			}
			old := pl.batch.Changes.OldKeyOf(int(w))
			if h := pl.batch.OldHead[old]; h >= 0 {
				todo = append(todo, key{h, pl.old.Rows(old)})
			}
		}
	}
	return changes
}

// origin returns what the row held that change w moved to another key; nil if
// nothing is known of it.
func (pl *planner) origin(w int) *life {
	old := pl.batch.Changes.OldKeyOf(w)
	if head := pl.batch.OldHead[old]; head >= 0 {
		st := pl.linked[head]
		if st.exists {
			return pl.lifeOf(st)
		}
		return st.past // the delete before w is the key change's own
	}
	if rows := pl.old.Rows(old); len(rows) > 0 {
		return &life{stored: pl.carried.row(rows[0])}
	}
	return nil
}

// lifeOf keeps what the row of a key holds now.
func (pl *planner) lifeOf(st *keyState) *life {
	l := &life{cells: slices.Clone(st.cells), stored: -1}
	if st.stored {
		l.stored = pl.carried.row(st.rows[0])
	}
	return l
}

// lifeCell returns a column of a row that was.
func (pl *planner) lifeCell(l *life, c int) cell {
	switch {
	case l.cells != nil && (l.cells[c].from != nil || l.cells[c].none):
		return l.cells[c]
	case l.stored >= 0:
		return pl.carriedCell(l.stored, c)
	}
	return cell{none: true}
}
