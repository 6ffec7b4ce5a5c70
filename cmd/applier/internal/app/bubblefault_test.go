//go:build synctests

package app

import (
	"context"
	"fmt"
	"testing"
	"time"

	"applier/merger"
	"applier/storage/objstore"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const mirror = "    key: [id]\n    batch: { interval: 500ms, idle_flush: 100ms }\n"

// TestFault_E2_AnElectionIsWaitedForAtAPace: a broker that answers every fetch with
// an error is asked at a pace, not as fast as it answers.
func TestFault_E2_AnElectionIsWaitedForAtAPace(t *testing.T) {
	for _, err := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError, kerr.UnknownServerError, kerr.UnknownTopicOrPartition} {
		t.Run(err.Message, func(t *testing.T) {
			inBubble(t, mirror, func(b *bubble) {
				m := b.join()
				b.put(keyed{0, 1, "a"})
				b.holds(time.Minute)
				const most = 20_000
				f := b.brokers.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: err, Count: most})
				b.put(keyed{0, 1, "b"}, keyed{1, 2, "c"})
				time.Sleep(9 * time.Second)
				require.Less(t, f.Hits(), 500, "fetches in 9 s")
				require.NotZero(t, f.Hits())
				require.Empty(t, m.code(), "an election is no reason to stop")
				f.Remove()
				b.holds(time.Minute)
			})
		})
	}
}

// TestFault_E1_BrokersAreRestartedOneByOne while records arrive.
func TestFault_E1_BrokersAreRestartedOneByOne(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		for id := range int32(bubbleBrokers) {
			b.put(keyed{0, int(id), "before"})
			if id == b.controller {
				continue
			}
			b.remove(id)
			b.put(keyed{1, 100 + int(id), "meanwhile"})
			time.Sleep(20 * time.Second)
			_, _, err := b.brokers.AddNode(id, firstPort+int(id))
			require.NoError(t, err)
			b.put(keyed{0, int(id), "after"})
			b.holds(time.Minute)
		}
		require.Empty(t, m.code())
	})
}

// TestFault_E3_TheCoordinatorMovesWhileACommitIsPublished: the commit is done, once.
func TestFault_E3_TheCoordinatorMovesWhileACommitIsPublished(t *testing.T) {
	inBubble(t, "    apply: append\n    batch: { interval: 500ms, idle_flush: 100ms }\n", func(b *bubble) {
		b.want.all = true
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		m.store.Add(objstore.Rule{Op: "put_if_absent", Nth: 1, Delay: 4 * time.Second})
		b.put(keyed{0, 1, "b"})
		time.Sleep(time.Second)
		b.brokers.RehashCoordinators()
		b.put(keyed{1, 2, "c"})
		b.holds(time.Minute)
	})
}

// TestFault_E4_MembersComeAndGoEveryTwoSeconds: somebody commits in every minute.
func TestFault_E4_MembersComeAndGoEveryTwoSeconds(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		first := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		var guest *member
		for minute := range 4 {
			before := snapshots(b)
			for i := range 30 {
				b.put(keyed{int32(i % 2), i % 2, fmt.Sprintf("%d-%d", minute, i)})
				if guest == nil {
					guest = b.join()
				} else {
					guest.drain()
					guest = nil
				}
				time.Sleep(2 * time.Second)
			}
			require.Greater(t, snapshots(b), before, "commits in minute %d", minute)
		}
		require.Empty(t, first.code())
		require.Greater(t, testutil.ToFloat64(first.app.metrics.Ingest.Rebalances.WithLabelValues("p", "shop.orders")), 50.0, "what an alert looks at")
		b.holds(time.Minute)
	})
}

// snapshots is how many the table has had.
func snapshots(b *bubble) int64 {
	own, _, err := merger.FindRecords(context.Background(), b.table, "p")
	require.NoError(b.t, err)
	return own.Snapshot
}

