package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"applier/config"
	"applier/ingest"
	"applier/ingest/change"
	"applier/merger"
	"applier/metrics/admin"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"

	"github.com/google/uuid"
)

// offsetsJob is one offsets command: the table, its record, and Kafka's view.
type offsetsJob struct {
	cfg     *config.Config
	pipe    *config.Pipeline
	table   *paimon.Table
	bound   *bound
	own     *merger.Located
	others  []merger.Located
	admin   *ingest.Admin
	cluster *ingest.Cluster
	lags    map[change.Partition]ingest.Lag
	log     *slog.Logger
}

// openOffsets reads the table and asks Kafka; Kafka may be out of reach for show.
func openOffsets(ctx context.Context, cfg *config.Config, name string, kafka ingest.ClientOptions, log *slog.Logger) (*offsetsJob, func(), error) {
	p := cfg.Pipelines[name]
	if p == nil {
		return nil, nil, fmt.Errorf("%w: %s; the configuration has %s", admin.ErrNotFound, name, strings.Join(cfg.Names(), ", "))
	}
	c, err := newCatalog(cfg, nil)
	if err != nil {
		return nil, nil, err
	}
	tn, err := catalog.ParseName(p.Target.Table)
	if err != nil {
		return nil, nil, err
	}
	j := &offsetsJob{cfg: cfg, pipe: p, log: log}
	if j.table, err = c.Open(ctx, tn, paimon.Write); err != nil {
		return nil, nil, err
	}
	if j.bound, err = bind(p, j.table); err != nil {
		return nil, nil, err
	}
	if j.own, j.others, err = merger.FindRecords(ctx, j.table, p.ID); err != nil {
		return nil, nil, err
	}
	cl, err := ingest.NewClient(kafka)
	if err != nil {
		return nil, nil, err
	}
	j.admin = ingest.NewAdmin(cl)
	if j.cluster, err = j.admin.Describe(ctx, p.Source.TopicList()); err == nil {
		j.lags, err = j.admin.Lags(ctx, p.Source.TopicList())
	}
	if err != nil {
		log.Warn("Kafka does not answer", "err", err)
	}
	return j, cl.Close, nil
}

// result lists positions beside what Kafka has.
func (j *offsetsJob) result(pos change.Positions, snapshot int64, note string) admin.Offsets {
	out := admin.Offsets{Pipeline: j.pipe.Name, Table: j.pipe.Target.Table, Snapshot: snapshot, Note: note}
	add := func(p change.Partition, next int64) {
		po := admin.PartitionOffset{Topic: p.Topic, Partition: p.Partition, Next: next, Start: -1, End: -1}
		if l, ok := j.lags[p]; ok {
			po.Start, po.End = l.Start, l.End
		}
		out.Partitions = append(out.Partitions, po)
	}
	for _, p := range pos.Sorted() {
		add(p, pos[p].Next)
	}
	if j.cluster != nil {
		for _, p := range j.cluster.Partitions {
			if _, known := pos[p]; !known {
				add(p, -1)
			}
		}
	}
	return out
}

// ShowOffsets reads a pipeline's position record and compares it with Kafka.
func ShowOffsets(ctx context.Context, cfg *config.Config, name string, kafka ingest.ClientOptions, log *slog.Logger) (admin.Offsets, error) {
	j, done, err := openOffsets(ctx, cfg, name, kafka, log)
	if err != nil {
		return admin.Offsets{}, err
	}
	defer done()
	if j.own == nil {
		note := "no position record: the pipeline has not started on this table"
		for _, o := range j.others {
			note += "; there is one of " + o.String()
		}
		return j.result(change.Positions{}, 0, note), nil
	}
	pos, err := j.own.Record.Positions()
	if err != nil {
		return admin.Offsets{}, err
	}
	return j.result(pos, j.own.Snapshot, fmt.Sprintf("commit %d of epoch %d by %s", j.own.Record.Seq, j.own.Record.Epoch, j.own.Record.Owner)), nil
}

// ChangeOffsets commits an operator's statement of positions.
func ChangeOffsets(ctx context.Context, cfg *config.Config, name string, kafka ingest.ClientOptions, c admin.OffsetChange, log *slog.Logger) (admin.Offsets, error) {
	j, done, err := openOffsets(ctx, cfg, name, kafka, log)
	if err != nil {
		return admin.Offsets{}, err
	}
	defer done()
	commit := merger.OperatorCommit{Op: c.Action}
	if j.cluster != nil {
		commit.Topics, commit.Cluster = j.cluster.Topics, j.cluster.ID
	}
	switch c.Action {
	case admin.ActionSet:
		commit.Next, err = j.set(ctx, c)
	case admin.ActionSkip:
		commit.Next, commit.Gaps, err = j.skip(c)
	case admin.ActionAdopt:
		commit, err = j.adopt(commit)
	default:
		err = fmt.Errorf("%w: action %q", admin.ErrInvalid, c.Action)
	}
	if err != nil {
		return admin.Offsets{}, err
	}
	if c.DryRun {
		return j.result(commit.Next, 0, "dry run: nothing was written"), nil
	}
	snapshot, err := j.commit(ctx, commit)
	if err != nil {
		return admin.Offsets{}, err
	}
	note := fmt.Sprintf("snapshot %d states these positions", snapshot)
	if commit.Gaps > 0 {
		note += fmt.Sprintf("; %d offsets are skipped, and the record says so", commit.Gaps)
	}
	return j.result(commit.Next, snapshot, note), nil
}

// needKafka: statements about positions need the partitions.
func (j *offsetsJob) needKafka() error {
	if j.cluster == nil || j.lags == nil {
		return fmt.Errorf("%w: Kafka must answer for this command", admin.ErrConflict)
	}
	return nil
}

