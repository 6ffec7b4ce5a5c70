package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// metadataAge is how old what a client knows of topics may be: tests look at
// changes that they have just made, and franz-go's default is five seconds.
const metadataAge = 20 * time.Millisecond

// Client returns a client of the plain listeners; the test's end closes it.
func (c *Cluster) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Addrs()...), kgo.MetadataMinAge(metadataAge)}, opts...)...)
	if err != nil {
		t.Fatalf("kafka client: %v", err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// Admin returns an admin client; the test's end closes it.
func (c *Cluster) Admin(t testing.TB) *kadm.Client {
	t.Helper()
	return kadm.NewClient(c.Client(t))
}

// Topic describes a topic to create.
type Topic struct {
	Name       string
	Partitions int32             // 0: one
	Replicas   int16             // 0: one
	Configs    map[string]string // such as retention.ms
}

// CreateTopic creates a topic and waits until every partition has a leader. A
// topic of that name that is just being deleted is waited out.
func (c *Cluster) CreateTopic(t testing.TB, topic Topic) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	admin := c.Admin(t)
	configs := map[string]*string{}
	for k, v := range topic.Configs {
		configs[k] = &v
	}
	err := poll(ctx, "topic "+topic.Name+" to be created", func() (bool, error) {
		r, err := admin.CreateTopic(ctx, max(1, topic.Partitions), max(1, topic.Replicas), configs, topic.Name)
		if err == nil {
			err = r.Err
		}
		if errors.Is(err, kerr.TopicAlreadyExists) {
			known, lerr := admin.ListTopics(ctx, topic.Name)
			if lerr == nil && known.Has(topic.Name) && known[topic.Name].Err == nil {
				return false, fmt.Errorf("there is one already")
			}
			return false, nil
		}
		return err == nil, err
	})
	if err == nil {
		err = c.led(ctx, admin, topic.Name, int(max(1, topic.Partitions)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// led waits until all partitions of a topic can be written and read.
func (c *Cluster) led(ctx context.Context, admin *kadm.Client, topic string, partitions int) error {
	return poll(ctx, "leaders of topic "+topic, func() (bool, error) {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil || len(ends[topic]) < partitions {
			return false, nil
		}
		for _, e := range ends[topic] {
			if e.Err != nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// DeleteTopic deletes a topic and waits until it is gone.
func (c *Cluster) DeleteTopic(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	admin := c.Admin(t)
	r, err := admin.DeleteTopic(ctx, name)
	if err == nil {
		err = r.Err
	}
	if err == nil {
		err = poll(ctx, "topic "+name+" to be gone", func() (bool, error) {
			known, err := admin.ListTopics(ctx, name)
			return err == nil && (!known.Has(name) || errors.Is(known[name].Err, kerr.UnknownTopicOrPartition)), nil
		})
	}
	if err != nil {
		t.Fatalf("deleting topic %s: %v", name, err)
	}
}

// RecreateTopic deletes a topic and creates it anew: same name, other id.
func (c *Cluster) RecreateTopic(t testing.TB, topic Topic) {
	t.Helper()
	c.DeleteTopic(t, topic.Name)
	c.CreateTopic(t, topic)
}

// DeleteRecords moves the start of a partition: records below the offset are gone.
func (c *Cluster) DeleteRecords(t testing.TB, topic string, partition int32, before int64) {
	t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: before, LeaderEpoch: -1})
	r, err := c.Admin(t).DeleteRecords(context.Background(), offsets)
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		t.Fatalf("deleting records of %s/%d before %d: %v", topic, partition, before, err)
	}
}

// Produce writes records and waits until all are acknowledged. Each goes to the
// partition it names.
func (c *Cluster) Produce(t testing.TB, records ...*kgo.Record) {
	t.Helper()
	cl := c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := cl.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		t.Fatalf("producing: %v", err)
	}
}

// EndOffsets returns the end of every partition of a topic.
func (c *Cluster) EndOffsets(t testing.TB, topic string) map[int32]int64 {
	t.Helper()
	ends, err := c.Admin(t).ListEndOffsets(context.Background(), topic)
	if err != nil {
		t.Fatalf("listing the ends of %s: %v", topic, err)
	}
	out := map[int32]int64{}
	for p, e := range ends[topic] {
		out[p] = e.Offset
	}
	return out
}
