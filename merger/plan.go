package merger

import (
	"cmp"
	"fmt"
	"slices"

	"applier/batcher"
	"applier/ingest/change"

	"applier/merger/keyindex"
	"applier/storage/types"
)

// Counts say what a plan does to the table.
type Counts struct {
	Inserted  int64 // new rows
	Updated   int64 // rows that get a new version
	Deleted   int64 // rows that go
	Unchanged int64 // winning changes without effect: deletes of unknown keys, …
	Late      int64 // winning changes older than the stored row
	Ignored   int64 // changes the preset ignores because the key exists (insert_only)
	Dropped   int64 // rows given up under on_error: skip
	Letters   int64 // rows sent to the dead letters
}

// plan is what one batch does to one state of the table: rows to write and
// positions to mark deleted. It prints (datadriven tests) and does no I/O
// itself but reads.
type plan struct {
	out     *types.Batch        // rows to write
	deletes map[uint32][]uint32 // segment → positions, ascending, no doubles
	counts  Counts
	letters []rowLetter
}

// rowLetter is a row that cannot be applied.
type rowLetter struct {
	row int // of the batch's changes
	err *change.RowError
}

// outRow is one row to write: the image of change w, on the old row at old (0: none).
type outRow struct {
	w     uint32
	old   keyindex.Loc
	fresh bool // a barrier lies between the old row and w: nothing is carried over
}

// planner holds what planning needs and reuses between batches.
type planner struct {
	s         *Settings
	fields    []types.Field
	defaults  []*types.Datum // by column, nil without
	deletedAt int            // column, -1 unless soft_delete
	read      rowReader
	index     *keyindex.Index
	matches   keyindex.Matches
	old       keyindex.Matches

	batch   *batcher.Batch
	p       *plan
	plain   []uint32 // winners whose image is complete
	patched []outRow
	carried *oldRows
	// carriedAt is the place of each column in carried; cells is reused.
	carriedAt []int
	cells     []cell
}

// rowReader reads columns of rows of the table by their places, ascending.
type rowReader interface {
	ReadRows(locs []keyindex.Loc, cols []int, out *types.Batch) error
}

// plan decides a batch. An error is one of reading the table or the index.
func (pl *planner) plan(b *batcher.Batch) (*plan, error) {
	pl.batch = b
	pl.p = &plan{out: types.NewBatch(pl.fields), deletes: map[uint32][]uint32{}}
	pl.plain, pl.patched = pl.plain[:0], pl.patched[:0]
	if pl.s.Apply == batcher.Append {
		for _, w := range b.Winners {
			pl.write(outRow{w: w})
		}
	} else if err := pl.match(); err != nil {
		return nil, err
	}
	if err := pl.build(); err != nil {
		return nil, err
	}
	for seg, pos := range pl.p.deletes {
		slices.Sort(pos)
		pl.p.deletes[seg] = slices.Compact(pos)
	}
	return pl.p, nil
}

// match looks the winners up and decides what each does.
func (pl *planner) match() error {
	b := pl.batch
	if err := pl.index.Lookup(b.Keys, b.Winners, &pl.matches); err != nil {
		return err
	}
	late, err := pl.late()
	if err != nil {
		return err
	}
	for j, w := range b.Winners {
		rows := pl.matches.Rows(j)
		switch {
		case late.Get(j):
			pl.p.counts.Late++
		case b.Changes.Kind[w] == change.Delete:
			pl.remove(w, rows)
		case pl.s.Apply == batcher.InsertOnly && len(rows) > 0:
			pl.p.counts.Ignored++
		default:
			pl.upsert(w, rows)
		}
	}
	return nil
}

// upsert: one source row updates every target row of its key.
func (pl *planner) upsert(w uint32, rows []keyindex.Loc) {
	if len(rows) == 0 {
		pl.p.counts.Inserted++
		pl.write(outRow{w: w})
		return
	}
	for _, l := range rows {
		pl.mark(l)
	}
	if pl.replaced(int(w)) {
		// Deleted and put again in one batch: all old rows go, one new row comes.
		pl.p.counts.Deleted += int64(len(rows)) - 1
		pl.p.counts.Updated++
		pl.write(outRow{w: w, old: rows[0], fresh: true})
		return
	}
	pl.p.counts.Updated += int64(len(rows))
	for _, l := range rows {
		pl.write(outRow{w: w, old: l})
	}
}

// replaced reports whether a barrier lies below change w in its chain.
func (pl *planner) replaced(w int) bool {
	if !pl.s.Apply.Barrier() {
		return false
	}
	for r := pl.batch.Prev[w]; r >= 0; r = pl.batch.Prev[r] {
		if pl.batch.Changes.Kind[r] == change.Delete {
			return true
		}
	}
	return false
}

