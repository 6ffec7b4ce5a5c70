package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"applier/config"
	"applier/ingest"
	"applier/merger"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topic = "shop.orders"

// patience bounds waiting for something that must come.
const patience = 30 * time.Second

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// world is a broker, a warehouse and a configuration with one pipeline, p.
type world struct {
	t      *testing.T
	broker *kfake.Cluster
	dir    string
	cfg    *config.Config
	format string // of the records; empty: json
}

// newWorld starts a broker; pipeline are the lines of the pipeline besides
// source and target.
func newWorld(t *testing.T, pipeline string) *world {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topic))
	require.NoError(t, err)
	t.Cleanup(broker.Close)
	w := &world{t: t, broker: broker, dir: t.TempDir()}
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "warehouse"), 0o755))
	w.configure(pipeline)
	return w
}

func (w *world) configure(pipeline string) {
	text := fmt.Sprintf(`version: 1
kafka: { brokers: [%q] }
warehouse: %q
state_dir: %q
server: { listen: "127.0.0.1:0", admin: { listen: "127.0.0.1:0" } }
pipelines:
  p:
    source: { topic: shop.orders, format: %s }
    target: shop.orders
%s`, w.broker.ListenAddrs()[0], filepath.Join(w.dir, "warehouse"), filepath.Join(w.dir, "state"), cmp.Or(w.format, "json"), pipeline)
	var err error
	w.cfg, err = config.Parse(filepath.Join(w.dir, "applier.yml"), []byte(text), os.LookupEnv)
	require.NoError(w.t, err)
}

func (w *world) pipe() *config.Pipeline { return w.cfg.Pipelines["p"] }

func (w *world) kafka() ingest.ClientOptions {
	o, _, err := Kafka(w.cfg, discard())
	require.NoError(w.t, err)
	return o
}

func (w *world) catalog() *catalog.FileSystem {
	c, err := newCatalog(w.cfg, nil)
	require.NoError(w.t, err)
	return c
}

// create makes the pipeline's table.
func (w *world) create(fields []types.Field, options map[string]string) *paimon.Table {
	if options == nil {
		options = map[string]string{paimon.OptBucket: "-1", paimon.OptDeletionVectors: "true"}
	}
	for i := range fields {
		fields[i].ID = i
	}
	s, err := paimon.NewSchema(fields, nil, options, nil, 1)
	require.NoError(w.t, err)
	name, err := catalog.ParseName("shop.orders")
	require.NoError(w.t, err)
	t, err := w.catalog().Create(testContext(w.t), name, s)
	require.NoError(w.t, err)
	return t
}

func (w *world) produce(partition int32, values ...string) {
	w.t.Helper()
	w.produceTo(topic, partition, values...)
}

func (w *world) produceTo(topic string, partition int32, values ...string) {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.broker.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
	require.NoError(w.t, err)
	defer cl.Close()
	records := make([]*kgo.Record, len(values))
	for i, v := range values {
		records[i] = &kgo.Record{Partition: partition, Value: []byte(v)}
	}
	require.NoError(w.t, cl.ProduceSync(testContext(w.t), records...).FirstErr())
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// orders are the columns of the table in most tests.
func orders() []types.Field {
	return []types.Field{{Name: "id", Type: types.BigIntType().NonNull()}, {Name: "note", Type: types.StringType()}}
}

// startedHandler reads the address of the admin port from the log.
type startedHandler struct {
	slog.Handler
	once  *sync.Once
	admin chan string
}

func (h startedHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h startedHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h startedHandler) WithGroup(string) slog.Handler            { return h }

func (h startedHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "started" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "admin" {
				h.once.Do(func() { h.admin <- a.Value.String() })
			}
			return true
		})
	}
	return nil
}

// running is a program under way.
type running struct {
	app     *App
	admin   string
	commits chan commit
	stop    func()
}

// commit is what a test wants to know of one; the batch is gone after the call.
type commit struct {
	pipeline string
	records  int64
	counts   merger.Counts
}

func (r *running) committed(pipeline string, c merger.Commit) {
	out := commit{pipeline: pipeline, counts: c.Counts}
	if c.Batch != nil {
		out.records = c.Batch.Counts.Records
	}
	r.commits <- out
}

// run starts the program; it is drained at the end of the test, or by stop.
func (w *world) run() *running {
	h := startedHandler{Handler: slog.DiscardHandler, once: new(sync.Once), admin: make(chan string, 1)}
	r := &running{commits: make(chan commit, 100)}
	var err error
	r.app, err = New(w.cfg, Options{Log: slog.New(h), Committed: r.committed})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.app.Run(ctx, context.Background()) }()
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(w.t, take(w.t, done))
		})
	}
	w.t.Cleanup(r.stop)
	r.admin = take(w.t, h.admin)
	return r
}

// take waits for something that must come.
func take[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
	}
	panic("unreachable")
}

// pipeWithoutCreate is the pipeline as if it did not create its table.
func pipeWithoutCreate(w *world) *config.Pipeline {
	p := *w.pipe()
	p.Create = nil
	return &p
}
