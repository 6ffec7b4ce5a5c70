package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"applier/batcher"
	"applier/config"
	"applier/ingest"
	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/merger"

	"github.com/google/uuid"
)

// Sample is what the next records of a pipeline would do to its table.
type Sample struct {
	Records int64
	Skipped int64                  // records that change no row
	Failed  map[change.Class]int64 // records that cannot be decoded, and changes that cannot be applied
	Changes batcher.Counts
	Trial   merger.Trial
	lines   []string // the clauses, as written
}

// errEnough ends reading.
var errEnough = errors.New("the sample is complete")

// TakeSample reads up to n records from the pipeline's positions and says what they
// would do, as one batch. It joins no group and writes nothing.
func TakeSample(ctx context.Context, cfg *config.Config, name string, kafka ingest.ClientOptions, n int64, log *slog.Logger) (*Sample, error) {
	j, done, err := openOffsets(ctx, cfg, name, kafka, log)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := j.needKafka(); err != nil {
		return nil, err
	}
	b, err := batcher.New(batcher.Options{
		Fields: j.table.Schema().Fields, Key: j.bound.key, Apply: j.bound.apply, Order: j.bound.order, Remembers: j.pipe.OrderBy.RememberDeletes > 0,
		Limits: batcher.Limits{Rows: 1 << 30},
	})
	if err != nil {
		return nil, err
	}
	s := &Sample{Failed: map[change.Class]int64{}}
	if j.pipe.Merge != nil {
		s.lines = j.pipe.Merge.When
	}
	if err := j.readSample(ctx, kafka, n, b, s); err != nil {
		return nil, err
	}
	batch := b.Seal(batcher.FlushManual)
	s.Changes = batch.Counts
	if s.Trial, err = j.try(ctx, batch); err != nil {
		return nil, err
	}
	for class, k := range s.Trial.Refused {
		s.Failed[class] += k
	}
	return s, nil
}

// readSample reads partition after partition, each its share of what is left.
func (j *offsetsJob) readSample(ctx context.Context, kafka ingest.ClientOptions, n int64, b *batcher.Batcher, s *Sample) error {
	from := change.Positions{}
	if j.own != nil {
		from, _ = j.own.Record.Positions()
	}
	at := map[change.Partition]int64{}
	for _, p := range j.cluster.Partitions {
		next, known := from[p]
		if !known || next.Next < j.lags[p].Start {
			next = change.Position{Next: j.lags[p].Start, Epoch: -1}
		}
		from[p], at[p] = next, next.Next
	}
	parts := from.Sorted()
	b.Reset(from, parts, 1)
	dec, err := decode.New(j.pipe.Source.Format.Type, j.bound.decode)
	if err != nil {
		return err
	}
	r, err := ingest.NewRangeReader(kafka, at)
	if err != nil {
		return err
	}
	defer r.Close()
	for i, p := range parts {
		lag, ok := j.lags[p]
		if !ok || at[p] >= lag.Stable {
			continue
		}
		share := (n - s.Records) / int64(len(parts)-i)
		if i == len(parts)-1 {
			share = n - s.Records
		}
		if share == 0 {
			continue
		}
		until := s.Records + share
		err := r.Read(ctx, p, lag.Stable, func(rec *decode.Record) error {
			if s.Records == until {
				return errEnough
			}
			rec.Part = int32(i)
			if !j.sampled(dec, rec, b, s) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

// sampled decodes one record into the batch; false if a batch would end before it, or
// the pipeline stop.
func (j *offsetsJob) sampled(dec decode.Decoder, rec *decode.Record, b *batcher.Batcher, s *Sample) bool {
	var re *change.RowError
	res, err := dec.Decode(rec, b.Changes())
	if t := res.Truncation; t != nil && j.pipe.OnTruncate != config.OnTruncateIgnore {
		if j.pipe.OnTruncate == config.OnTruncatePause || !b.Truncate(t) {
			return false
		}
	}
	s.Records++
	switch {
	case errors.As(err, &re):
		s.Failed[re.Class]++
	case err != nil:
		s.Failed[change.ClassUnsupported]++
	case res.Rows == 0 && (res.Truncation == nil || j.pipe.OnTruncate == config.OnTruncateIgnore):
		s.Skipped++
	}
	b.Record(rec.Part, rec.Offset, -1, rec.Key, rec.Value, time.Now())
	return true
}

// try plans the batch on the table. The key index is built in a folder of its own.
func (j *offsetsJob) try(ctx context.Context, batch *batcher.Batch) (merger.Trial, error) {
	dir, err := os.MkdirTemp("", "applier-plan-")
	if err != nil {
		return merger.Trial{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	settings := merger.Settings{
		ID: j.pipe.ID, Apply: j.bound.apply, Merge: j.bound.merge, Key: j.bound.key, Order: j.bound.order, RememberDeletes: j.pipe.OrderBy.RememberDeletes,
		Topics: j.pipe.Source.TopicList(), Instance: instanceName(), StateDir: dir, EncodeConcurrency: 1, CommitUserPrefix: "applier-", Log: j.log,
		IndexCeiling: func() int64 { return int64(j.cfg.Memory) }, Now: time.Now, UUID: uuid.NewString,
	}
	a, err := merger.New(ctx, settings, merger.Deps{Name: j.pipe.Target.Table, Table: j.table, Source: merger.NoSource{}, Observer: silent{}})
	if err != nil {
		return merger.Trial{}, err
	}
	return a.Try(ctx, batch)
}

// Print writes the sample for people.
func (s *Sample) Print(w io.Writer) {
	c := s.Trial.Counts
	fmt.Fprintf(w, "sample: %d records, put to snapshot %d as one batch; nothing was written\n", s.Records, s.Trial.Snapshot)
	fmt.Fprintf(w, "  rows inserted %d, updated %d, deleted %d\n", c.Inserted, c.Updated, c.Deleted)
	fmt.Fprintf(w, "  keys unchanged %d; changes ignored %d, late %d, tied %d; records that change no row %d\n",
		c.Unchanged, c.Ignored+s.Changes.Ignored, c.Late+s.Changes.Late, c.Tied+s.Changes.Tied, s.Skipped)
	if s.Changes.TwoPartitions > 0 {
		fmt.Fprintf(w, "  %d changes have a key that another partition has too: their order is not known\n", s.Changes.TwoPartitions)
	}
	for _, class := range sortedKeys(s.Failed) {
		fmt.Fprintf(w, "  refused (%s) %d\n", class, s.Failed[class])
	}
	for i, line := range s.lines {
		fmt.Fprintf(w, "  rows %6d  WHEN %s\n", s.Trial.Acted[i], strings.Join(strings.Fields(line), " "))
	}
}
