package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"applier/batcher"
	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/merger"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/cespare/xxhash/v2"
)

// auditor reads the records from a base snapshot on, twice: first for the hash
// chain and to learn which keys they touch, then to fold them into the rows that
// these keys had at the base.
type auditor struct {
	v     *verifier
	log   *kafkaLog
	chain *Section
	rows  *Section
	dec   decode.Decoder
	out   *change.Batch
	model *model
	// touched are the keys that records name; of more than the limit, those whose
	// hash is a multiple of every.
	touched map[string]bool
	every   uint64
	thinned bool // Kafka compacted some range
	emptied bool // a truncation was applied, so every key of the table is compared
}

func (a *auditor) run(ctx context.Context, base int) error {
	steps := a.v.chain[base+1:]
	var total int64
	for _, s := range steps {
		if s.batch() {
			total += s.own.In
		}
	}
	a.every = uint64(total/a.v.o.MaxKeys) + 1
	a.touched = map[string]bool{}
	var err error
	if a.model, err = newModel(a.v); err != nil {
		return err
	}
	if err := a.first(ctx, a.v.chain[base], steps); err != nil {
		return err
	}
	switch {
	case a.thinned:
		a.rows.skip("Kafka has compacted the applied ranges")
		return nil
	case a.chain.Status == Failed:
		a.rows.skip("the records in Kafka are not those that were applied, see above")
		return nil
	case a.v.Apply == batcher.Append:
		return nil // compared batch by batch
	}
	if a.every > 1 {
		a.rows.note("of more than %d keys, one in %d is compared", a.v.o.MaxKeys, a.every)
	}
	return a.second(ctx, a.v.chain[base], steps)
}

// batch reports whether the pipeline applied records with a snapshot.
func (s *snapshot) batch() bool { return s.genuine && s.own.Op == "" }

