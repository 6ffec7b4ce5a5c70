//go:build itest

package itest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
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

// killAt fills a table, has the daemon kill itself at each of the failpoints while it
// works on more, and lets look see what it left. Hits count from the start: the
// first commit of a process that finds a table is its first batch.
func killAt(t *testing.T, look func(f *faulty, before int), points ...string) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	for _, point := range points {
		before := len(snapshotIDs(f.ref()))
		f.produce(150)
		killed(t, f.armed(point))
		look(f, before)
		require.NoError(t, os.Remove(filepath.Join(f.State, f.pipes[0].ID+".running"))) // or the next start would wait: A23
	}
	f.again()
}

// unchanged: the attempt left no snapshot.
func unchanged(f *faulty, before int) {
	f.t.Helper()
	require.Len(f.t, snapshotIDs(f.ref()), before)
}

func TestFault_A1(t *testing.T) {
	killAt(t, func(f *faulty, before int) {
		unchanged(f, before)
		require.Len(t, f.filesIn("bucket-0"), 1, "nothing was written")
	}, "commit/plan=kill@1")
}

func TestFault_A2(t *testing.T) {
	killAt(t, func(f *faulty, before int) {
		unchanged(f, before)
		files := f.filesIn("bucket-0")
		b, err := os.ReadFile(files[len(files)-1])
		require.NoError(t, err)
		require.False(t, bytes.HasSuffix(b, []byte("PAR1")), "the file was cut off in the middle")
	}, "objstore/put_all/half/bucket-0=kill@1")
}

func TestFault_A3(t *testing.T) {
	killAt(t, unchanged, "commit/data=kill@1", "objstore/put_all/half/index=kill@1")
}

func TestFault_A4(t *testing.T) { killAt(t, unchanged, "commit/dv=kill@1", "commit/manifest=kill@1") }

func TestFault_A5(t *testing.T) {
	killAt(t, unchanged, "objstore/put_all/half/manifest=kill@2", "objstore/put_all/written=kill@1", "objstore/put_all/synced=kill@1", "commit/stage=kill@1", "commit/still=kill@1")
}

// Two exclusive creations are the start's probe; the third is the first batch's.
func TestFault_A6(t *testing.T) {
	killAt(t, func(f *faulty, before int) {
		unchanged(f, before)
		temps, err := filepath.Glob(filepath.Join(tableDir(f.ref()), "snapshot", ".*.tmp"))
		require.NoError(t, err)
		require.NotEmpty(t, temps, "the staged snapshot is there")
		_, err = harness.Java(t).Digest(t.Context(), f.ref(), harness.Query{}) // its name confuses nobody
		require.NoError(t, err)
	}, "objstore/publish/staged=kill@3")
}

func TestFault_A7(t *testing.T) {
	killAt(t, func(f *faulty, before int) {
		require.Len(t, snapshotIDs(f.ref()), before+1, "it is published, and nobody was told")
	}, "objstore/publish/linked=kill@3")
}

func TestFault_A7_BeforeTheLink(t *testing.T) { killAt(t, unchanged, "commit/publish=kill@1") }

func TestFault_A7_OutcomeUnknown(t *testing.T) {
	killAt(t, func(*faulty, int) {}, "objstore/publish/linked=error@3,commit/classify=kill", "commit/publish=error@1,commit/classify=kill")
}

func published(f *faulty, before int) {
	f.t.Helper()
	require.Len(f.t, snapshotIDs(f.ref()), before+1)
}

func TestFault_A8(t *testing.T) { killAt(t, published, "commit/after=kill@1") }

func TestFault_A9(t *testing.T) {
	killAt(t, func(f *faulty, before int) {
		published(f, before)
		hint, err := os.ReadFile(filepath.Join(tableDir(f.ref()), "snapshot", "LATEST"))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(before), string(hint), "the hint is behind")
	}, "commit/hint=kill@1")
}

func TestFault_A9_TheHintIsRepaired(t *testing.T) {
	f := newFaulty(t, "", "")
	f.produce(150)
	killed(t, f.armed("commit/hint=kill@2"))
	f.again()
	hint, err := os.ReadFile(filepath.Join(tableDir(f.ref()), "snapshot", "LATEST"))
	require.NoError(t, err)
	ids := snapshotIDs(f.ref())
	require.Equal(t, fmt.Sprint(ids[len(ids)-1]), string(hint))
}

