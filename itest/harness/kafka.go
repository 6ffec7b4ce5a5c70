package harness

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// KafkaOptions say what kind of cluster to start; the zero value is one broker
// without security.
type KafkaOptions struct {
	Nodes      int               // brokers, each a controller too; 0: one
	Heap       string            // of each JVM; empty: 768m
	Properties map[string]string // added to server.properties
	Throughput bool              // all of the JVM's optimizer: for benchmarks; else a fast start

	// Secure adds a second listener with TLS, SASL or both beside the plain one
	// that the harness itself uses. See SecureListener.
	Secure *SecureListener
}

// Cluster is a running Apache Kafka. Its brokers end with the test that started
// them, or, if it is shared, with the test binary.
type Cluster struct {
	ID    string
	opts  KafkaOptions
	part  part
	dir   string
	nodes []*kafkaNode
}

type kafkaNode struct {
	port, secure, controller int
	proc                     *Process
}

// readyTimeout bounds a start, an election, a topic's creation.
const readyTimeout = 2 * time.Minute

// Kafka starts a cluster of the test's own.
func Kafka(t testing.TB, opts KafkaOptions) *Cluster {
	t.Helper()
	c, err := startKafka(opts, t.TempDir())
	if err != nil {
		t.Fatalf("kafka: %v", err)
	}
	t.Cleanup(func() {
		c.close()
		if t.Failed() {
			t.Logf("last lines of broker 1:\n%s", c.nodes[0].proc.Output.Tail(15))
		}
	})
	return c
}

// SharedKafka returns the one-broker cluster that the tests of this binary
// share. Topics are theirs alone if their names are.
func SharedKafka(t testing.TB) *Cluster {
	t.Helper()
	warm.mu.Lock()
	defer warm.mu.Unlock()
	if warm.kafka != nil && !warm.kafka.nodes[0].proc.Exited() {
		return warm.kafka
	}
	dir, err := workDir()
	if err == nil {
		dir, err = os.MkdirTemp(dir, "kafka-")
	}
	if err == nil {
		warm.kafka, err = startKafka(KafkaOptions{}, dir)
	}
	if err != nil {
		t.Fatalf("kafka: %v", err)
	}
	warm.closers = append(warm.closers, warm.kafka.close)
	return warm.kafka
}

func startKafka(opts KafkaOptions, dir string) (*Cluster, error) {
	p, err := fetch("kafka")
	if err != nil {
		return nil, err
	}
	c := &Cluster{ID: newClusterID(), opts: opts, part: p, dir: dir}
	for range max(1, opts.Nodes) {
		n := &kafkaNode{}
		for _, port := range []*int{&n.port, &n.secure, &n.controller} {
			if *port, err = freePort(); err != nil {
				return nil, err
			}
		}
		c.nodes = append(c.nodes, n)
	}
	for i := range c.nodes {
		if err = c.launch(i); err != nil {
			break
		}
	}
	if err == nil {
		err = c.ready(len(c.nodes))
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// launch writes a node's configuration and starts it.
func (c *Cluster) launch(i int) error {
	n, dir := c.nodes[i], filepath.Join(c.dir, fmt.Sprintf("node%d", i+1))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a broker's folder: %w", err)
	}
	props, format, err := c.properties(i, dir)
	if err != nil {
		return err
	}
	var sb strings.Builder
	for _, k := range slices.Sorted(maps.Keys(props)) {
		fmt.Fprintf(&sb, "%s=%s\n", k, props[k])
	}
	file := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(file, []byte(sb.String()), 0o600); err != nil {
		return fmt.Errorf("writing a broker's configuration: %w", err)
	}
	heap := c.opts.Heap
	if heap == "" {
		heap = "768m"
	}
	flags := []string{"-Xmx" + heap, "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"}
	if !c.opts.Throughput {
		flags = append(flags, "-XX:TieredStopAtLevel=1")
	}
	path, args := c.part.java(append(flags, "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS")...)
	n.proc, err = Start(Spec{
		Name: fmt.Sprintf("kafka broker %d", i+1), Path: path,
		Args: append(append(args, "kafkanode.Node", file, c.ID), format...), Dir: dir, Log: filepath.Join(dir, "broker.log"),
	})
	return err
}

// ready waits until so many brokers are registered and one leads.
func (c *Cluster) ready(brokers int) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...))
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	defer cl.Close()
	// Not by kadm: a request without topics is answered from its client's cache for good.
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{}
	var seen string
	err = poll(ctx, "the brokers to be ready", func() (bool, error) {
		for i, n := range c.nodes {
			if n.proc != nil && n.proc.Exited() && brokers == len(c.nodes) {
				return false, fmt.Errorf("broker %d ended:\n%s", i+1, n.proc.Output.Tail(30))
			}
		}
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		m, err := request.RequestWith(try, cl)
		if err != nil {
			seen = err.Error()
			return false, nil
		}
		seen = fmt.Sprintf("controller %d, %d of %d brokers", m.ControllerID, len(m.Brokers), brokers)
		return len(m.Brokers) >= brokers && m.ControllerID >= 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%s)", err, seen)
	}
	return nil
}

// Addrs returns the plain listeners as host:port.
func (c *Cluster) Addrs() []string {
	out := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		out[i] = fmt.Sprintf("127.0.0.1:%d", n.port)
	}
	return out
}

// DataDir is where broker i keeps its logs and metadata.
func (c *Cluster) DataDir(i int) string {
	return filepath.Join(c.dir, fmt.Sprintf("node%d", i+1), "data")
}

// KillNode ends broker i (from 0) with SIGKILL.
func (c *Cluster) KillNode(i int) { c.nodes[i].proc.Kill() }

// StopNode ends broker i in good order.
func (c *Cluster) StopNode(i int) error {
	_, err := c.nodes[i].proc.Stop(readyTimeout)
	return err
}

// StartNode starts broker i again, with its data and its ports, and waits until
// it serves.
func (c *Cluster) StartNode(i int) error {
	if err := c.launch(i); err != nil {
		return err
	}
	alive := 0
	for _, n := range c.nodes {
		if !n.proc.Exited() {
			alive++
		}
	}
	return c.ready(alive)
}

func (c *Cluster) close() {
	for _, n := range c.nodes {
		if n.proc != nil {
			n.proc.Kill() // its data goes too: nothing is worth a slow shutdown
		}
	}
}

// poll calls f until it says true, fails, or the time is over.
func poll(ctx context.Context, what string, f func() (bool, error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := f()
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}
