package ingest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"applier/ingest/change"
	"applier/ingest/decode"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

func newTestAdmin(t *testing.T, c *kfake.Cluster) *Admin {
	return NewAdmin(newTestClient(t, options(c)))
}

func TestAdmin_DescribeSeesATopicThatWasCreatedAgainAtOnce(t *testing.T) {
	c := newCluster(t, 2, kfake.ClusterID("one"))
	a := newTestAdmin(t, c)
	ctx := testContext(t)
	before, err := a.Describe(ctx, []string{topic})
	require.NoError(t, err)
	require.Equal(t, "one", before.ID)
	require.Equal(t, []change.Partition{part(0), part(1)}, before.Partitions)
	require.NotEmpty(t, before.Topics[topic])

	require.NoError(t, c.DeleteTopic(topic))
	_, err = a.Describe(ctx, []string{topic})
	requireProblem(t, err, "K-NO-TOPIC")
	require.NoError(t, c.CreateTopic(topic, 3, nil))
	after, err := a.Describe(ctx, []string{topic})
	require.NoError(t, err)
	require.NotEqual(t, before.Topics, after.Topics)
	require.Len(t, after.Partitions, 3)

	_, err = a.Check(ctx, []string{topic}, at(0, 0), before.Topics, "one")
	requireProblem(t, err, "K-RECREATED")
	added, err := a.Check(ctx, []string{topic}, at(0, 0), after.Topics, "one")
	require.NoError(t, err)
	require.Equal(t, []change.Partition{part(2)}, added)
}

func TestAdmin_DescribeSeesThatTheBrokersBelongToAnotherCluster(t *testing.T) {
	// Newer brokers refuse a client of another cluster themselves (KIP-1242).
	old := kfake.MaxVersions(kversion.V3_0_0())
	one, two := newCluster(t, 1, kfake.ClusterID("one"), old), newCluster(t, 1, kfake.ClusterID("two"), old)
	var moved atomic.Bool
	o := options(one)
	o.Brokers = []string{"broker:9092"} // as a load balancer or a DNS name, which now leads elsewhere
	o.Dial = func(ctx context.Context, network, host string) (net.Conn, error) {
		if host == "broker:9092" {
			host = one.ListenAddrs()[0]
		}
		if moved.Load() {
			host = two.ListenAddrs()[0]
		}
		return new(net.Dialer).DialContext(ctx, network, host)
	}
	a := NewAdmin(newTestClient(t, o))
	c, err := a.Describe(testContext(t), []string{topic})
	require.NoError(t, err)
	require.Equal(t, "one", c.ID)
	moved.Store(true)
	one.Close()
	_, err = a.Check(testContext(t), []string{topic}, at(0), nil, "one")
	requireProblem(t, err, "K-CLUSTER")
}

func TestAdmin_CheckComparesPositionsWithTheLog(t *testing.T) {
	c := newCluster(t, 2)
	produce(t, c, 0, "a", "b", "c")
	produce(t, c, 1, "x")
	require.NoError(t, c.DeleteRecords(topic, 0, 2))
	a := newTestAdmin(t, c)
	for _, k := range []struct {
		name  string
		pos   change.Positions
		facts string
		code  string
	}{
		{"at the ends", at(3, 1), "", ""},
		{"at the start", at(2, 0), "", ""},
		{"below the start", at(1, 0), "t/0: next offset 1 was removed, the log starts at 2 now (1 offsets are missing)", "K-GAP"},
		{"behind the end", at(3, 2), "t/1: next offset 2 is behind the log's end 1", "K-TRUNCATED"},
		{"a partition that is gone", at(3, 1, 0), "partition t/2 is gone", "K-RECREATED"},
		{"a topic we do not read", change.Positions{{Topic: "other"}: {}}, "the table's positions name topic other, which the pipeline does not read", "C-CHANGED"},
	} {
		t.Run(k.name, func(t *testing.T) {
			_, err := a.Check(testContext(t), []string{topic}, k.pos, nil, "")
			if k.code == "" {
				require.NoError(t, err)
				return
			}
			requireProblem(t, err, k.code)
			require.ErrorContains(t, err, k.facts)
		})
	}
}

func TestFault_E8_CheckSeesALogThatWasCutAndGrewAgain(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "b", "c")
	a := newTestAdmin(t, c)
	pos := change.Positions{part(0): {Next: 2, Epoch: 0}}
	_, err := a.Check(testContext(t), []string{topic}, pos, nil, "")
	require.NoError(t, err)
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
		rt, rp := kmsg.NewOffsetForLeaderEpochResponseTopic(), kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
		rp.Partition, rp.LeaderEpoch, rp.EndOffset = 0, 0, 1
		rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
	_, err = a.Check(testContext(t), []string{topic}, pos, nil, "")
	requireProblem(t, err, "K-TRUNCATED")
	require.ErrorContains(t, err, "leader epoch 0 ends at offset 1, but records up to 2 of it are applied")
}

func TestAdmin_NoAnswerIsNotOffsetZero(t *testing.T) {
	c := newCluster(t, 1)
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return req.ResponseKind(), nil, true
	})
	a := newTestAdmin(t, c)
	_, err := a.Check(testContext(t), []string{topic}, at(0), nil, "")
	require.ErrorContains(t, err, "no broker listed an offset of partition t/0")
	_, _, err = a.Resolve(testContext(t), []string{topic}, Start{Kind: "earliest"})
	require.ErrorContains(t, err, "no broker listed an offset of partition t/0")
}

