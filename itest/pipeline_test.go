//go:build itest

package itest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// patience bounds every wait for the daemon. It is long because the machine may
// have other work; nothing waits for it when all is well.
const patience = 2 * time.Minute

// pipe is one pipeline of a rig. Name, Table, Format and Key have defaults.
type pipe struct {
	Name   string // p
	ID     string // one that no other test has: it names the consumer group
	Table  string // db.t
	Topic  string
	Format string // json
	Key    string // [id]; "none" for apply: append
	More   string // lines of the pipeline's block
}

// rig is one configuration: a warehouse, its pipelines, and the daemon's ports.
type rig struct {
	t         *testing.T
	kafka     *harness.Cluster
	Warehouse string // a folder, where judges read
	store     string // what the configuration says instead, if the daemon does not write there itself
	State     string
	File      string
	Public    string // http://host:port of /metrics, /healthz, /readyz
	Admin     string
	pipes     []pipe
	top       string
	session   string          // kafka.session_timeout
	judges    []harness.Judge // that read the tables; none: readers
}

var lastID atomic.Int64 // of a pipeline of this test binary

// newRig writes a configuration into a folder of the test's own. A warehouse of
// "" is a new one.
func newRig(t *testing.T, warehouse string, pipes ...pipe) *rig {
	t.Helper()
	dir := t.TempDir()
	if warehouse == "" {
		warehouse = filepath.Join(dir, "warehouse")
		require.NoError(t, os.MkdirAll(warehouse, 0o755))
	}
	r := &rig{
		t: t, kafka: harness.SharedKafka(t), Warehouse: warehouse, State: filepath.Join(dir, "state"), File: filepath.Join(dir, "applier.yml"),
		pipes: pipes, session: "2s",
	}
	for i := range r.pipes {
		p := &r.pipes[i]
		if p.ID == "" {
			p.ID = fmt.Sprintf("id%d", lastID.Add(1))
		}
		for field, value := range map[*string]string{&p.Name: "p", &p.Table: "db.t", &p.Format: "json", &p.Key: "[id]"} {
			if *field == "" {
				*field = value
			}
		}
	}
	r.configure("")
	return r
}

// configure writes the file again, with further lines at the top level and new ports.
func (r *rig) configure(top string) {
	r.t.Helper()
	r.top = top
	public, admin := harness.FreePort(r.t), harness.FreePort(r.t)
	r.Public, r.Admin = fmt.Sprintf("http://127.0.0.1:%d", public), fmt.Sprintf("http://127.0.0.1:%d", admin)
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nkafka: { brokers: [%s], session_timeout: %s }\n", `"`+strings.Join(r.kafka.Addrs(), `", "`)+`"`, r.session)
	fmt.Fprintf(&b, "warehouse: %s\nstate_dir: %s\n", cmp.Or(r.store, r.Warehouse), r.State)
	fmt.Fprintf(&b, "server: { listen: \"127.0.0.1:%d\", admin: { listen: \"127.0.0.1:%d\" } }\n%spipelines:\n", public, admin, lines(0, top))
	for _, p := range r.pipes {
		fmt.Fprintf(&b, "  %s:\n    id: %s\n    source: { topic: %s, format: %s }\n    target: %s\n", p.Name, p.ID, p.Topic, p.Format, p.Table)
		if p.Key != "none" {
			fmt.Fprintf(&b, "    key: %s\n", p.Key)
		}
		if !strings.Contains(p.More, "batch:") {
			b.WriteString("    batch: { interval: 200ms, idle_flush: 50ms }\n")
		}
		b.WriteString(lines(4, p.More))
	}
	require.NoError(r.t, os.WriteFile(r.File, []byte(b.String()), 0o600))
}

// set changes the lines of the first pipeline's block.
func (r *rig) set(more string) {
	r.t.Helper()
	r.pipes[0].More = more
	r.configure(r.top)
}

// lines indents a text that may be empty.
func lines(by int, text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	pad := strings.Repeat(" ", by)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad) + "\n"
}

// start runs the daemon; it need not be ready yet.
func (r *rig) start(run ...harness.Run) *harness.Process {
	r.t.Helper()
	var o harness.Run
	if len(run) > 0 {
		o = run[0]
	}
	o.Args = []string{"run", "-c", r.File}
	return harness.Applier(r.t, o)
}

// command runs a command of the binary with this configuration to its end.
func (r *rig) command(args ...string) (code int, output string) {
	r.t.Helper()
	most := patience
	if args[0] == "verify" { // which reads all of a history
		most = 20 * patience
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), most)
	defer cancel()
	return harness.ApplierOutput(ctx, r.t, append(args, "-c", r.File)...)
}

