package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"applier/itest/harness"
)

// farStore is an S3 server behind a line of a latency: every request waits for it.
type farStore struct {
	server  *harness.S3Server
	proxy   *harness.S3Proxy
	latency time.Duration
}

// farBucket is the store's bucket; a warehouse is a folder in it.
const farBucket = "lake"

// farWorkloads are those of `bench -latency`: commits of one row, and larger ones.
func farWorkloads() []workload {
	return []workload{
		{Name: "S0", Target: million / 10, Batch: 1, Batches: 100 + warmUp, Paced: true},
		{Name: "S1", Target: million / 10, Batch: 10_000, Batches: 30 + warmUp},
	}
}

func newFarStore(t *harness.Outside, latency time.Duration) (s *farStore, err error) {
	err = harness.Attempt(func() error {
		s = &farStore{server: harness.S3(t, farBucket), latency: latency}
		s.proxy = harness.NewS3Proxy(t, s.server.Endpoint, false)
		s.proxy.Break(func(*http.Request) *harness.Fault { return &harness.Fault{Delay: latency} })
		return nil
	})
	return s, err
}

// take moves a warehouse into the store and returns the folder that it is in then.
func (s *farStore) take(warehouse string) (string, error) {
	to := filepath.Join(s.server.Root, farBucket, filepath.Base(warehouse))
	return to, os.Rename(warehouse, to)
}

// config is the value of the configuration's warehouse.
func (s *farStore) config(warehouse string) string {
	return fmt.Sprintf("{ path: %q, s3: { endpoint: %q, path_style: true, access_key: %q, secret_key: %q } }",
		"s3://"+farBucket+"/"+filepath.Base(warehouse), s.proxy.Endpoint, harness.S3User, harness.S3Secret)
}

// far measures commits on the far store: how many latencies pass from the closed batch
// to the answer of the snapshot's PUT, and how many requests a commit takes.
func far(ctx context.Context, f *flags, o *options, t *harness.Outside) error {
	if !f.noJava {
		if err := startJava(o, t); err != nil {
			return err
		}
	}
	store, err := newFarStore(t, f.latency)
	if err != nil {
		return err
	}
	o.far = store
	fmt.Printf("S3 with %s a request\n\n| workload | latencies to the snapshot's PUT | ms | look | plan | write | publish | commit p50 ms | requests a commit | of them PUT |\n|---|---|---|---|---|---|---|---|---|---|\n", f.latency)
	var all []*figures
	for _, w := range farWorkloads() {
		r, err := run(ctx, o, w.scaled(f.scale))
		if err != nil {
			return err
		}
		published := 0.0
		for _, stage := range []string{"look", "sync", "plan", "write", "still", "publish"} {
			published += r.stages[stage]
		}
		fmt.Printf("| %s | %.1f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f | %.1f |\n", w.Name, published/millis(f.latency), published,
			r.stages["look"], r.stages["plan"], r.stages["write"], r.stages["publish"], r.CommitP50, r.requests, r.puts)
		all = append(all, r)
	}
	return finish(f, all)
}

// requests counts what was asked of the store since the last call.
func (s *farStore) requests() (all, puts int) {
	seen := s.proxy.Seen()
	for _, r := range seen {
		if strings.HasPrefix(r, http.MethodPut) {
			puts++
		}
	}
	return len(seen), puts
}
