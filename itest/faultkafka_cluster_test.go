//go:build itest

package itest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// threeBrokers starts a cluster; its topics have a replica on each broker.
func threeBrokers(t *testing.T) *harness.Cluster {
	t.Helper()
	return harness.Kafka(t, harness.KafkaOptions{Nodes: 3, Heap: "400m", Properties: map[string]string{
		"min.insync.replicas": "1", "replica.lag.time.max.ms": "3000",
	}})
}

// partitionOf is what the brokers say of a partition now.
func partitionOf(t *testing.T, k *harness.Cluster, topic string, partition int32) kadm.PartitionDetail {
	t.Helper()
	topics, err := k.Admin(t).ListTopics(t.Context(), topic)
	require.NoError(t, err)
	require.Contains(t, topics, topic)
	return topics[topic].Partitions[partition]
}

// killLeader ends the broker that leads a partition and returns its number from 0.
func killLeader(t *testing.T, k *harness.Cluster, topic string, partition int32) int {
	t.Helper()
	old := partitionOf(t, k, topic, partition).Leader
	k.KillNode(int(old - 1))
	harness.Until(t, patience, "another leader", func() (bool, error) {
		now := partitionOf(t, k, topic, partition).Leader
		return now >= 0 && now != old, nil
	})
	return int(old - 1)
}

// storm is a mirror on three brokers, with a model and a foreign writer that has
// keys of its own.
type clusterStorm struct {
	t     *testing.T
	k     *harness.Cluster
	r     *rig
	p     *harness.Process
	m     *model
	java  harness.JavaPeer
	topic harness.Topic
	round int
}

// write produces changes of 40 keys; a key stays in its partition.
func (s *clusterStorm) write(cl *kgo.Client, count bool, partitions int32) {
	s.t.Helper()
	s.round++
	for i := range 40 {
		rec := put(s.topic.Name, int32(i)%partitions, row(i, fmt.Sprint("round ", s.round)))
		if (i+s.round)%7 == 0 {
			rec = del(s.topic.Name, int32(i)%partitions, fmt.Sprintf(`{"id":%d}`, i))
		}
		require.NoError(s.t, cl.ProduceSync(s.t.Context(), rec).FirstErr())
		if count {
			s.m.apply(rec)
		}
	}
}

// foreign inserts two rows with Java, deletes the one before them, and compacts now
// and then.
func (s *clusterStorm) foreign() {
	s.t.Helper()
	id := 1000 + 10*s.round
	do(s.t, s.java, s.r.ref(), harness.InsertRows(row(id, "foreign"), row(id+1, "foreign")))
	s.m.insert(row(id, "foreign"), row(id+1, "foreign"))
	if s.round%2 == 0 {
		do(s.t, s.java, s.r.ref(), harness.DeleteKeys([]string{"id"}, []any{id + 1}))
		s.m.remove(fmt.Sprintf(`{"id":%d}`, id+1))
	}
	if s.round%3 == 0 {
		do(s.t, s.java, s.r.ref(), harness.CompactFull())
	}
}

// TestFault_E2_ThreeBrokersInTroubleWhileAForeignWriterWorks: leaders die, partitions
// are added, transactions end each way and one stays open, the topic is created
// again; Java inserts, deletes and compacts meanwhile.
func TestFault_E2_ThreeBrokersInTroubleWhileAForeignWriterWorks(t *testing.T) {
	s := &clusterStorm{t: t, k: threeBrokers(t), m: newModel([]string{"id", "v"}, []string{"id"}), java: harness.Java(t)}
	s.topic = harness.Topic{Name: "t", Partitions: 2, Replicas: 3}
	s.k.CreateTopic(t, s.topic)
	s.r = newRig(t, "", pipe{Topic: "t", More: twinTable})
	s.r.kafka = s.k
	s.r.configure("")
	s.p = s.r.start()
	plain := s.k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	s.write(plain, true, 2)
	s.r.waitApplied(s.p)

	dead := killLeader(t, s.k, "t", 0)
	s.write(plain, true, 2)
	s.foreign()
	s.r.waitApplied(s.p)
	require.NoError(t, s.k.StartNode(dead))

	txn := s.k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID("txn"))
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} { // the last thing is a marker
		require.NoError(t, txn.BeginTransaction())
		s.write(txn, end == kgo.TryCommit, 2)
		require.NoError(t, txn.EndTransaction(t.Context(), end))
		s.foreign()
	}
	s.r.waitApplied(s.p)
	s.r.holds(s.m)

	s.openTransaction(txn, plain)

	_, err := s.k.Admin(t).UpdatePartitions(t.Context(), 4, "t")
	require.NoError(t, err)
	harness.Until(t, patience, "the partitions", func() (bool, error) { return len(s.k.EndOffsets(t, "t")) == 4, nil })
	grown := s.k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range 10 { // keys that were in no other partition
		rec := put("t", 2+int32(i%2), row(500+i, "grown"))
		require.NoError(t, grown.ProduceSync(t.Context(), rec).FirstErr())
		s.m.apply(rec)
	}
	dead = killLeader(t, s.k, "t", 1) // the daemon looks at the topic again
	s.write(plain, true, 2)
	s.foreign()
	s.r.waitApplied(s.p)
	require.NoError(t, s.k.StartNode(dead))
	s.r.holds(s.m)

	s.k.RecreateTopic(t, harness.Topic{Name: "t", Partitions: 4, Replicas: 3})
	halt := s.r.waitHalt(s.p, "K-RECREATED")
	require.Contains(t, halt.Halt.Message, "topic t has the id")
	again := s.k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	s.write(again, true, 2)
	s.foreign()
	s.r.must("offsets", "set", "p", "--to", "t/0=0", "--to", "t/1=0", "--to", "t/2=0", "--to", "t/3=0")
	s.r.waitRecovered(s.p)
	harness.MustStop(t, s.p)
	s.r.holds(s.m)
}

