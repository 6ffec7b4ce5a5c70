package merger

import (
	"cmp"
	"maps"
	"slices"

	"applier/batcher"
	"applier/ingest/change"

	"applier/merger/keyindex"
	"applier/merger/tombstones"
	"applier/storage/failpoint"
	"applier/storage/types"
)

// Counts say what a plan does to the table.
type Counts struct {
	Inserted  int64 // new rows
	Updated   int64 // rows that get a new version
	Deleted   int64 // rows that go, or that a soft delete marks
	Unchanged int64 // winning changes without effect: deletes of unknown keys, …
	Late      int64 // winning changes older than what the table holds or remembers, and not applied
	LateTaken int64 // changes that were late and applied (late: apply)
	Tied      int64 // winning changes of the same place as what the table holds or remembers, and not applied
	Ignored   int64 // changes the preset ignores because the key exists (insert_only)
	Dropped   int64 // rows given up under on_error: skip
	Letters   int64 // rows sent to the dead letters
	Truncates int64 // 1 if a truncation of the source's table emptied this one first
	// LateLetters and TiedLetters are the records of Letters that were sent for
	// their place in the order.
	LateLetters, TiedLetters int64
}

// plan is what one batch does to one state of the table: rows to write and
// positions to mark deleted. It prints (datadriven tests) and does no I/O
// itself but reads.
type plan struct {
	out     *types.Batch        // rows to write
	origins []keyindex.Loc      // with row tracking: the row of the table that each of out is a new version of, 0 for none
	deletes map[uint32][]uint32 // segment → positions, ascending, no doubles
	gone    map[uint32]bool     // segments that a truncation takes as a whole; no deletes are in them
	counts  Counts
	holes   HoleCounts
	letters []rowLetter      // in the order of the batch
	ordered []rowLetter      // changes that the order sends to the dead letters
	sent    []rowLetter      // letters that were sent
	memory  tombstones.Delta // what becomes of the remembered deletes
	acted   []int64          // rows that each clause of MERGE acted on
}

// rowLetter is a change that cannot be applied.
type rowLetter struct {
	row int // of the batch's changes
	err *change.RowError
}

// planner holds what planning needs and reuses between batches.
//
// A batch must do to the table what its changes would do one by one: where the
// cut between two batches falls is chance. Winners that say everything about
// their row take the columnar path, for nothing before them matters. Where a
// winner leaves something open, all changes of its key are folded in the order
// of their arrival (fold.go).
type planner struct {
	s         *Settings
	fields    []types.Field
	defaults  []*types.Datum // by column, nil without
	dynamic   bool           // some are functions of the time
	deletedAt int            // column, -1 unless soft_delete
	tracking  bool           // rows have ids
	read      rowReader
	index     *keyindex.Index
	matches   keyindex.Matches
	old       keyindex.Matches // of the batch's OldKeys

	batch  *batcher.Batch
	p      *plan
	plain  []uint32 // winners whose image is complete, to be written: the first rows of out
	folded []int    // ordinals of the winners that need their chain
	stored *oldRows // the order_by columns of all matches
	// memory has the remembered deletes, nil if none are; what is remembered since
	// before forget is none any more. now is when this plan is made.
	memory      *tombstones.Set
	now, forget int64
	emptied     *emptied     // rows that the batch's truncation takes; nil without one
	floor       []byte       // place of the last truncation, nil for none: the delete of every key that has no later one
	dropped     types.Bitmap // changes without effect for their place in the order
	key, place  []byte       // buffers
	// carried are the rows of the table that holes may be filled from; carriedAt is
	// the place of each column in it.
	carried   *oldRows
	carriedAt []int
	unread    []types.Datum // a row of which no column was read
	state     keyState
	chain     []uint32
	// linked are the states of the keys that key changes connect, by the last
	// change of each; they are folded together.
	linked map[int32]*keyState
	when   *when // the clauses of MERGE; nil for presets
}

// rowReader reads columns of rows of the table by their places, ascending.
type rowReader interface {
	ReadRows(locs []keyindex.Loc, cols []int, out *types.Batch) error
}

// plan decides a batch. An error is one of reading the table or the index.
func (pl *planner) plan(b *batcher.Batch) (*plan, error) {
	pl.batch = b
	pl.p = &plan{out: types.NewBatch(pl.fields), deletes: map[uint32][]uint32{}}
	pl.plain, pl.folded, pl.stored, pl.carried = pl.plain[:0], pl.folded[:0], nil, nil
	clear(pl.linked)
	pl.dropped.Reset()
	pl.truncate(pl.emptied)
	if err := pl.decide(); err != nil {
		return nil, err
	}
	for seg, pos := range pl.p.deletes {
		slices.Sort(pos)
		pl.p.deletes[seg] = slices.Compact(pos)
	}
	for _, l := range [][]rowLetter{pl.p.letters, pl.p.ordered} {
		slices.SortFunc(l, func(x, y rowLetter) int { return cmp.Compare(x.row, y.row) })
	}
	return pl.p, nil
}

