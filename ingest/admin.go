package ingest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"applier/ingest/change"
	"applier/storage/mutant"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Start says where a pipeline begins that has no position record yet.
type Start struct {
	Kind    string // earliest, latest, time, offset
	Time    time.Time
	Offsets map[int32]int64
}

// Cluster is what Kafka says about a pipeline's topics at one moment.
type Cluster struct {
	ID         string            // cluster id
	Topics     map[string]string // topic name → topic id ("" where the broker has none)
	Partitions []change.Partition
}

// Admin asks Kafka about topics and positions. It is safe for concurrent use.
type Admin struct {
	cl  *kgo.Client
	adm *kadm.Client
}

// NewAdmin wraps a client; closing it is the caller's.
func NewAdmin(cl *kgo.Client) *Admin { return &Admin{cl, kadm.NewClient(cl)} }

// Describe returns cluster id, topic ids and partitions. A missing topic is a
// *Problem.
//
// It asks a broker each time. The client's own calls may answer from a cache
// that is seconds old, and keep the cluster id for good: a topic that was
// created again, or brokers that moved to another cluster, would look unchanged.
// The answer also refreshes that cache for the listings that follow.
func (a *Admin) Describe(ctx context.Context, topics []string) (*Cluster, error) {
	md, err := a.metadata(ctx, topics)
	if err != nil {
		if p := classify(err, "reading metadata"); p != nil {
			return nil, p
		}
		return nil, fmt.Errorf("reading Kafka metadata: %w", err)
	}
	c := &Cluster{Topics: map[string]string{}}
	if md.ClusterID != nil {
		c.ID = *md.ClusterID
	}
	found := map[string]*kmsg.MetadataResponseTopic{}
	for i := range md.Topics {
		if t := &md.Topics[i]; t.Topic != nil {
			found[*t.Topic] = t
		}
	}
	for _, name := range topics {
		t, ok := found[name]
		if !ok {
			return nil, problem("K-NO-TOPIC", "topic %s does not exist", name)
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			if p := classify(err, "topic "+name); p != nil {
				return nil, p
			}
			return nil, fmt.Errorf("reading metadata of topic %s: %w", name, err)
		}
		c.Topics[name] = ""
		if id := kadm.TopicID(t.TopicID); id != (kadm.TopicID{}) {
			c.Topics[name] = id.String()
		}
		for _, p := range t.Partitions {
			c.Partitions = append(c.Partitions, change.Partition{Topic: name, Partition: p.Partition})
		}
	}
	slices.SortFunc(c.Partitions, change.Partition.Compare)
	return c, nil
}

// metadata asks any broker about some topics.
func (a *Admin) metadata(ctx context.Context, topics []string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = make([]kmsg.MetadataRequestTopic, 0, len(topics)) // nil would mean all
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := a.cl.Request(ctx, req)
	if err != nil {
		return nil, err
	}
	md, ok := resp.(*kmsg.MetadataResponse)
	if !ok {
		return nil, fmt.Errorf("a metadata request was answered by a %T", resp)
	}
	return md, kerr.ErrorForCode(md.ErrorCode)
}

