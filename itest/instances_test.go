//go:build itest

package itest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// twins are two instances of one configuration: the same pipeline, warehouse and
// brokers, ports and state folders of their own.
func twins(t *testing.T, more string) (a, b *rig) {
	t.Helper()
	topic := topicName(t.Name())
	harness.SharedKafka(t).CreateTopic(t, harness.Topic{Name: topic, Partitions: 2})
	a = newRig(t, "", pipe{Topic: topic, More: more})
	b = newRig(t, a.Warehouse, a.pipes...)
	for _, r := range []*rig{a, b} {
		r.session = "1s"
		r.configure("")
	}
	return a, b
}

const twinTable = "create: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 100, interval: 300ms, idle_flush: 50ms }"

// changesOf makes n changes over both partitions and 50 keys.
func changesOf(topic string, from, n int, m *model) []*kgo.Record {
	var out []*kgo.Record
	for i := from; i < from+n; i++ {
		rec := put(topic, int32(i%50%2), row(i%50, fmt.Sprint(i)))
		if i%9 == 8 {
			rec = del(topic, int32(i%50%2), fmt.Sprintf(`{"id":%d}`, i%50))
		}
		m.apply(rec)
		out = append(out, rec)
	}
	return out
}

func TestInstances_OneWorksAndTheOtherTakesOverWhenItIsKilled(t *testing.T) {
	a, b := twins(t, twinTable)
	for _, r := range []*rig{a, b} { // nobody loses the table for being slow: the epochs are counted
		r.session = "5s"
		r.configure("")
	}
	topic := a.pipes[0].Topic
	m := newModel([]string{"id", "v"}, []string{"id"})
	pa := a.start()
	a.kafka.Produce(t, changesOf(topic, 0, 500, m)...)
	a.waitApplied(pa)
	pb := b.start()
	b.waitStatus(pb, "p", "standing by", func(s pipelineStatus) bool { return s.State == "standby" })
	require.NoError(t, pb.WaitHTTP(t.Context(), b.Public+"/readyz", 200)) // standing by is what it should do

	a.kafka.Produce(t, changesOf(topic, 500, 500, m)...)
	a.waitApplied(pa)
	s, _ := b.status()
	require.Equal(t, "standby", s["p"].State)
	require.Zero(t, s["p"].Rows.Commits, "the second instance wrote nothing")
	a.holds(m)

	a.kafka.Produce(t, changesOf(topic, 1000, 2000, m)...) // it dies with work on its hands
	pa.Kill()
	b.waitApplied(pb)
	a.holds(m)

	pa = a.start() // the first one comes back and stands by
	a.waitStatus(pa, "p", "standing by", func(s pipelineStatus) bool { return s.State == "standby" })
	a.kafka.Produce(t, changesOf(topic, 3000, 100, m)...)
	b.waitApplied(pb)
	harness.MustStop(t, pb) // in good order: it leaves the group, and nobody waits
	a.kafka.Produce(t, changesOf(topic, 3100, 100, m)...)
	a.waitApplied(pa)
	harness.MustStop(t, pa)
	a.holds(m)
	rec, err := lastRecord(a.ref(), a.pipes[0].ID)
	require.NoError(t, err)
	require.EqualValues(t, 4, rec.Epoch, "first start, and three instances that took over or over again")
}

// TestInstances_AZombieAppliesNothingTwice stops the owner in the middle of a
// commit until the other has taken over and done its work, then lets it go on
// believing that it owns the table. The table is append-only, so that anything
// applied twice shows.
func TestInstances_AZombieAppliesNothingTwice(t *testing.T) {
	for _, step := range []string{"commit/plan=stop@2", "commit/publish=stop@2", "objstore/publish/staged=stop@3"} { // two are the probe of the warehouse
		t.Run(topicName(step), func(t *testing.T) {
			a, b := twins(t, "apply: append\ncreate: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 100, interval: 300ms, idle_flush: 50ms }")
			zombie(t, a, b, step, true)
		})
	}
}

// TestInstances_AZombieWinsBeforeTheNewOwnerCommits: the new owner has the same
// records in its hands when the old one's commit lands. Then that one counts.
func TestInstances_AZombieWinsBeforeTheNewOwnerCommits(t *testing.T) {
	a, b := twins(t, "apply: append\ncreate: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 100, interval: 300ms, idle_flush: 50ms }")
	b.session = "30s" // it stands still longer than a session of tests, and must stay the owner
	zombie(t, a, b, "commit/publish=stop@2", false)
}

func zombie(t *testing.T, a, b *rig, step string, takeover bool) {
	t.Helper()
	a.pipes[0].Key, b.pipes[0].Key = "none", "none"
	a.configure("")
	b.configure("")
	topic := a.pipes[0].Topic
	var want []string
	produce := func(from, n int) {
		var recs []*kgo.Record
		for i := from; i < from+n; i++ {
			recs = append(recs, put(topic, int32(i%2), row(i, "x")))
			want = append(want, row(i, "x"))
		}
		a.kafka.Produce(t, recs...)
	}
	produce(0, 50)
	first := a.start() // what is done once for a table is done
	a.waitApplied(first)
	harness.MustStop(t, first)
	pa := a.start(harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=" + step}})
	produce(50, 250)
	stopped(t, pa, 1)
	env := []string{}
	if !takeover {
		env = append(env, "APPLIER_FAILPOINTS=commit/publish=stop@1")
	}
	pb := b.start(harness.Run{Tags: []string{"failpoints"}, Env: env})
	if takeover {
		b.waitApplied(pb)
		proceed(t, pa)
	} else {
		stopped(t, pb, 1)
		n := len(snapshotIDs(a.ref()))
		proceed(t, pa)
		harness.Until(t, patience, "the zombie's commit", func() (bool, error) { return len(snapshotIDs(a.ref())) > n, nil })
		pa.Kill() // or its coming back would take the table from pb, before that has to look
		proceed(t, pb)
	}
	// Both live on; whoever owns the table goes on.
	produce(300, 100)
	b.waitApplied(pb)
	if takeover {
		harness.MustStop(t, pa)
	}
	harness.MustStop(t, pb)
	harness.SameRows(t.Context(), t, want, a.ref(), harness.Query{}, readers(t)...)
	switch {
	case !takeover:
		harness.MustSay(t, pb, "what=fenced", "the owner's batch was applied by the zombie")
	case step != "commit/plan=stop@2": // there the group may tell the zombie before it looks
		harness.MustSay(t, pa, "what=lost_race", "the zombie's slot was taken")
	}
}
