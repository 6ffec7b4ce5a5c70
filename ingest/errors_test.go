package ingest

import (
	"context"
	"testing"

	"applier/ingest/change"
	"applier/ingest/decode"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestConsumer_OnErrorPauseStopsRightBeforeTheRecord(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "bad", "c")
	classes := make(chan string, 10)
	r := read(t, c, newSink(100), func(o *Options) { o.Metrics.RowError = func(class string) { classes <- class } })
	g := r.resume(at(0))
	b := take(t, r.sink.batches)
	require.Equal(t, []string{"0@0"}, b.records, "what came before it is applied first")
	h := take(t, r.halts)
	require.Equal(t, Problem{"D-ROW", "t/0 offset 1: syntax: column v: not a word"}, h.problem)
	require.Equal(t, g, h.generation)
	require.Equal(t, "syntax", take(t, classes))
	r.resume(at(1))
	require.Equal(t, "D-ROW", take(t, r.halts).problem.Code, "it is judged anew, and nothing is handed over")
	r.resume(at(2))
	require.Equal(t, []string{"0@2"}, drained(t, r, 1).records)
}

// A record may be one of a schema that the table was given since it was opened: it is
// read again with that one, whatever on_error says, instead of being refused.
func TestConsumer_ARecordThatCannotBeAppliedAsksForTheTablesNewestSchemaFirst(t *testing.T) {
	for _, policy := range []Policy{OnErrorPause, OnErrorSkip} {
		c := newCluster(t, 1)
		produce(t, c, 0, "a", "bad", "c")
		r := read(t, c, newSink(100), func(o *Options) { o.OnError = policy })
		r.outdated.Store(true)
		r.resume(at(0))
		require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records, "what came before it is applied first")
		require.Equal(t, "t/0 1 newer schema", take(t, r.evolved))
		require.Empty(t, r.halts)
		r.outdated.Store(false) // the table was opened anew, and the record is as bad as before
		r.resume(at(1))
		if policy == OnErrorPause {
			require.Equal(t, "D-ROW", take(t, r.halts).problem.Code)
			continue
		}
		require.Equal(t, []string{"0@1", "0@2"}, drained(t, r, 2).records)
	}
}

// One look at the table is enough for all records that were there before it.
func TestConsumer_ManyBadRecordsAreOneLookAtTheTable(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "bad", "bad", "bad", "bad", "e")
	r := read(t, c, newSink(5), func(o *Options) { o.OnError = OnErrorSkip })
	r.resume(at(0))
	require.Len(t, take(t, r.sink.batches).records, 5)
	require.EqualValues(t, 1, r.looks.Load())
}

// drained drains once n records are open, and returns the last batch.
func drained(t *testing.T, r *reader, n int) sealed {
	t.Helper()
	for open := 0; open < n; {
		counted := make(chan int)
		r.c.call(func() { counted <- len(r.sink.records) })
		open = take(t, counted)
	}
	done := make(chan struct{})
	go func() { defer close(done); r.c.Drain(testContext(t)) }()
	b := take(t, r.sink.batches)
	take(t, done)
	return b
}

func TestConsumer_OnErrorSkipCountsAndGoesOn(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "bad", "plain error", "skip", "nothing", "f")
	dropped, kinds := make(chan string, 10), make(chan string, 10)
	r := read(t, c, newSink(6), func(o *Options) {
		o.OnError = OnErrorSkip
		o.Metrics.Dropped = func(reason string) { dropped <- reason }
		o.Metrics.Record = func(kind string, _ int) { kinds <- kind }
	})
	r.resume(at(0))
	b := take(t, r.sink.batches)
	require.Len(t, b.records, 6, "positions pass every record")
	require.Equal(t, map[Uncounted]int{CountDropped: 2, CountSkipped: 1}, b.counts)
	require.Equal(t, "skipped_error", take(t, dropped))
	require.Equal(t, "skipped_error", take(t, dropped))
	for _, kind := range []string{"insert", "heartbeat", KindNone} {
		require.Equal(t, kind, take(t, kinds))
	}
}

func TestFault_E22_RecordsOverTheLimitAreRowErrors(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "far too long")
	r := read(t, c, newSink(1), func(o *Options) { o.MaxRecordBytes = 10 })
	r.resume(at(0))
	require.Contains(t, take(t, r.halts).problem.Facts, "larger than max_record_bytes")
}