func TestFault_A10(t *testing.T) {
	f := newFaulty(t, "", "")
	committed := func() (sum int64) {
		offsets, err := f.kafka.Admin(t).FetchOffsets(t.Context(), "applier."+f.pipes[0].ID)
		require.NoError(t, err)
		for _, o := range offsets.Offsets().Sorted() {
			sum += o.At
		}
		return sum
	}
	harness.MustStop(t, f.filled(100))
	f.produce(100)
	killed(t, f.armed("commit/ack=kill@1"))
	require.LessOrEqual(t, committed(), int64(100), "the lag tool is behind")
	f.produce(30)
	p := f.start()
	f.waitApplied(p)
	harness.Until(t, patience, "the group's offsets", func() (bool, error) { return committed() == 230, nil })
	f.exact(p)
}

// A11 (three exclusive creations come before: the schema, and two of the probe): a first start at the newest record: what it resolved to is committed before
// anything is read, and is the truth from then on; before that it is done anew.
func TestFault_A11(t *testing.T) {
	f := newFaulty(t, "", faultTable)
	for _, pl := range []struct {
		point   string
		counted bool // what is produced between the kill and the restart
	}{{"commit/publish=kill@1", false}, {"objstore/publish/linked=kill@4", true}, {"commit/after=kill@1", true}, {"commit/ack=kill@1", true}} {
		t.Run(pl.point, func(t *testing.T) {
			g := *f
			topic := topicName(t.Name())
			f.kafka.CreateTopic(t, harness.Topic{Name: topic, Partitions: 2})
			g.rig = newRig(t, "", pipe{Topic: topic, More: faultTable})
			g.pipes[0].Format = "json, start: latest"
			g.t, g.topic, g.m = t, topic, newModel([]string{"id", "v"}, []string{"id"})
			g.session = "1s"
			g.configure("")
			g.kafka.Produce(t, changesOf(topic, 0, 10, newModel(nil, nil))...) // not read by anybody
			killed(t, g.armed(pl.point))
			m := g.m
			if !pl.counted {
				m = newModel(nil, nil)
			}
			g.kafka.Produce(t, changesOf(topic, 10, 10, m)...)
			p := g.start()
			g.waitApplied(p)
			g.kafka.Produce(t, changesOf(topic, 20, 10, g.m)...)
			g.waitApplied(p)
			harness.MustStop(t, p)
			harness.SameRows(t.Context(), t, g.m.texts(), g.ref(), harness.Query{}, cat(t), harness.Java(t))
		})
	}
}

func TestFault_A12(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	from := time.Now()
	harness.MustStop(t, p) // while polling
	require.Less(t, time.Since(from), 5*time.Second)
	f.produce(150)
	p = f.armed("commit/plan=sleep:500ms")
	said(t, p, "failpoint commit/plan: sleep")
	from = time.Now()
	harness.MustStop(t, p) // while planning
	require.Less(t, time.Since(from), 5*time.Second)
	f.again()
}

func TestFault_A13(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	before := len(snapshotIDs(f.ref()))
	f.produce(50)
	p := f.armed("objstore/publish/linked=sleep:2s@3")
	f.waitStatusUp(p)
	harness.Until(t, patience, "the publish", func() (bool, error) { return len(snapshotIDs(f.ref())) > before, nil })
	harness.MustStop(t, p) // waits for the outcome
	rec, err := lastRecord(f.ref(), f.pipes[0].ID)
	require.NoError(t, err)
	require.Equal(t, f.kafka.EndOffsets(t, f.topic), rec.positions(f.topic))
	f.again()
}

// waitStatusUp waits until the daemon answers.
func (r *rig) waitStatusUp(p *harness.Process) {
	r.t.Helper()
	harness.Until(r.t, patience, "the daemon to answer", func() (bool, error) {
		if p.Exited() {
			return false, fmt.Errorf("the daemon ended:\n%s", p.Output.Tail(20))
		}
		_, ok := r.status()
		return ok, nil
	})
}

func TestFault_A14(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t, "", "")
			harness.MustStop(t, f.filled(100))
			f.produce(150)
			p := f.armed("commit/publish=sleep:3s@1")
			said(t, p, "failpoint commit/publish: sleep")
			require.NoError(t, p.Signal(syscall.SIGTERM))
			said(t, p, "stopping: committing what was read")
			from := time.Now()
			require.NoError(t, p.Signal(sig))
			_, err := p.Wait(t.Context())
			require.NoError(t, err)
			if sig == syscall.SIGKILL {
				require.Less(t, time.Since(from), 5*time.Second)
			}
			f.again()
		})
	}
}

