//go:build itest

package itest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// Faults of Kafka, on the real binary and real brokers: section E of the fault
// catalogue. Tables are append-only where something applied twice must show.

// appended is a pipeline whose every record becomes a row.
const appended = "apply: append\ncreate: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 100, interval: 300ms, idle_flush: 50ms }"

// journal writes rows and knows which ones the table must hold.
type journal struct {
	r     *rig
	topic string
	next  int
	want  []string
}

// on makes a rig of an append-only table on a cluster of its own.
func journalOn(t *testing.T, k *harness.Cluster, topic harness.Topic) *journal {
	t.Helper()
	k.CreateTopic(t, topic)
	r := newRig(t, "", pipe{Topic: topic.Name, Key: "none", More: appended})
	r.kafka = k
	r.configure("")
	return &journal{r: r, topic: topic.Name}
}

// put writes n rows over the partitions.
func (j *journal) put(n int, partitions ...int32) {
	j.r.t.Helper()
	j.r.kafka.Produce(j.r.t, j.records(n, partitions...)...)
}

// records makes n rows that count as written.
func (j *journal) records(n int, partitions ...int32) []*kgo.Record {
	var out []*kgo.Record
	for range n {
		text := row(j.next, "x")
		out = append(out, put(j.topic, partitions[j.next%len(partitions)], text))
		j.want = append(j.want, text)
		j.next++
	}
	return out
}

// waitRecovered waits for the end of a halt and until everything is applied.
func (r *rig) waitRecovered(p *harness.Process) {
	r.t.Helper()
	r.waitStatus(p, r.pipes[0].Name, "the end of the halt", func(s pipelineStatus) bool { return s.Halt == nil && s.State != "" })
	r.waitApplied(p)
}

// holds fails unless all readers read exactly the rows.
func (j *journal) holds() {
	j.r.t.Helper()
	harness.SameRows(j.r.t.Context(), j.r.t, j.want, j.r.ref(), harness.Query{}, readers(j.r.t)...)
}

func TestFault_E1_TheBrokerIsKilledAndComesBack(t *testing.T) {
	k := harness.Kafka(t, harness.KafkaOptions{Properties: map[string]string{"log.flush.interval.messages": "1"}})
	j := journalOn(t, k, harness.Topic{Name: "t", Partitions: 2})
	p := j.r.start()
	j.put(100, 0, 1)
	j.r.waitApplied(p)
	for range 2 {
		k.KillNode(0)
		time.Sleep(2 * time.Second)
		require.NoError(t, k.StartNode(0))
		j.put(100, 0, 1)
		j.r.waitApplied(p)
	}
	harness.MustStop(t, p)
	j.holds()
}

func TestFault_E6_RecordsThatWereRemovedHaltUntilTheLossIsAccepted(t *testing.T) {
	j := journalOn(t, harness.SharedKafka(t), harness.Topic{Name: topicName(t.Name()), Partitions: 1})
	p := j.r.start()
	j.put(10, 0)
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	j.put(10, 0)
	j.r.kafka.DeleteRecords(t, j.topic, 0, 15)
	p = j.r.start()
	s := j.r.waitHalt(p, "K-GAP")
	require.Contains(t, s.Halt.Message, j.topic+"/0: next offset 10 was removed, the log starts at 15 now (5 offsets are missing)")
	require.Contains(t, s.Halt.Remedy, "applier offsets skip PIPELINE")
	require.NoError(t, p.WaitHTTP(t.Context(), j.r.Public+"/readyz", 503))
	j.r.must("offsets", "skip", "p", "--to", j.topic+"/0=15")
	j.r.waitRecovered(p)
	harness.MustStop(t, p)
	rec, err := lastRecord(j.r.ref(), j.r.pipes[0].ID)
	require.NoError(t, err)
	require.EqualValues(t, 5, rec.Gaps, "the table says what is missing")
	j.want = append(j.want[:10:10], j.want[15:]...)
	j.holds()
}

