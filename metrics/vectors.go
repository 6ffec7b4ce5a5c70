package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// secondsBuckets reach from a commit of one row to the longest interval people use.
func secondsBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// countBuckets reach from one record to the largest batch.
func countBuckets() []float64 {
	return []float64{1, 10, 100, 500, 1e3, 5e3, 1e4, 2.5e4, 5e4, 1e5, 2.5e5, 5e5, 1e6, 1e7}
}

// vector is a metric with its series.
type vector struct {
	desc   Desc
	touch  func(values ...string) // creates a series
	forget func(prometheus.Labels) int
}

// builder makes the vectors of a room from the table and registers them. The
// registerer may be nil: the vectors then count for nobody.
type builder struct {
	reg     prometheus.Registerer
	vectors *[]vector
}

// find returns the declaration of a metric. A name without one is a bug that a
// test finds; its vector works, with no labels.
func find(name string) Desc {
	for _, d := range Table() {
		if d.Name == name {
			return d
		}
	}
	return Desc{Name: name, Help: "not declared"}
}

func (d Desc) labelNames() []string {
	names := make([]string, len(d.Labels))
	for i, l := range d.Labels {
		names[i] = l.Name
	}
	return names
}

// register registers c, or returns what is registered under its name already.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	var before prometheus.AlreadyRegisteredError
	if err := reg.Register(c); errors.As(err, &before) {
		if old, ok := before.ExistingCollector.(C); ok {
			return old
		}
	}
	return c
}

func (b builder) keep(v vector) {
	if b.vectors != nil {
		*b.vectors = append(*b.vectors, v)
	}
}

func (b builder) counter(name string) *prometheus.CounterVec {
	d := find(name)
	v := register(b.reg, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: d.Help}, d.labelNames()))
	b.keep(vector{d, func(l ...string) { v.WithLabelValues(l...) }, v.DeletePartialMatch})
	return v
}

func (b builder) gauge(name string) *prometheus.GaugeVec {
	d := find(name)
	v := register(b.reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: d.Help}, d.labelNames()))
	b.keep(vector{d, func(l ...string) { v.WithLabelValues(l...) }, v.DeletePartialMatch})
	return v
}

// histogram offers classic buckets and native ones; scrapers that know the
// latter take them.
func (b builder) histogram(name string) *prometheus.HistogramVec {
	d := find(name)
	buckets := countBuckets()
	if d.Unit == "seconds" {
		buckets = secondsBuckets()
	}
	v := register(b.reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: d.Help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
	}, d.labelNames()))
	b.keep(vector{d, func(l ...string) { v.WithLabelValues(l...) }, v.DeletePartialMatch})
	return v
}

// start creates the series of a pipeline whose labels are all known. Gauges are
// left out: 0 would be a statement.
func (v vector) start(pipeline, table string) {
	labels := v.desc.Labels
	if v.desc.Type == Gauge || len(labels) < 2 || labels[0].Name != labelPipeline.Name {
		return
	}
	combos := [][]string{{pipeline, table}}
	for _, l := range labels[2:] {
		var next [][]string
		for _, c := range combos {
			for _, value := range l.Values {
				next = append(next, append(c[:len(c):len(c)], value))
			}
		}
		combos = next
	}
	for _, c := range combos {
		v.touch(c...)
	}
}