func (pl *planner) remove(w uint32, rows []keyindex.Loc) {
	if pl.s.Apply != batcher.SoftDelete {
		if len(rows) == 0 {
			pl.p.counts.Unchanged++
		}
		pl.p.counts.Deleted += int64(len(rows))
		for _, l := range rows {
			pl.mark(l)
		}
		return
	}
	switch {
	case len(rows) > 0:
		pl.p.counts.Deleted += int64(len(rows))
		for _, l := range rows {
			pl.mark(l)
			pl.write(outRow{w: w, old: l})
		}
	case pl.lastPut(int(w)) >= 0:
		// Inserted and deleted in one batch: the row comes to be, marked deleted.
		pl.p.counts.Inserted++
		pl.write(outRow{w: w})
	default:
		pl.p.counts.Unchanged++
	}
}

// lastPut returns the newest change below w in its chain that is no delete, -1 for none.
func (pl *planner) lastPut(w int) int {
	for r := pl.batch.Prev[w]; r >= 0; r = pl.batch.Prev[r] {
		if pl.batch.Changes.Kind[r] != change.Delete {
			return int(r)
		}
	}
	return -1
}

func (pl *planner) mark(l keyindex.Loc) {
	pl.p.deletes[l.Segment()] = append(pl.p.deletes[l.Segment()], l.Pos())
}

// write plans a row; complete images take the columnar path.
func (pl *planner) write(r outRow) {
	c := pl.batch.Changes
	if c.Holes.Get(int(r.w)) || c.Kind[r.w] == change.Delete && pl.s.Apply == batcher.SoftDelete {
		pl.patched = append(pl.patched, r)
		return
	}
	pl.plain = append(pl.plain, r.w)
}

// late finds the winners that are older than the stored row (order_by). A
// stored NULL is older than everything.
func (pl *planner) late() (types.Bitmap, error) {
	var late types.Bitmap
	if len(pl.s.OrderBy) == 0 || len(pl.matches.Loc) == 0 {
		return late, nil
	}
	stored, err := pl.readOld(slices.Clone(pl.matches.Loc), pl.s.OrderBy)
	if err != nil {
		return late, err
	}
	for j, w := range pl.batch.Winners {
		for _, l := range pl.matches.Rows(j) {
			if pl.older(int(w), stored, stored.row(l)) {
				late.Set(j)
				break
			}
		}
	}
	return late, nil
}

func (pl *planner) older(w int, stored *oldRows, row int) bool {
	for k, col := range pl.s.OrderBy {
		if d := types.CompareCells(pl.batch.Changes.Cols[col].Vector, w, stored.batch.Cols[k], row); d != 0 {
			return d < 0
		}
	}
	return false
}

// oldRows are rows of the table by their places.
type oldRows struct {
	locs  []keyindex.Loc // ascending
	batch *types.Batch
}

func (o *oldRows) row(l keyindex.Loc) int {
	i, _ := slices.BinarySearch(o.locs, l)
	return i
}

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
	if o.batch.Len() != len(o.locs) {
		return nil, fmt.Errorf("reading %d old rows gave %d", len(o.locs), o.batch.Len())
	}
	return o, nil
}

// build makes the output rows: complete images column by column, then those
// with holes cell by cell.
func (pl *planner) build() error {
	for c, v := range pl.p.out.Cols {
		src := pl.batch.Changes.Cols[c].Vector
		if d := pl.defaults[c]; d != nil && src.Nulls.Any() {
			for _, w := range pl.plain {
				if src.IsNull(int(w)) {
					v.AppendDatum(*d)
				} else {
					v.AppendCell(src, int(w))
				}
			}
			continue
		}
		v.AppendGather(src, pl.plain)
	}
	if len(pl.patched) == 0 {
		return nil
	}
	if err := pl.loadCarried(); err != nil {
		return err
	}
	for i := range pl.patched {
		pl.patch(&pl.patched[i])
	}
	return nil
}

// loadCarried reads the old rows that holes may be filled from: those of the
// key and, where a key change left another key behind, of that one.
func (pl *planner) loadCarried() error {
	var locs []keyindex.Loc
	for _, r := range pl.patched {
		if r.old != 0 && !r.fresh {
			locs = append(locs, r.old)
		}
	}
	if old := pl.batch.OldKeys; old != nil && old.Len() > 0 {
		if err := pl.index.Lookup(old, nil, &pl.old); err != nil {
			return err
		}
		for k := range old.Len() {
			if rows := pl.old.Rows(k); len(rows) > 0 {
				locs = append(locs, rows[0])
			}
		}
	}
	var err error
	pl.carried, err = pl.readOld(locs, pl.holeColumns())
	return err
}

// holeColumns lists the columns that some row of the batch has a hole in, and
// remembers their places in carried; a soft delete is a hole everywhere.
func (pl *planner) holeColumns() []int {
	all := slices.ContainsFunc(pl.patched, func(r outRow) bool { return pl.batch.Changes.Kind[r.w] == change.Delete })
	pl.carriedAt = slices.Grow(pl.carriedAt[:0], len(pl.fields))[:len(pl.fields)]
	var cols []int
	for c := range pl.fields {
		col := &pl.batch.Changes.Cols[c]
		if all || col.Absent.Any() || col.Unavailable.Any() {
			pl.carriedAt[c] = len(cols)
			cols = append(cols, c)
		}
	}
	return cols
}

// cell is where an output cell comes from.
type cell struct {
	from    *types.Vector
	row     int
	carried bool // an old row's value: a NULL stays NULL
	fail    *change.RowError
}