func TestFault_E9_E10_ATopicThatIsDeletedAndCreatedAgain(t *testing.T) {
	k := harness.SharedKafka(t)
	topic := harness.Topic{Name: topicName(t.Name()), Partitions: 2}
	j := journalOn(t, k, topic)
	p := j.r.start()
	j.put(20, 0, 1)
	j.r.waitApplied(p)
	k.DeleteTopic(t, topic.Name)
	s := j.r.waitHalt(p, "K-NO-TOPIC")
	require.Contains(t, s.Halt.Remedy, "applier resume PIPELINE")
	k.CreateTopic(t, topic)
	s = j.r.waitHalt(p, "K-RECREATED")
	require.Contains(t, s.Halt.Message, "topic "+topic.Name+" has the id")
	require.Contains(t, s.Halt.Remedy, "applier offsets set PIPELINE")
	j.put(30, 0, 1)
	j.r.must("offsets", "set", "p", "--to", topic.Name+"/0=0", "--to", topic.Name+"/1=0")
	j.r.waitRecovered(p)
	harness.MustStop(t, p)
	j.holds()
}

func TestFault_E11_ATopicThatIsCreatedAgainWhileNobodyLooks(t *testing.T) {
	k := harness.SharedKafka(t)
	topic := harness.Topic{Name: topicName(t.Name()), Partitions: 1}
	j := journalOn(t, k, topic)
	p := j.r.start()
	j.put(20, 0)
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	k.RecreateTopic(t, topic)
	j.put(50, 0) // the old position is inside of the new log
	p = j.r.start()
	s := j.r.waitHalt(p, "K-RECREATED")
	require.Contains(t, s.Halt.Message, "topic "+topic.Name+" has the id")
	j.r.must("offsets", "set", "p", "--to", topic.Name+"/0=0")
	j.r.waitRecovered(p)
	harness.MustStop(t, p)
	j.holds()
}

func TestFault_E12_PartitionsThatAreAdded(t *testing.T) {
	k := harness.SharedKafka(t)
	j := journalOn(t, k, harness.Topic{Name: topicName(t.Name()), Partitions: 1})
	p := j.r.start()
	j.put(20, 0)
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	j.put(20, 0)
	_, err := k.Admin(t).UpdatePartitions(t.Context(), 3, j.topic)
	require.NoError(t, err)
	harness.Until(t, patience, "the partitions", func() (bool, error) { return len(k.EndOffsets(t, j.topic)) == 3, nil })
	j.put(30, 0, 1, 2)
	p = j.r.start()
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	harness.MustSay(t, p, "new partitions wait until the old ones are read up to here")
	j.holds()
}

func TestFault_E13_AnotherClusterBehindTheSameName(t *testing.T) {
	j := journalOn(t, harness.SharedKafka(t), harness.Topic{Name: topicName(t.Name()), Partitions: 1})
	p := j.r.start()
	j.put(20, 0)
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	own := j.r.kafka
	other := harness.Kafka(t, harness.KafkaOptions{})
	other.CreateTopic(t, harness.Topic{Name: j.topic, Partitions: 1})
	other.Produce(t, records(j.topic, 0, 1000, 1050)...)
	j.r.kafka = other
	j.r.configure("")
	p = j.r.start()
	s := j.r.waitHalt(p, "K-CLUSTER")
	require.Contains(t, s.Halt.Message, fmt.Sprintf("the brokers belong to cluster %s, the table's positions to %s", other.ID, own.ID))
	require.Contains(t, s.Halt.Remedy, "kafka.brokers")
	code, err := p.Stop(patience)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	j.r.kafka = own
	j.r.configure("")
	j.put(10, 0)
	p = j.r.start()
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	j.holds()
}

