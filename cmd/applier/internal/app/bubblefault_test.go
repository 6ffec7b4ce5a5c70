//go:build synctests

package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const mirror = "    key: [id]\n    batch: { interval: 500ms, idle_flush: 100ms }\n"

// A broker that answers every fetch with an error, for as long as an election
// takes, is asked at a pace, not as fast as it answers.
func TestFault_E2_AnElectionIsWaitedForAtAPace(t *testing.T) {
	for _, err := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError, kerr.UnknownServerError, kerr.UnknownTopicOrPartition} {
		t.Run(err.Message, func(t *testing.T) {
			inBubble(t, mirror, func(b *bubble) {
				b.join()
				b.put(keyed{0, 1, "a"})
				b.holds(time.Minute)
				const most = 20_000
				f := b.brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: err, Count: most})
				b.put(keyed{0, 1, "b"}, keyed{1, 2, "c"})
				time.Sleep(20 * time.Second)
				t.Log(err.Message, f.Hits())
				require.Less(t, f.Hits(), 1000, "fetches in 20 s")
				f.Remove()
				b.holds(time.Minute)
			})
		})
	}
}