// patch appends one row with holes, or gives it up.
func (pl *planner) patch(r *outRow) {
	cells := slices.Grow(pl.cells[:0], len(pl.fields))[:len(pl.fields)]
	pl.cells = cells
	for c := range pl.fields {
		cells[c] = pl.resolve(r, c)
		if f := cells[c].fail; f != nil {
			f.Column = pl.fields[c].Name
			pl.giveUp(r, f)
			return
		}
	}
	for c, v := range pl.p.out.Cols {
		x := cells[c]
		switch {
		case c == pl.deletedAt:
			pl.appendDeletedAt(v, r)
		case x.from == nil || x.from.IsNull(x.row) && !x.carried:
			if d := pl.defaults[c]; d != nil {
				v.AppendDatum(*d)
			} else {
				v.AppendNull()
			}
		default:
			v.AppendCell(x.from, x.row)
		}
	}
}

func (pl *planner) appendDeletedAt(v *types.Vector, r *outRow) {
	if pl.batch.Changes.Kind[r.w] != change.Delete {
		v.AppendNull()
		return
	}
	v.AppendDatum(types.Datum{I: pl.batch.Changes.Time[r.w] * 1000})
}

// resolve finds the value of a column: the newest change of the chain that has
// it, else the old row's, else none (default or NULL).
func (pl *planner) resolve(r *outRow, c int) cell {
	b := pl.batch
	col := &b.Changes.Cols[c]
	unavailable, barrier := false, r.fresh
	for w := int32(r.w); w >= 0; w = b.Prev[w] {
		if b.Changes.Kind[w] == change.Delete {
			if pl.s.Apply.Barrier() {
				barrier = true
				break
			}
			// A soft delete says nothing about values but its order.
			if slices.Contains(pl.s.OrderBy, c) {
				return cell{from: col.Vector, row: int(w)}
			}
			continue
		}
		if !col.Hole(int(w)) {
			return cell{from: col.Vector, row: int(w)}
		}
		unavailable = unavailable || col.Unavailable.Get(int(w))
		if k := b.Changes.OldKeyOf(int(w)); k >= 0 && col.Unavailable.Get(int(w)) {
			return pl.fromOldKey(k, c)
		}
	}
	if r.old != 0 && !barrier {
		return pl.carriedCell(r.old, c)
	}
	switch {
	case unavailable:
		return cell{fail: &change.RowError{Class: change.ClassUnavailable, Msg: "the producer did not send the value and no earlier one is known"}}
	case c != pl.deletedAt && pl.fields[c].Type.NotNull && pl.defaults[c] == nil:
		return cell{fail: &change.RowError{Class: change.ClassNotNull, Msg: "the record of a new row lacks a NOT NULL column"}}
	}
	return cell{}
}

func (pl *planner) carriedCell(l keyindex.Loc, c int) cell {
	return cell{from: pl.carried.batch.Cols[pl.carriedAt[c]], row: pl.carried.row(l), carried: true}
}

// fromOldKey fills a hole of a row that a key change produced: from what the
// batch says of the old key before its delete, else from its row in the table.
func (pl *planner) fromOldKey(k, c int) cell {
	b := pl.batch
	col := &b.Changes.Cols[c]
	from := b.OldHead[k]
	for w := from; w >= 0; w = b.Prev[w] {
		if b.Changes.Kind[w] == change.Delete { // the key change's own delete: what counts is below it
			from = b.Prev[w]
			break
		}
	}
	for w := from; w >= 0 && b.Changes.Kind[w] != change.Delete; w = b.Prev[w] {
		if !col.Hole(int(w)) {
			return cell{from: col.Vector, row: int(w)}
		}
	}
	if rows := pl.old.Rows(k); len(rows) > 0 {
		return pl.carriedCell(rows[0], c)
	}
	return cell{fail: &change.RowError{Class: change.ClassUnavailable, Msg: "the producer did not send the value after a key change, and the row of the old key is gone"}}
}

// giveUp drops a row that cannot be built. Its old version stays, unless a
// delete between the two took it away anyway.
func (pl *planner) giveUp(r *outRow, err *change.RowError) {
	pl.p.letters = append(pl.p.letters, rowLetter{int(r.w), err})
	if r.old == 0 {
		pl.p.counts.Inserted--
		return
	}
	pl.p.counts.Updated--
	if r.fresh {
		pl.p.counts.Deleted++
		return
	}
	seg := r.old.Segment()
	pos := pl.p.deletes[seg]
	if i := slices.Index(pos, r.old.Pos()); i >= 0 {
		pl.p.deletes[seg] = slices.Delete(pos, i, i+1)
	}
	if len(pl.p.deletes[seg]) == 0 {
		delete(pl.p.deletes, seg)
	}
}

// sortedSegments returns the segments with deletes in order.
func (p *plan) sortedSegments() []uint32 {
	segs := make([]uint32, 0, len(p.deletes))
	for s := range p.deletes {
		segs = append(segs, s)
	}
	slices.SortFunc(segs, cmp.Compare)
	return segs
}