// A15: a panic halts its own pipeline; the other goes on, and the same batch is not
// tried again by itself.
func TestFault_A15(t *testing.T) {
	t.Parallel()
	for name, point := range map[string]string{"in the commit loop": "commit/plan", "while reading": "consumer/due"} {
		t.Run(name, func(t *testing.T) {
			f := newFaulty(t, "", "")
			f.pipes = append(f.pipes, pipe{Name: "q", ID: f.pipes[0].ID + "q", Table: "db.q", Topic: f.topic, Format: "json", Key: "[id]", More: faultTable})
			f.configure("")
			f.produce(100)
			p := f.armed(point + "=panic@3")
			// Either of the two may meet it; the other one lives.
			var dead, alive pipelineStatus
			harness.Until(t, patience, "a halt", func() (bool, error) {
				f.produce(1)
				all, _ := f.status()
				for a, b := range map[string]string{"p": "q", "q": "p"} {
					if all[a].code() == "P-PANIC" {
						dead, alive = all[a], all[b]
						return true, nil
					}
				}
				return false, nil
			})
			require.Contains(t, dead.Halt.Message, "failpoint "+point)
			harness.MustSay(t, p, "goroutine ")
			f.produce(50)
			f.waitStatus(p, alive.Name, "the other pipeline goes on", func(s pipelineStatus) bool { return s.Rows.Commits > alive.Rows.Commits && s.LagRecords == 0 })
			require.Equal(t, 1, strings.Count(p.Output.String(), point+": panic"), "it was not tried again")
			f.must("resume", dead.Name)
			f.waitStatus(p, dead.Name, "the end of the halt", func(s pipelineStatus) bool { return s.Halt == nil && s.State == "running" })
			f.waitApplied(p)
			harness.MustStop(t, p)
			for _, pl := range f.pipes {
				harness.SameRows(t.Context(), t, f.m.texts(), f.refOf(pl), harness.Query{}, cat(t), harness.Java(t))
			}
		})
	}
}

func TestFault_A16(t *testing.T) {
	f := newFaulty(t, "", "")
	f.configure("stuck_after: 3s")
	harness.MustStop(t, f.filled(100))
	f.produce(50)
	p := f.armed("commit/still=sleep:10m@1")
	said(t, p, "a step of a commit is stuck")
	harness.MustSay(t, p, "goroutine ")
	f.waitMetric("applier_step_age_seconds", func(v float64) bool { return v > 1 })
	code, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, code)
	harness.MustSay(t, p, "step=still")
	f.again()
}

func TestFault_A17(t *testing.T) {
	f := newFaulty(t, "", "create: { types: { id: BIGINT, v: STRING } }\nbatch: { bytes: 32MiB, interval: 1s }")
	f.configure("memory: 64MiB")
	g := harness.NewMemoryGroup(t, 40<<20) // less than the program was promised
	big := strings.Repeat("x", 100_000)
	for f.next < 600 {
		var recs []*kgo.Record
		for range 50 {
			recs = append(recs, put(f.topic, 0, row(f.next%50, fmt.Sprint(f.next, big))))
			f.m.apply(recs[len(recs)-1])
			f.next++
		}
		f.kafka.Produce(t, recs...)
	}
	p := f.start(harness.Run{Memory: g})
	code, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, -1, code, "killed for its memory:\n%s", p.Output.Tail(5))
	kills, err := g.OOMKills()
	require.NoError(t, err)
	require.NotZero(t, kills)
	p = f.start()
	f.waitApplied(p)
	harness.MustSay(t, p, "batch_bytes=16777216", "half of 32 MiB")
	f.exact(p)
}

func TestFault_A18(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	f.produce(150)
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	second := newFaultyTwin(f)
	q := second.start()
	second.waitApplied(q)
	require.NoError(t, p.Signal(syscall.SIGCONT))
	f.produce(100)
	second.waitApplied(q)
	harness.MustStop(t, p)
	f.produce(20)
	second.waitApplied(q)
	f.exact(q)
}

// newFaultyTwin is another instance of the same configuration.
func newFaultyTwin(f *faulty) *rig {
	r := newRig(f.t, f.Warehouse, f.pipes...)
	r.session = "1s"
	r.configure("")
	return r
}