// TestFault_E5_AnOwnerThatLostTheTableUnawaresAppliesNothingTwice: it is slow over
// a commit while the others hear nothing of it, and goes on when another owns the
// table. Every change is a row of its own, so that anything done twice shows.
func TestFault_E5_AnOwnerThatLostTheTableUnawaresAppliesNothingTwice(t *testing.T) {
	for _, step := range []string{"put_all", "put_if_absent"} {
		t.Run(step, func(t *testing.T) {
			inBubble(t, "    apply: append\n    batch: { interval: 500ms, idle_flush: 100ms }\n", func(b *bubble) {
				b.want.all = true
				old := b.join()
				b.put(keyed{0, 1, "a"})
				b.holds(time.Minute)
				heir := b.join()
				time.Sleep(20 * time.Second)
				require.Equal(t, int64(2), commitsOf(old), "who has the table keeps it")
				old.store.Add(objstore.Rule{Op: step, Nth: 1, Delay: time.Minute})
				b.put(keyed{0, 2, "b"}, keyed{1, 3, "c"})
				time.Sleep(time.Second)
				old.link.silence()
				b.holds(50 * time.Second)
				require.NotZero(t, commitsOf(heir))
				time.Sleep(30 * time.Second) // the old one's commit comes now
				old.link.repair()
				b.put(keyed{1, 4, "d"})
				b.holds(2 * time.Minute)
				require.Equal(t, b.want.texts(), b.rows())
			})
		})
	}
}

// TestFault_E9_ATopicThatIsDeletedHaltsAfterAGrace, and so does E10: one that is
// created again at once.
func TestFault_E9_ATopicThatIsDeletedHaltsAfterAGrace(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		require.NoError(t, b.brokers.DeleteTopic(topic))
		time.Sleep(5 * time.Second)
		require.Empty(t, m.code(), "not at once")
		b.eventually(time.Minute, "the halt", func() bool { return m.code() == merger.CodeNoTopic })
		require.True(t, m.log.has("pipeline halted", "K-NO-TOPIC", "Create it or grant access, then `applier resume PIPELINE`"), "%s", m.log)
		require.NoError(t, b.brokers.CreateTopic(topic, 2, nil))
		b.eventually(time.Minute, "the other halt", func() bool { return m.code() == merger.CodeRecreated })
		require.Equal(t, b.want.texts(), b.rows(), "nothing of the new topic is taken")
	})
}

func TestFault_E10_ATopicThatIsCreatedAgainHalts(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		want := b.rows()
		require.NoError(t, b.brokers.DeleteTopic(topic))
		require.NoError(t, b.brokers.CreateTopic(topic, 2, nil))
		b.put(keyed{0, 1, "of the new topic"}, keyed{0, 1, "of the new topic too"})
		b.eventually(time.Minute, "the halt", func() bool { return m.code() == merger.CodeRecreated })
		require.True(t, m.log.has("pipeline halted", "K-RECREATED", "topic shop.orders has the id", "applier offsets set PIPELINE"), "%s", m.log)
		require.Equal(t, want, b.rows())
	})
}

// TestFault_E10_WhatWasReadOfATopicIsAppliedBeforeTheHalt: a batch is open when the
// topic goes.
func TestFault_E10_WhatWasReadOfATopicIsAppliedBeforeTheHalt(t *testing.T) {
	inBubble(t, "    key: [id]\n    batch: { interval: 10m, idle_flush: 10m }\n", func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"}, keyed{1, 2, "b"})
		time.Sleep(5 * time.Second)
		require.Empty(t, b.rows(), "the batch is open")
		require.NoError(t, b.brokers.DeleteTopic(topic))
		require.NoError(t, b.brokers.CreateTopic(topic, 2, nil))
		b.eventually(time.Minute, "the halt", func() bool { return m.code() == merger.CodeRecreated })
		require.Equal(t, b.want.texts(), b.rows())
	})
}

func TestFault_E11_ATopicThatWasCreatedAgainWhileNobodyLookedHalts(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		want := b.rows()
		b.members[0].drain()
		require.NoError(t, b.brokers.DeleteTopic(topic))
		require.NoError(t, b.brokers.CreateTopic(topic, 2, nil))
		b.put(keyed{0, 1, "x"}, keyed{0, 1, "y"})
		m := b.join()
		b.eventually(time.Minute, "the halt", func() bool { return m.code() == merger.CodeRecreated })
		require.Equal(t, want, b.rows())
	})
}

// TestFault_E12_APartitionThatIsAddedIsReadFromItsStart.
func TestFault_E12_APartitionThatIsAddedIsReadFromItsStart(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		b.grow(4)
		b.put(keyed{2, 5, "c"}, keyed{3, 6, "d"}, keyed{0, 1, "b"})
		b.holds(10 * time.Minute) // until the client looks at the topic again
		require.Equal(t, map[int32]int64{0: 2, 1: 0, 2: 1, 3: 1}, b.next())
		require.Empty(t, m.code())
	})
}

