package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"applier/cmd/applier/internal/app"
	"applier/config"
	"applier/merger"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// patience bounds waiting for something that must come.
const patience = 30 * time.Second

// desk is a broker, a warehouse, a configuration file, and an operator.
type desk struct {
	t       *testing.T
	broker  *kfake.Cluster
	file    string
	commits chan int64
}

// newDesk prepares a pipeline; apply is the rest of its settings.
func newDesk(t *testing.T, settings string) *desk {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "warehouse"), 0o755))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	d := &desk{t: t, broker: broker, file: filepath.Join(dir, "applier.yml"), commits: make(chan int64, 100)}
	require.NoError(t, os.WriteFile(d.file, []byte(fmt.Sprintf(`version: 1
kafka: { brokers: [%q] }
warehouse: %q
state_dir: %q
server: { listen: "127.0.0.1:0", admin: { listen: %q }, log: { level: error } }
pipelines:
  p:
    source: { topic: t, format: json }
    target: d.t
    create: { types: { id: BIGINT, v: STRING } }
    %s
`, broker.ListenAddrs()[0], filepath.Join(dir, "warehouse"), filepath.Join(dir, "state"), l.Addr(), settings)), 0o600))
	return d
}

func (d *desk) produce(values ...string) {
	d.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(d.broker.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic("t"))
	require.NoError(d.t, err)
	defer cl.Close()
	for _, v := range values {
		require.NoError(d.t, cl.ProduceSync(context.Background(), &kgo.Record{Value: []byte(v)}).FirstErr())
	}
}

// daemon runs the pipelines until the returned function is called.
func (d *desk) daemon() (stop func()) {
	cfg, err := config.Load(d.file, os.LookupEnv)
	require.NoError(d.t, err)
	a, err := app.New(cfg, app.Options{Log: slog.New(slog.DiscardHandler), Committed: func(_ string, c merger.Commit) {
		if c.Batch != nil {
			d.commits <- c.Snapshot
		}
	}})
	require.NoError(d.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, context.Background()) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(d.t, <-done)
		}
	}
	d.t.Cleanup(stop)
	return stop
}

func (d *desk) committed() {
	d.t.Helper()
	select {
	case <-d.commits:
	case <-time.After(patience):
		require.FailNow(d.t, "no commit came")
	}
}

// run runs a command and returns what it says and its exit code.
func (d *desk) run(stdin string, args ...string) (string, int) {
	var out bytes.Buffer
	root := rootCommand()
	root.SetArgs(append(args, "-c", d.file))
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetIn(strings.NewReader(stdin))
	err := root.ExecuteContext(context.Background())
	var coded exitError
	switch {
	case err == nil:
		return out.String(), exitOK
	case errors.As(err, &coded):
		return out.String() + err.Error(), coded.code
	}
	return out.String() + err.Error(), exitFailed
}

func TestCommands_PauseFlushResumeSayWhatHappened(t *testing.T) {
	d := newDesk(t, "key: [id]\n    batch: { interval: 1h, idle_flush: 0s }")
	text, code := d.run("", "pause", "p")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, "is `applier run` running")
	d.daemon()
	d.produce(`{"id":1,"v":"a"}`)
	require.Eventually(t, func() bool {
		text, _ = d.run("", "flush", "p")
		return strings.Contains(text, "p: committed snapshot")
	}, patience, 20*time.Millisecond, "an interval of an hour: only flush commits")
	d.committed()
	text, _ = d.run("", "flush", "p")
	require.Contains(t, text, "p: nothing was open; the table is at snapshot 2")
	text, code = d.run("", "pause", "p")
	require.Equal(t, exitOK, code, text)
	require.Contains(t, text, "p: paused at snapshot 2; nothing is read or committed until: applier resume p")
	text, _ = d.run("", "pause", "p")
	require.Contains(t, text, "was paused already")
	text, code = d.run("", "flush", "p")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, "pipeline p is paused; nothing is committed before: applier resume p")
	text, _ = d.run("", "resume", "p")
	require.Contains(t, text, "p: resumed at snapshot 2, it is running")
	text, _ = d.run("", "resume", "p")
	require.Contains(t, text, "was neither paused nor halted")
	text, code = d.run("", "pause", "q")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, "the process runs p")
}

