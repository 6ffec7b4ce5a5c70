package app

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"applier/batcher"
	"applier/config"
	"applier/ingest"
	"applier/merger"
	"applier/metrics"
	"applier/metrics/admin"
	"applier/storage/catalog"
	"applier/storage/objstore"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// App is the running program.
type App struct {
	cfg            *config.Config
	log            *slog.Logger
	catalog        *catalog.FileSystem
	kafka          ingest.ClientOptions
	metrics        *metrics.Metrics
	registry       *prometheus.Registry
	budget         *batcher.Budget
	joining        *joining
	instance       string
	build          metrics.Build
	started        time.Time
	fetchBytes     int32
	encoders       int
	sessionTimeout time.Duration
	listen         func(ctx context.Context, network, address string) (net.Listener, error)
	onCommit       func(string, merger.Commit)
	pipelines      map[string]*pipeline
	draining       chan struct{}
	abort          func(code int)
}

// Options adjust a program for tests and the demo.
type Options struct {
	Log   *slog.Logger
	Build metrics.Build
	// Kafka overrides how brokers are dialled.
	Kafka func(*ingest.ClientOptions)
	// SessionTimeout of consumer groups; zero is the configuration's.
	SessionTimeout time.Duration
	// Listen opens the HTTP ports; nil is the ordinary network.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
	// Store opens the folder of a table; nil is the local disk.
	Store func(folder string) (objstore.Bucket, error)
	// Abort ends the process at once with an exit code, when a step of a pipeline is
	// stuck (config stuck_after); nil only logs.
	Abort func(code int)
	// Reloads is how many configurations were taken after the first, this one included.
	Reloads int
	// Committed is called after each commit (the demo prints it).
	Committed func(pipeline string, c merger.Commit)
}

// New builds the program. Nothing runs yet; what can be wrong with the machine
// (folders, certificates) is found here, what can be wrong with Kafka or the
// tables is found by the pipelines, which try again.
func New(cfg *config.Config, o Options) (*App, error) {
	if err := secureStateDir(cfg.StateDir); err != nil {
		return nil, err
	}
	kafka, err := kafkaOptions(cfg, o.Log)
	if err != nil {
		return nil, err
	}
	if o.Kafka != nil {
		o.Kafka(&kafka)
	}
	registry := metrics.NewRegistry(o.Build)
	a := &App{
		cfg: cfg, log: o.Log, kafka: kafka, registry: registry, metrics: metrics.New(registry), budget: batcher.NewBudget(int64(cfg.Memory)),
		instance: instanceName(), build: o.Build, started: time.Now(), encoders: runtime.GOMAXPROCS(0), sessionTimeout: o.SessionTimeout, listen: o.Listen, onCommit: o.Committed, abort: o.Abort,
		pipelines: map[string]*pipeline{}, draining: make(chan struct{}),
	}
	a.joining = newJoining(a.budget)
	a.announce(o.Reloads)
	if cfg.Kafka.TLS != nil && cfg.Kafka.TLS.Insecure {
		a.metrics.Process.TLSInsecure.WithLabelValues().Set(1)
		a.log.Warn(insecureText)
	}
	a.fetchBytes = fetchBytes(int64(cfg.Memory), len(cfg.Pipelines))
	if a.sessionTimeout == 0 {
		a.sessionTimeout = cfg.Kafka.SessionTimeout
	}
	if a.catalog, err = newCatalog(cfg, a.observeStore); err != nil {
		return nil, err
	}
	if o.Store != nil {
		a.catalog.UseStore(o.Store)
	}
	for _, name := range cfg.Names() {
		a.pipelines[name] = newPipeline(a, cfg.Pipelines[name])
	}
	return a, nil
}

// announce sets the metrics that tell which configuration is in effect.
func (a *App) announce(reloads int) {
	m := a.metrics.Process
	m.MemoryBudget.WithLabelValues().Set(float64(a.cfg.Memory))
	m.ConfigReloads.WithLabelValues().Add(float64(reloads))
	m.ConfigTaken.WithLabelValues().Set(float64(a.started.UnixMilli()) / 1000)
	sum := sha256.Sum256([]byte(a.cfg.Effective()))
	m.ConfigHash.WithLabelValues().Set(float64(binary.BigEndian.Uint64(sum[:8]) >> 16)) // what a float64 holds exactly
}

// instanceName tells instances apart in records and logs.
func instanceName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "-" + uuid.NewString()[:8]
}

// fetchBytes is what one pipeline's Kafka client may buffer: a sixteenth of the
// memory for all of them, between 1 and 32 MiB each.
func fetchBytes(memory int64, pipelines int) int32 {
	return int32(min(max(memory/16/int64(max(pipelines, 1)), 1<<20), 32<<20))
}