// openTransaction: what is behind an open transaction waits for it.
func (s *clusterStorm) openTransaction(txn, plain *kgo.Client) {
	t := s.t
	require.NoError(t, txn.BeginTransaction())
	open := put("t", 0, row(600, "in the transaction"))
	require.NoError(t, txn.ProduceSync(t.Context(), open).FirstErr())
	at := s.k.EndOffsets(t, "t")[0] - 1
	behind, beside := put("t", 0, row(602, "behind")), put("t", 1, row(601, "beside"))
	require.NoError(t, plain.ProduceSync(t.Context(), behind, beside).FirstErr())
	s.m.apply(beside)
	harness.Until(t, patience, "the other partition", func() (bool, error) {
		rec, err := lastRecord(s.r.ref(), s.r.pipes[0].ID)
		return err == nil && rec.positions("t")[1] == s.k.EndOffsets(t, "t")[1], err
	})
	rec, err := lastRecord(s.r.ref(), s.r.pipes[0].ID)
	require.NoError(t, err)
	require.Equal(t, at, rec.positions("t")[0])
	s.r.holds(s.m)
	require.NoError(t, txn.EndTransaction(t.Context(), kgo.TryCommit))
	s.m.apply(open)
	s.m.apply(behind)
	s.r.waitApplied(s.p)
}

// uncleanly has the replica that misses records lead a partition of two: those
// records are gone from Kafka. while runs in between, without a leader.
func uncleanly(t *testing.T, j *journal, k *harness.Cluster, while func()) {
	t.Helper()
	p := partitionOf(t, k, j.topic, 0)
	leader := p.Leader
	behind := p.Replicas[0]
	if behind == leader {
		behind = p.Replicas[1]
	}
	k.KillNode(int(behind - 1))
	harness.Until(t, patience, "the replica to fall behind", func() (bool, error) {
		return slices.Equal(partitionOf(t, k, j.topic, 0).ISR, []int32{leader}), nil
	})
	while()
	k.KillNode(int(leader - 1))
	require.NoError(t, k.StartNode(int(behind-1)))
	harness.Until(t, patience, "the unclean leader", func() (bool, error) {
		return partitionOf(t, k, j.topic, 0).Leader == behind, nil
	})
}

var uncleanTopic = harness.Topic{Name: "t", Partitions: 1, Replicas: 2, Configs: map[string]string{"unclean.leader.election.enable": "true"}}

func TestFault_E7_AnUncleanElectionHalts(t *testing.T) {
	k := threeBrokers(t)
	j := journalOn(t, k, uncleanTopic)
	p := j.r.start()
	j.put(10, 0)
	j.r.waitApplied(p)
	uncleanly(t, j, k, func() {
		j.put(10, 0)
		j.r.waitApplied(p)
	})
	s := j.r.waitHalt(p, "K-TRUNCATED")
	require.Contains(t, s.Halt.Message, "t/0: ")
	require.Contains(t, s.Halt.Remedy, "applier offsets set PIPELINE")
	j.holds() // what was applied stays
	j.put(3, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.Error(t, p.WaitOutput(ctx, "no such text"))
	j.r.waitHalt(p, "K-TRUNCATED")
	j.r.must("offsets", "set", "p", "--to", "t/0=10")
	j.r.waitRecovered(p)
	harness.MustStop(t, p)
	j.holds()
}
