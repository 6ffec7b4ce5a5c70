// Package demo shows the program at work with nothing but itself: a broker in
// the process, a generator of Debezium changes, and a table in a folder.
package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"applier/cmd/applier/internal/app"
	"applier/config"
	"applier/merger"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Options of a demo.
type Options struct {
	Dir  string        // warehouse and state go below it
	For  time.Duration // how long changes are generated; 0 until ctx ends
	Rate int           // changes a second
	Out  io.Writer
	Log  *slog.Logger
}

// Topic is where the demo's changes go.
const Topic = "shop.public.my_table"

const tableName = "shop.my_table"

// configuration is the demo's own, as a user would write it.
const configuration = `version: 1
kafka: { brokers: [%q] }
warehouse: %q
state_dir: %q
server: { listen: "127.0.0.1:0", admin: { listen: "127.0.0.1:0" } }
pipelines:
  my_table:
    source: { topic: shop.public.my_table, format: debezium-json }
    target: shop.my_table
    key: [product_id, dt]
    create:
      partition_by: [dt]
      types: { product_id: BIGINT, price: DOUBLE, sales: BIGINT, dt: STRING }
    batch: { interval: 1s, idle_flush: 500ms }
`

// Run shows the demo and checks at the end that the table holds what the
// generator's own model says.
func Run(ctx context.Context, o Options) error {
	for _, d := range []string{"warehouse", "state"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, d), 0o755); err != nil {
			return err
		}
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, Topic))
	if err != nil {
		return fmt.Errorf("starting the embedded broker: %w", err)
	}
	defer broker.Close()
	text := fmt.Sprintf(configuration, broker.ListenAddrs()[0], filepath.Join(o.Dir, "warehouse"), filepath.Join(o.Dir, "state"))
	cfg, err := config.Parse(filepath.Join(o.Dir, "applier.yml"), []byte(text), os.LookupEnv)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "The configuration of this demo:\n\n%s\n", indent(text))
	s := &show{o: o, applied: make(chan struct{}, 1)}
	a, err := app.New(cfg, app.Options{Log: o.Log, Committed: s.committed})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.Run(running, context.WithoutCancel(ctx)) }()
	g, err := newGenerator(broker.ListenAddrs(), Topic, o.Rate)
	if err != nil {
		return err
	}
	defer g.close()
	fmt.Fprintf(o.Out, "Debezium changes arrive on topic %s, for example:\n\n%s\n", Topic, indent(g.example()))
	fmt.Fprintf(o.Out, "%10s  %-34s  %-62s %8s\n", "snapshot", "records", "MERGE commit", "took")
	if err := g.run(ctx, o.For); err != nil {
		return err
	}
	if err := s.await(g.produced(), done); err != nil {
		return err
	}
	stop()
	if err := <-done; err != nil {
		return err
	}
	return s.finish(cfg.Warehouse.Path, g.model())
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ") + "\n"
}

// show prints commits as they happen.
type show struct {
	o       Options
	mu      sync.Mutex
	records int64
	applied chan struct{}
}

func (s *show) committed(_ string, c merger.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Batch == nil {
		fmt.Fprintf(s.o.Out, "%10d  %-34s  %-62s\n", c.Snapshot, "-", "empty: where this pipeline starts to read")
		return
	}
	n := c.Batch.Counts
	s.records += n.Records
	in := fmt.Sprintf("%d (%s after %s)", n.Records, plural(len(c.Batch.Winners), "key"), string(c.Batch.Reason))
	what := fmt.Sprintf("%d inserted, %d updated, %d deleted, %d collapsed", c.Counts.Inserted, c.Counts.Updated, c.Counts.Deleted, n.Collapsed)
	fmt.Fprintf(s.o.Out, "%10d  %-34s  %-62s %8s\n", c.Snapshot, in, what, took(c.Took))
	select {
	case s.applied <- struct{}{}:
	default:
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func took(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

// await waits until everything produced is in the table.
func (s *show) await(records int64, done <-chan error) error {
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		n := s.records
		s.mu.Unlock()
		if n >= records {
			return nil
		}
		select {
		case <-s.applied:
		case err := <-done:
			return fmt.Errorf("the program stopped early: %w", err)
		case <-deadline:
			return fmt.Errorf("only %d of %d records were applied within a minute; run again with --verbose", n, records)
		}
	}
}
