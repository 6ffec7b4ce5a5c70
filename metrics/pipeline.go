package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The states of a pipeline.
const (
	StateStarting        = "starting"         // opening the table, asking Kafka
	StateStandby         = "standby"          // another instance owns the table
	StateRebuildingIndex = "rebuilding_index" // reading the table's key columns
	StateRunning         = "running"
	StateBackoff         = "backoff" // waiting before another try
	StatePaused          = "paused"  // by an operator
	StateFailed          = "failed"  // halted with a code
	StateDraining        = "draining"
)

// States returns the states of a pipeline.
func States() []string {
	return []string{
		StateStarting, StateStandby, StateRebuildingIndex, StateRunning,
		StateBackoff, StatePaused, StateFailed, StateDraining,
	}
}

// Pipeline is the metrics of pipelines as wholes.
type Pipeline struct {
	EventToCommit *prometheus.HistogramVec
	LastCommit    *prometheus.GaugeVec
	LastSnapshot  *prometheus.GaugeVec
	Freshness     *Freshness
	FreshnessSLO  *prometheus.GaugeVec
	LeaseHeld     *prometheus.GaugeVec
	StepAge       *prometheus.GaugeVec
	UncleanStarts *prometheus.GaugeVec

	up, state, since, halted *prometheus.GaugeVec
	mu                       sync.Mutex
	current                  map[string]string // state by pipeline
}

// NewPipeline builds the metrics of pipelines.
func NewPipeline(reg prometheus.Registerer) *Pipeline { return newPipeline(builder{reg: reg}) }

func newPipeline(b builder) *Pipeline {
	return &Pipeline{
		EventToCommit: b.histogram("applier_event_to_commit_seconds"),
		LastCommit:    b.gauge("applier_last_commit_timestamp_seconds"),
		LastSnapshot:  b.gauge("applier_last_snapshot_id"),
		Freshness:     newFreshness(b),
		FreshnessSLO:  b.gauge("applier_freshness_slo_seconds"),
		LeaseHeld:     b.gauge("applier_lease_held"),
		StepAge:       b.gauge("applier_step_age_seconds"),
		UncleanStarts: b.gauge("applier_unclean_starts"),
		up:            b.gauge("applier_pipeline_up"),
		state:         b.gauge("applier_pipeline_state"),
		since:         b.gauge("applier_pipeline_state_since_timestamp_seconds"),
		halted:        b.gauge("applier_pipeline_halted"),
		current:       map[string]string{},
	}
}

// SetState says which state a pipeline is in. Leaving StateFailed clears the
// code it halted with.
func (m *Pipeline) SetState(pipeline, table, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setState(pipeline, table, state)
}

// setState is SetState under the lock.
func (m *Pipeline) setState(pipeline, table, state string) {
	if m.current[pipeline] == state {
		return
	}
	m.current[pipeline] = state
	for _, s := range States() {
		m.state.WithLabelValues(pipeline, table, s).Set(boolValue(s == state))
	}
	m.up.WithLabelValues(pipeline, table).Set(boolValue(state != StatePaused && state != StateFailed))
	m.since.WithLabelValues(pipeline, table).Set(unixSeconds(time.Now()))
	if state != StateFailed {
		m.halted.DeletePartialMatch(prometheus.Labels{"pipeline": pipeline})
	}
}

// Halt puts a pipeline into StateFailed with a code.
func (m *Pipeline) Halt(pipeline, table, code string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setState(pipeline, table, StateFailed)
	m.halted.DeletePartialMatch(prometheus.Labels{"pipeline": pipeline})
	m.halted.WithLabelValues(pipeline, table, code).Set(1)
}

// Committed records a commit: its snapshot, and the change times of the oldest
// and the newest change in it.
func (m *Pipeline) Committed(pipeline, table string, snapshot int64, oldest, newest time.Time) {
	now := time.Now()
	m.LastCommit.WithLabelValues(pipeline, table).Set(unixSeconds(now))
	m.LastSnapshot.WithLabelValues(pipeline, table).Set(float64(snapshot))
	h := m.EventToCommit.WithLabelValues(pipeline, table)
	for _, t := range []time.Time{oldest, newest} {
		if !t.IsZero() {
			// Clocks differ: a change from the future took no time.
			h.Observe(max(now.Sub(t).Seconds(), 0))
		}
	}
}

func (m *Pipeline) forget(pipeline string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.current, pipeline)
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }

// Freshness is applier_freshness_seconds. Its value is computed when it is
// scraped: a gauge that a stuck pipeline should set would stand still.
type Freshness struct {
	desc   *prometheus.Desc
	mu     sync.Mutex
	series map[[2]string]time.Time // zero: caught up
}

func newFreshness(b builder) *Freshness {
	d := find("applier_freshness_seconds")
	f := &Freshness{
		desc:   prometheus.NewDesc(d.Name, d.Help, d.labelNames(), nil),
		series: map[[2]string]time.Time{},
	}
	f = register(b.reg, f)
	b.keep(vector{d, func(l ...string) { f.CaughtUp(l[0], l[1]) }, f.forget})
	return f
}

// Behind says that input older than upTo is visible in the table, and newer
// input is waiting.
func (f *Freshness) Behind(pipeline, table string, upTo time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.series[[2]string{pipeline, table}] = upTo
}

// CaughtUp says that all input is visible.
func (f *Freshness) CaughtUp(pipeline, table string) { f.Behind(pipeline, table, time.Time{}) }

// Forget says that nothing is known: another instance has the table.
func (f *Freshness) Forget(pipeline string) { f.forget(prometheus.Labels{"pipeline": pipeline}) }

func (f *Freshness) forget(l prometheus.Labels) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.series)
	maps.DeleteFunc(f.series, func(k [2]string, _ time.Time) bool { return k[0] == l["pipeline"] })
	return before - len(f.series)
}

// Describe implements prometheus.Collector.
func (f *Freshness) Describe(ch chan<- *prometheus.Desc) { ch <- f.desc }

// Collect implements prometheus.Collector.
func (f *Freshness) Collect(ch chan<- prometheus.Metric) {
	f.mu.Lock()
	keys := make([][2]string, 0, len(f.series))
	values := make(map[[2]string]float64, len(f.series))
	for k, upTo := range f.series {
		keys = append(keys, k)
		if !upTo.IsZero() {
			values[k] = max(time.Since(upTo).Seconds(), 0)
		}
	}
	f.mu.Unlock() // the channel may block
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		ch <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, values[k], k[0], k[1])
	}
}
