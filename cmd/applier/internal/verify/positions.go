package verify

import (
	"context"
	"errors"
	"fmt"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// positions checks the position records along the chain (I3).
func (v *verifier) positions(ctx context.Context) {
	sec := v.r.section("positions")
	var before *merger.Record
	var newest *snapshot
	for i, s := range v.chain {
		if i > 0 && v.chain[i-1].id != s.id-1 {
			before = nil // what lies between cannot be read, which is said already
		}
		if s.own == nil {
			continue
		}
		sec.count("records", 1)
		newest = s
		if !s.genuine {
			sec.note("%s holds a copy of an older record: the table was rolled back by adding a snapshot", s.key)
			before = s.own
			continue
		}
		if before != nil {
			v.checkStep(sec, s, before)
		}
		before = s.own
	}
	v.checkMarks(ctx, sec, newest)
	if newest == nil {
		return
	}
	first, err := v.Table.Bucket().Get(ctx, v.Table.Paths().Schema(0))
	if err != nil {
		sec.readError(v.Table.Paths().Schema(0), err)
	} else if id := merger.Identity(v.Name, first); id != newest.own.Table {
		sec.fail(v.Table.Paths().Schema(0), "", "the record in %s was written for another table: another name, or another first schema", newest.key)
	}
	if newest.own.Config != v.Config {
		sec.note("the pipeline's settings (key, apply or merge.when, order_by, topics) are others than those of the newest record")
	}
	if pos, err := newest.own.Positions(); err == nil {
		for _, p := range pos.Sorted() {
			sec.note("%s is applied up to offset %d", p, pos[p].Next)
		}
	}
}

// checkMarks looks whether a record must be there, and is not.
func (v *verifier) checkMarks(ctx context.Context, sec *Section, newest *snapshot) {
	if newest != nil {
		return
	}
	key, err := v.Table.Paths().Consumer("applier-" + v.ID)
	if err != nil {
		sec.unread("%v", err)
		return
	}
	_, err = paimon.ReadConsumer(ctx, v.Table.Bucket(), v.Table.Paths(), "applier-"+v.ID)
	switch {
	case err == nil:
		sec.fail(key, "", "the pipeline has committed to this table, but no retained snapshot holds a position record (T-OFFSET-LOST)")
	case v.Marked:
		sec.fail("", "", "the marker in state_dir says that the pipeline has committed to this table, but no retained snapshot holds a position record (T-OFFSET-LOST)")
	case errors.Is(err, objstore.ErrNotExist):
		sec.skip("the pipeline has not committed to this table")
	default:
		sec.readError(key, err)
	}
}

// checkStep compares a record with the one before it.
func (v *verifier) checkStep(sec *Section, s *snapshot, before *merger.Record) {
	r := s.own
	fail := func(format string, a ...any) { sec.fail(s.key, "", format, a...) }
	if r.Seq != before.Seq+1 {
		fail("its record is commit %d, the one before it is %d", r.Seq, before.Seq)
	}
	if r.Gaps < before.Gaps || r.Gaps > before.Gaps && r.Op != "skip" {
		fail("its record counts %d skipped offsets, the one before it %d", r.Gaps, before.Gaps)
	}
	if r.Op != "" && r.Chain != before.Chain {
		fail("a commit without records changed the hash of the applied ranges")
	}
	was, err1 := before.Positions()
	is, err2 := r.Positions()
	if err := errors.Join(err1, err2); err != nil {
		fail("%v", err)
		return
	}
	switch r.Op {
	case "":
		checkRange(r, was, is, fail)
	case "carry":
		if !was.SameNext(is) {
			fail("it carries the record on, but at other positions")
		}
	}
	if r.Op != "" && s.s.DeltaRecordCount != 0 {
		fail("a commit without records changed the number of rows by %d", s.s.DeltaRecordCount)
	}
	sec.count("steps", 1)
}

// checkRange: a batch begins where the table stood and ends where it says.
func checkRange(r *merger.Record, was, is change.Positions, fail func(string, ...any)) {
	ranges, err := ranges(r)
	if err != nil {
		fail("%v", err)
		return
	}
	for _, p := range was.Sorted() {
		if _, ok := is[p]; !ok {
			fail("partition %s is not in its record any more", p)
		}
	}
	for _, p := range is.Sorted() {
		from, known := was[p]
		rg, moved := ranges[p]
		switch {
		case moved && known && rg[0] != from.Next:
			fail("%s: it applied offsets from %d on, but the table stood at %d", p, rg[0], from.Next)
		case moved && (rg[1] != is[p].Next || rg[1] < rg[0]):
			fail("%s: it applied offsets %d to %d and stands at %d", p, rg[0], rg[1], is[p].Next)
		case !moved && is[p].Next != from.Next:
			fail("%s: it stands at offset %d, the one before at %d, but it applied nothing of it", p, is[p].Next, from.Next)
		}
	}
}

// ranges returns what a batch applied of each partition: [first, next).
func ranges(r *merger.Record) (map[change.Partition][2]int64, error) {
	out := map[change.Partition][2]int64{}
	for topic, parts := range r.Range {
		for text, rg := range parts {
			var n int32
			if _, err := fmt.Sscanf(text, "%d", &n); err != nil || fmt.Sprint(n) != text {
				return nil, fmt.Errorf("%w: range of partition %q of topic %q", merger.ErrRecord, text, topic)
			}
			out[change.Partition{Topic: topic, Partition: n}] = rg
		}
	}
	return out, nil
}

// liveChange is by how much a batch changed the number of live rows, from its
// record's own counts (I7). A soft delete leaves the row.
func liveChange(r *merger.Record, apply batcher.Apply) int64 {
	if apply == batcher.Mirror || apply == batcher.Merge {
		return r.Inserted - r.Deleted
	}
	return r.Inserted
}
