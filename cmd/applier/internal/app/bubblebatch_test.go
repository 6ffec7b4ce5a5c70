//go:build synctests

package app

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"applier/merger"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// damage has a member's network change a text on its way, times times.
func (m *member) damage(text string, times int) {
	m.link.change(func(b []byte) bool {
		i := bytes.Index(b, []byte(text))
		if i < 0 || times == 0 {
			return false
		}
		times--
		b[i] ^= 1
		return true
	})
}

// TestFault_E21_ADamagedBatchIsFetchedAgain: what was damaged on its way is right
// the next time, and nobody need know.
func TestFault_E21_ADamagedBatchIsFetchedAgain(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		m.damage("poor-thing", 2)
		b.put(keyed{0, 1, "b"}, keyed{0, 2, "poor-thing"}, keyed{0, 3, "c"})
		b.holds(time.Minute)
		require.Equal(t, 2, m.log.count("WARN", "cannot be read; it is fetched again", "partition=shop.orders/0", "offset=2", "crc"), "%s", m.log)
		require.False(t, m.log.has("pipeline halted"))
	})
}

// TestFault_E21_ADamagedBatchHaltsWithItsOffset: what came before it is applied,
// it is never stepped over, and the pipeline goes on when it can be read.
func TestFault_E21_ADamagedBatchHaltsWithItsOffset(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		m.damage("poor-thing", -1)
		b.put(keyed{0, 1, "b"})
		before := b.want.texts()
		b.put(keyed{0, 2, "poor-thing"}, keyed{0, 3, "c"})
		b.eventually(time.Minute, "the halt", func() bool { return m.code() == merger.CodeBadBatch })
		require.True(t, m.log.has("pipeline halted", "K-CORRUPT", "shop.orders/0: the record batch at offset 2 cannot be read", "applier offsets skip PIPELINE"), "%s", m.log)
		require.Equal(t, before, b.rows())
		time.Sleep(10 * time.Minute)
		require.Equal(t, before, b.rows(), "nothing is stepped over")
		m.link.change(nil)
		b.holds(2 * time.Minute)
		require.Empty(t, m.code())
	})
}

// TestFault_E22_ARecordLargerThanAFetchIsReadAlone; one that is larger than we take
// halts, and what came before it is applied.
func TestFault_E22_ARecordLargerThanAFetchIsReadAlone(t *testing.T) {
	inBubble(t, mirror+"    max_record_bytes: 6MiB\n", func(b *bubble) {
		b.top = "memory: 64MiB\n"
		m := b.join()
		require.EqualValues(t, 4<<20, m.app.fetchBytes)
		b.put(keyed{0, 1, "a"}, keyed{0, 2, strings.Repeat("x", 5<<20)}, keyed{0, 3, "c"})
		b.holds(time.Minute)
		before := b.next()
		b.put(keyed{0, 4, "d"}, keyed{0, 5, strings.Repeat("x", 7<<20)}, keyed{0, 6, "e"})
		b.eventually(time.Minute, "the halt", func() bool { return m.code() == merger.CodeRow })
		require.True(t, m.log.has("pipeline halted", "D-ROW", "shop.orders/0 offset 4", "larger than max_record_bytes"), "%s", m.log)
		require.Equal(t, before[0]+1, b.next()[0], "what came before it is applied")
	}, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "100000000"}))
}

