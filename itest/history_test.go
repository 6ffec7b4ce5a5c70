//go:build itest

package itest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// TestFault_G6_PositionsOutliveForeignCommitsAndExpiry: while the daemon is stopped
// Java makes 15 commits and expires snapshots at Paimon's defaults and then as far
// as it can. The consumer pin keeps the newest record, so nothing is replayed.
func TestFault_G6_PositionsOutliveForeignCommitsAndExpiry(t *testing.T) {
	topic := newTopic(t, 2)
	r := newRig(t, "", pipe{Topic: topic, More: "create: { types: { id: BIGINT, v: STRING } }"})
	m := newModel([]string{"id", "v"}, []string{"id"})
	produce := func(v string, ids ...int) {
		for _, id := range ids {
			rec := put(topic, int32(id%2), row(id, v))
			m.apply(rec)
			r.kafka.Produce(t, rec)
		}
	}
	produce("ours", 1, 2, 3, 4, 5, 6)
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	before, err := lastRecord(r.ref(), r.pipes[0].ID)
	require.NoError(t, err)

	java := harness.Java(t)
	for i := range 15 {
		text := row(100+i, "theirs")
		do(t, java, r.ref(), harness.InsertRows(text))
		m.insert(text)
		_, err := java.Expire(t.Context(), r.ref(), harness.Expiry{})
		require.NoError(t, err)
	}
	_, err = java.Expire(t.Context(), r.ref(), harness.Expiry{RetainMax: 1, OlderThan: -1})
	require.NoError(t, err)
	after, err := lastRecord(r.ref(), r.pipes[0].ID)
	require.NoError(t, err)
	require.NotNil(t, after, "the pin keeps the snapshot with the newest record")
	require.Equal(t, before.Seq, after.Seq)

	produce("again", 1, 100, 101)
	produce("new", 50)
	p = r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.holds(m)
	r.proven()
	last, err := lastRecord(r.ref(), r.pipes[0].ID)
	require.NoError(t, err)
	require.Equal(t, map[int32]int64{0: 5, 1: 5}, last.positions(topic))
	require.Zero(t, last.Gaps)
}
