package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build says what is running.
type Build struct {
	Version  string // release, such as 0.1.0
	Revision string // commit
	Go       string // runtime.Version()
}

// NewRegistry returns a registry with applier_build_info and the standard go_*
// and process_* metrics.
func NewRegistry(build Build) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	builder{reg: reg}.gauge("applier_build_info").WithLabelValues(build.Version, build.Revision, build.Go).Set(1)
	return reg
}

// Metrics is the metrics of all rooms.
type Metrics struct {
	Process  *Process
	Pipeline *Pipeline
	Ingest   *Ingest
	Batcher  *Batcher
	Merger   *Merger
	Storage  *Storage

	vectors []vector
}

// New builds the metrics of all rooms. reg may be nil.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{}
	b := builder{reg, &m.vectors}
	m.Process, m.Pipeline, m.Ingest = newProcess(b), newPipeline(b), newIngest(b)
	m.Batcher, m.Merger, m.Storage = newBatcher(b), newMerger(b), newStorage(b)
	for _, v := range m.vectors {
		if v.desc.Type == Counter && len(v.desc.Labels) == 0 {
			v.touch() // with 0, so that the first event is seen
		}
	}
	return m
}

// Start creates the series of a pipeline, with 0, and puts it into
// StateStarting.
func (m *Metrics) Start(pipeline, table string) {
	for _, v := range m.vectors {
		v.start(pipeline, table)
	}
	m.Merger.IndexRebuildProgress.WithLabelValues(pipeline, table).Set(1)
	m.Pipeline.SetState(pipeline, table, StateStarting)
}

// Forget removes every series of a pipeline.
func (m *Metrics) Forget(pipeline string) {
	for _, v := range m.vectors {
		v.forget(prometheus.Labels{"pipeline": pipeline})
	}
	m.Pipeline.forget(pipeline)
}
