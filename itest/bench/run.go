package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"applier/itest/harness"
)

// timeout bounds one workload: reading a table back takes longest.
func (w workload) timeout() time.Duration {
	return 15*time.Minute + time.Duration(w.Target/million)*20*time.Second
}

// run measures one workload and reads the table back. An error is one of
// measuring; a table that reads back wrong leaves Verified false.
func run(ctx context.Context, o *options, w workload) (*figures, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout())
	defer cancel()
	warehouse, err := o.targets.clone(ctx, w.load())
	if err != nil {
		return nil, err
	}
	if o.far != nil {
		if warehouse, err = o.far.take(warehouse); err != nil {
			return nil, err
		}
	}
	defer os.RemoveAll(warehouse)
	src, err := startSource(w, o.brokers)
	if err != nil {
		return nil, err
	}
	defer src.close()
	f := &figures{Workload: w.Name, TargetRows: w.Target, BatchRows: w.Batch}
	if err := measure(ctx, o, w, warehouse, src, f); err != nil {
		return nil, fmt.Errorf("%s: %w", w.Name, err)
	}
	src.close() // its memory is wanted by the judges
	f.problem = verify(ctx, o, w, harness.Ref{Warehouse: warehouse, Table: tableName})
	f.Verified = f.problem == nil
	return f, nil
}

// measure runs the daemon over all batches.
func measure(ctx context.Context, o *options, w workload, warehouse string, src *source, f *figures) error {
	f.load = loadAverage()
	d, err := startDaemon(o, w, warehouse, src.Brokers)
	if err != nil {
		return err
	}
	stopped := false
	defer func() {
		if !stopped {
			d.kill()
		}
	}()
	if w.Paced {
		if err := src.more(); err != nil {
			return err
		}
	}
	profiled := make(chan error, 1)
	profiled <- nil
	commits, err := d.watch(ctx, w, func(n int64) error {
		if n == warmUp && o.far != nil {
			o.far.requests() // those of the start do not count
		}
		if n == warmUp && o.profile != "" {
			<-profiled
			go func() {
				page := fmt.Sprintf("profile?seconds=%d", o.seconds)
				profiled <- d.saveProfile(ctx, page, filepath.Join(o.profile, w.Name+".cpu.pprof"))
			}()
		}
		if w.Paced && n < w.Batches {
			return src.more()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if o.far != nil {
		all, puts := o.far.requests()
		n := float64(w.Batches - warmUp)
		f.requests, f.puts = float64(all)/n, float64(puts)/n
	}
	peak, err := peakMemory(d.cmd.Process.Pid)
	if err != nil {
		return err
	}
	f.RSS = float64(peak) / 1e6
	if f.IndexBytesPerKey, err = d.indexBytesPerKey(ctx); err != nil {
		return err
	}
	if err := <-profiled; err != nil {
		return err
	}
	if o.profile != "" {
		if err := d.saveProfile(ctx, "allocs", filepath.Join(o.profile, w.Name+".allocs.pprof")); err != nil {
			return err
		}
	}
	stopped = true
	if err := d.stop(); err != nil {
		return err
	}
	if d.rebuild.Seconds > 0 {
		f.rebuildRate = float64(d.rebuild.Rows) / d.rebuild.Seconds
	}
	f.compactions = d.compactions
	summarise(f, commits)
	return nil
}

// verify compares the table with what the generator says it must be: read by us
// and by Paimon's own Java.
func verify(ctx context.Context, o *options, w workload, ref harness.Ref) error {
	var judges []harness.Judge
	if w.Long {
		if err := readsAsModel(ctx, w, ref.Warehouse); err != nil {
			return err
		}
	} else {
		judges = append(judges, harness.Cat{Binary: o.binary})
	}
	if o.java != nil {
		judges = append(judges, o.java)
	}
	if len(judges) == 0 {
		return nil
	}
	want := w.expected(o.digests)
	for _, j := range judges {
		got, err := j.Digest(ctx, ref, harness.Query{})
		if err != nil {
			return fmt.Errorf("%s cannot read the table: %w", j.Name(), err)
		}
		if got != want {
			return fmt.Errorf("%s reads %v instead of %v", j.Name(), got, want)
		}
	}
	return nil
}