func TestCommands_ResumeSaysThatTheCauseIsStillThere(t *testing.T) {
	d := newDesk(t, "key: [id]\n    batch: { interval: 1s, idle_flush: 20ms }")
	d.daemon()
	d.produce("poison")
	require.Eventually(t, func() bool { text, _ := d.run("", "status"); return strings.Contains(text, "D-ROW") }, patience, 20*time.Millisecond)
	text, _ := d.run("", "resume", "p")
	require.Contains(t, text, "it halted again with D-ROW")
}

func TestReset_SaysWhatItMeansAndAsks(t *testing.T) {
	d := newDesk(t, "key: [id]\n    batch: { interval: 1s, idle_flush: 20ms }")
	stop := d.daemon()
	d.produce(`{"id":1,"v":"a"}`, `{"id":1,"v":"b"}`, `{"id":2,"v":"c"}`)
	d.committed()
	text, code := d.run("", "reset", "p", "--to", "earliest")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, "pipeline p is running; first: applier pause p")
	text, code = d.run("", "reset", "p", "--to", "earliest", "--dry-run")
	require.Equal(t, exitOK, code, text)
	require.Contains(t, text, "t/0 goes back from offset 3 to 0: at most 3 records")
	require.Contains(t, text, "t/1 stays at offset 0")
	require.Contains(t, text, "written 20")
	require.Contains(t, text, "applied again by key, in their order")
	require.Contains(t, text, "dry run: nothing was written")

	_, code = d.run("", "pause", "p")
	require.Equal(t, exitOK, code)
	text, code = d.run("no\n", "reset", "p", "--to", "earliest")
	require.Equal(t, exitUsage, code)
	require.Contains(t, text, "not confirmed: nothing was written")
	text, code = d.run("", "reset", "p", "--to", "0=7")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, "outside of the log")
	text, code = d.run("yes\n", "reset", "p", "--to", "0=1")
	require.Equal(t, exitOK, code, text)
	require.Contains(t, text, "Reading goes on from there with `applier resume p`")
	text, _ = d.run("", "status")
	require.Contains(t, text, "paused", "the statement does not end the pause")
	text, _ = d.run("", "resume", "p")
	require.Contains(t, text, "it is running", text)
	d.committed() // what is read again
	stop()

	text, code = d.run("", "cat", "d.t", "--format", "jsonl")
	require.Equal(t, exitOK, code)
	require.Equal(t, 2, strings.Count(text, "\n"), "nothing is doubled: %s", text)
	text, code = d.run("", "verify", "p", "--full")
	require.Equal(t, exitOK, code, text)
	require.Contains(t, text, "The table is proven")

	text, code = d.run("", "reset", "p", "--to", "time=2100-01-01T00:00:00Z", "--yes")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, "nothing would be read again")
	text, code = d.run("", "reset", "p", "--to", "time=2020-01-01T00:00:00Z", "--yes")
	require.Equal(t, exitOK, code, text)
	require.Contains(t, text, "from offset 3 to 0")
}

func TestReset_AppendNeedsForce(t *testing.T) {
	d := newDesk(t, "apply: append\n    batch: { interval: 1s, idle_flush: 20ms }")
	stop := d.daemon()
	d.produce(`{"id":1,"v":"a"}`, `{"id":2,"v":"b"}`)
	d.committed()
	stop()
	text, code := d.run("", "reset", "p", "--to", "earliest", "--yes")
	require.Equal(t, exitUsage, code)
	require.Contains(t, text, "up to 2 ROWS TWICE")
	require.Contains(t, text, "--force-duplicates")
	text, code = d.run("", "reset", "p", "--to", "earliest", "--yes", "--force-duplicates")
	require.Equal(t, exitOK, code, text)
}

