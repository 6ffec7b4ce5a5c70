package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	"applier/ingest/change"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestConsumer_ReadsFromTheTablesPositionsNotTheGroups(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "b", "c", "d", "e")
	r := read(t, c, newSink(3), nil)
	require.True(t, r.c.Owned())
	require.NoError(t, r.c.Commit(testContext(t), at(4)), "the group says 4")
	g := r.resume(at(2))
	b := take(t, r.sink.batches)
	require.Equal(t, []string{"0@2", "0@3", "0@4"}, b.records)
	require.Equal(t, []int64{2}, nexts(b.start))
	require.Equal(t, []int64{5}, nexts(b.next))
	require.Equal(t, g, b.generation)

	again := r.resume(at(0))
	require.Greater(t, again, g)
	b = take(t, r.sink.batches)
	require.Equal(t, []string{"0@0", "0@1", "0@2"}, b.records, "also backwards")
	require.Equal(t, again, b.generation)

	r.close()
	next := read(t, c, newSink(1), nil)
	next.resume(at(3))
	require.Equal(t, []string{"0@3"}, take(t, next.sink.batches).records, "a new member too")
}

func TestConsumer_ReadsNothingBeforeItIsToldFromWhere(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a")
	r := read(t, c, newSink(1), nil)
	r.settled()
	r.settled()
	require.Nil(t, r.sink.partitions)
	r.resume(at(0))
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
}

func TestConsumer_ResumeRefusesPartitionsOfAnotherMember(t *testing.T) {
	c := newCluster(t, 2)
	r := read(t, c, newSink(1), nil)
	r.c.mu.Lock()
	delete(r.c.assigned, part(1))
	r.c.mu.Unlock()
	_, err := r.c.Resume(testContext(t), at(0, 0), nil, "")
	requireProblem(t, err, "K-PARTIAL")
	_, err = r.c.Resume(testContext(t), at(0), nil, "")
	require.ErrorContains(t, err, "partition t/1 is new and not assigned yet")
	r.c.mu.Lock()
	r.c.assigned[part(1)] = true
	r.c.mu.Unlock()
}

func TestFault_E6_PositionsOutsideOfTheLogHalt(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "b", "c", "d")
	r := read(t, c, newSink(1), nil)
	r.c.Suspend()
	g := r.resume(at(1))
	require.NoError(t, c.DeleteRecords(topic, 0, 3)) // between the check and the first fetch
	r.c.Unsuspend()
	h := take(t, r.halts)
	require.Equal(t, "K-GAP", h.problem.Code, h.problem.Facts)
	require.Equal(t, g, h.generation)
	_, err := r.c.Resume(testContext(t), at(1), nil, "")
	requireProblem(t, err, "K-GAP")
	r.resume(at(3))
	require.Equal(t, []string{"0@3"}, take(t, r.sink.batches).records)
}

// TestFault_E10_ATopicThatIsCreatedAgainIsReadWhenToldSo, without a restart. It takes
// the grace of an unknown topic.
func TestFault_E10_ATopicThatIsCreatedAgainIsReadWhenToldSo(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a")
	r := read(t, c, newSink(1), nil)
	r.resume(at(0))
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
	require.NoError(t, c.DeleteTopic(topic))
	require.NoError(t, c.CreateTopic(topic, 1, nil))
	produce(t, c, 0, "new")
	require.Equal(t, "K-NO-TOPIC", take(t, r.halts).problem.Code)
	_, err := r.c.Resume(testContext(t), at(1), map[string]string{topic: "the old one"}, "")
	requireProblem(t, err, "K-RECREATED")
	_, err = r.c.Resume(testContext(t), at(0), nil, "") // as an operator stated
	require.ErrorContains(t, err, "joined anew")
	take(t, r.assigned)
	r.resume(at(0))
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
}