// TestFault_E26_RecordsThatComeWithAnErrorAreTaken: a fetch brings records of one
// partition and a refusal of another.
func TestFault_E26_RecordsThatComeWithAnErrorAreTaken(t *testing.T) {
	for _, c := range []struct {
		err  *kerr.Error
		code merger.Code
	}{{kerr.NotLeaderForPartition, ""}, {kerr.TopicAuthorizationFailed, merger.CodeACL}} {
		t.Run(c.err.Message, func(t *testing.T) {
			inBubble(t, mirror, func(b *bubble) {
				for p := range int32(2) {
					require.NoError(t, b.brokers.MoveTopicPartition(topic, p, b.controller))
				}
				m := b.join()
				b.put(keyed{0, 1, "a"}, keyed{1, 2, "b"})
				b.holds(time.Minute)
				f := b.brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Partitions: []int32{1}, Err: c.err, Count: -1})
				b.put(keyed{1, 2, "later"})
				time.Sleep(5 * time.Second)
				b.put(keyed{0, 1, "now"})
				b.eventually(time.Minute, "the other partition", func() bool { return b.next()[0] == 2 })
				require.EqualValues(t, 1, b.next()[1])
				if c.code != "" {
					b.eventually(time.Minute, "the halt", func() bool { return m.code() == c.code })
					require.True(t, m.log.has("pipeline halted", "reading shop.orders/1", c.err.Message), "%s", m.log)
				}
				f.Remove()
				b.holds(2 * time.Minute)
				require.Empty(t, m.code())
			})
		})
	}
}

// TestFault_E27_ASlowBrokerHoldsUpItsOwnPartitionsOnly: what comes from it is 30 s
// late, longer than the client waits.
func TestFault_E27_ASlowBrokerHoldsUpItsOwnPartitionsOnly(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		quick := b.brokers.CoordinatorFor("applier.p")
		slow := (quick + 1) % bubbleBrokers
		require.NoError(t, b.brokers.MoveTopicPartition(topic, 0, quick))
		require.NoError(t, b.brokers.MoveTopicPartition(topic, 1, slow))
		m := b.join()
		b.put(keyed{0, 1, "a"}, keyed{1, 2, "b"})
		b.holds(time.Minute)
		m.link.delay(fmt.Sprintf("localhost:%d", firstPort+int(slow)), 30*time.Second)
		for range 30 {
			at := b.next()[0]
			b.put(keyed{1, 2, "slow"}, keyed{0, 1, "quick"})
			b.eventually(3*time.Second, "the quick partition", func() bool { return b.next()[0] == at+1 })
			time.Sleep(2 * time.Second)
		}
		require.Less(t, b.next()[1], b.ends()[1], "the slow one is behind")
		m.link.delay("", 0)
		b.holds(2 * time.Minute)
		require.False(t, m.log.has("pipeline halted"))
	})
}

// TestFault_E29_TooFewPartitionsForAMomentAreNotAnotherTopic.
func TestFault_E29_TooFewPartitionsForAMomentAreNotAnotherTopic(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		b.join()
		b.put(keyed{0, 1, "a"}, keyed{1, 2, "b"})
		b.holds(time.Minute)
		b.members[0].drain()
		b.put(keyed{1, 2, "c"})
		stale := true
		b.brokers.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
			if !stale {
				return nil, nil, false
			}
			b.brokers.KeepControl()
			return b.staleMetadata(req), nil, true
		})
		m := b.join()
		b.eventually(time.Minute, "the trouble", func() bool { return m.code() == merger.CodeUnavailable })
		require.True(t, m.log.has("pipeline halted", "K-UNAVAILABLE", "partition shop.orders/1", "not up to date"), "%s", m.log)
		stale = false
		b.holds(10 * time.Minute)
		require.False(t, m.log.has("K-RECREATED"))
	})
}

// staleMetadata answers for a topic with its first partition only.
func (b *bubble) staleMetadata(req kmsg.Request) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	for i := range b.addrs {
		n := kmsg.NewMetadataResponseBroker()
		n.NodeID, n.Host, n.Port = int32(i), "127.0.0.1", int32(firstPort+i)
		resp.Brokers = append(resp.Brokers, n)
	}
	resp.ClusterID, resp.ControllerID = kmsg.StringPtr(b.cluster), b.controller
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = kmsg.StringPtr(topic), b.topicID
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = b.leader, 0, []int32{b.leader}, []int32{b.leader}
	t.Partitions = append(t.Partitions, p)
	resp.Topics = append(resp.Topics, t)
	return resp
}