// set takes the given positions, or those at a time; partitions that are not
// named keep theirs, new ones begin at the log's start.
func (j *offsetsJob) set(ctx context.Context, c admin.OffsetChange) (change.Positions, error) {
	if err := j.needKafka(); err != nil {
		return nil, err
	}
	now := change.Positions{}
	if j.own != nil {
		now, _ = j.own.Record.Positions()
	}
	next := change.Positions{}
	for _, p := range j.cluster.Partitions {
		next[p] = change.Position{Next: j.lags[p].Start, Epoch: -1}
		if at, ok := now[p]; ok && j.sameTopic(p.Topic) {
			next[p] = at
		}
	}
	if !c.Time.IsZero() {
		at, err := j.admin.After(ctx, j.pipe.Source.TopicList(), c.Time)
		if err != nil {
			return nil, err
		}
		for p := range next {
			next[p] = change.Position{Next: at[p], Epoch: -1}
		}
	}
	return next, j.state(next, c.Positions)
}

// sameTopic: offsets of a topic that was created again mean nothing.
func (j *offsetsJob) sameTopic(topic string) bool {
	old := j.own.Record.Topics[topic].ID
	return old == "" || old == j.cluster.Topics[topic]
}

// state writes stated positions over a vector and checks them against the log.
func (j *offsetsJob) state(next change.Positions, stated []admin.Position) error {
	var errs []error
	for _, s := range stated {
		p := change.Partition{Topic: s.Topic, Partition: s.Partition}
		if _, ok := next[p]; !ok {
			errs = append(errs, fmt.Errorf("%w: there is no partition %s", admin.ErrInvalid, p))
			continue
		}
		next[p] = change.Position{Next: s.Next, Epoch: -1}
	}
	for _, p := range next.Sorted() {
		l := j.lags[p]
		if n := next[p].Next; n < l.Start || n > l.End {
			errs = append(errs, fmt.Errorf("%w: %s: offset %d is outside of the log [%d, %d]", admin.ErrInvalid, p, n, l.Start, l.End))
		}
	}
	return errors.Join(errs...)
}

// skip moves partitions forward: to the stated positions, or, without any,
// every partition whose next records are gone to the log's start.
func (j *offsetsJob) skip(c admin.OffsetChange) (change.Positions, int64, error) {
	if err := j.needKafka(); err != nil {
		return nil, 0, err
	}
	if j.own == nil {
		return nil, 0, fmt.Errorf("%w: no position record to move; use set", admin.ErrConflict)
	}
	now, err := j.own.Record.Positions()
	if err != nil {
		return nil, 0, err
	}
	next := now.Clone()
	if len(c.Positions) == 0 {
		for _, p := range now.Sorted() {
			if l := j.lags[p]; now[p].Next < l.Start {
				next[p] = change.Position{Next: l.Start, Epoch: -1}
			}
		}
	}
	if err := j.state(next, c.Positions); err != nil {
		return nil, 0, err
	}
	var gaps int64
	for _, p := range now.Sorted() {
		d := next[p].Next - now[p].Next
		if d < 0 {
			return nil, 0, fmt.Errorf("%w: %s: skip cannot go back from %d to %d; use set", admin.ErrInvalid, p, now[p].Next, next[p].Next)
		}
		gaps += d
	}
	if gaps == 0 {
		return nil, 0, fmt.Errorf("%w: nothing to skip; state positions with --to TOPIC/PARTITION=OFFSET", admin.ErrInvalid)
	}
	return next, gaps, nil
}

// adopt writes the newest record of the table again as our own: under this id,
// for this table, with the present settings.
func (j *offsetsJob) adopt(commit merger.OperatorCommit) (merger.OperatorCommit, error) {
	from := j.own
	if from == nil && len(j.others) > 0 {
		from = &j.others[0]
	}
	if from == nil {
		return commit, fmt.Errorf("%w: the table has no position record to adopt", admin.ErrConflict)
	}
	pos, err := from.Record.Positions()
	commit.Next, commit.Topics, commit.Cluster = pos, from.Record.TopicIDs(), from.Record.Cluster
	return commit, err
}

func (j *offsetsJob) commit(ctx context.Context, c merger.OperatorCommit) (int64, error) {
	settings := merger.Settings{
		ID: j.pipe.ID, Apply: j.bound.apply, Merge: j.bound.merge, Key: j.bound.key, Order: j.bound.order, RememberDeletes: j.pipe.OrderBy.RememberDeletes, Topics: j.pipe.Source.TopicList(),
		Instance: instanceName(), Pin: j.pipe.Pin, StateDir: filepath.Join(j.cfg.StateDir, j.pipe.ID), EncodeConcurrency: 1,
		CommitUserPrefix: "applier-", Log: j.log, Now: time.Now, UUID: uuid.NewString,
	}
	if marks, err := objstore.NewLocal(j.cfg.StateDir, objstore.LocalOptions{}); err == nil {
		settings.Marks = marks
	}
	a, err := merger.New(ctx, settings, merger.Deps{Name: j.pipe.Target.Table, Table: j.table, Source: merger.NoSource{}, Observer: silent{}})
	if err != nil {
		return 0, err
	}
	return a.Commit(ctx, c)
}

// silent observes nothing.
type silent struct{}

func (silent) Noticed(merger.Notice)        {}
func (silent) Committed(merger.Commit)      {}
func (silent) Halted(*merger.Halt)          {}
func (silent) TwoPartitions(int64)          {}
func (silent) DeadLetter(string)            {}
func (silent) Rebuilt(int64, time.Duration) {}
func (silent) Stage(string, time.Duration)  {}
