//go:build itest

package itest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"applier/itest/harness"
)

func records(topic string, partition int32, from, to int) []*kgo.Record {
	var out []*kgo.Record
	for i := from; i < to; i++ {
		out = append(out, &kgo.Record{Topic: topic, Partition: partition, Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, `{"id":%d}`, i)})
	}
	return out
}

// consume reads n records of a partition from an offset on.
func consume(t *testing.T, c *harness.Cluster, topic string, from kgo.Offset, n int) []*kgo.Record {
	t.Helper()
	cl := c.Client(t, kgo.DisableFetchSessions(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: from}}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out []*kgo.Record
	for len(out) < n {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		out = append(out, fetches.Records()...)
	}
	return out
}

func TestKafka_TopicsLoseRecordsAndIdentity(t *testing.T) {
	k := harness.SharedKafka(t)
	topic := harness.Topic{Name: "orders", Partitions: 3}
	k.CreateTopic(t, topic)
	k.Produce(t, append(records("orders", 0, 0, 100), records("orders", 2, 0, 7)...)...)
	require.Equal(t, map[int32]int64{0: 100, 1: 0, 2: 7}, k.EndOffsets(t, "orders"))
	require.Equal(t, "0", string(consume(t, k, "orders", kgo.NewOffset().AtStart(), 100)[0].Key))

	k.DeleteRecords(t, "orders", 0, 60)
	starts, err := k.Admin(t).ListStartOffsets(t.Context(), "orders")
	require.NoError(t, err)
	require.EqualValues(t, 60, starts["orders"][0].Offset)
	require.Equal(t, "60", string(consume(t, k, "orders", kgo.NewOffset().AtStart(), 40)[0].Key))

	id := func() kadm.TopicID {
		topics, err := k.Admin(t).ListTopics(t.Context(), "orders")
		require.NoError(t, err)
		return topics["orders"].ID
	}
	before := id()
	topic.Partitions = 1
	k.RecreateTopic(t, topic)
	require.NotEqual(t, before, id())
	require.Equal(t, map[int32]int64{0: 0}, k.EndOffsets(t, "orders"))
	k.DeleteTopic(t, "orders")
}

func TestKafka_KilledBrokerComesBackWithItsRecords(t *testing.T) {
	k := harness.Kafka(t, harness.KafkaOptions{Properties: map[string]string{"log.flush.interval.messages": "1"}})
	k.CreateTopic(t, harness.Topic{Name: "t"})
	k.Produce(t, records("t", 0, 0, 10)...)
	k.KillNode(0)
	require.NoError(t, k.StartNode(0))
	k.Produce(t, records("t", 0, 10, 20)...)
	got := consume(t, k, "t", kgo.NewOffset().At(5), 15)
	require.Equal(t, "5", string(got[0].Key))
	require.Equal(t, "19", string(got[14].Key))
	require.NoError(t, k.StopNode(0))
	require.NoError(t, k.StartNode(0))
	require.Equal(t, map[int32]int64{0: 20}, k.EndOffsets(t, "t"))
	require.Len(t, k.ID, 22)
}

func TestKafka_ThreeBrokersElectAnotherLeader(t *testing.T) {
	k := harness.Kafka(t, harness.KafkaOptions{Nodes: 3, Heap: "400m"})
	k.CreateTopic(t, harness.Topic{Name: "t", Replicas: 3})
	k.Produce(t, records("t", 0, 0, 5)...)
	leader := func() (leader, epoch int32) {
		topics, err := k.Admin(t).ListTopics(t.Context(), "t")
		require.NoError(t, err)
		p := topics["t"].Partitions[0]
		return p.Leader, p.LeaderEpoch
	}
	old, epoch := leader()
	k.KillNode(int(old - 1)) // node ids count from 1
	k.Produce(t, records("t", 0, 5, 10)...)
	now, later := leader()
	require.NotEqual(t, old, now)
	require.Greater(t, later, epoch)
	require.NoError(t, k.StartNode(int(old-1)))
	require.Len(t, consume(t, k, "t", kgo.NewOffset().AtStart(), 10), 10)
}

func TestKafka_SecureListenersRefuseStrangers(t *testing.T) {
	for _, mechanism := range []string{"", "PLAIN", "SCRAM-SHA-512"} {
		t.Run("TLS with client certificates, SASL "+mechanism, func(t *testing.T) {
			s := harness.NewSecureListener(t, harness.SecureListener{TLS: true, ClientAuth: true, Mechanism: mechanism, User: "alice", Password: "s3cret"})
			k := harness.Kafka(t, harness.KafkaOptions{Secure: s})
			login := func(password string) []kgo.Opt {
				var m sasl.Mechanism
				switch mechanism {
				case "":
					return nil
				case "PLAIN":
					m = plain.Auth{User: s.User, Pass: password}.AsMechanism()
				default:
					m = scram.Auth{User: s.User, Pass: password}.AsSha512Mechanism()
				}
				return []kgo.Opt{kgo.SASL(m)}
			}
			try := func(config *tls.Config, password string) error {
				cl, err := kgo.NewClient(append(login(password), kgo.SeedBrokers(k.SecureAddrs()...), kgo.DialTLSConfig(config), kgo.RetryTimeout(3*time.Second))...)
				require.NoError(t, err)
				defer cl.Close()
				return cl.Ping(t.Context())
			}
			require.NoError(t, try(s.ClientTLS(t), s.Password))
			stranger := s.ClientTLS(t)
			pair, err := tls.LoadX509KeyPair(s.OtherCertFile, s.OtherKeyFile)
			require.NoError(t, err)
			stranger.Certificates = []tls.Certificate{pair}
			require.Error(t, try(stranger, s.Password))
			require.ErrorContains(t, try(&tls.Config{RootCAs: x509.NewCertPool()}, s.Password), "certificate")
			if mechanism != "" {
				require.ErrorIs(t, try(s.ClientTLS(t), "wrong"), kerr.SaslAuthenticationFailed)
			}
		})
	}
}

func TestKafka_EndsWithTheTestThatStartedIt(t *testing.T) {
	var addr string
	t.Run("inner", func(t *testing.T) {
		addr = harness.Kafka(t, harness.KafkaOptions{}).Addrs()[0]
	})
	tcp, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	var port int
	_, err = fmt.Sscanf(addr, "127.0.0.1:%d", &port)
	require.NoError(t, err)
	require.NotContains(t, string(tcp), fmt.Sprintf(":%04X 00000000:0000 0A", port), "still listening")
	require.True(t, strings.HasPrefix(addr, "127.0.0.1:"))
}