// TestFault_E16_TheGroupsOffsetsAreIgnored, and it is said once that they differ.
func TestFault_E16_TheGroupsOffsetsAreIgnored(t *testing.T) {
	for name, to := range map[string]int64{"reset to the start": 0, "moved ahead": 3} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "    apply: append\n    batch: { interval: 500ms, idle_flush: 100ms }\n", func(b *bubble) {
				b.want.all = true
				m := b.join()
				b.put(keyed{0, 1, "a"}, keyed{0, 2, "b"})
				b.holds(time.Minute)
				time.Sleep(10 * time.Second)
				m.drain()
				b.commitGroup(0, to)
				b.put(keyed{0, 3, "c"}, keyed{0, 4, "d"})
				m = b.join()
				b.holds(time.Minute)
				require.Equal(t, 1, m.log.count("WARN", "the table decides", "partition=shop.orders/0", fmt.Sprint("group=", to), "table=2"), "%s", m.log)
				m.drain()
				m = b.join()
				time.Sleep(10 * time.Second)
				require.False(t, m.log.has("the table decides"), "they were set right: %s", m.log)
			})
		})
	}
}

// TestFault_E25_TheStoreIsOutOfReach: the group is kept, nothing is lost.
func TestFault_E25_TheStoreIsOutOfReach(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		generation := b.brokers.GroupInfo("applier.p").Epoch
		m.store.Add(objstore.Rule{Err: errStore})
		b.put(keyed{0, 1, "b"}, keyed{1, 2, "c"})
		b.eventually(time.Minute, "the halt", func() bool { return m.code() == merger.CodeIO })
		code, text := m.ready()
		require.Equal(t, 503, code)
		require.Contains(t, text, "p: halted with D-IO")
		time.Sleep(10 * time.Minute)
		require.Equal(t, generation, b.brokers.GroupInfo("applier.p").Epoch, "it stayed in the group")
		m.store.Clear()
		b.holds(2 * time.Minute)
		code, _ = m.ready()
		require.Equal(t, 200, code)
	})
}

// TestFault_E24_WithoutTheBrokersTheTableIsGivenUp after a session; a commit under
// way may still win.
func TestFault_E24_WithoutTheBrokersTheTableIsGivenUp(t *testing.T) {
	for name, lose := range map[string]func(*link){"cut": (*link).cut, "silent": (*link).silence} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "    apply: append\n    batch: { interval: 500ms, idle_flush: 100ms }\n", func(b *bubble) {
				b.want.all = true
				m := b.join()
				b.put(keyed{0, 1, "a"})
				b.holds(time.Minute)
				m.store.Add(objstore.Rule{Op: "put_if_absent", Nth: 1, Delay: 5 * time.Second})
				b.put(keyed{0, 2, "b"})
				time.Sleep(time.Second)
				lose(m.link)
				b.holds(10 * time.Second) // the one under way
				b.put(keyed{0, 3, "c"})
				b.eventually(2*time.Minute, "standing by", func() bool {
					s, _ := m.status()
					return s.Phase == merger.PhaseStandby
				})
				m.link.repair()
				b.holds(2 * time.Minute)
			})
		})
	}
}

// TestBubble_DrainEndsInTimeWhateverIsAway: nobody is kept from ending by brokers
// that are silent or by a store that hangs.
func TestBubble_DrainEndsInTimeWhateverIsAway(t *testing.T) {
	for name, lose := range map[string]func(*member){
		"nothing":        func(*member) {},
		"brokers cut":    func(m *member) { m.link.cut() },
		"brokers silent": func(m *member) { m.link.silence() },
		"store away":     func(m *member) { m.store.Add(objstore.Rule{Err: errStore}) },
		"store hangs":    func(m *member) { m.store.Add(objstore.Rule{Delay: time.Hour}) },
		"both":           func(m *member) { m.link.silence(); m.store.Add(objstore.Rule{Delay: time.Hour}) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, mirror, func(b *bubble) {
				m := b.join()
				b.put(keyed{0, 1, "a"})
				b.holds(time.Minute)
				b.put(keyed{0, 2, "b"})
				lose(m)
				time.Sleep(50 * time.Millisecond)
				from := time.Now()
				m.drain()
				require.Less(t, time.Since(from), 30*time.Second)
				if name == "nothing" {
					require.Equal(t, b.want.texts(), b.rows(), "what was read is committed")
					require.Less(t, time.Since(from), 5*time.Second)
					require.Empty(t, b.brokers.GroupInfo("applier.p").Members, "the group was left")
				}
				m.heal()
				b.join()
				b.holds(2 * time.Minute)
			})
		})
	}
}
