package ingest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"applier/ingest/change"

	"github.com/twmb/franz-go/pkg/kadm"
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

// TopicSettings are what a topic's configuration says about how long records stay.
type TopicSettings struct {
	Retention       time.Duration // negative: for ever
	Compacted       bool
	DeleteRetention time.Duration // of tombstones, in a compacted topic
}

// Settings reads the topics' configurations; a topic that may not be described
// is left out.
func (a *Admin) Settings(ctx context.Context, topics []string) (map[string]TopicSettings, error) {
	configs, err := a.adm.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("reading topic configurations: %w", err)
	}
	out := map[string]TopicSettings{}
	for _, c := range configs {
		if c.Err != nil {
			continue
		}
		s := TopicSettings{Retention: -1}
		for _, kv := range c.Configs {
			ms := func(d *time.Duration) {
				if n, err := strconv.ParseInt(kv.MaybeValue(), 10, 64); err == nil {
					*d = time.Duration(n) * time.Millisecond
				}
			}
			switch kv.Key {
			case "retention.ms":
				ms(&s.Retention)
			case "delete.retention.ms":
				ms(&s.DeleteRetention)
			case "cleanup.policy":
				s.Compacted = strings.Contains(kv.MaybeValue(), "compact")
			}
		}
		out[c.Name] = s
	}
	return out, nil
}

// LostTombstones finds partitions of compacted topics whose next record is older
// than a share of delete.retention.ms: beyond all of it, tombstones behind the
// position may have been removed unread. age is how long ago the table's content
// was read: nothing is lost in less than that share. The values are how many
// offsets lie between the position and the first record that is young enough.
func (a *Admin) LostTombstones(ctx context.Context, pos change.Positions, settings map[string]TopicSettings, share float64, age time.Duration) (map[change.Partition]int64, error) {
	out := map[change.Partition]int64{}
	for topic, s := range settings {
		limit := time.Duration(share * float64(s.DeleteRetention))
		if !s.Compacted || s.DeleteRetention <= 0 || age < limit {
			continue
		}
		young, err := a.After(ctx, []string{topic}, time.Now().Add(-limit))
		if err != nil {
			return nil, err
		}
		for p, first := range young {
			if at, known := pos[p]; known && at.Next < first {
				out[p] = first - at.Next
			}
		}
	}
	return out, nil
}

// OpenTransaction names a transaction of a partition: the oldest that is open.
type OpenTransaction struct {
	Producer int64
	Epoch    int16
	Since    time.Time // of its producer's last record
}

// OldestTransaction asks who keeps a partition's last stable offset back; nil
// where nobody is known.
func (a *Admin) OldestTransaction(ctx context.Context, p change.Partition) (*OpenTransaction, error) {
	set := kadm.TopicsSet{}
	set.Add(p.Topic, p.Partition)
	described, err := a.adm.DescribeProducers(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("describing the producers of %s: %w", p, err)
	}
	var oldest *kadm.DescribedProducer
	for _, d := range described[p.Topic].Partitions[p.Partition].ActiveProducers {
		if d.CurrentTxnStartOffset >= 0 && (oldest == nil || d.CurrentTxnStartOffset < oldest.CurrentTxnStartOffset) {
			oldest = &d
		}
	}
	if oldest == nil {
		return nil, nil
	}
	return &OpenTransaction{oldest.ProducerID, oldest.ProducerEpoch, time.UnixMilli(oldest.LastTimestamp)}, nil
}