func TestAdmin_ResolveGivesEveryPartitionANumber(t *testing.T) {
	c := newCluster(t, 2)
	cl := newTestClient(t, options(c), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
	day := time.Date(2026, 9, 10, 0, 0, 0, 0, time.UTC)
	for i := range 4 {
		require.NoError(t, cl.ProduceSync(testContext(t), &kgo.Record{Value: []byte("v"), Timestamp: day.Add(time.Duration(i) * time.Hour)}).FirstErr())
	}
	require.NoError(t, c.DeleteRecords(topic, 0, 1))
	a := newTestAdmin(t, c)
	for _, k := range []struct {
		name  string
		start Start
		want  []int64
	}{
		{"earliest", Start{Kind: "earliest"}, []int64{1, 0}},
		{"latest", Start{Kind: "latest"}, []int64{4, 0}},
		{"time", Start{Kind: "time", Time: day.Add(150 * time.Minute)}, []int64{3, 0}},
		{"after all", Start{Kind: "time", Time: day.Add(24 * time.Hour)}, []int64{4, 0}},
		{"offsets, others earliest", Start{Kind: "offset", Offsets: map[int32]int64{0: 2}}, []int64{2, 0}},
	} {
		t.Run(k.name, func(t *testing.T) {
			pos, _, err := a.Resolve(testContext(t), []string{topic}, k.start)
			require.NoError(t, err)
			require.Equal(t, k.want, nexts(pos))
			require.EqualValues(t, -1, pos[part(0)].Epoch)
		})
	}
	_, _, err := a.Resolve(testContext(t), []string{"missing"}, Start{})
	requireProblem(t, err, "K-NO-TOPIC")
}

func TestAdmin_LagsAndRetention(t *testing.T) {
	c := newCluster(t, 1)
	ctx := testContext(t)
	produce(t, c, 0, "a", "b")
	require.NoError(t, c.DeleteRecords(topic, 0, 1))
	p := newTestClient(t, options(c), kgo.TransactionalID("x"), kgo.DefaultProduceTopic(topic))
	require.NoError(t, p.BeginTransaction())
	require.NoError(t, p.ProduceSync(ctx, kgo.StringRecord("open")).FirstErr())
	a := newTestAdmin(t, c)
	lags, err := a.Lags(ctx, []string{topic})
	require.NoError(t, err)
	require.Equal(t, map[change.Partition]Lag{part(0): {part(0), 1, 2, 3}}, lags)
	require.NoError(t, p.EndTransaction(ctx, kgo.TryAbort))

	_, err = kadm.NewClient(p).AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("60000")}}, topic)
	require.NoError(t, err)
	settings, err := a.Settings(ctx, []string{topic})
	require.NoError(t, err)
	require.Equal(t, time.Minute, settings[topic].Retention)
	require.False(t, settings[topic].Compacted)
}

func TestSample_ReadsUntilEnoughOrQuiet(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "b", "c")
	seen, err := Sample(testContext(t), options(c), topic, 2, patience, func(*decode.Record) bool { return false })
	require.NoError(t, err)
	require.Equal(t, 2, seen)
	seen, err = Sample(testContext(t), options(c), topic, 9, patience, func(r *decode.Record) bool { return string(r.Value) == "a" && r.Headers[0].Key == "h" })
	require.NoError(t, err)
	require.Equal(t, 1, seen)
	seen, err = Sample(testContext(t), options(c), topic, 9, 200*time.Millisecond, func(*decode.Record) bool { return false })
	require.NoError(t, err)
	require.Equal(t, 3, seen)
	_, _, err = DeriveColumns(testContext(t), options(c), topic, 200*time.Millisecond)
	require.ErrorIs(t, err, decode.ErrNoSchema)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Sample(gone, options(c), topic, 1, time.Second, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestDeriveColumns_FromTheFirstRecordWithASchema(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "no schema", `{"schema":{"type":"struct","fields":[{"field":"before","type":"struct","optional":true,"fields":[{"field":"id","type":"int64"},{"field":"n","type":"string","optional":true}]},{"field":"after","type":"struct","optional":true,"fields":[{"field":"id","type":"int64"},{"field":"n","type":"string","optional":true}]},{"field":"op","type":"string"}]},"payload":{"before":null,"after":{"id":1,"n":"x"},"op":"c"}}`)
	columns, _, err := DeriveColumns(testContext(t), options(c), topic, patience)
	require.NoError(t, err)
	require.Equal(t, "id", columns[0].Name)
	require.Contains(t, columns[0].Type, "BIGINT")
	require.Equal(t, "n", columns[1].Name)
}

func TestClientOptions_SASL(t *testing.T) {
	c := newCluster(t, 1, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "u", "p"), kfake.Superuser("PLAIN", "u", "p"), kfake.Superuser("SCRAM-SHA-512", "u", "p"))
	for _, mechanism := range []string{"plain", "scram-sha-256", "scram-sha-512"} {
		o := options(c)
		o.SASL = SASL{mechanism, "u", func() string { return "p" }}
		_, err := NewAdmin(newTestClient(t, o)).Describe(testContext(t), []string{topic})
		require.NoError(t, err, mechanism)
	}
	o := options(c)
	o.SASL.Mechanism = "gssapi"
	_, err := NewClient(o)
	require.ErrorContains(t, err, "use plain, scram-sha-256 or scram-sha-512")
}