func (a *App) observeStore(op, _ string, _ int64, err error, d time.Duration) {
	result := "ok"
	switch {
	case errors.Is(err, objstore.ErrNotExist):
		result = "not_found"
	case errors.Is(err, objstore.ErrExist):
		result = "exists"
	case err != nil:
		result = "error"
	}
	a.metrics.Storage.Requests.WithLabelValues(op, result).Inc()
	a.metrics.Storage.RequestSeconds.WithLabelValues(op).Observe(d.Seconds())
}

// indexCeiling is what a pipeline's key index may take: the memory that is left
// after batches, fetch buffers, compaction and the other pipelines' indexes.
func (a *App) indexCeiling(p *pipeline) func() int64 {
	return func() int64 {
		left := int64(a.cfg.Memory) - a.joining.reserved(a.cfg)
		for name, q := range a.pipelines {
			left -= 2*int64(min(a.cfg.Pipelines[name].Batch.Bytes, a.cfg.Memory/8)) + int64(a.fetchBytes)
			if q != p {
				left -= q.indexBytes()
			}
		}
		return max(left, 1<<20)
	}
}

// ErrListen says that one of the configured ports cannot be had.
var ErrListen = errors.New("the ports of the configuration cannot be opened")

// ReloadFailed tells that the configuration was to be read again and is not sound:
// the program goes on with the one it has.
func (a *App) ReloadFailed(err error) {
	a.metrics.Process.ConfigReloadErrors.WithLabelValues().Inc()
	a.log.Error("the configuration cannot be taken; the old one stays", "err", err)
}

// Run serves until ctx ends, then drains: what was read is committed, groups are
// left, and the status pages answer until the end. force abandons the drain.
func (a *App) Run(ctx, force context.Context) error {
	server, err := admin.Listen(force, admin.Options{
		Listen: a.cfg.Server.Listen, AdminListen: a.cfg.Server.Admin.Listen,
		Token: a.cfg.Server.Admin.Token.Reveal(), Gatherer: a.registry, Source: a, Control: a, Log: a.log, ListenFn: a.listen,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrListen, err)
	}
	a.log.Info("started", "instance", a.instance, "pipelines", len(a.pipelines), "metrics", server.Addr(), "admin", server.AdminAddr())
	serving, stopServing := context.WithCancel(force)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving) }()
	g, gctx := errgroup.WithContext(force)
	for _, name := range a.cfg.Names() {
		g.Go(func() error { return a.pipelines[name].run(gctx, a.draining) })
	}
	g.Go(func() error { a.limitMemory(gctx); return nil })
	g.Go(func() error { a.warnInsecure(gctx); return nil })
	g.Go(func() error { a.watchClock(gctx); return nil })
	g.Go(func() error { a.watchSteps(gctx); return nil })
	go func() {
		select {
		case <-ctx.Done():
		case <-gctx.Done():
		}
		close(a.draining)
	}()
	err = g.Wait()
	stopServing()
	return errors.Join(err, <-served)
}

// insecureText is what a log must not be without, wherever it was cut.
const insecureText = "kafka.tls.insecure: the brokers' certificates are not verified"

// warnInsecure repeats the warning every hour.
func (a *App) warnInsecure(ctx context.Context) {
	if a.cfg.Kafka.TLS == nil || !a.cfg.Kafka.TLS.Insecure {
		return
	}
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.log.Warn(insecureText)
		case <-ctx.Done():
			return
		}
	}
}

// limitMemory keeps the Go heap below what the off-heap indexes leave.
func (a *App) limitMemory(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	old := int64(-1)
	for {
		var index int64
		for _, p := range a.pipelines {
			index += p.indexBytes()
		}
		if limit := max(int64(a.cfg.Memory)-index, minHeap); limit != old {
			debug.SetMemoryLimit(limit)
			old = limit
		}
		a.metrics.Process.MemoryUsed.WithLabelValues("index").Set(float64(index))
		joins := a.joining.account.Held()
		a.metrics.Process.MemoryUsed.WithLabelValues("compaction").Set(float64(joins))
		a.metrics.Process.MemoryUsed.WithLabelValues("batches").Set(float64(max(a.budget.Used()-index-joins, 0)))
		select {
		case <-tick.C:
		case <-a.draining:
			return
		case <-ctx.Done():
			return
		}
	}
}

// minHeap is what the Go runtime is left with in any case.
const minHeap = 64 << 20

// Halted reports whether every pipeline stands still with a code that does not
// end by itself: the exit code says so.
func (a *App) Halted() bool {
	for _, p := range a.pipelines {
		p.mu.Lock()
		applier, crashed := p.applier, p.crashed
		p.mu.Unlock()
		if applier == nil || crashed != nil {
			continue
		}
		if h := applier.Status().Halt; h == nil || h.Code.Info().Retries {
			return false
		}
	}
	return len(a.pipelines) > 0
}