// must runs a command that has to succeed.
func (r *rig) must(args ...string) string {
	r.t.Helper()
	code, output := r.command(args...)
	require.Zero(r.t, code, "applier %s:\n%s", strings.Join(args, " "), output)
	return output
}

// proven has `applier verify` prove the tables, the records in Kafka included.
func (r *rig) proven() {
	r.t.Helper()
	for _, p := range r.pipes {
		out := r.must("verify", p.Name, "--full")
		require.Contains(r.t, out, "The table is proven")
		require.NotContains(r.t, out, "Kafka:")
	}
}

func (r *rig) ref() harness.Ref { return r.refOf(r.pipes[0]) }

func (r *rig) refOf(p pipe) harness.Ref { return harness.Ref{Warehouse: r.Warehouse, Table: p.Table} }

// halted is what /status says about a pipeline that stands still.
type pipelineStatus struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Halt  *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Remedy  string `json:"remedy"`
	} `json:"halt"`
	LastError  string `json:"last_error"`
	Snapshot   int64  `json:"snapshot"`
	LagRecords int64  `json:"lag_records"`
	Index      struct {
		Keys        int64 `json:"keys"`
		MemoryBytes int64 `json:"memory_bytes"`
	} `json:"index"`
	Rows struct {
		Commits int64 `json:"commits"`
		Errors  int64 `json:"errors"`
	} `json:"rows"`
	Partitions []struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Next      int64  `json:"next"`
		Note      string `json:"note"`
	} `json:"partitions"`
}

func (p pipelineStatus) code() string {
	if p.Halt == nil {
		return ""
	}
	return p.Halt.Code
}

// statusClient does not wait for a daemon that stands still.
var statusClient = &http.Client{Timeout: 2 * time.Second}

// status asks the daemon; an error while it starts is not one.
func (r *rig) status() (map[string]pipelineStatus, bool) {
	resp, err := statusClient.Get(r.Admin + "/status")
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, false
	}
	var s struct{ Pipelines []pipelineStatus }
	if json.Unmarshal(body, &s) != nil {
		return nil, false
	}
	out := map[string]pipelineStatus{}
	for _, p := range s.Pipelines {
		out[p.Name] = p
	}
	return out, true
}

// waitStatus waits until the status of a pipeline fulfils a condition.
func (r *rig) waitStatus(p *harness.Process, name, what string, cond func(pipelineStatus) bool) pipelineStatus {
	r.t.Helper()
	var last pipelineStatus
	harness.Until(r.t, patience, fmt.Sprintf("%s of pipeline %s", what, name), func() (bool, error) {
		if p != nil && p.Exited() {
			return false, fmt.Errorf("the daemon ended:\n%s", p.Output.Tail(20))
		}
		all, ok := r.status()
		if !ok {
			return false, nil
		}
		last = all[name]
		return cond(last), nil
	})
	return last
}

// waitHalt waits until the first pipeline stands still with a code.
func (r *rig) waitHalt(p *harness.Process, code string) pipelineStatus {
	r.t.Helper()
	return r.waitStatus(p, r.pipes[0].Name, "halt "+code, func(s pipelineStatus) bool { return s.code() == code })
}

// posRecord is the position record of a pipeline in a snapshot's properties.
type posRecord struct {
	Seq    int64  `json:"seq"`
	Epoch  int64  `json:"epoch"`
	Owner  string `json:"owner"`
	Op     string `json:"op"`
	Gaps   int64  `json:"gaps"`
	In     int64  `json:"in"`
	Topics map[string]struct {
		P map[string][2]int64 `json:"p"`
	} `json:"topics"`
}

func (p posRecord) positions(topic string) map[int32]int64 {
	out := map[int32]int64{}
	for part, at := range p.Topics[topic].P {
		n, _ := strconv.Atoi(part)
		out[int32(n)] = at[0]
	}
	return out
}

