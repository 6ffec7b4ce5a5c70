package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"applier/itest/harness"
)

// configuration of the measured process: everything that is not the workload's
// is as a user has it without saying anything, but the memory.
const configuration = `version: 1
kafka: { brokers: [%q] }
warehouse: %s
state_dir: %q
memory: %s
server: { listen: "127.0.0.1:0", admin: { listen: "127.0.0.1:0" }, log: { format: json, level: debug } }
pipelines:
  bench:
    source: { topic: %s, format: debezium-json }
    target: %s
    key: [id]
    batch: { rows: %d, bytes: 256MiB, interval: 1h, idle_flush: %s }
`

// maintained is what a pipeline that keeps its table in shape says more. The default
// of a round every ten minutes would be longer than a run.
const maintained = "    maintenance: { compact: true, expire: true, every: 2s }\n"

// clauses are apply: mirror, written as clauses.
const clauses = `    merge:
      when:
        - MATCHED AND s.__op = 'd' THEN DELETE
        - MATCHED THEN UPDATE SET *
        - NOT MATCHED AND s.__op <> 'd' THEN INSERT *
`

// commit is a line that the daemon logged about a snapshot, and the CPU time it
// had used by then.
type commit struct {
	at      time.Time
	cpu     time.Duration
	records int64
	took    time.Duration // from the closed batch's arrival at the commit loop until it was acknowledged
	data    int64
	vectors int64
	meta    int64
	stages  map[string]float64 // seconds
}

// logLine is what is read of a line of the daemon's log.
type logLine struct {
	Time     time.Time          `json:"time"`
	Level    string             `json:"level"`
	Message  string             `json:"msg"`
	Records  int64              `json:"records"`
	Rows     int64              `json:"rows"`
	Seconds  float64            `json:"duration_seconds"`
	Data     int64              `json:"bytes_data"`
	Vectors  int64              `json:"bytes_dv"`
	Metadata int64              `json:"bytes_metadata"`
	Stages   map[string]float64 `json:"stages"`
	Admin    json.RawMessage    `json:"admin"`
}

// daemon is a running `applier run`.
type daemon struct {
	cmd     *exec.Cmd
	lines   chan string // of its log
	tail    []string    // the last of them
	admin   string
	rebuild logLine // "key index built"
	// compactions is how often the log said "compacted".
	compactions int
}

// options of a run.
type options struct {
	binary  string
	dir     string
	memory  string
	brokers []string // of a real Kafka
	java    *harness.JavaPeer
	profile string // folder for profiles; "" for none
	seconds int    // of the CPU profile
	digests *digests
	targets *targets
	far     *farStore // the warehouses are in it; nil: on the local disk
}

func startDaemon(o *options, w workload, warehouse string, brokers []string) (*daemon, error) {
	state, err := os.MkdirTemp(o.dir, "state-")
	if err != nil {
		return nil, err
	}
	idle := "0s"
	where := fmt.Sprintf("%q", warehouse)
	if o.far != nil {
		where = o.far.config(warehouse)
	}
	text := fmt.Sprintf(configuration, brokers[0], where, state, o.memory, topic, tableName, w.Batch, idle)
	if w.Maintained {
		text += maintained
	}
	if w.Clauses {
		text += clauses
	}
	file := filepath.Join(state, "applier.yml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	d := &daemon{cmd: exec.Command(o.binary, "run", "-c", file), lines: make(chan string, 1024)}
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // main keeps its thread
	log, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the daemon: %w", err)
	}
	go func() {
		defer close(d.lines)
		in := bufio.NewScanner(log)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			d.lines <- in.Text()
		}
		_, _ = io.Copy(io.Discard, log)
	}()
	return d, nil
}

// watch reads the log until all batches are committed. It calls each after a
// commit with its number, from 1.
func (d *daemon) watch(ctx context.Context, w workload, each func(n int64) error) ([]commit, error) {
	var commits []commit
	for int64(len(commits)) < w.Batches {
		var text string
		var ok bool
		select {
		case text, ok = <-d.lines:
		case <-ctx.Done():
			return nil, d.failed(ctx.Err())
		}
		if !ok {
			return nil, d.failed(fmt.Errorf("the daemon ended"))
		}
		d.tail = append(d.tail[max(0, len(d.tail)-30):], text)
		var l logLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return nil, d.failed(fmt.Errorf("reading the log: %w", err))
		}
		switch l.Message {
		case "started":
			d.admin = address(l.Admin)
		case "key index built":
			d.rebuild = l
		case "compacted":
			d.compactions++
		case "pipeline halted":
			return nil, d.failed(fmt.Errorf("the pipeline halted"))
		case "committed":
			cpu, err := cpuTime(d.cmd.Process.Pid)
			if err != nil {
				return nil, err
			}
			if l.Records != w.Batch {
				return nil, d.failed(fmt.Errorf("a batch of %d records instead of %d", l.Records, w.Batch))
			}
			commits = append(commits, commit{
				at: l.Time, cpu: cpu, records: l.Records, took: time.Duration(l.Seconds * 1e9),
				data: l.Data, vectors: l.Vectors, meta: l.Metadata, stages: l.Stages,
			})
			if err := each(int64(len(commits))); err != nil {
				return nil, err
			}
		}
	}
	return commits, nil
}

// address reads a net.Addr as slog writes it: a text, or an object with IP and Port.
func address(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var a struct {
		IP   string
		Port int
	}
	_ = json.Unmarshal(raw, &a)
	return fmt.Sprintf("%s:%d", a.IP, a.Port)
}

// failed adds what the daemon said last.
func (d *daemon) failed(err error) error {
	var b bytes.Buffer
	for _, l := range d.tail {
		b.WriteString("\n  " + l)
	}
	return fmt.Errorf("%w; its log ends with:%s", err, b.String())
}

// stop ends the daemon and waits; it must end well.
func (d *daemon) stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(time.Minute, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	for text := range d.lines {
		d.tail = append(d.tail[max(0, len(d.tail)-30):], text)
	}
	if err := d.cmd.Wait(); err != nil {
		return d.failed(fmt.Errorf("the daemon did not end well: %w", err))
	}
	return nil
}

func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	for range d.lines {
	}
	_ = d.cmd.Wait()
}

// indexBytesPerKey asks for the size of the key index per row of it.
func (d *daemon) indexBytesPerKey(ctx context.Context) (float64, error) {
	b, err := d.get(ctx, "/status")
	if err != nil {
		return 0, err
	}
	var s struct {
		Pipelines []struct {
			Index struct {
				Keys        int64 `json:"keys"`
				MemoryBytes int64 `json:"memory_bytes"`
			} `json:"index"`
		} `json:"pipelines"`
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return 0, fmt.Errorf("reading the status: %w", err)
	}
	if len(s.Pipelines) != 1 || s.Pipelines[0].Index.Keys == 0 {
		return 0, fmt.Errorf("the status says nothing about the index: %.300s", b)
	}
	i := s.Pipelines[0].Index
	return float64(i.MemoryBytes) / float64(i.Keys), nil
}

// get fetches a page of the admin port.
func (d *daemon) get(ctx context.Context, page string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.admin+page, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the daemon: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, b)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the daemon for %s: %w", page, err)
	}
	return b, nil
}

// saveProfile stores a profile of the daemon.
func (d *daemon) saveProfile(ctx context.Context, page, file string) error {
	b, err := d.get(ctx, "/debug/pprof/"+page)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}
