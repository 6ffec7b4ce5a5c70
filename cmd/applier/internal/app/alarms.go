package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"applier/ingest"
	"applier/ingest/change"
	"applier/merger"
	"applier/metrics/admin"
	"applier/storage/paimon"
)

// lsoPatience is how long an open transaction may keep records back before it is
// an alarm: twice the transaction.timeout.ms that producers have by default.
const lsoPatience = 2 * time.Minute

// tombstoneShare of delete.retention.ms is when a log warns that the position
// falls behind.
const tombstoneShare = 0.5

// alarms are what is wrong with a pipeline that goes on. It is safe for
// concurrent use.
type alarms struct {
	mu     sync.Mutex
	facts  map[alarm]string
	stable map[change.Partition]standing // partitions that wait for a transaction
	warned map[change.Partition]bool     // of tombstones
	since  time.Time                     // when what the table holds was read, at the latest
}

type alarm struct {
	code      merger.Code
	partition change.Partition
}

// standing is a last stable offset and since when it is where it is.
type standing struct {
	offset int64
	since  time.Time
}

// raise notes an alarm and reports whether it is new.
func (a *alarms) raise(code merger.Code, p change.Partition, facts string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.facts == nil {
		a.facts = map[alarm]string{}
	}
	key := alarm{code, p}
	_, known := a.facts[key]
	a.facts[key] = facts
	return !known
}

// clear ends an alarm and reports whether there was one.
func (a *alarms) clear(code merger.Code, p change.Partition) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := alarm{code, p}
	_, known := a.facts[key]
	delete(a.facts, key)
	return known
}

// list returns the alarms for the status, and their number by code.
func (a *alarms) list() (out []admin.Halt, count map[merger.Code]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	count = map[merger.Code]int{}
	for key, facts := range a.facts {
		info := key.code.Info()
		out = append(out, admin.Halt{Code: string(key.code), Message: info.Means + " " + facts, Remedy: info.Do})
		count[key.code]++
	}
	slices.SortFunc(out, func(x, y admin.Halt) int {
		return cmp.Or(cmp.Compare(x.Code, y.Code), cmp.Compare(x.Message, y.Message))
	})
	return out, count
}

// waits tells since when a partition's last stable offset, behind which records
// wait, has not moved; zero where nothing waits for it.
func (a *alarms) waits(p change.Partition, next int64, l ingest.Lag, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stable == nil {
		a.stable = map[change.Partition]standing{}
	}
	if next < l.Stable || l.Stable >= l.End {
		delete(a.stable, p)
		return 0
	}
	if s, ok := a.stable[p]; !ok || s.offset != l.Stable {
		a.stable[p] = standing{l.Stable, now}
	}
	return now.Sub(a.stable[p].since)
}

// alarm raises an alarm and says so in the log, once.
func (p *pipeline) alarm(code merger.Code, part change.Partition, facts string) {
	if p.alarms.raise(code, part, facts) {
		p.log.Error("alarm", "code", code, "facts", facts, "do", code.Info().Do)
	}
}

// watchTransactions raises K-LSO for partitions whose next records wait behind a
// transaction that nobody ends.
func (p *pipeline) watchTransactions(ctx context.Context, pos change.Positions, lags map[change.Partition]ingest.Lag, now time.Time) {
	for part, l := range lags {
		at, known := pos[part]
		if !known {
			continue
		}
		waited := p.alarms.waits(part, at.Next, l, now)
		if waited < lsoPatience {
			if waited == 0 && p.alarms.clear(merger.CodeOpenTxn, part) {
				p.log.Info("the alarm is over", "code", merger.CodeOpenTxn, "partition", part.String())
			}
			continue
		}
		facts := fmt.Sprintf("%s: %d records wait behind offset %d since %v", part, l.End-l.Stable, l.Stable, waited.Round(time.Second))
		if txn, err := p.consumer.Admin().OldestTransaction(ctx, part); err == nil && txn != nil {
			facts += fmt.Sprintf(", for producer id %d (epoch %d), which last wrote at %s", txn.Producer, txn.Epoch, txn.Since.UTC().Format(time.RFC3339))
		}
		p.alarm(merger.CodeOpenTxn, part, facts)
	}
}

// watchTombstones raises K-TOMBSTONES, which stays: what was missed does not come
// back. Before it is so, the log warns.
//
// A log that is read from its start is whole however old its records are: only
// what went on while nobody read, or reading took too long, is in doubt.
func (p *pipeline) watchTombstones(ctx context.Context, pos change.Positions, settings map[string]ingest.TopicSettings) {
	age := time.Since(p.alarms.readSince())
	lost, err := p.consumer.Admin().LostTombstones(ctx, pos, settings, 1, age)
	if err != nil {
		return
	}
	for part, n := range lost {
		p.alarm(merger.CodeTombstones, part, fmt.Sprintf("%s: %d offsets from %d on are older than delete.retention.ms (%v)",
			part, n, pos[part].Next, settings[part.Topic].DeleteRetention))
	}
	near, err := p.consumer.Admin().LostTombstones(ctx, pos, settings, tombstoneShare, age)
	if err != nil {
		return
	}
	for part := range near {
		if _, over := lost[part]; over || !p.alarms.warn(part) {
			continue
		}
		p.log.Warn("a compacted topic is read so late that its tombstones may soon be removed unread", "partition", part.String(),
			"next", pos[part].Next, "delete_retention", settings[part.Topic].DeleteRetention)
	}
}

// warn reports whether a partition was not warned of yet.
func (a *alarms) warn(p change.Partition) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.warned == nil {
		a.warned = map[change.Partition]bool{}
	}
	known := a.warned[p]
	a.warned[p] = true
	return !known
}

// alarmed is called before reading begins anywhere: what is read late is found
// before it has caught up.
func (p *pipeline) alarmed(ctx context.Context, pos change.Positions) {
	if p.alarms.readSince().IsZero() {
		p.alarms.setSince(lastRead(ctx, p.bound.table, p.cfg.ID))
	}
	settings, err := p.consumer.Admin().Settings(ctx, p.cfg.Source.TopicList())
	if err != nil {
		p.log.Debug("the topics' settings are not known", "err", err)
		return
	}
	p.watchTombstones(ctx, pos, settings)
}

func (a *alarms) readSince() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since
}

func (a *alarms) setSince(t time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.since = t
}

// lastRead is when the pipeline last committed to the table; now, where that is
// not known.
func lastRead(ctx context.Context, t *paimon.Table, id string) time.Time {
	own, _, err := merger.FindRecords(ctx, t, id)
	if err != nil || own == nil {
		return time.Now()
	}
	s, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), own.Snapshot)
	if err != nil {
		return time.Now()
	}
	return time.UnixMilli(s.TimeMillis)
}