// snapshotIDs lists the snapshots in a table's folder, ascending; no table is none.
func snapshotIDs(ref harness.Ref) []int64 {
	files, _ := filepath.Glob(filepath.Join(tableDir(ref), "snapshot", "snapshot-*"))
	var ids []int64
	for _, f := range files {
		if id, err := strconv.ParseInt(strings.TrimPrefix(filepath.Base(f), "snapshot-"), 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func readSnapshot(ref harness.Ref, id int64) (*harness.Snapshot, error) {
	b, err := os.ReadFile(filepath.Join(tableDir(ref), "snapshot", fmt.Sprintf("snapshot-%d", id)))
	if err != nil {
		return nil, err
	}
	s := &harness.Snapshot{JSON: b}
	return s, json.Unmarshal(b, s)
}

// recordIn reads the record of a pipeline, by its id, in one snapshot; nil: it has none.
func recordIn(ref harness.Ref, id int64, pipeline string) (*posRecord, error) {
	s, err := readSnapshot(ref, id)
	if err != nil {
		return nil, err
	}
	text, ok := s.Properties["applier."+pipeline]
	if !ok {
		return nil, nil
	}
	var r posRecord
	return &r, json.Unmarshal([]byte(text), &r)
}

// lastRecord finds the newest record of a pipeline in a table, on disk, without
// asking the daemon; nil: there is none.
func lastRecord(ref harness.Ref, pipeline string) (*posRecord, error) {
	ids := snapshotIDs(ref)
	for _, id := range slices.Backward(ids) {
		r, err := recordIn(ref, id, pipeline)
		if errors.Is(err, os.ErrNotExist) { // expired meanwhile
			return nil, nil
		}
		if r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// waitApplied waits until the tables of all pipelines stand at the ends of their
// topics. A daemon that ends, or a pipeline that halts for good, fails the test.
func (r *rig) waitApplied(p *harness.Process) {
	r.t.Helper()
	harness.Until(r.t, patience, "the daemon to answer", func() (bool, error) { // before that a SIGTERM just ends it
		if p.Exited() {
			return false, fmt.Errorf("the daemon ended:\n%s", p.Output.Tail(20))
		}
		_, ok := r.status()
		return ok, nil
	})
	for _, pl := range r.pipes {
		ends := r.kafka.EndOffsets(r.t, pl.Topic)
		var seen map[int32]int64
		harness.Until(r.t, patience, "pipeline "+pl.Name+" to apply its topic", func() (bool, error) {
			if p != nil && p.Exited() {
				return false, fmt.Errorf("the daemon ended:\n%s", p.Output.Tail(20))
			}
			rec, err := lastRecord(r.refOf(pl), pl.ID)
			if err != nil {
				return false, err
			}
			if rec != nil {
				if seen = rec.positions(pl.Topic); reached(seen, ends) {
					return true, nil
				}
			}
			if all, ok := r.status(); ok {
				if s := all[pl.Name]; s.Halt != nil && s.State == "failed" {
					return false, fmt.Errorf("it is halted, at %v of %v: %s %s", seen, ends, s.Halt.Code, s.Halt.Message)
				}
			}
			return false, nil
		})
	}
}

// reached tells whether positions are at or past the ends (a transaction's end
// marker is an offset without a record).
func reached(at, ends map[int32]int64) bool {
	for part, end := range ends {
		if next, ok := at[part]; !ok || next < end {
			return false
		}
	}
	return true
}

// cat is our own reader as a judge.
func cat(t testing.TB) harness.Cat {
	t.Helper()
	return harness.Cat{Binary: harness.Build(t, "./cmd/applier")}
}

// readers are the judges every table of ours is read by: ourselves, Java, pypaimon.
func readers(t testing.TB) []harness.Judge {
	t.Helper()
	return []harness.Judge{cat(t), harness.Java(t), harness.PyPaimon(t)}
}

// holds fails unless all readers read exactly the model's rows.
func (r *rig) holds(m *model) {
	r.t.Helper()
	judges := r.judges
	if judges == nil {
		judges = readers(r.t)
	}
	harness.SameRows(r.t.Context(), r.t, m.texts(), r.ref(), harness.Query{}, judges...)
}

// stopped waits until the process stands still at a failpoint (action stop) for
// the n-th time.
func stopped(t *testing.T, p *harness.Process, n int) {
	t.Helper()
	harness.Until(t, patience, "the failpoint to stop the daemon", func() (bool, error) {
		if p.Exited() {
			return false, fmt.Errorf("the daemon ended:\n%s", p.Output.Tail(20))
		}
		return stops(p) >= n && processState(p) == 'T', nil
	})
}

// stops counts how often failpoints stopped a process so far.
func stops(p *harness.Process) int { return strings.Count(p.Output.String(), ": stop\n") }

// processState is the state letter of a process: T is stopped, Z ended.
func processState(p *harness.Process) byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 'Z'
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[0]
}

// proceed lets a stopped process go on.
func proceed(t *testing.T, p *harness.Process) {
	t.Helper()
	require.NoError(t, p.Signal(syscall.SIGCONT))
}

// newTopic creates a topic of the test's own; its name is the test's.
func newTopic(t *testing.T, partitions int32) string {
	t.Helper()
	name := topicName(t.Name())
	harness.SharedKafka(t).CreateTopic(t, harness.Topic{Name: name, Partitions: partitions})
	return name
}

// topicName makes a text a topic's name.
func topicName(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' {
			return c
		}
		return '-'
	}, s)
}
