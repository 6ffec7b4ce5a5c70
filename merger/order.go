package merger

import (
	"bytes"
	"encoding/binary"
	"slices"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/keyindex"
	"applier/storage/types"
)

// This file decides by order_by: a change of a key is compared with the one that
// was applied last, and the first one of a batch with what the table holds of the
// key (all its rows) and with the delete of it that is remembered.

// place is the place in the order up to which a key has come.
type place struct {
	rows []keyindex.Loc // of the table
	tomb []byte         // of the remembered delete, without rows else of the truncation, nil for none
	last int            // the change that was applied last, -1 for none: then the table counts
}

func (pl *planner) ordered() bool { return len(pl.s.Order.By) > 0 }

// remembers reports whether deletes are remembered.
func (pl *planner) remembers() bool { return pl.memory != nil && pl.s.Apply.Deletes() }

// readPlaces reads the order_by columns of the rows that the winners match.
func (pl *planner) readPlaces() error {
	if !pl.ordered() || len(pl.matches.Loc) == 0 {
		return nil
	}
	var err error
	pl.stored, err = pl.readOld(slices.Clone(pl.matches.Loc), pl.s.Order.By)
	return err
}

// placeOf returns where the key of change w stands in the table.
func (pl *planner) placeOf(w uint32, rows []keyindex.Loc) place {
	tomb := pl.tombOf(w)
	if tomb == nil && len(rows) == 0 {
		tomb = pl.floor
	}
	return place{rows: rows, tomb: tomb, last: -1}
}

// tombOf returns the place of the remembered delete of a change's key, nil if
// none is remembered any more.
func (pl *planner) tombOf(w uint32) []byte {
	if !pl.remembers() || pl.memory.Len() == 0 {
		return nil
	}
	pl.key = appendKey(pl.key[:0], pl.batch.Keys, int(w))
	order, at, ok := pl.memory.Find(pl.key)
	if !ok || at < pl.forget || pl.passed(order) {
		return nil
	}
	return order
}

// appendKey appends the bytes that identify key i: its canonical form, or a
// bijective image of it.
func appendKey(b []byte, k *types.Keys, i int) []byte {
	switch k.Class {
	case types.KeyBytes:
		return append(b, k.Bytes(i)...)
	case types.Key128:
		b = binary.BigEndian.AppendUint64(b, k.Low[i])
	}
	return binary.BigEndian.AppendUint64(b, k.Hash[i])
}

// appendPlace appends the place of change w in the order.
func (pl *planner) appendPlace(b []byte, w int) []byte {
	for _, c := range pl.s.Order.By {
		b = types.AppendOrdered(b, pl.batch.Changes.Cols[c].Vector, w)
	}
	return b
}

// compare compares change w with a place: older than any row of the key is older,
// for a row would go back.
func (pl *planner) compare(p *place, w int) int {
	if p.last >= 0 {
		return pl.s.Order.Compare(pl.batch.Changes, w, p.last)
	}
	result := 1
	if p.tomb != nil {
		pl.place = pl.appendPlace(pl.place[:0], w)
		result = bytes.Compare(pl.place, p.tomb)
	}
	for _, l := range p.rows {
		result = min(result, pl.compareStored(w, l))
	}
	return result
}

// compareStored compares change w with a row of the table. A stored NULL is older
// than everything.
func (pl *planner) compareStored(w int, l keyindex.Loc) int {
	row := pl.stored.row(l)
	for k, col := range pl.s.Order.By {
		if d := types.CompareCells(pl.batch.Changes.Cols[col].Vector, w, pl.stored.batch.Cols[k], row); d != 0 {
			return d
		}
	}
	return 0
}

