package app

import (
	"context"
	"time"

	"applier/merger/compact"
	"applier/storage/catalog"
	"applier/storage/paimon"
)

// surveyEvery is how often the table is searched for what compaction should do.
const surveyEvery = 5 * time.Minute

// survey keeps applier_table_oldest_uncompacted_seconds up to date, whoever
// compacts the table. It has a table handle of its own, and what goes wrong with it
// touches the pipeline in nothing.
func (p *pipeline) survey(ctx context.Context) {
	var debt compact.Debt
	var last time.Time
	tick := time.NewTicker(watchEvery) // the table may become ours at any time
	defer tick.Stop()
	for {
		if now := time.Now(); p.consumer.Owned() && now.Sub(last) >= surveyEvery {
			last = now
			_ = p.guard("while surveying the table", func() error { p.surveyOnce(ctx, &debt); return nil })
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *pipeline) surveyOnce(ctx context.Context, debt *compact.Debt) {
	groups, minFiles, err := p.uncompacted(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.log.Debug("the table could not be searched for what is to be compacted", "err", err)
		}
		return
	}
	now := time.Now()
	age, from := time.Duration(0), int64(0)
	if since := debt.Since(groups, minFiles, now); !since.IsZero() {
		age, from = max(now.Sub(since), 0), since.UnixMilli()
	}
	p.debt.Store(from)
	p.app.metrics.Storage.Uncompacted.WithLabelValues(p.name, p.target).Set(age.Seconds())
}

// uncompacted is what compaction would do to the table now, by the same rules.
func (p *pipeline) uncompacted(ctx context.Context) (groups [][]compact.File, minFiles int, err error) {
	name, err := catalog.ParseName(p.target)
	if err != nil {
		return nil, 0, err
	}
	t, err := p.app.catalog.Open(ctx, name, paimon.Read)
	if err != nil {
		return nil, 0, err
	}
	_, files, err := compact.Survey(ctx, t)
	if err != nil {
		return nil, 0, err
	}
	ratio := float64(p.cfg.Maintenance.DeletedRatio)
	if ratio == 0 {
		rows := int64(0)
		for i := range files {
			rows += files[i].Entry.File.Rows - files[i].Deleted
		}
		ratio = compact.PurgeRatio(p.commitRows(), rows)
	}
	policy := compact.NewPolicy(t, ratio)
	return compact.Plan(files, policy), policy.MinFiles, nil
}
