package ingest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"applier/ingest/change"
)

// Lag is how far a partition is behind, at one moment.
type Lag struct {
	Partition change.Partition
	Start     int64 // log start
	Stable    int64 // last stable offset: what can be read
	End       int64 // high watermark
}

// Lags asks for all partitions of some topics.
func (a *Admin) Lags(ctx context.Context, topics []string) (map[change.Partition]Lag, error) {
	starts, err := a.Starts(ctx, topics)
	if err != nil {
		return nil, err
	}
	stable, err := a.Stable(ctx, topics)
	if err != nil {
		return nil, err
	}
	ends, err := a.Ends(ctx, topics)
	if err != nil {
		return nil, err
	}
	out := make(map[change.Partition]Lag, len(ends))
	for p, end := range ends {
		out[p] = Lag{Partition: p, Start: starts[p], Stable: stable[p], End: end}
	}
	return out, nil
}

// Retention returns the topics' retention.ms; a negative value is unlimited.
func (a *Admin) Retention(ctx context.Context, topics []string) (map[string]time.Duration, error) {
	configs, err := a.adm.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("reading topic configurations: %w", err)
	}
	out := map[string]time.Duration{}
	for _, c := range configs {
		if c.Err != nil {
			continue
		}
		for _, kv := range c.Configs {
			if kv.Key != "retention.ms" || kv.Value == nil {
				continue
			}
			if ms, err := strconv.ParseInt(*kv.Value, 10, 64); err == nil {
				out[c.Name] = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return out, nil
}
