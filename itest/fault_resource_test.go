//go:build itest

package itest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// D4: a million changes of one key: what is kept is bounded by memory, not by them.
func TestFault_D4(t *testing.T) {
	f := newFaulty(t, "", "create: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 10_000_000, bytes: 64MiB, interval: 20s, idle_flush: 1s }")
	f.configure("memory: 96MiB")
	const changes = 1_000_000
	for f.next < changes {
		recs := make([]*kgo.Record, 50_000)
		for i := range recs {
			recs[i] = put(f.topic, 0, row(1, fmt.Sprint("change ", f.next)))
			f.next++
		}
		f.kafka.Produce(t, recs...)
	}
	f.m.upsert(row(1, fmt.Sprint("change ", changes-1)))
	g := harness.NewMemoryGroup(t, 160<<20)
	p := f.start(harness.Run{Memory: g})
	f.waitApplied(p)
	f.exact(p)
	kills, err := g.OOMKills()
	require.NoError(t, err)
	require.Zero(t, kills)
	peak, err := g.Peak()
	require.NoError(t, err)
	t.Logf("peak %d MiB", peak>>20)
}

// D5: the daemon gets next to no CPU, so that its group gives it up again and again.
func TestFault_D5(t *testing.T) {
	f := newFaulty(t, "", "")
	cpu := harness.NewCPUGroup(t, 100)
	p := f.filled(100, harness.Run{CPU: cpu})
	require.NoError(t, cpu.Set(1))
	for range 10 {
		f.produce(50)
		time.Sleep(500 * time.Millisecond) // several sessions of one second
	}
	require.NoError(t, cpu.Set(0))
	f.waitApplied(p)
	f.exact(p)
}

// D6: a topic of 1,000 partitions costs no goroutines a partition, and its series
// can be left out.
func TestFault_D6(t *testing.T) {
	f := newFaulty(t, "", "")
	topic := topicName(t.Name() + "-wide")
	const partitions = 1000
	f.kafka.CreateTopic(t, harness.Topic{Name: topic, Partitions: partitions})
	f.pipes[0].Topic, f.topic = topic, topic
	f.session = "10s"
	f.configure("")
	text, err := os.ReadFile(f.File)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.File, []byte(strings.Replace(string(text), "server: { ", "server: { partition_metrics: false, ", 1)), 0o600))
	produce := func(v string) {
		recs := make([]*kgo.Record, partitions)
		for i := range recs {
			recs[i] = put(topic, int32(i), row(i, v))
			f.m.apply(recs[i])
		}
		f.kafka.Produce(t, recs...)
		f.next += partitions
	}
	produce("first")
	p := f.start()
	f.waitApplied(p)
	produce("second")
	f.waitApplied(p)
	f.waitMetric("go_goroutines", func(n float64) bool { return n < 150 })
	_, there := f.scrape("applier_source_lag_records")
	require.False(t, there, "a thousand series nobody asked for")
	f.exact(p)
}

// logTo has a shell send the daemon's log somewhere and then become the daemon.
func (f *faulty) logTo(file string) *harness.Process {
	f.t.Helper()
	args := []string{"-c", `log=$1 && shift && exec "$@" 2>"$log"`, "sh", file, harness.Build(f.t, "./cmd/applier"), "run", "-c", f.File}
	return harness.StartBinary(f.t, "/bin/sh", harness.Run{Args: args})
}

func TestFault_D7(t *testing.T) {
	f := newFaulty(t, "", "")
	disk := harness.Tmpfs(t, "size=64k")
	log := filepath.Join(disk, "log")
	require.NoError(t, os.WriteFile(log, nil, 0o600))
	harness.Fill(t, disk)
	f.produce(200)
	p := f.logTo(log)
	f.waitApplied(p)
	f.exact(p)
}

// The log goes to a pipe that nobody reads and that is soon full.
func TestFault_D7_NobodyReadsTheLog(t *testing.T) {
	f := newFaulty(t, "", "create: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 1, interval: 100ms, idle_flush: 50ms }")
	pipe := filepath.Join(t.TempDir(), "log")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	hold, err := os.OpenFile(pipe, os.O_RDWR, 0)
	require.NoError(t, err)
	defer hold.Close()
	f.produce(260) // a line a commit: more than a pipe takes
	p := f.logTo(pipe)
	f.waitApplied(p)
	f.exact(p)
}