// A19: the same identity in another Kafka cluster. Groups cannot see each other
// there; the table does.
func TestFault_A19(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	twin := newRig(t, f.Warehouse, f.pipes...)
	twin.kafka = harness.Kafka(t, harness.KafkaOptions{})
	twin.kafka.CreateTopic(t, harness.Topic{Name: f.topic, Partitions: 2})
	twin.kafka.Produce(t, changesOf(f.topic, 7000, 100, newModel(nil, nil))...)
	twin.configure("")
	before := len(snapshotIDs(f.ref()))
	q := twin.start()
	s := twin.waitHalt(q, "K-CLUSTER")
	require.Contains(t, s.Halt.Message, f.kafka.ID)
	require.Contains(t, s.Halt.Message, twin.kafka.ID)
	require.Len(t, snapshotIDs(f.ref()), before)
	f.produce(100)
	f.waitApplied(p)
	code, err := q.Stop(patience)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	f.exact(p)
}

func TestFault_A20(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	other := newRig(t, f.Warehouse, pipe{Topic: f.topic, More: faultTable})
	before := len(snapshotIDs(f.ref()))
	q := other.start()
	s := other.waitHalt(q, "T-SECOND-GROUP")
	require.Contains(t, s.Halt.Message, f.pipes[0].ID)
	require.Len(t, snapshotIDs(f.ref()), before, "nothing was written")
	f.produce(50)
	f.waitApplied(p)
	code, err := q.Stop(patience)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	f.exact(p)
}

// editRecord changes members of the pipeline's record in the newest snapshot.
func (f *faulty) editRecord(change func(map[string]any)) {
	f.t.Helper()
	ids := snapshotIDs(f.ref())
	file := filepath.Join(tableDir(f.ref()), "snapshot", fmt.Sprintf("snapshot-%d", ids[len(ids)-1]))
	text, err := os.ReadFile(file)
	require.NoError(f.t, err)
	var snapshot map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(f.t, d.Decode(&snapshot))
	properties := snapshot["properties"].(map[string]any)
	key := "applier." + f.pipes[0].ID
	var record map[string]any
	d = json.NewDecoder(strings.NewReader(properties[key].(string)))
	d.UseNumber()
	require.NoError(f.t, d.Decode(&record))
	change(record)
	changed, err := json.Marshal(record)
	require.NoError(f.t, err)
	properties[key] = string(changed)
	text, err = json.Marshal(snapshot)
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(file, text, 0o644))
}

func TestFault_A21(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.editRecord(func(r map[string]any) { r["v"] = 99 })
	f.produce(50)
	before := len(snapshotIDs(f.ref()))
	p := f.start()
	s := f.waitHalt(p, "T-VERSION")
	require.Contains(t, s.Halt.Message, "99")
	require.Contains(t, s.Halt.Remedy, "Upgrade")
	code, err := p.Stop(patience)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	require.Len(t, snapshotIDs(f.ref()), before, "nothing was written")
	f.editRecord(func(r map[string]any) { r["v"] = 1 })
	f.again()
}

func TestFault_A22(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.produce(50)
	before := len(snapshotIDs(f.ref()))
	for setting, change := range map[string]func(*pipe){
		"key":   func(p *pipe) { p.Key = "[id, v]" },
		"apply": func(p *pipe) { p.More = "apply: upsert\n" + faultTable },
	} {
		old := f.pipes[0]
		change(&f.pipes[0])
		f.configure("")
		p := f.start()
		s := f.waitHalt(p, "C-CHANGED")
		require.Contains(t, s.Halt.Message, "under other settings: "+setting)
		require.Contains(t, s.Halt.Remedy, "applier offsets adopt")
		code, err := p.Stop(patience)
		require.NoError(t, err)
		require.Equal(t, 3, code)
		f.pipes[0] = old
		f.configure("")
	}
	require.Len(t, snapshotIDs(f.ref()), before, "nothing was written")
	f.again()
}

func TestFault_A23(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.produce(50)
	for range 4 {
		killed(t, f.armed("commit/plan=kill"))
	}
	p := f.start()
	said(t, p, "waiting=2s")
	resp, err := http.Get(f.Public + "/metrics") // while it waits
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	f.waitMetric("applier_unclean_starts", func(v float64) bool { return v == 4 })
	f.waitApplied(p)
	f.exact(p)
	p = f.start() // a stop in good order is the end of it
	f.waitApplied(p)
	require.NotContains(t, p.Output.String(), "did not stop in good order")
	f.exact(p)
}