// offsets returns an offset a partition of a listing.
func (a *Admin) offsets(ctx context.Context, what string, list func() (kadm.ListedOffsets, error)) (map[change.Partition]int64, error) {
	l, err := list()
	if err == nil {
		err = l.Error()
	}
	if err != nil {
		if p := classify(err, what); p != nil {
			return nil, p
		}
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	out := map[change.Partition]int64{}
	l.Each(func(o kadm.ListedOffset) { out[change.Partition{Topic: o.Topic, Partition: o.Partition}] = o.Offset })
	return out, nil
}

// Starts returns the log start offsets.
func (a *Admin) Starts(ctx context.Context, topics []string) (map[change.Partition]int64, error) {
	return a.offsets(ctx, "listing start offsets", func() (kadm.ListedOffsets, error) { return a.adm.ListStartOffsets(ctx, topics...) })
}

// Ends returns the high watermarks.
func (a *Admin) Ends(ctx context.Context, topics []string) (map[change.Partition]int64, error) {
	return a.offsets(ctx, "listing end offsets", func() (kadm.ListedOffsets, error) { return a.adm.ListEndOffsets(ctx, topics...) })
}

// Stable returns the last stable offsets: what read_committed can reach.
func (a *Admin) Stable(ctx context.Context, topics []string) (map[change.Partition]int64, error) {
	return a.offsets(ctx, "listing stable offsets", func() (kadm.ListedOffsets, error) { return a.adm.ListCommittedOffsets(ctx, topics...) })
}

// After returns the first offsets at or after a time, the end where there is none.
func (a *Admin) After(ctx context.Context, topics []string, t time.Time) (map[change.Partition]int64, error) {
	return a.offsets(ctx, "listing offsets by time", func() (kadm.ListedOffsets, error) {
		return a.adm.ListOffsetsAfterMilli(ctx, t.UnixMilli(), topics...)
	})
}

// Resolve turns a Start into numbers for every partition.
func (a *Admin) Resolve(ctx context.Context, topics []string, s Start) (change.Positions, *Cluster, error) {
	c, err := a.Describe(ctx, topics)
	if err != nil {
		return nil, nil, err
	}
	var at map[change.Partition]int64
	switch s.Kind {
	case "latest":
		at, err = a.Stable(ctx, topics)
	case "time":
		at, err = a.After(ctx, topics, s.Time)
	default:
		at, err = a.Starts(ctx, topics)
	}
	if err != nil {
		return nil, nil, err
	}
	pos := change.Positions{}
	for _, p := range c.Partitions {
		next, answered := at[p]
		if !answered {
			return nil, nil, unanswered(p)
		}
		if s.Kind == "offset" {
			if n, ok := s.Offsets[p.Partition]; ok {
				next = n
			}
		}
		pos[p] = change.Position{Next: next, Epoch: -1}
	}
	return pos, c, nil
}

// unanswered: brokers disagree about a partition for a moment (it was just made,
// or its leader moves). No answer must not be read as offset 0.
func unanswered(p change.Partition) error {
	return fmt.Errorf("no broker listed an offset of partition %s", p)
}

// Check compares positions with the log: cluster, topic ids, partitions, log
// start, end, and the leader epochs' ends (a log that was cut and grew again is
// seen only by them). It returns the partitions that are new since.
func (a *Admin) Check(ctx context.Context, topics []string, pos change.Positions, ids map[string]string, cluster string) (added []change.Partition, err error) {
	c, err := a.identify(ctx, topics, pos, ids, cluster)
	if err != nil {
		return nil, err
	}
	l := Log{Cluster: *c}
	if l.Starts, err = a.Starts(ctx, topics); err != nil {
		return nil, err
	}
	if l.Ends, err = a.Ends(ctx, topics); err != nil {
		return nil, err
	}
	for p := range pos {
		if _, answered := l.Starts[p]; !answered {
			return nil, unanswered(p)
		}
		if _, answered := l.Ends[p]; !answered {
			return nil, unanswered(p)
		}
	}
	if l.EpochEnds, err = a.epochEnds(ctx, pos); err != nil {
		return nil, err
	}
	if p := l.Problem(topics, pos, ids, cluster); p != nil {
		return nil, p
	}
	return c.Added(pos), nil
}

// rangeProblem compares a position with the log's start and end.
func rangeProblem(p change.Partition, next, start, end int64) *Problem {
	switch {
	case next < start && !mutant.On(mutant.LogStart):
		return problem("K-GAP", "%s: next offset %d was removed, the log starts at %d now (%d offsets are missing)", p, next, start, start-next)
	case next > end:
		return problem("K-TRUNCATED", "%s: next offset %d is behind the log's end %d", p, next, end)
	}
	return nil
}

// Brokers list a topic with too few partitions for a moment after a restart.
// Kafka never removes partitions, so under the same topic id that is stale; a
// broker without topic ids is asked several times before it is believed.
const (
	identityReads = 3
	identityPause = time.Second
)

// identify describes the topics and compares them with what the positions are for.
func (a *Admin) identify(ctx context.Context, topics []string, pos change.Positions, ids map[string]string, cluster string) (*Cluster, error) {
	for read := 1; ; read++ {
		c, err := a.Describe(ctx, topics)
		if err != nil {
			return nil, err
		}
		if p := identityProblem(c, topics, pos, ids, cluster); p != nil {
			return nil, p
		}
		gone, found := goneFrom(c, pos)
		switch {
		case !found:
			return c, nil
		case ids[gone.Topic] != "" && ids[gone.Topic] == c.Topics[gone.Topic]:
			return nil, fmt.Errorf("the brokers do not list partition %s of a topic that is the same as before: they are not up to date", gone)
		case read == identityReads:
			return nil, problem("K-RECREATED", "partition %s is gone", gone)
		}
		select {
		case <-time.After(identityPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// goneFrom finds a partition with a position that the brokers do not list.
func goneFrom(c *Cluster, pos change.Positions) (change.Partition, bool) {
	for _, p := range pos.Sorted() {
		if _, known := slices.BinarySearchFunc(c.Partitions, p, change.Partition.Compare); !known {
			return p, true
		}
	}
	return change.Partition{}, false
}

func identityProblem(c *Cluster, topics []string, pos change.Positions, ids map[string]string, cluster string) *Problem {
	if cluster != "" && c.ID != "" && c.ID != cluster {
		return problem("K-CLUSTER", "the brokers belong to cluster %s, the table's positions to %s", c.ID, cluster)
	}
	for _, t := range topics {
		if ids[t] != "" && c.Topics[t] != "" && ids[t] != c.Topics[t] && !mutant.On(mutant.TopicIdentity) {
			return problem("K-RECREATED", "topic %s has the id %s now, the table's positions are for %s", t, c.Topics[t], ids[t])
		}
	}
	for _, p := range pos.Sorted() {
		if _, read := c.Topics[p.Topic]; !read {
			return problem("C-CHANGED", "the table's positions name topic %s, which the pipeline does not read", p.Topic)
		}
	}
	return nil
}

// epochEnds asks the leaders where the epochs of the positions end. What an old
// broker, or one that does not know the epoch, leaves out is not there: offsets
// are compared in any case.
func (a *Admin) epochEnds(ctx context.Context, pos change.Positions) (map[change.Partition]int64, error) {
	var req kadm.OffsetForLeaderEpochRequest
	for _, p := range pos.Sorted() {
		if e := pos[p].Epoch; e >= 0 {
			req.Add(p.Topic, p.Partition, e)
		}
	}
	if len(req) == 0 {
		return nil, nil
	}
	res, err := a.adm.OffsetForLeaderEpoch(ctx, req)
	if err != nil {
		if p := classify(err, "asking for epoch ends"); p != nil {
			return nil, p
		}
		return nil, fmt.Errorf("asking for epoch ends: %w", err)
	}
	ends := map[change.Partition]int64{}
	for _, p := range pos.Sorted() {
		if r, ok := res[p.Topic][p.Partition]; ok && r.Err == nil && r.EndOffset >= 0 {
			ends[p] = r.EndOffset
		}
	}
	return ends, nil
}
