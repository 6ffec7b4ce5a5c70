package merger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"applier/merger/tombstones"
	"applier/storage/failpoint"
	"applier/storage/paimon"
)

// deletes keeps the remembered deletes of a pipeline (order_by.remember_deletes)
// in step with the table: they are always those that the newest position record
// names. What an attempt changes is durable in the state folder before its
// snapshot is published; whether it counts is read from the table like the
// positions. So a crash, a lost race, a rollback or another instance on the same
// folder change nothing, and a folder that was lost shows.
type deletes struct {
	s   *Settings
	log *tombstones.Log // nil: none are remembered, or this loop only commits statements

	set  *tombstones.Set
	path *tombstones.Path // what set was made of
	// superseded is what the path before the last compaction was made of.
	superseded *tombstones.Path
	// follows is the record that set goes with; only valid when loaded. next is what
	// the next record will say if it changes nothing: the same, unless deletes were
	// found to be lost.
	loaded  bool
	follows *RememberedDeletes
	next    RememberedDeletes
}

// DeletesFolder is the folder of a pipeline's remembered deletes in Settings.Marks.
// It holds merge keys.
func DeletesFolder(id string) string { return id + ".deletes" }

// newDeletes prepares the memory; layout says what keys and orders mean.
func newDeletes(s *Settings, layout string) *deletes {
	d := &deletes{s: s, set: &tombstones.Set{}, path: &tombstones.Path{}}
	if s.RememberDeletes > 0 && s.Marks != nil {
		d.log = &tombstones.Log{Bucket: s.Marks, Folder: DeletesFolder(s.ID), Layout: layout}
	}
	return d
}

func (d *deletes) now() int64 { return d.s.Now().UnixMilli() }

func (d *deletes) keep() int64 { return d.s.RememberDeletes.Milliseconds() }

// memory returns the set for planning, nil if nothing is remembered.
func (d *deletes) memory() *tombstones.Set {
	if d.log == nil {
		return nil
	}
	return d.set
}

// bytes is the memory that is taken.
func (d *deletes) bytes() int64 { return d.set.Bytes() }

func sameDeletes(a, b *RememberedDeletes) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// follow brings the memory to what a record names; room is how many bytes it may
// take, 0 any. A loss is no error: it is reported, and goes into the next record.
func (d *deletes) follow(ctx context.Context, record *RememberedDeletes, room int64) error {
	switch {
	case d.s.RememberDeletes == 0 || d.loaded && sameDeletes(d.follows, record):
		return nil
	case d.log == nil:
		return errors.New("deletes cannot be remembered without a state folder")
	}
	set, path, lost, err := d.read(ctx, record, room)
	if err != nil {
		return err
	}
	now := d.now()
	d.set, d.path, d.superseded = set, path, nil
	d.loaded, d.follows = true, record
	switch {
	case lost == nil:
		d.next = *record
		if d.keep() > record.Keep { // what had been let go by then is not remembered
			d.next.Since = max(record.Since, now-record.Keep)
		}
	case record == nil:
		d.next = RememberedDeletes{Since: now}
	default:
		d.next = RememberedDeletes{Since: now, Lost: record.Lost}
	}
	d.next.Keep = d.keep()
	d.set.Expire(now - d.keep())
	d.report(lost)
	return nil
}

// read loads the set of a record; lost says why there is none.
func (d *deletes) read(ctx context.Context, record *RememberedDeletes, room int64) (set *tombstones.Set, path *tombstones.Path, lost, err error) {
	if record == nil {
		return &tombstones.Set{}, &tombstones.Path{}, errors.New("the newest position record does not mention any"), nil
	}
	set, path, err = d.log.Load(ctx, record.Head, room)
	switch {
	case errors.Is(err, tombstones.ErrLost):
		return &tombstones.Set{}, &tombstones.Path{}, err, nil
	case errors.Is(err, tombstones.ErrMemory):
		return nil, nil, nil, &Halt{CodeMemory, fmt.Sprintf("%v; raise `memory`, or lower `order_by.remember_deletes`", err)}
	}
	return set, path, nil, err
}

// forgotten returns the time from which to the time until which deletes are
// forgotten although they are not older than remember_deletes; 0 for none.
func (d *deletes) forgotten() (since, until int64) {
	if d.log == nil || !d.loaded {
		return 0, 0
	}
	since = max(d.next.Lost, d.now()-d.keep())
	if since >= d.next.Since {
		return 0, 0
	}
	return since, d.next.Since
}

