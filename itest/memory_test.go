//go:build itest

package itest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// TestMemoryGroup_KillsWhatUsesTooMuch proves that a limit holds, so that a run
// without a kill means something.
func TestMemoryGroup_KillsWhatUsesTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		allocate string
		kills    int64
	}{"within": {"8", 0}, "beyond": {"256", 1}} {
		t.Run(name, func(t *testing.T) {
			g := harness.NewMemoryGroup(t, 64<<20)
			p := harness.StartBinary(t, harness.Build(t, "./itest/harness/testdata/allocate"), harness.Run{Args: []string{c.allocate}, Memory: g})
			code, err := p.Wait(t.Context())
			require.NoError(t, err)
			kills, err := g.OOMKills()
			require.NoError(t, err)
			require.Equal(t, c.kills, kills)
			require.Equal(t, c.kills == 0, code == 0)
			peak, err := g.Peak()
			require.NoError(t, err)
			require.Greater(t, peak, int64(8<<20))
			if c.kills == 0 {
				require.LessOrEqual(t, peak, int64(64<<20))
				return
			}
			// It came up to the limit; what the kernel kills may still charge some pages
			// beyond it, so that it can end (one was seen).
			require.InDelta(t, 64<<20, peak, 64<<10)
		})
	}
}

// TestFault_D3 runs the daemon with memory: 256MiB
// inside a group that kills it a little above that, through an index of 1.5 million
// keys that grows from nothing, and again through its rebuild.
func TestFault_D3(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: "create: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 50000, interval: 1s, idle_flush: 200ms }"})
	r.configure("memory: 256MiB")
	g := harness.NewMemoryGroup(t, 288<<20)
	p := r.start(harness.Run{Memory: g})
	const chunk = 100_000
	for from := 0; from < 15*chunk; from += chunk {
		recs := make([]*kgo.Record, chunk)
		for i := range recs {
			id := (from + i) * 7919 % (15 * chunk)
			recs[i] = put(topic, 0, row(id, "some text of an ordinary length"))
		}
		r.kafka.Produce(t, recs...)
	}
	r.waitApplied(p)
	n, err := harness.Java(t).Count(t.Context(), r.ref(), harness.Query{})
	require.NoError(t, err)
	require.EqualValues(t, 15*chunk, n)
	harness.MustStop(t, p)

	again := r.start(harness.Run{Memory: g})
	r.kafka.Produce(t, put(topic, 0, row(3, "rebuilt")))
	r.waitApplied(again)
	status, ok := r.status()
	require.True(t, ok)
	require.EqualValues(t, 15*chunk, status["p"].Index.Keys)
	harness.MustStop(t, again)
	kills, err := g.OOMKills()
	require.NoError(t, err)
	require.Zero(t, kills)
	peak, err := g.Peak()
	require.NoError(t, err)
	t.Logf("peak %d MiB", peak>>20)
}

// TestMemoryGroup_AnIndexThatDoesNotFitIsRefusedWithItsNumber: a table whose keys
// need more than memory gives I-MEMORY, and the process lives on.
func TestMemoryGroup_AnIndexThatDoesNotFitIsRefusedWithItsNumber(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, Key: "[id, v]", More: "create: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 100000, interval: 1s, idle_flush: 200ms }"})
	const rows = 3_000_000
	for from := 0; from < rows; from += 100_000 {
		recs := make([]*kgo.Record, 100_000)
		for i := range recs {
			recs[i] = put(topic, 0, row(from+i, "a key of two columns"))
		}
		r.kafka.Produce(t, recs...)
	}
	r.configure("memory: 1GiB")
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.configure("memory: 64MiB")
	g := harness.NewMemoryGroup(t, 128<<20)
	p = r.start(harness.Run{Memory: g})
	s := r.waitHalt(p, "I-MEMORY") // at the start, without a record
	require.Regexp(t, `\d+ ?[KMG]iB`, s.Halt.Message)
	code, err := p.Stop(patience)
	require.NoError(t, err)
	require.Equal(t, 3, code, "stopped while every pipeline was halted")
	kills, err := g.OOMKills()
	require.NoError(t, err)
	require.Zero(t, kills)
}
