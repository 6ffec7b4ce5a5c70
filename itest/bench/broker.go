package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"applier/itest/harness"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topic is what every run reads.
const topic = "bench"

// order tells the child process what to produce.
type order struct {
	Workload workload
	Brokers  []string // of a running Kafka; none: the child serves an embedded broker
}

// report is what the child says when everything is produced.
type report struct {
	Brokers []string
	Records int64
	Bytes   int64 // of values
	Error   string
}

// childCommand is the first argument of the program as a child.
const childCommand = "generate-in-a-child-process"

// child serves the broker and produces; it lives until its standard input ends.
// Every line there is a request for one more record (paced workloads).
func child() error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	r := report{Brokers: o.Brokers}
	if len(r.Brokers) == 0 {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic))
		if err != nil {
			return err
		}
		defer c.Close()
		r.Brokers = c.ListenAddrs()
	}
	p, err := newProducer(r.Brokers)
	if err != nil {
		return err
	}
	defer p.cl.Close()
	if !o.Workload.Paced {
		if err := p.produce(o.Workload); err != nil {
			r.Error = err.Error()
		}
	}
	r.Records, r.Bytes = p.records, p.bytes
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return err
	}
	for k := int64(1); ; k++ {
		if _, err := in.ReadBytes('\n'); err != nil {
			return nil // the parent is done
		}
		if err := p.batch(o.Workload, k); err != nil {
			return err
		}
	}
}

// producer writes records in the order of the batches into one partition, so
// that the daemon's batches are the generator's.
type producer struct {
	cl      *kgo.Client
	records int64
	bytes   int64
}

func newProducer(brokers []string) (*producer, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100_000), kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	return &producer{cl: cl}, nil
}

func (p *producer) produce(w workload) error {
	for k := int64(1); k <= w.Batches; k++ {
		if err := p.batch(w, k); err != nil {
			return err
		}
	}
	return nil
}

// batch produces one batch and waits for its acknowledgement.
func (p *producer) batch(w workload, k int64) error {
	ids, version := w.ids(k)
	updates := int64(len(ids)) - w.Batch/10
	if w.Insert {
		updates = 0
	}
	load := w.load()
	// One allocation a batch; the client keeps the records until they are acknowledged.
	buf := make([]byte, 0, len(ids)*400)
	records := make([]kgo.Record, len(ids))
	errs := make(chan error, 1)
	for i, id := range ids {
		from := len(buf)
		buf = appendKey(buf, id)
		mid := len(buf)
		buf = appendValue(buf, load.Row(id, version), p.records, int64(i) >= updates)
		records[i] = kgo.Record{Key: buf[from:mid:mid], Value: buf[mid:len(buf):len(buf)]}
		p.records++
		p.bytes += int64(len(buf) - mid)
		p.cl.Produce(context.Background(), &records[i], func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case errs <- err:
				default:
				}
			}
		})
	}
	if err := p.cl.Flush(context.Background()); err != nil {
		return err
	}
	select {
	case err := <-errs:
		return fmt.Errorf("producing batch %d: %w", k, err)
	default:
		return nil
	}
}

// source is a topic full of records, in a process of its own.
type source struct {
	report
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

// startSource starts the child process and waits until it has produced.
func startSource(w workload, brokers []string) (*source, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &source{cmd: exec.Command(exe, childCommand)}
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	err = json.NewEncoder(s.stdin).Encode(order{w, brokers})
	if err == nil {
		err = json.NewDecoder(out).Decode(&s.report)
	}
	if err == nil && s.Error != "" {
		err = errors.New(s.Error)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("producing the records: %w", err)
	}
	return s, nil
}

// more asks for the next batch of a paced workload.
func (s *source) more() error {
	_, err := s.stdin.Write([]byte("\n"))
	return err
}

func (s *source) close() {
	s.stdin.Close()
	done := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-done
	}
}

// realKafka starts Apache Kafka and makes the topic.
func realKafka(t *harness.Outside) (brokers []string, err error) {
	err = harness.Attempt(func() error {
		k := harness.Kafka(t, harness.KafkaOptions{Throughput: true, Heap: "2g"})
		k.CreateTopic(t, harness.Topic{Name: topic, Configs: map[string]string{"retention.bytes": "-1"}})
		brokers = k.Addrs()
		return nil
	})
	return brokers, err
}