// first computes the hash chain.
func (a *auditor) first(ctx context.Context, base *snapshot, steps []*snapshot) error {
	if err := a.begin(); err != nil {
		return err
	}
	hash := base.own.Chain
	for _, s := range steps {
		if s.own == nil {
			continue
		}
		if !s.batch() {
			hash = s.own.Chain
			continue
		}
		a.emptied = a.emptied || s.own.Truncated
		var d digest
		var appended []string
		err := a.read(ctx, s, &d, func(rec *decode.Record) {
			_ = a.decode(rec, func(i int) {
				if a.v.Apply == batcher.Append {
					if row, ok := a.model.image(a.out, i); ok {
						appended = append(appended, a.model.appended(row))
					}
					return
				}
				a.touch(i)
			})
		})
		if err != nil {
			return err
		}
		a.chain.count("records", d.records)
		a.checkHash(s, hash, &d)
		hash = s.own.Chain
		if a.v.Apply == batcher.Append && !a.thinned {
			if err := a.compareAppended(ctx, s, appended); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin prepares a pass over the records: decoders remember what they have seen.
func (a *auditor) begin() error {
	var err error
	a.out = a.model.newBatch()
	a.dec, err = a.v.NewDecoder()
	return err
}

func (a *auditor) checkHash(s *snapshot, before string, d *digest) {
	switch {
	case d.records < s.own.In:
		a.thinned = true
		a.chain.skip("%s applied %d records, Kafka still has %d of them: its topic was compacted", s.key, s.own.In, d.records)
	case d.records > s.own.In:
		a.chain.fail(s.key, "", "it applied %d records, Kafka has %d in the same ranges", s.own.In, d.records)
	case merger.NextChain(before, d.bytes()) != s.own.Chain:
		a.chain.fail(s.key, "", "the hash over the applied ranges is %s, from Kafka's records it is %s: they are not those that were applied", s.own.Chain, merger.NextChain(before, d.bytes()))
	default:
		a.chain.count("batches", 1)
	}
}

// read hands the records of a batch to fn, partition by partition.
func (a *auditor) read(ctx context.Context, s *snapshot, d *digest, fn func(*decode.Record)) error {
	rg, err := ranges(s.own)
	if err != nil {
		return err
	}
	parts := make([]change.Partition, 0, len(rg))
	for p := range rg {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, change.Partition.Compare)
	for _, p := range parts {
		from, to := rg[p][0], rg[p][1]
		if from == to {
			continue
		}
		d.begin()
		err := a.log.read(ctx, p, from, to, rg, func(rec *decode.Record) error {
			d.record(rec.Offset, rec.Key, rec.Value)
			fn(rec)
			return nil
		})
		if err != nil {
			return err
		}
		d.end(p, from, to)
	}
	return nil
}

// decode hands the changes of a record to fn. What does not decode was dropped,
// or sent to the dead letters.
func (a *auditor) decode(rec *decode.Record, fn func(i int)) error {
	if _, err := a.decoded(a.dec, rec); err != nil {
		return err
	}
	for i := range a.out.Len() {
		fn(i)
	}
	return nil
}

// decoded decodes a record into out.
func (a *auditor) decoded(dec decode.Decoder, rec *decode.Record) (decode.Result, error) {
	a.out.Reset()
	if n := len(rec.Key) + len(rec.Value); a.v.MaxRecordBytes > 0 && n > a.v.MaxRecordBytes {
		return decode.Result{}, errors.New("the record is larger than max_record_bytes")
	}
	return dec.Decode(rec, a.out)
}

func (a *auditor) sampled(key string) bool {
	return a.every <= 1 || xxhash.Sum64String(key)%a.every == 0
}

func (a *auditor) touch(i int) {
	key, ok := a.model.keyOf(a.out, i)
	if !ok || !a.sampled(key) {
		return
	}
	a.touched[key] = true
	if old, ok := a.model.oldKeyOf(a.out, i); ok {
		a.touched[old] = true
	}
}

// second folds the records, with what other writers did in between, and compares.
func (a *auditor) second(ctx context.Context, base *snapshot, steps []*snapshot) error {
	if err := a.begin(); err != nil {
		return err
	}
	if err := a.loadRows(ctx, base); err != nil {
		return err
	}
	for i, s := range steps {
		prev := base
		if i > 0 {
			prev = steps[i-1]
		}
		if err := a.step(ctx, prev, s, nil); err != nil {
			return err
		}
	}
	return a.compare(ctx)
}

// compared reports whether a key that the table has is one of those compared.
func (a *auditor) compared(key string) bool {
	if a.emptied && a.sampled(key) {
		a.touched[key] = true
	}
	return a.touched[key]
}

// loadRows takes the rows of the touched keys at a snapshot into the model.
func (a *auditor) loadRows(ctx context.Context, s *snapshot) error {
	c, err := a.v.load(ctx, s)
	if err != nil {
		return err
	}
	return a.v.liveRows(ctx, c, func(_ *manifest.Entry, _ uint32, row []types.Datum) error {
		if key := a.model.keyOfRow(row); a.compared(key) {
			a.model.rows[key] = append(a.model.rows[key], cloneRow(row))
		}
		return nil
	})
}

// told hears of a change of a touched key, or of all keys.
type told func(rec *decode.Record, op string, o outcome)

// step brings the model to snapshot s, which follows prev; tell may be nil.
func (a *auditor) step(ctx context.Context, prev, s *snapshot, tell told) error {
	switch {
	case s.batch():
		return a.fold(ctx, s, tell)
	case s.own == nil || !s.genuine:
		return a.foreign(ctx, prev, s)
	}
	return nil // a statement of positions
}

func (a *auditor) fold(ctx context.Context, s *snapshot, tell told) error {
	a.model.beginBatch()
	if s.own.Truncated {
		if err := a.truncate(ctx, s, tell); err != nil {
			return err
		}
	}
	var d digest
	return a.read(ctx, s, &d, func(rec *decode.Record) {
		_ = a.decode(rec, func(i int) { // what does not decode is of no known key
			o := a.model.apply(a.out, i, rec.Partition, rec.Topic, a.touched)
			if tell != nil && o != otherKey {
				tell(rec, a.out.Kind[i].String(), o)
			}
		})
	})
}

// truncate applies the truncation that a batch begins with, whichever partition it is
// in: all its changes come after it.
func (a *auditor) truncate(ctx context.Context, s *snapshot, tell told) error {
	dec, err := a.v.NewDecoder()
	if err != nil {
		return err
	}
	var d digest
	return a.read(ctx, s, &d, func(rec *decode.Record) {
		res, err := a.decoded(dec, rec)
		if err != nil || res.Truncation == nil {
			return
		}
		a.rows.count("truncates", 1)
		if o := a.model.truncate(res.Truncation.Order); tell != nil {
			tell(rec, "truncate", o)
		}
	})
}

// foreign takes over what another writer did to the touched keys.
func (a *auditor) foreign(ctx context.Context, before, s *snapshot) error {
	x, err := a.v.load(ctx, before)
	if err != nil {
		return err
	}
	y, err := a.v.load(ctx, s)
	if err != nil {
		return err
	}
	a.rows.count("snapshots of other writers", 1)
	var added, removed [][]types.Datum
	err = a.v.difference(ctx, x, y, func(sign int, row []types.Datum) {
		if !a.compared(a.model.keyOfRow(row)) {
			return
		}
		if sign > 0 {
			added = append(added, cloneRow(row))
		} else {
			removed = append(removed, cloneRow(row))
		}
	})
	if err != nil {
		return err
	}
	for _, row := range removed {
		if !a.model.remove(row) {
			a.rows.fail(s.key, a.model.keyOfRow(row), "another writer removed the row %s, which the records before it do not make", a.model.text(row))
		}
	}
	for _, row := range added {
		key := a.model.keyOfRow(row)
		a.model.rows[key] = append(a.model.rows[key], row)
	}
	return nil
}

// compare holds the model against the latest snapshot.
func (a *auditor) compare(ctx context.Context) error {
	type place struct {
		text, file string
		pos        uint32
	}
	got := map[string][]place{}
	err := a.v.liveRows(ctx, a.v.last, func(e *manifest.Entry, pos uint32, row []types.Datum) error {
		key := a.model.keyOfRow(row)
		if !a.touched[key] {
			return nil
		}
		file, err := a.v.Table.Paths().Location(e)
		got[key] = append(got[key], place{a.model.comparable(key, row), file, pos})
		return err
	})
	if err != nil {
		return err
	}
	unknown, timed := 0, 0
	for _, key := range sortedKeys(a.touched) {
		if a.model.unknown[key] {
			unknown++
			continue
		}
		a.rows.count("keys", 1)
		if slices.Contains(a.model.timedCells[key], true) {
			timed++
		}
		have, want := got[key], a.model.rows[key]
		var texts []string
		for _, row := range want {
			texts = append(texts, a.model.comparable(key, row))
		}
		slices.Sort(texts)
		slices.SortFunc(have, func(x, y place) int { return cmp.Compare(x.text, y.text) })
		if slices.EqualFunc(texts, have, func(t string, p place) bool { return t == p.text }) {
			continue
		}
		file, found := "", "no row"
		if len(have) > 0 {
			file, found = have[0].file, ""
			for _, p := range have {
				found += fmt.Sprintf("%s (row %d) ", p.text, p.pos)
			}
		}
		wanted := "no row"
		if len(texts) > 0 {
			wanted = fmt.Sprint(texts)
		}
		a.rows.fail(file, key, "the table has %s; the records make %s", found, wanted)
	}
	if timed > 0 {
		a.rows.note("rows of %d keys hold the time at which their batch was applied, which no record says: these values are not compared", timed)
	}
	if unknown > 0 {
		a.rows.note("%d keys were changed in several partitions of one batch, or took values from keys that are not compared, or a condition on the time decided about them: Kafka does not say in which order and at which time, so they are not compared", unknown)
	}
	return nil
}

// compareAppended compares the rows that an appending batch wrote.
func (a *auditor) compareAppended(ctx context.Context, s *snapshot, want []string) error {
	delta, err := a.v.Table.Delta(ctx, s.s)
	if err != nil {
		return err
	}
	var got []string
	file := s.key
	for i := range delta {
		if delta[i].Kind != manifest.Add {
			continue
		}
		if file, err = a.v.Table.Paths().Location(&delta[i]); err != nil {
			return err
		}
		err := a.v.readRows(ctx, &delta[i], nil, func(_ uint32, row []types.Datum) error {
			got = append(got, a.model.appended(row))
			return nil
		})
		if err != nil {
			return err
		}
	}
	a.rows.count("rows", int64(len(got)))
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return nil
	}
	what := fmt.Sprintf("snapshot %d wrote %d rows, its records make %d", s.id, len(got), len(want))
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			what += "; missing: " + want[i]
		case i >= len(want):
			what += "; too many: " + got[i]
		case got[i] != want[i]:
			what += "; first difference: " + got[i] + " instead of " + want[i]
		default:
			continue
		}
		break
	}
	a.rows.fail(file, "", "%s", what)
	return nil
}