// report says at the start, and when the memory was lost, which deletes are
// forgotten.
func (d *deletes) report(lost error) {
	since, until := d.forgotten()
	if until == 0 {
		d.s.Log.Info("remembered deletes loaded", "deletes", d.set.Len(), "bytes", d.bytes())
		return
	}
	args := []any{
		"forgotten_since", time.UnixMilli(since).UTC().Format(time.RFC3339), "forgotten_until", time.UnixMilli(until).UTC().Format(time.RFC3339),
		"deletes", d.set.Len(), "consequence", "a late change that is older than a forgotten delete brings its row back",
	}
	if lost != nil {
		d.s.Log.Error("remembered deletes are lost", append(args, "why", lost)...)
		return
	}
	d.s.Log.Warn("some deletes are forgotten", args...)
}

// write makes what an attempt changes durable, before its snapshot can be there.
func (d *deletes) write(ctx context.Context, at *attempt, txn string) error {
	if d.log == nil || at.plan == nil || at.plan.memory.Len() == 0 {
		return nil
	}
	size, err := d.log.Write(ctx, txn, d.path.Head(), d.now(), &at.plan.memory)
	if err != nil {
		return err
	}
	at.remembered = size
	return failpoint.Hit("commit/deletes")
}

// record returns what the record of an attempt says about deletes.
func (d *deletes) record(e Write, at *attempt, txn string) *RememberedDeletes {
	switch {
	case d.s.RememberDeletes == 0:
		return nil
	case e.Batch.Op == "start":
		return &RememberedDeletes{Since: d.now(), Lost: d.now(), Keep: d.keep()}
	case !d.loaded || !sameDeletes(d.follows, e.Deletes):
		return e.Deletes // a statement: the memory is its owner's
	}
	next := d.next
	if at.remembered > 0 {
		next.Head = txn
	}
	return &next
}

// advance follows our own commit.
func (d *deletes) advance(ctx context.Context, at *attempt) {
	if d.log == nil || !d.loaded || at.deletes == nil {
		return
	}
	if at.remembered > 0 {
		d.set.Apply(&at.plan.memory)
		d.path.Add(at.deletes.Head, at.remembered)
	}
	d.follows, d.next = at.deletes, *at.deletes
	d.set.Expire(d.now() - d.keep())
	d.compact(ctx)
}

// strayAge is the age at which objects of the folder are deleted that are on no
// path known here: nobody is still about to publish what names them.
const strayAge = 24 * time.Hour

// compact writes the whole set when its path has become long, best effort: the
// path works as it is. What led to the set stays until the next time, for a
// rollback of the table.
func (d *deletes) compact(ctx context.Context) {
	if !d.path.Long() {
		return
	}
	next, err := d.log.Compact(ctx, d.path, d.now(), d.set)
	if err != nil {
		d.s.Log.Warn("the remembered deletes could not be compacted; it is tried again with the next commit", "err", err)
		return
	}
	if err := d.log.Sweep(ctx, d.superseded, []*tombstones.Path{d.path, next}, d.s.Now().Add(-strayAge)); err != nil {
		d.s.Log.Warn("superseded objects of the remembered deletes could not be removed", "err", err)
	}
	d.path, d.superseded = next, d.path
}

// fits says whether what a plan adds fits room bytes, 0 for any.
func (d *deletes) fits(p *plan, room int64) error {
	if need := d.bytes() + p.memory.Bytes(); room > 0 && p.memory.Len() > 0 && need > room {
		return &Halt{CodeMemory, fmt.Sprintf("%d remembered deletes need %d MiB, but only %d MiB of `memory` are left for them; raise `memory`, or lower `order_by.remember_deletes`",
			d.set.Len()+p.memory.Len(), need>>20+1, room>>20)}
	}
	return nil
}

// deletesLayout says what the keys and places of remembered deletes mean: under
// another table, key or order they mean nothing.
func deletesLayout(identity string, s Settings, schema *paimon.Schema) string {
	var cols []string
	for _, c := range slices.Concat(s.Key, []int{-1}, s.Order.By) {
		if c < 0 {
			cols = append(cols, "ordered by")
			continue
		}
		f := schema.Fields[c]
		f.Type.NotNull = false
		cols = append(cols, f.Name, f.Type.String())
	}
	return chainHash(identity, fmt.Appendf(nil, "%q", cols))
}

// deletesRoom is the memory that the index leaves for remembered deletes, 0 for any.
func (a *Applier) deletesRoom() int64 {
	if a.set.IndexCeiling == nil {
		return 0
	}
	room := a.set.IndexCeiling()
	if a.view.index != nil {
		room -= a.view.index.Stats().Bytes
	}
	return max(room, 1)
}