func TestFault_E16_GroupOffsetsThatAToolMoved(t *testing.T) {
	k := harness.SharedKafka(t)
	j := journalOn(t, k, harness.Topic{Name: topicName(t.Name()), Partitions: 2})
	p := j.r.start()
	j.put(20, 0, 1)
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	group := "applier." + j.r.pipes[0].ID
	moved := kadm.Offsets{}
	moved.Add(kadm.Offset{Topic: j.topic, Partition: 0, At: 0, LeaderEpoch: -1})
	moved.Add(kadm.Offset{Topic: j.topic, Partition: 1, At: 10, LeaderEpoch: -1})
	committed, err := k.Admin(t).CommitOffsets(t.Context(), group, moved)
	require.NoError(t, err)
	require.NoError(t, committed.Error())
	j.put(20, 0, 1)
	p = j.r.start()
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	require.Equal(t, 1, strings.Count(p.Output.String(), "the table decides; to move it, use applier offsets set"), p.Output.String())
	_, err = k.Admin(t).DeleteGroup(t.Context(), group)
	require.NoError(t, err)
	j.put(20, 0, 1)
	p = j.r.start()
	j.r.waitApplied(p)
	harness.MustStop(t, p)
	j.holds()
}

func TestFault_E22_RecordsLargerThanAFetchAndLargerThanWeTake(t *testing.T) {
	const large = "10000000"
	k := harness.Kafka(t, harness.KafkaOptions{Properties: map[string]string{"message.max.bytes": large, "replica.fetch.max.bytes": large}})
	j := journalOn(t, k, harness.Topic{Name: "t", Partitions: 1})
	j.r.set(appended + "\nmax_record_bytes: 6MiB")
	j.r.configure("memory: 64MiB") // fetches of 4 MiB, a quarter of it a partition
	cl := k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(9<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	write := func(bytes int) string {
		text := row(j.next, strings.Repeat("x", bytes))
		j.next++
		require.NoError(t, cl.ProduceSync(t.Context(), put("t", 0, text)).FirstErr())
		return text
	}
	for _, bytes := range []int{1, 5 << 20, 1} {
		j.want = append(j.want, write(bytes))
	}
	p := j.r.start()
	j.r.waitApplied(p)
	write(7 << 20)
	j.want = append(j.want, write(1))
	s := j.r.waitHalt(p, "D-ROW")
	require.Contains(t, s.Halt.Message, "t/0 offset 3: length: the record is larger than max_record_bytes")
	j.r.must("offsets", "skip", "p", "--to", "t/0=4")
	j.r.waitRecovered(p)
	harness.MustStop(t, p)
	var texts []string
	for _, text := range j.want {
		texts = append(texts, fmt.Sprint(len(text)))
	}
	got, err := cat(t).Read(t.Context(), j.r.ref(), harness.Query{})
	require.NoError(t, err)
	var lengths []string
	for _, text := range got.Texts() {
		lengths = append(lengths, fmt.Sprint(len(text)))
	}
	require.ElementsMatch(t, texts, lengths)
}

// TestFault_E28_ABrokerThatWasRestoredFromABackup ends before what is applied.
func TestFault_E28_ABrokerThatWasRestoredFromABackup(t *testing.T) {
	k := harness.Kafka(t, harness.KafkaOptions{})
	j := journalOn(t, k, harness.Topic{Name: "t", Partitions: 1})
	p := j.r.start()
	j.put(20, 0)
	j.r.waitApplied(p)
	backup := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, k.StopNode(0))
	require.NoError(t, os.CopyFS(backup, os.DirFS(k.DataDir(0))))
	require.NoError(t, k.StartNode(0))
	j.put(10, 0)
	j.r.waitApplied(p)
	require.NoError(t, k.StopNode(0))
	require.NoError(t, os.RemoveAll(k.DataDir(0)))
	require.NoError(t, os.CopyFS(k.DataDir(0), os.DirFS(backup)))
	require.NoError(t, k.StartNode(0))
	s := j.r.waitHalt(p, "K-TRUNCATED")
	require.Contains(t, s.Halt.Message, "t/0: ")
	require.Contains(t, s.Halt.Remedy, "applier offsets set PIPELINE")
	j.holds() // and nothing was done to the table
	j.put(5, 0)
	j.r.must("offsets", "set", "p", "--to", "t/0=20")
	j.r.waitRecovered(p)
	harness.MustStop(t, p)
	j.holds()
}