func TestConsumer_DeadLettersAreWrittenBeforeTheBatchIsHandedOver(t *testing.T) {
	c := newCluster(t, 1)
	require.NoError(t, c.CreateTopic("dead", 2, nil))
	produce(t, c, 0, "a", "bad")
	letters, err := NewDeadLetters(options(c), "dead", "p")
	require.NoError(t, err)
	t.Cleanup(letters.Close)
	r := read(t, c, newSink(2), func(o *Options) { o.OnError, o.Letters = OnErrorDeadLetter, letters })
	r.resume(at(0))
	b := take(t, r.sink.batches)
	require.Equal(t, map[Uncounted]int{CountDeadLetter: 1}, b.counts)
	cl := newTestClient(t, options(c), kgo.ConsumeTopics("dead"), kgo.DisableFetchSessions(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	records := cl.PollFetches(testContext(t)).Records()
	require.Len(t, records, 1)
	require.Equal(t, "t/0/1", string(records[0].Key))
	require.Equal(t, "bad", string(records[0].Value))
	headers := map[string]string{}
	for _, h := range records[0].Headers {
		headers[h.Key] = string(h.Value)
	}
	require.Equal(t, map[string]string{
		headerPipeline: "p", headerTopic: "t", headerPartition: "0", headerOffset: "1", headerClass: "syntax",
		headerColumn: "v", headerMessage: "not a word", headerKey: "kbad", "h": "bad",
	}, headers)
}

func TestConsumer_WithoutAPlaceForDeadLettersTheBatchWaits(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "bad", "b")
	letters, err := NewDeadLetters(options(c), "there is no such topic", "p")
	require.NoError(t, err)
	written := 0
	letters.Written = func(string) { written++ }
	t.Cleanup(func() { require.Zero(t, written, "what no broker took was not written") })
	t.Cleanup(letters.Close)
	r := read(t, c, newSink(1), func(o *Options) { o.OnError, o.Letters = OnErrorDeadLetter, letters })
	r.resume(at(0))
	require.Equal(t, "D-DLQ", take(t, r.halts).problem.Code)
}

func TestDeadLetters_KeepANullAValueAndReportAnErrorOnce(t *testing.T) {
	c := newCluster(t, 1)
	require.NoError(t, c.CreateTopic("dead", 1, nil))
	ctx := testContext(t)
	letters, err := NewDeadLetters(options(c), "dead", "p")
	require.NoError(t, err)
	t.Cleanup(letters.Close)
	written := make(chan string, 10)
	letters.Written = func(class string) { written <- class }
	letters.SendRow(ctx, part(3), 7, &change.RawRecord{Timestamp: 5}, &decode.RowError{Class: decode.ClassUnavailable, Msg: "gone"})
	require.NoError(t, letters.Flush(ctx))
	require.Equal(t, string(decode.ClassUnavailable), take(t, written))
	cl := newTestClient(t, options(c), kgo.ConsumeTopics("dead"), kgo.DisableFetchSessions(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	records := cl.PollFetches(ctx).Records()
	require.Len(t, records, 1)
	require.Nil(t, records[0].Value)
	require.Equal(t, "t/3/7", string(records[0].Key))

	gone, cancel := context.WithCancel(ctx)
	cancel()
	letters.SendRow(gone, part(3), 8, &change.RawRecord{}, &decode.RowError{})
	require.ErrorContains(t, letters.Flush(ctx), "writing dead letters to topic dead")
	require.NoError(t, letters.Flush(ctx))
}

func TestConsumer_ARefusedRecordStopsReadingRightBeforeIt(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "b", "c")
	r := read(t, c, newSink(100), nil)
	refused := &change.RowError{Class: change.ClassUnavailable, Column: "v", Msg: "no earlier value"}
	r.c.Refuse(part(0), 1, refused)
	r.resume(at(0))
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
	h := take(t, r.halts)
	require.Equal(t, "D-ROW", h.problem.Code)
	require.Contains(t, h.problem.Facts, "t/0 offset 1: "+refused.Error())
	r.resume(at(1))
	require.Equal(t, []string{"0@1", "0@2"}, drained(t, r, 2).records, "after a resume it is judged anew")
}

func TestConsumer_ARefusalThatWasSteppedOverIsForgotten(t *testing.T) {
	c := &Consumer{}
	c.Refuse(part(0), 5, &change.RowError{Msg: "x"})
	require.Nil(t, c.refusedAt(part(1), 5))
	require.Nil(t, c.refusedAt(part(0), 4))
	require.Nil(t, c.refusedAt(part(0), 6), "an operator skipped it")
	require.Nil(t, c.refusedAt(part(0), 5))
	c.Refuse(part(0), 5, &change.RowError{Msg: "x"})
	c.Refuse(part(0), 3, &change.RowError{Msg: "y"})
	require.Equal(t, "y", c.refusedAt(part(0), 3).Msg, "the newest counts")
}

// handingOver starts a reader whose first batch is offered and taken by nobody.
func handingOver(t *testing.T, values ...string) *reader {
	c := newCluster(t, 1)
	produce(t, c, 0, values...)
	s := newSink(1)
	s.handing = make(chan string, 10)
	r := read(t, c, s, nil)
	r.resume(at(0))
	require.Equal(t, "rows", take(t, s.handing))
	return r
}

func TestConsumer_AHandOverEndsWhenReadingGoesElsewhere(t *testing.T) {
	r := handingOver(t, "a", "b")
	g := r.resume(at(1)) // the loop does not take batches while it asks this
	take(t, r.sink.handing)
	b := take(t, r.sink.batches)
	require.Equal(t, []string{"0@1"}, b.records)
	require.Equal(t, g, b.generation)
}

func TestConsumer_AHandOverEndsWithStop(t *testing.T) {
	r := handingOver(t, "a", "b")
	r.c.Stop()
	r.settled()
	r.settled()
	require.Empty(t, r.sink.handing, "and nothing is taken before the next resume")
	r.resume(at(0))
	take(t, r.sink.handing)
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
}

func TestConsumer_AHandOverEndsWithARevocation(t *testing.T) {
	r := handingOver(t, "a")
	r.c.onRevoked(context.Background(), r.c.cl, map[string][]int32{topic: {0}})
	take(t, r.revoked)
	r.settled()
	require.False(t, r.c.Owned())
	require.Empty(t, r.halts, "nothing is wrong")
}

func TestConsumer_ALossOfNothingIsNoLoss(t *testing.T) {
	r := handingOver(t, "a")
	r.c.onRevoked(context.Background(), r.c.cl, nil)
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
	require.True(t, r.c.Owned())
}

func TestConsumer_AHandOverAskedForInVainIsGivenUpAtOnce(t *testing.T) {
	c := &Consumer{}
	c.elsewhere()
	ctx, done := c.handOver(context.Background())
	require.Error(t, ctx.Err(), "asked just before")
	done()
	require.Nil(t, c.abandon)
}

func TestClassify_NamesWhatDoesNotPassByItself(t *testing.T) {
	for _, c := range []struct {
		err  error
		code string
	}{
		{nil, ""},
		{context.Canceled, ""},
		{kerr.LeaderNotAvailable, ""},
		{context.DeadlineExceeded, ""},
		{kerr.SaslAuthenticationFailed, "K-AUTH"},
		{kerr.UnsupportedSaslMechanism, "K-AUTH"},
		{kerr.TopicAuthorizationFailed, "K-ACL"},
		{kerr.GroupAuthorizationFailed, "K-ACL"},
		{kerr.UnknownTopicOrPartition, "K-NO-TOPIC"},
		{kerr.CorruptMessage, "K-CORRUPT"},
	} {
		p := classify(c.err, "x")
		if c.code == "" {
			require.Nil(t, p, "%v", c.err)
			continue
		}
		require.Equal(t, c.code, p.Code)
	}
}

func TestConsumer_FetchErrorsAreJudged(t *testing.T) {
	c := newCluster(t, 1)
	r := read(t, c, newSink(1), nil)
	for _, f := range []struct {
		err  error
		code string
	}{
		{&kgo.ErrDataLoss{Topic: topic, ConsumedTo: 9, ResetTo: 4}, "K-TRUNCATED"},
		{kerr.OffsetOutOfRange, "K-GAP"},
		{kerr.UnknownTopicID, ""}, // not at once
		{kerr.CorruptMessage, "K-CORRUPT"},
		{kerr.NotLeaderForPartition, ""},
		{context.Canceled, ""},
	} {
		judged := make(chan *Problem, 1) // on the goroutine that reads, as everywhere
		r.c.call(func() { judged <- r.c.judge(kgo.NewErrFetch(f.err)).stop })
		p := take(t, judged)
		if f.code == "" {
			require.Nil(t, p)
			continue
		}
		require.NotNil(t, p, "%v", f.err)
		require.Equal(t, f.code, p.Code)
	}
}
