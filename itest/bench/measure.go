package main

import (
	"math"
	"slices"
	"time"
)

// figures are what one run showed. The members' names are those of the file
// that OUT names.
type figures struct {
	Workload         string  `json:"workload"`
	TargetRows       int64   `json:"target_rows"`
	BatchRows        int64   `json:"batch_rows"`
	RowsPerSecond    float64 `json:"rows_per_s"`
	CPUPerMillion    float64 `json:"cpu_s_per_m_rows"`
	CommitP50        float64 `json:"commit_p50_ms"`
	CommitP99        float64 `json:"commit_p99_ms"`
	RSS              float64 `json:"rss_mb"`
	IndexBytesPerKey float64 `json:"index_bytes_per_key"`
	BytesData        int64   `json:"bytes_data"`
	BytesVectors     int64   `json:"bytes_dv"`
	BytesMetadata    int64   `json:"bytes_metadata"`
	Verified         bool    `json:"verified"`

	measured    // not in the file
	load        string
	rebuildRate float64 // keys a second
	problem     error   // why it is not verified
}

// measured is the rest of what the commits say.
type measured struct {
	commits int
	// compactions is how many rounds of maintenance compacted, the first batch's time included.
	compactions int
	maxMeta     int64              // metadata of the largest commit
	walls       []float64          // seconds from one commit to the next
	cpus        []float64          // CPU seconds of the same
	stages      map[string]float64 // mean milliseconds of a commit
	requests    float64            // to a far store, a commit, and the PUTs of them
	puts        float64
	metaSlop    float64 // metadata of the last third of the commits per that of the first
}

// summarise computes the figures of the commits behind the first ones, which
// only start the clock.
func summarise(f *figures, commits []commit) {
	first, rest := commits[warmUp-1], commits[warmUp:]
	last := rest[len(rest)-1]
	var rows int64
	var took []time.Duration
	f.stages = map[string]float64{}
	before := first
	for _, c := range rest {
		rows += c.records
		took = append(took, c.took)
		f.BytesData += c.data
		f.BytesVectors += c.vectors
		f.BytesMetadata += c.meta
		f.maxMeta = max(f.maxMeta, c.meta)
		f.walls = append(f.walls, c.at.Sub(before.at).Seconds())
		f.cpus = append(f.cpus, (c.cpu - before.cpu).Seconds())
		for name, s := range c.stages {
			f.stages[name] += s * 1000 / float64(len(rest))
		}
		before = c
	}
	f.commits = len(rest)
	f.RowsPerSecond = float64(rows) / last.at.Sub(first.at).Seconds()
	f.CPUPerMillion = (last.cpu - first.cpu).Seconds() / float64(rows) * million
	f.CommitP50, f.CommitP99 = millis(percentile(took, 50)), millis(percentile(took, 99))
	third := max(len(rest)/3, 1)
	f.metaSlop = meanMeta(rest[len(rest)-third:]) / meanMeta(rest[:third])
}

func meanMeta(cs []commit) float64 {
	var n int64
	for _, c := range cs {
		n += c.meta
	}
	return float64(n) / float64(len(cs))
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// percentile is the smallest value that p per cent of all are not above.
func percentile(ds []time.Duration, p int) time.Duration {
	s := slices.Clone(ds)
	slices.Sort(s)
	at := int(math.Ceil(float64(len(s)*p)/100)) - 1
	return s[max(at, 0)]
}

func median(xs []float64) float64 {
	s := slices.Clone(xs)
	slices.Sort(s)
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}