func TestReset_RefusesWhatCannotBeMeant(t *testing.T) {
	d := newDesk(t, "key: [id]")
	for _, args := range [][]string{
		{},
		{"--to", "latest"},
		{"--to", "earliest", "--to", "0=1"},
		{"--to", "time=yesterday"},
		{"--to", "x=1"},
		{"--to", "0=-1"},
		{"--to", "-1=0"},
		{"--to", "0"},
		{"--to", "time"},
		{"--to", "earliest", "0=1"},
		{"--to", "time", "2026-01-31T12:00:00Z", "0=1"},
		{"0=1", "--to", "latest"},
	} {
		text, code := d.run("", append([]string{"reset", "p"}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, text)
	}
	require.Equal(t, []string{"offset 0=5", "offset 1=7"}, joinWords([]string{"offset"}, []string{"0=5", "1=7"}))
	require.Equal(t, []string{"time 2026-01-31T12:00:00Z"}, joinWords([]string{"time"}, []string{"2026-01-31T12:00:00Z"}))
	to, err := parseReset([]string{"offset 0=5", "offset t/1=7"})
	require.NoError(t, err)
	require.Len(t, to.Positions, 2)
	to, err = parseReset([]string{"time 2026-01-31T12:00:00Z"})
	require.NoError(t, err)
	require.Equal(t, 2026, to.Time.Year())
	for in, want := range map[string]string{"0=5": "/0 5", "t/1=7": "t/1 7", "a/b/2=9": "a/b/2 9"} {
		p, err := parsePlace(in)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("%s/%d %d", p.Topic, p.Partition, p.Next))
	}
}

func TestOffsets_RemediesOfHaltsWorkBesideTheRunningProcess(t *testing.T) {
	d := newDesk(t, "key: [id]\n    batch: { interval: 1s, idle_flush: 20ms }")
	stop := d.daemon()
	d.produce(`{"id":1}`, `{"id":2}`, `{"id":3}`)
	d.committed()
	stop()
	d.produce(`{"id":4}`, `{"id":5}`)
	require.NoError(t, d.broker.DeleteRecords("t", 0, 4))
	d.daemon()
	require.Eventually(t, func() bool { text, _ := d.run("", "status"); return strings.Contains(text, "K-GAP") }, patience, 20*time.Millisecond)
	text, code := d.run("", "offsets", "skip", "p")
	require.Equal(t, exitOK, code, "the command that K-GAP names: %s", text)
	require.Contains(t, text, "1 offsets are skipped")
	d.committed()
}

func TestVerify_ExitCodesTellDamageFromWhatCouldNotBeRead(t *testing.T) {
	d := newDesk(t, "key: [id]\n    batch: { interval: 1s, idle_flush: 20ms }")
	text, code := d.run("", "verify", "p")
	require.Equal(t, exitUnread, code)
	require.Contains(t, text, "the table cannot be checked")
	stop := d.daemon()
	d.produce(`{"id":1,"v":"a"}`)
	d.committed()
	text, code = d.run("", "verify", "p")
	require.Equal(t, exitOK, code, text)
	require.Contains(t, text, "rows in the index of the running process")
	text, code = d.run("", "explain", "p", "--key", "id=1")
	require.Equal(t, exitOK, code, text)
	require.Contains(t, text, "id=1 has its value because the update at t/0 offset 0")
	stop()
	text, code = d.run("", "verify", "p", "--format", "json")
	require.Equal(t, exitOK, code, text)
	var report struct {
		Verdict  string
		Sections []struct{ Name, Status string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &report))
	require.Equal(t, "ok", report.Verdict)
	require.Len(t, report.Sections, 10)
	_, code = d.run("", "verify", "q")
	require.Equal(t, exitUsage, code)
	_, code = d.run("", "verify", "p", "--format", "xml")
	require.Equal(t, exitUsage, code)
	_, code = d.run("", "explain", "p", "--key", "v=1")
	require.Equal(t, exitUsage, code)
	d.broker.Close()
	_, code = d.run("", "verify", "p", "--offline")
	require.Equal(t, exitOK, code)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(d.file), "warehouse/d.db/t/bucket-0/*"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(files[0]))
	text, code = d.run("", "verify", "p", "--offline")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, filepath.Base(files[0]))
	schema := filepath.Join(filepath.Dir(d.file), "warehouse/d.db/t/schema/schema-0")
	require.NoError(t, os.Truncate(schema, 20))
	text, code = d.run("", "verify", "p", "--offline")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, "the table is damaged: opening table d.t: reading schema 0")
}

func TestExplain_SplitsKeys(t *testing.T) {
	names := []string{"a", "b"}
	for in, want := range map[string][]string{
		"a=1": {"a=1"}, "a=1,b=2": {"a=1", "b=2"}, "a=x,y,b=2": {"a=x,y", "b=2"}, "a=x,bb=1": {"a=x,bb=1"}, "b=,a=": {"b=", "a="},
	} {
		require.Equal(t, want, splitPairs(in, names), in)
	}
}