func TestFault_E12_ANewPartitionWaitsForTheEndsOfTheOldOnes(t *testing.T) {
	c := newCluster(t, 2)
	produce(t, c, 0, "a", "b", "c")
	produce(t, c, 1, "x", "y", "z")
	require.NoError(t, c.DeleteRecords(topic, 1, 1))
	var held []int
	r := read(t, c, newSink(5), func(o *Options) { o.Metrics.Held = func(n int) { held = append(held, n) } })
	r.resume(at(0)) // the table knows nothing of partition 1
	b := take(t, r.sink.batches)
	require.Equal(t, []string{"0@0", "0@1", "0@2", "1@1", "1@2"}, b.records)
	require.Equal(t, []int64{0}, nexts(b.start), "it enters the vector when it is read")
	require.Equal(t, []int64{3, 3}, nexts(b.next))
	r.close()
	require.Equal(t, []int{1, 0}, held)
}

func TestConsumer_ANewPartitionIsReadAtOnceWhereNothingIsAhead(t *testing.T) {
	c := newCluster(t, 2)
	produce(t, c, 0, "a")
	produce(t, c, 1, "x")
	r := read(t, c, newSink(1), nil)
	r.resume(at(1))
	require.Equal(t, []string{"1@0"}, take(t, r.sink.batches).records)
}

func TestFault_E18_TransactionMarkersMoveThePositionOnly(t *testing.T) {
	c := newCluster(t, 1)
	ctx := testContext(t)
	p := newTestClient(t, options(c), kgo.TransactionalID("x"), kgo.DefaultProduceTopic(topic))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		require.NoError(t, p.BeginTransaction())
		require.NoError(t, p.ProduceSync(ctx, kgo.StringRecord("a")).FirstErr())
		require.NoError(t, p.EndTransaction(ctx, commit))
	}
	produce(t, c, 0, "b") // 0 a, 1 commit, 2 aborted, 3 abort, 4 b
	r := read(t, c, newSink(2), nil)
	r.resume(at(0))
	b := take(t, r.sink.batches)
	require.Equal(t, []string{"0@0", "0@4"}, b.records)
	require.Equal(t, []int64{5}, nexts(b.next))

	r.resume(at(3))
	produce(t, c, 0, "c")
	b = take(t, r.sink.batches)
	require.Equal(t, []string{"0@4", "0@5"}, b.records)
	require.Equal(t, []int64{3}, nexts(b.start))
}

func TestFault_E18_AMarkerAtTheEndIsAppliedToo(t *testing.T) {
	c := newCluster(t, 1)
	ctx := testContext(t)
	p := newTestClient(t, options(c), kgo.TransactionalID("x"), kgo.DefaultProduceTopic(topic))
	require.NoError(t, p.BeginTransaction())
	require.NoError(t, p.ProduceSync(ctx, kgo.StringRecord("a")).FirstErr())
	require.NoError(t, p.EndTransaction(ctx, kgo.TryAbort))
	seen := make(chan int64, 10)
	r := read(t, c, newSink(1), func(o *Options) { o.Metrics.Head = func(_ change.Partition, offset, _ int64) { seen <- offset } })
	r.resume(at(0))
	require.EqualValues(t, 1, take(t, seen), "the aborted record is not seen")
	flushed := make(chan error, 1)
	go func() {
		open, err := r.c.FlushNow(testContext(t), "manual")
		if err == nil && !open {
			err = errors.New("nothing was open")
		}
		flushed <- err
	}()
	b := take(t, r.sink.batches)
	require.NoError(t, take(t, flushed))
	require.Empty(t, b.records)
	require.Equal(t, []int64{2}, nexts(b.next))
}

func TestConsumer_PausedByAnOperatorItReadsNothing(t *testing.T) {
	c := newCluster(t, 1)
	r := read(t, c, newSink(1), nil)
	r.resume(at(0))
	r.c.Suspend()
	r.settled()
	produce(t, c, 0, "a")
	r.settled()
	r.settled()
	r.c.Unsuspend()
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
}

