package ingest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const topic = "t"

// patience bounds waiting for something that must come; no test waits for it to pass.
const patience = 30 * time.Second

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func newCluster(t *testing.T, partitions int32, opts ...kfake.Opt) *kfake.Cluster {
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func options(c *kfake.Cluster) ClientOptions {
	return ClientOptions{Brokers: c.ListenAddrs(), ClientID: "test", Log: slog.New(slog.DiscardHandler)}
}

func newTestClient(t *testing.T, o ClientOptions, opts ...kgo.Opt) *kgo.Client {
	cl, err := NewClient(o, opts...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// produce writes values to a partition.
func produce(t *testing.T, c *kfake.Cluster, partition int32, values ...string) {
	t.Helper()
	cl := newTestClient(t, options(c), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
	for _, v := range values {
		r := &kgo.Record{Partition: partition, Key: []byte("k" + v), Value: []byte(v), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(v)}}}
		require.NoError(t, cl.ProduceSync(testContext(t), r).FirstErr())
	}
}

func part(n int32) change.Partition { return change.Partition{Topic: topic, Partition: n} }

// at are positions of the partitions 0, 1, ...
func at(next ...int64) change.Positions {
	pos := change.Positions{}
	for i, n := range next {
		pos[part(int32(i))] = change.Position{Next: n, Epoch: -1}
	}
	return pos
}

// nexts are the offsets of positions, in order.
func nexts(pos change.Positions) []int64 {
	var n []int64
	for _, p := range pos.Sorted() {
		n = append(n, pos[p].Next)
	}
	return n
}

// wordDecoder makes a row of each value; "bad..." cannot be decoded, "skip" is
// skipped, and "truncate" is a truncation.
type wordDecoder struct{}

func (wordDecoder) Restart()                 {}
func (wordDecoder) UnknownColumns() []string { return nil }

func (wordDecoder) Decode(r *decode.Record, out *change.Batch) (decode.Result, error) {
	switch v := string(r.Value); {
	case strings.HasPrefix(v, "bad"):
		return decode.Result{}, &decode.RowError{Class: decode.ClassSyntax, Column: "v", Msg: "not a word"}
	case v == "plain error":
		return decode.Result{}, fmt.Errorf("no row error")
	case v == "skip":
		return decode.Result{Skip: decode.SkipHeartbeat, Note: "a heartbeat"}, nil
	case v == "truncate":
		return decode.Result{Skip: decode.SkipTruncate, Truncation: &change.Truncation{Part: r.Part, Offset: r.Offset}}, nil
	case r.Value == nil:
		return decode.Result{Skip: decode.SkipTombstone}, nil
	case v == "nothing":
		return decode.Result{}, nil
	}
	out.Cols[0].AppendBytes(r.Value)
	out.EndRow(change.Insert, r.Part, r.Offset, r.Timestamp)
	return decode.Result{Rows: 1}, nil
}

// sealed is a batch that was handed over.
type sealed struct {
	records     []string // PARTITION@OFFSET
	start, next change.Positions
	reason      string
	generation  uint64
	counts      map[Uncounted]int
	truncated   int64 // the offset of the truncation that it begins with, -1 for none
}

// sink is the Collector of these tests. It closes a batch after rows records and
// hands it over when a test takes it from batches.
type sink struct {
	rows    int
	batches chan sealed
	handing chan string // told when a hand-over begins, if not nil

	changes    *change.Batch
	partitions []change.Partition
	start, pos change.Positions
	moved      bool
	generation uint64
	records    []string
	counts     map[Uncounted]int
	truncation *change.Truncation
	mark       int // records

	mu   sync.Mutex
	full chan struct{} // not nil: the budget is exceeded until it is closed
}

func newSink(rows int) *sink {
	return &sink{
		rows: rows, batches: make(chan sealed), counts: map[Uncounted]int{},
		changes: change.NewBatch([]types.Field{{Name: "v", Type: types.StringType()}}, nil),
	}
}

func (s *sink) Reset(start change.Positions, partitions []change.Partition, generation uint64) {
	s.start, s.pos, s.partitions, s.generation = start.Clone(), start.Clone(), partitions, generation
	s.clear()
}

func (s *sink) clear() {
	s.changes.Reset()
	s.records, s.moved, s.counts, s.truncation = nil, false, map[Uncounted]int{}, nil
}

func (s *sink) Mark() { s.mark = len(s.records) }

func (s *sink) Before() bool { return s.mark > 0 }

func (s *sink) Rewind() {
	s.records, s.moved = s.records[:s.mark], s.mark > 0
	s.pos[s.partitions[0]] = change.Position{Next: s.start[s.partitions[0]].Next + int64(s.mark)}
}

func (s *sink) Truncate(t *change.Truncation) bool {
	if s.changes.Len() > 0 || s.truncation != nil {
		return false
	}
	s.truncation = t
	return true
}

func (s *sink) Changes() *change.Batch { return s.changes }

func (s *sink) Record(part int32, offset int64, epoch int32, _, _ []byte, now time.Time) {
	s.records = append(s.records, fmt.Sprintf("%d@%d", s.partitions[part].Partition, offset))
	s.Advance(part, offset+1, epoch, now)
}

func (s *sink) Advance(part int32, next int64, epoch int32, _ time.Time) {
	s.pos[s.partitions[part]] = change.Position{Next: next, Epoch: epoch}
	s.moved = true
}

func (s *sink) Position(part int32) (change.Position, bool) {
	p, ok := s.pos[s.partitions[part]]
	return p, ok
}

func (s *sink) Count(what Uncounted) { s.counts[what]++ }

func (s *sink) Due(time.Time) (string, bool) { return "rows", len(s.records) >= s.rows }

func (s *sink) Deadline() time.Time { return time.Time{} }

func (s *sink) Empty() bool { return !s.moved }

func (s *sink) Flush(ctx context.Context, reason string) error {
	b := sealed{s.records, s.start, s.pos.Clone(), reason, s.generation, s.counts, -1}
	if s.truncation != nil {
		b.truncated = s.truncation.Offset
	}
	s.start = s.pos.Clone()
	s.clear()
	if s.handing != nil {
		s.handing <- reason
	}
	select {
	case s.batches <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *sink) Full() (<-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil {
		return nil, false
	}
	select {
	case <-s.full:
		return nil, false
	default:
		return s.full, true
	}
}

func (s *sink) exceed() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = make(chan struct{})
	return s.full
}

// halt is what the owner was told.
type halt struct {
	problem    Problem
	generation uint64
}

// reader is a running Consumer and its owner.
type reader struct {
	t        *testing.T
	c        *Consumer
	sink     *sink
	assigned chan struct{}
	revoked  chan struct{}
	halts    chan halt
	evolved  chan string
	outdated atomic.Bool  // the table has another schema
	looks    atomic.Int32 // how often that was asked
	ended    chan error
	stop     context.CancelFunc
}

func (r *reader) Assigned() { r.assigned <- struct{}{} }
func (r *reader) Revoked()  { r.revoked <- struct{}{} }
func (r *reader) Halted(p Problem, generation uint64) {
	r.halts <- halt{p, generation}
}

func (r *reader) Evolve(c *decode.SchemaChange, at change.Partition, offset int64, generation uint64) {
	text := "newer schema"
	if c != nil {
		text = c.Error()
	}
	r.evolved <- fmt.Sprintf("%s %d %s", at, offset, text)
}

func (r *reader) Outdated(context.Context) bool {
	r.looks.Add(1)
	return r.outdated.Load()
}

// read starts a consumer and waits until the group gave it everything.
func read(t *testing.T, c *kfake.Cluster, s *sink, change func(*Options)) *reader {
	r := join(t, c, s, change)
	take(t, r.assigned)
	return r
}

// join starts a consumer.
func join(t *testing.T, c *kfake.Cluster, s *sink, change func(*Options)) *reader {
	o := Options{Client: options(c), Pipeline: "p", Group: "g", Topics: []string{topic}, OnError: OnErrorPause, FetchBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	r := &reader{t: t, sink: s, assigned: make(chan struct{}, 10), revoked: make(chan struct{}, 10), halts: make(chan halt, 10), evolved: make(chan string, 10), ended: make(chan error, 1)}
	var err error
	r.c, err = NewConsumer(o, wordDecoder{}, s, r)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.ended <- r.c.Run(ctx) }()
	t.Cleanup(r.close)
	return r
}

// close ends the consumer and waits for it.
func (r *reader) close() {
	r.stop()
	if r.ended == nil {
		return
	}
	require.NoError(r.t, take(r.t, r.ended))
	r.ended = nil
}

// resume reads from positions on and returns the generation.
func (r *reader) resume(pos change.Positions) uint64 {
	r.t.Helper()
	g, err := r.c.Resume(testContext(r.t), pos, nil, "")
	require.NoError(r.t, err)
	return g
}

// take waits for something.
func take[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
	}
	panic("unreachable")
}

// settled returns when everything that was asked of the consumer before is done.
func (r *reader) settled() {
	r.t.Helper()
	done := make(chan struct{})
	r.c.call(func() { close(done) })
	take(r.t, done)
}

func requireProblem(t *testing.T, err error, code string) {
	t.Helper()
	var p *Problem
	require.ErrorAs(t, err, &p)
	require.Equal(t, code, p.Code, p.Facts)
	require.True(t, strings.HasPrefix(p.Error(), code+": "))
}