// decide finds out what becomes of each key.
func (pl *planner) decide() error {
	if err := pl.lookup(); err != nil {
		return err
	}
	if pl.s.Apply == batcher.Merge {
		return pl.mergeAll()
	}
	if err := pl.match(); err != nil {
		return err
	}
	pl.writePlain()
	if len(pl.folded) == 0 {
		return nil
	}
	return pl.foldAll()
}

// lookup finds the table's rows of the winners' keys.
func (pl *planner) lookup() error {
	b := pl.batch
	if pl.s.Apply == batcher.Append {
		pl.matches.Start, pl.matches.Loc = pl.matches.Start[:0], pl.matches.Loc[:0]
	} else if err := pl.find(b.Keys, b.Winners, &pl.matches); err != nil {
		return err
	}
	if failpoint.Hit("keyindex/lookup") != nil { // an index that lies
		for i, l := range pl.matches.Loc {
			pl.matches.Loc[i] = keyindex.MakeLoc(l.Segment(), l.Pos()^1)
		}
	}
	return nil
}

// find looks keys up in the table as the batch's truncation leaves it.
func (pl *planner) find(keys *types.Keys, sel []uint32, m *keyindex.Matches) error {
	if err := pl.index.Lookup(keys, sel, m); err != nil {
		return err
	}
	pl.left(m)
	return nil
}

// match decides what each winner does.
func (pl *planner) match() error {
	b := pl.batch
	if err := pl.readPlaces(); err != nil {
		return err
	}
	for j, w := range b.Winners {
		verdict := pl.judgeWinner(j)
		switch {
		case verdict == batcher.Tied:
			pl.p.counts.Tied++
		case !verdict.Applies():
			pl.p.counts.Late++
		case pl.folds(j):
			pl.folded = append(pl.folded, j)
		case b.Changes.Kind[w] == change.Delete && pl.s.Apply != batcher.Append:
			pl.remove(pl.rows(j))
			pl.remember(w)
		case pl.s.Apply == batcher.InsertOnly && len(pl.rows(j)) > 0:
			pl.p.counts.Ignored++
		default:
			pl.upsert(w, pl.rows(j))
			pl.unremember(w)
		}
	}
	return nil
}

// rows returns the table's rows of the j-th winner's key; append has none.
func (pl *planner) rows(j int) []keyindex.Loc {
	if len(pl.matches.Start) == 0 {
		return nil
	}
	return pl.matches.Rows(j)
}

// open reports whether a change leaves something about its row to what was
// before it: cells it says nothing about, or, as a soft delete, nearly all.
func (pl *planner) open(w uint32) bool {
	c := pl.batch.Changes
	return c.Holes.Get(int(w)) || c.Kind[w] == change.Delete && pl.s.Apply == batcher.SoftDelete
}

// upsert applies a complete image: one source row updates every target row of
// its key.
func (pl *planner) upsert(w uint32, rows []keyindex.Loc) {
	pl.markAll(rows)
	switch {
	case len(rows) == 0:
		pl.p.counts.Inserted++
	case pl.replaced(int(w)):
		// Deleted and put again in one batch: all old rows go, one new row comes.
		pl.p.counts.Deleted += int64(len(rows)) - 1
		pl.p.counts.Updated++
		rows = nil
	default:
		pl.p.counts.Updated += int64(len(rows))
		for _, l := range rows[1:] {
			pl.plain = append(pl.plain, w)
			pl.from(l)
		}
	}
	pl.plain = append(pl.plain, w)
	if len(rows) == 0 {
		pl.from(0) // a new row, also where the key had one before
	} else {
		pl.from(rows[0])
	}
}

// from notes which row of the table the next row of out is a new version of.
func (pl *planner) from(l keyindex.Loc) {
	if pl.tracking {
		pl.p.origins = append(pl.p.origins, l)
	}
}

// replaced reports whether a delete that removes rows came before change w.
func (pl *planner) replaced(w int) bool {
	if !pl.s.Apply.Barrier() {
		return false
	}
	for r := pl.batch.Prev[w]; r >= 0; r = pl.batch.Prev[r] {
		if pl.batch.Changes.Kind[r] == change.Delete && !pl.dropped.Get(int(r)) {
			return true
		}
	}
	return false
}

// remove applies a delete that ends the rows of its key.
func (pl *planner) remove(rows []keyindex.Loc) {
	if len(rows) == 0 {
		pl.p.counts.Unchanged++
	}
	pl.p.counts.Deleted += int64(len(rows))
	pl.markAll(rows)
}

func (pl *planner) markAll(rows []keyindex.Loc) {
	for _, l := range rows {
		pl.p.deletes[l.Segment()] = append(pl.p.deletes[l.Segment()], l.Pos())
	}
}

// writePlain makes the rows of complete images, column by column. A NULL becomes
// the column's default.
func (pl *planner) writePlain() {
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
}

// sortedSegments returns the segments with deletes in order.
func (p *plan) sortedSegments() []uint32 { return slices.Sorted(maps.Keys(p.deletes)) }

// goneSegments returns the segments that go as a whole in order.
func (p *plan) goneSegments() []uint32 { return slices.Sorted(maps.Keys(p.gone)) }
