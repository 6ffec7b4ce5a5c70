package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"applier/batcher"
	"applier/config"
	"applier/ingest"
	"applier/ingest/change"
	"applier/metrics/admin"
)

// ResetTo is where a pipeline is to read again: exactly one member is set.
type ResetTo struct {
	Earliest bool
	Time     time.Time
	// Positions may leave the topic out if the pipeline has only one.
	Positions []admin.Position
}

// Reset is a plan to read records again.
type Reset struct {
	Pipeline, Table string
	Apply           batcher.Apply
	Ordered         bool // order_by decides which change is newer
	Parts           []ResetPart
}

// ResetPart is one partition of a plan.
type ResetPart struct {
	Partition change.Partition
	From, To  int64 // where it stands, where it will
	Span      ingest.Span
}

// Again is how many offsets will be read again.
func (r *Reset) Again() int64 {
	var n int64
	for _, p := range r.Parts {
		n += p.Span.Records
	}
	return n
}

// Change is the statement of positions that carries a plan out.
func (r *Reset) Change() admin.OffsetChange {
	c := admin.OffsetChange{Action: admin.ActionSet}
	for _, p := range r.Parts {
		c.Positions = append(c.Positions, admin.Position{Topic: p.Partition.Topic, Partition: p.Partition.Partition, Next: p.To})
	}
	return c
}

// PlanReset finds out what reading again from somewhere means. Nothing is written.
// Errors: admin.ErrInvalid and admin.ErrConflict for what cannot be meant.
func PlanReset(ctx context.Context, cfg *config.Config, name string, kafka ingest.ClientOptions, to ResetTo, log *slog.Logger) (*Reset, error) {
	j, done, err := openOffsets(ctx, cfg, name, kafka, log)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := j.needKafka(); err != nil {
		return nil, err
	}
	if j.own == nil {
		return nil, fmt.Errorf("%w: the pipeline has not started on this table; say where it begins with source.start", admin.ErrConflict)
	}
	now, err := j.own.Record.Positions()
	if err != nil {
		return nil, err
	}
	next, err := j.resetTo(ctx, now, to)
	if err != nil {
		return nil, err
	}
	r := &Reset{Pipeline: name, Table: j.pipe.Target.Table, Apply: j.bound.apply, Ordered: len(j.bound.order.By) > 0}
	sizes, err := j.admin.Sizes(ctx, j.pipe.Source.TopicList())
	if err != nil {
		log.Debug("the brokers do not tell sizes", "err", err)
	}
	for _, p := range next.Sorted() {
		part := ResetPart{Partition: p, From: now[p].Next, To: next[p].Next}
		if part.Span, err = ingest.SpanOf(ctx, kafka, p, part.To, part.From, sizes, j.lags[p]); err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, part)
	}
	if r.Again() == 0 {
		return nil, fmt.Errorf("%w: nothing would be read again: the pipeline stands there already", admin.ErrInvalid)
	}
	return r, nil
}

// resetTo computes the wanted positions; those that are not named stay.
func (j *offsetsJob) resetTo(ctx context.Context, now change.Positions, to ResetTo) (change.Positions, error) {
	next := now.Clone()
	switch {
	case to.Earliest:
		for p := range next {
			next[p] = change.Position{Next: j.lags[p].Start, Epoch: -1}
		}
	case !to.Time.IsZero():
		at, err := j.admin.After(ctx, j.pipe.Source.TopicList(), to.Time)
		if err != nil {
			return nil, err
		}
		for p, was := range now { // a partition that has nothing newer stays where it is
			next[p] = change.Position{Next: min(at[p], was.Next), Epoch: -1}
		}
	}
	topics := j.pipe.Source.TopicList()
	stated := make([]admin.Position, len(to.Positions))
	for i, p := range to.Positions {
		if p.Topic == "" && len(topics) == 1 {
			p.Topic = topics[0]
		}
		stated[i] = p
	}
	if err := j.state(next, stated); err != nil {
		return nil, err
	}
	for _, p := range now.Sorted() {
		if next[p].Next > now[p].Next {
			return nil, fmt.Errorf("%w: %s stands at offset %d; going on to %d would leave records out: that is `applier offsets skip`", admin.ErrInvalid, p, now[p].Next, next[p].Next)
		}
	}
	return next, nil
}

// Print says what will be read again, and what that does to the table.
func (r *Reset) Print(w io.Writer) {
	fmt.Fprintf(w, "pipeline %s, table %s\n\n", r.Pipeline, r.Table)
	bytes, known := int64(0), true
	for _, p := range r.Parts {
		if p.Span.Records == 0 {
			fmt.Fprintf(w, "  %s stays at offset %d\n", p.Partition, p.To)
			continue
		}
		size := "size unknown"
		if p.Span.Bytes >= 0 {
			size = fmt.Sprintf("about %.1f MiB in Kafka", float64(p.Span.Bytes)/(1<<20))
			bytes += p.Span.Bytes
		} else {
			known = false
		}
		fmt.Fprintf(w, "  %s goes back from offset %d to %d: at most %d records, %s", p.Partition, p.From, p.To, p.Span.Records, size)
		if !p.Span.Oldest.IsZero() {
			fmt.Fprintf(w, ", written %s to %s", p.Span.Oldest.Format(time.RFC3339), p.Span.Newest.Format(time.RFC3339))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\nAt most %d records will be read again", r.Again())
	if known {
		fmt.Fprintf(w, ", about %.1f MiB", float64(bytes)/(1<<20))
	}
	fmt.Fprintf(w, ".\n%s\n", r.effect())
}

// effect says how the table stays right.
func (r *Reset) effect() string {
	switch {
	case r.Apply == batcher.Append:
		return fmt.Sprintf("apply: append adds every record as a new row: the table would get up to %d ROWS TWICE. Nothing undoes that but a rollback of the table.", r.Again())
	case r.Apply == batcher.InsertOnly:
		return "apply: insert_only keeps the rows that are there: records of known keys change nothing, missing ones are inserted."
	case r.Apply == batcher.Merge:
		return "The records are put to the clauses of merge.when again, in their order. When reading has come back to where it stands now, the table holds the same again only if the clauses make the same of rows that have seen the changes before."
	case r.Ordered:
		return "The records are applied again by key. order_by lets none of them replace a newer row: late ones are dropped and counted, and the table ends as it is now."
	}
	return "The records are applied again by key, in their order: while they are, readers may see older values of the keys they name, and when reading has come back to where it stands now, the table holds the same again. " +
		"What other writers changed in these keys since is replaced."
}