// judgeWinner says whether the j-th winner takes effect on the table as it is.
// If it does not, no change of its key does. The other changes of a key that is
// not folded are judged here too, for those that count them or want them sent away.
func (pl *planner) judgeWinner(j int) batcher.Verdict {
	if !pl.ordered() {
		return batcher.Newer
	}
	w := pl.batch.Winners[j]
	at := pl.placeOf(w, pl.rows(j))
	verdict := pl.s.Order.Judge(pl.compare(&at, int(w)))
	if pl.batch.Prev[pl.batch.Head(j)] < 0 { // nothing but the winner
		if !verdict.Applies() {
			pl.dropped.Set(int(w))
		}
		if !verdict.Applies() || !pl.folds(j) {
			pl.count(verdict, int(w))
		}
		return verdict
	}
	pl.chain = pl.chainOf(j)
	if pl.s.Order.Late == batcher.LateApply && !verdict.Applies() && pl.moves(&at) {
		verdict = batcher.Newer
	}
	if verdict.Applies() && pl.folds(j) {
		return verdict // fold judges
	}
	for _, x := range slices.Backward(pl.chain) {
		pl.judge(&at, int(x))
	}
	return verdict
}

// moves reports whether some change of the chain has another place than its key:
// where late changes are applied it takes the key away from there, and the winner,
// which has the same place, is no tie any more.
func (pl *planner) moves(at *place) bool {
	return slices.ContainsFunc(pl.chain, func(x uint32) bool { return pl.compare(at, int(x)) != 0 })
}

// folds reports whether the changes of the j-th winner's key are applied one by
// one: the winner leaves something open, or a change that is refused on the way
// must not make others late that are counted or sent away.
func (pl *planner) folds(j int) bool {
	w := pl.batch.Winners[j]
	o := &pl.s.Order
	if pl.open(w) || !pl.ordered() || o.Late == batcher.LateDrop && o.Tie != batcher.TieDeadLetter {
		return pl.open(w)
	}
	for x := int32(pl.batch.Head(j)); x >= 0; x = pl.batch.Prev[x] {
		if pl.batch.Changes.Holes.Get(int(x)) {
			return true
		}
	}
	return false
}

// chainOf lists the changes of the j-th winner's key, the last one first.
func (pl *planner) chainOf(j int) []uint32 {
	chain := pl.chain[:0]
	for w := int32(pl.batch.Head(j)); w >= 0; w = pl.batch.Prev[w] {
		chain = append(chain, uint32(w))
	}
	return chain
}

// judge says what the order makes of change w, after all before it, and moves the
// place.
func (pl *planner) judge(p *place, w int) {
	verdict := pl.s.Order.Judge(pl.compare(p, w))
	switch {
	case !verdict.Applies():
		pl.dropped.Set(w)
	case pl.batch.Changes.Kind[w] == change.Delete && !pl.remembers() && p.last < 0 && len(p.rows) == 0:
		// It finds nothing and leaves nothing.
	default:
		p.last = w
	}
	pl.count(verdict, w)
}

// count notes what is done about a change besides applying or dropping it.
func (pl *planner) count(v batcher.Verdict, w int) {
	o := &pl.s.Order
	switch {
	case v == batcher.LateTaken:
		pl.p.counts.LateTaken++
	case v == batcher.Overtaken && o.Late == batcher.LateDeadLetter:
		pl.p.ordered = append(pl.p.ordered, rowLetter{w, &change.RowError{
			Class: change.ClassLate, Msg: "older by order_by than what the table holds, or remembers as deleted, of the key",
		}})
	case v == batcher.Tied && o.Tie == batcher.TieDeadLetter:
		pl.p.ordered = append(pl.p.ordered, rowLetter{w, &change.RowError{
			Class: change.ClassTie, Msg: "as new by order_by as what the table holds, or remembers as deleted, of the key",
		}})
	}
}

// remember keeps the place of delete w, which left no row of its key.
func (pl *planner) remember(w uint32) {
	if !pl.remembers() {
		return
	}
	pl.key = appendKey(pl.key[:0], pl.batch.Keys, int(w))
	pl.place = pl.appendPlace(pl.place[:0], int(w))
	pl.p.memory.Put(pl.key, pl.place, pl.now)
}

// unremember drops the remembered delete of a key that has a row now: the row
// says where the key stands.
func (pl *planner) unremember(w uint32) {
	if !pl.remembers() || pl.memory.Len() == 0 {
		return
	}
	pl.key = appendKey(pl.key[:0], pl.batch.Keys, int(w))
	if _, _, ok := pl.memory.Find(pl.key); ok {
		pl.p.memory.Remove(pl.key)
	}
}
