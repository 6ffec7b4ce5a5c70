package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ConnectWorker is a Kafka Connect in one process with one connector. What it
// remembers of its place lies in a file and outlives it.
type ConnectWorker struct {
	part      part
	dir       string
	rest      string // http://host:port
	connector string // its name
	process   *Process
}

// Connect starts a worker on a cluster with a connector of a name and settings; it
// ends with the test. Keys and values are JSON with their schema.
func Connect(t testing.TB, c *Cluster, name string, settings map[string]string) *ConnectWorker {
	t.Helper()
	p, err := fetch("connect")
	if err != nil {
		t.Fatal(err)
	}
	w := &ConnectWorker{part: p, dir: t.TempDir(), rest: fmt.Sprintf("http://127.0.0.1:%d", FreePort(t)), connector: name}
	worker := map[string]string{
		"bootstrap.servers":              strings.Join(c.Addrs(), ","),
		"key.converter":                  "org.apache.kafka.connect.json.JsonConverter",
		"value.converter":                "org.apache.kafka.connect.json.JsonConverter",
		"key.converter.schemas.enable":   "true",
		"value.converter.schemas.enable": "true",
		"offset.storage.file.filename":   filepath.Join(w.dir, "offsets"),
		"offset.flush.interval.ms":       "2000", // what comes after is sent again when the worker is killed
		"plugin.path":                    p["plugins"],
		"plugin.discovery":               "service_load", // without a search through all jars
		"listeners":                      w.rest,
		"producer.compression.type":      "lz4", // the schema is in every record
	}
	mine := map[string]string{"name": name, "tasks.max": "1"}
	maps.Copy(mine, settings)
	for file, props := range map[string]map[string]string{"worker.properties": worker, "connector.properties": mine} {
		if err := writeProperties(filepath.Join(w.dir, file), props); err != nil {
			t.Fatal(err)
		}
	}
	w.Start(t)
	t.Cleanup(func() {
		w.Kill()
		if t.Failed() {
			t.Logf("last lines of Connect:\n%s", w.process.Output.Tail(30))
		}
	})
	return w
}

func writeProperties(file string, props map[string]string) error {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&b, "%s=%s\n", k, strings.ReplaceAll(props[k], `\`, `\\`))
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(file), err)
	}
	return nil
}

// Start starts the worker, again if need be, and waits until its connector and the
// task of it run.
func (w *ConnectWorker) Start(t testing.TB) {
	t.Helper()
	path, args := w.part.java("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.log.io.debezium=info", "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS")
	var err error
	w.process, err = Start(Spec{
		Name: "Kafka Connect", Path: path, Dir: w.dir, Log: filepath.Join(w.dir, "connect.log"),
		Args: append(args, "org.apache.kafka.connect.cli.ConnectStandalone", filepath.Join(w.dir, "worker.properties"), filepath.Join(w.dir, "connector.properties")),
	})
	if err != nil {
		t.Fatal(err)
	}
	var last string
	Until(t, readyTimeout, "the connector to run", func() (bool, error) {
		if w.process.Exited() {
			return false, fmt.Errorf("Connect ended:\n%s", w.process.Output.Tail(30))
		}
		var running bool
		running, last = w.running(t.Context())
		if strings.Contains(last, `"FAILED"`) {
			return false, fmt.Errorf("it failed: %.2000s", last)
		}
		return running, nil
	})
}

// running asks for the state of the connector and its task.
func (w *ConnectWorker) running(ctx context.Context) (bool, string) {
	code, body, err := get(ctx, w.rest+"/connectors/"+w.connector+"/status")
	if err != nil || code != http.StatusOK {
		return false, ""
	}
	type state struct{ State string }
	var s struct {
		Connector state
		Tasks     []state
	}
	if json.Unmarshal([]byte(body), &s) != nil {
		return false, body
	}
	return s.Connector.State == "RUNNING" && len(s.Tasks) == 1 && s.Tasks[0].State == "RUNNING", body
}

// Running reports whether the task runs; an error says why it does no more.
func (w *ConnectWorker) Running(ctx context.Context) error {
	if w.process.Exited() {
		return fmt.Errorf("Connect ended:\n%s", w.process.Output.Tail(30))
	}
	if ok, why := w.running(ctx); !ok {
		return fmt.Errorf("the connector does not run: %.2000s", why)
	}
	return nil
}

// Kill ends the worker with SIGKILL.
func (w *ConnectWorker) Kill() { w.process.Kill() }