func TestConsumer_DrainHandsOverWhatIsOpen(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "b")
	seen := make(chan int64, 10)
	r := read(t, c, newSink(100), func(o *Options) { o.Metrics.Head = func(_ change.Partition, offset, _ int64) { seen <- offset } })
	r.resume(at(0))
	take(t, seen)
	done := make(chan struct{})
	go func() { defer close(done); r.c.Drain(testContext(t)) }()
	b := take(t, r.sink.batches)
	require.Equal(t, "drain", b.reason)
	require.Equal(t, "0@0", b.records[0])
	take(t, done)
	produce(t, c, 0, "c")
	r.settled()
	require.Empty(t, r.sink.records, "nothing is read after a drain")
}

func TestConsumer_DrainEndsWithItsContext(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a")
	s := newSink(1)
	s.handing = make(chan string, 10)
	r := read(t, c, s, nil)
	r.resume(at(0))
	require.Equal(t, "rows", take(t, s.handing)) // nobody takes the batch
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.c.Drain(ctx)
}

func TestConsumer_OverTheMemoryBudgetTheOpenBatchGoesFirst(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "b")
	seen, paused := make(chan int64, 10), make(chan string, 100)
	s := newSink(100)
	r := read(t, c, s, func(o *Options) {
		o.Metrics.Head = func(_ change.Partition, offset, _ int64) { seen <- offset }
		o.Metrics.Paused = func(reason string, _ time.Duration) { paused <- reason }
		o.Metrics.Buffered = func(int64) {}
	})
	r.resume(at(0))
	take(t, seen)
	freed := s.exceed()
	r.c.call(func() {})
	b := take(t, s.batches)
	require.Equal(t, "memory", b.reason)
	close(freed)
	require.Equal(t, "commit", take(t, paused), "the hand-over")
}

func TestConsumer_TwoMembersNeverShareATable(t *testing.T) {
	c := newCluster(t, 4)
	produce(t, c, 3, "a")
	quick := func(o *Options) { o.SessionTimeout = 6 * time.Second } // a member hears of others with its next heartbeat
	first := read(t, c, newSink(1), quick)
	first.resume(at(0, 0, 0, 0))
	require.Equal(t, []string{"3@0"}, take(t, first.sink.batches).records)
	second := join(t, c, newSink(1), quick)
	take(t, first.revoked) // everybody gives everything back, then it is dealt again
	take(t, first.assigned)
	_, err := c.WaitGroupStable(testContext(t), "g", 2)
	require.NoError(t, err)
	require.True(t, first.c.Owned(), "who has the table keeps it")
	require.False(t, second.c.Owned())
	first.close()
	take(t, first.revoked)
	take(t, second.assigned)
	second.c.mu.Lock()
	n := len(second.c.assigned)
	second.c.mu.Unlock()
	require.Equal(t, 4, n)
	second.resume(at(0, 0, 0, 0))
	require.Equal(t, []string{"3@0"}, take(t, second.sink.batches).records)
}

func TestConsumer_FirstPositionsComeFromTheConfiguredStart(t *testing.T) {
	c := newCluster(t, 2)
	produce(t, c, 0, "a", "b")
	r := read(t, c, newSink(1), func(o *Options) { o.Start = Start{Kind: "latest"} })
	pos, cluster, err := r.c.ResolveStart(testContext(t))
	require.NoError(t, err)
	require.Equal(t, []int64{2, 0}, nexts(pos))
	require.NotEmpty(t, cluster.ID)
	require.NotNil(t, r.c.Admin())
}

func TestConsumer_CallsKeepTheirOrder(t *testing.T) {
	c := newCluster(t, 1)
	r := read(t, c, newSink(1), nil)
	const n = 1000
	got := make(chan int, n)
	hold := make(chan struct{})
	r.c.call(func() { <-hold })
	for i := range n { // more than any buffer
		r.c.call(func() { got <- i })
	}
	close(hold)
	r.settled()
	for i := range n {
		require.Equal(t, i, take(t, got))
	}
}
