// Command bench measures the daemon: `applier run` as a process of its own reads
// change events from Kafka and merges them into a Paimon table. Broker and
// generator run in another process that is not counted. What was measured is
// read back, by us and by Paimon's own Java, or it is void. docs/benchmarks.md
// has figures and says how to read them.
//
//	go run ./itest/bench [-workloads W2-10M-100k,kernels] [-out FILE]
//	go run ./itest/bench -peers [-with iceberg,delta] [-workloads peers-1M,peers-10M-100k] [-out FILE]
//	go run ./itest/bench -latency 20ms
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"applier/itest/harness"
)

func init() {
	// Children are killed by the kernel when the thread that started them ends.
	runtime.LockOSThread()
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == childCommand {
		runtime.UnlockOSThread()
		exit(child())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(bench(ctx))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// flags of the command.
type flags struct {
	out, workloads, with, dir, memory, profile string
	peers, kafka, noJava                       bool
	latency                                    time.Duration
	scale                                      int64
	seconds, merges, repeat                    int
}

func parse() *flags {
	f := &flags{}
	flag.StringVar(&f.out, "out", "", "write the figures to this file, as a list of JSON objects")
	flag.StringVar(&f.workloads, "workloads", "", "run only these, separated by commas: W0, W1, W2, W2-10M-100k, …, kernels")
	flag.BoolVar(&f.peers, "peers", false, "compare with other engines instead")
	flag.StringVar(&f.with, "with", "", "with -peers: only with these, separated by commas: paimon-rust, iceberg, delta")
	flag.DurationVar(&f.latency, "latency", 0, "measure commits on an S3 server that each request takes so long to reach instead")
	flag.IntVar(&f.merges, "merges", 6, "with -peers: merges of each run; the first one does not count")
	flag.IntVar(&f.repeat, "repeat", 1, "run each workload so many times, in turns; the median by rows/s counts")
	flag.BoolVar(&f.kafka, "kafka", false, "read from Apache Kafka instead of the embedded broker")
	flag.BoolVar(&f.noJava, "no-java", false, "read back with our own reader only")
	flag.StringVar(&f.memory, "memory", "2GiB", "memory of the daemon's configuration")
	flag.StringVar(&f.dir, "dir", "", "folder for tables; default: a temporary one")
	flag.StringVar(&f.profile, "profile", "", "folder for CPU and allocation profiles of the daemon")
	flag.IntVar(&f.seconds, "profile-seconds", 3, "length of the CPU profile")
	flag.Int64Var(&f.scale, "scale", 1, "divide table and batch sizes, to try the benchmark itself out")
	flag.Parse()
	return f
}

func bench(ctx context.Context) error {
	f := parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("what is %q?", flag.Arg(0))
	}
	all := workloads()
	if f.peers {
		all = peerWorkloads(f.merges)
	}
	chosen, wantKernels, err := choose(all, f.workloads)
	if err != nil {
		return err
	}
	t := &harness.Outside{}
	defer harness.Close()
	defer t.End()
	o, err := prepare(f, t)
	if err != nil {
		return err
	}
	fmt.Printf("%s; load %s\n", machine(), loadAverage())
	if f.peers {
		return peers(ctx, f, o, t, chosen)
	}
	if f.latency > 0 {
		return far(ctx, f, o, t)
	}
	var ks []kernel
	if wantKernels {
		if ks, err = kernels(ctx, o.dir, f.scale > 1); err != nil {
			return err
		}
		printKernels(os.Stdout, ks)
	}
	figures, err := runAll(ctx, f, o, t, chosen)
	if err != nil {
		return err
	}
	printRatios(os.Stdout, figures, ks)
	return finish(f, figures)
}

// runAll measures the workloads and prints each as soon as it is known.
func runAll(ctx context.Context, f *flags, o *options, t *harness.Outside, ws []workload) ([]*figures, error) {
	if f.noJava {
		fmt.Fprintln(os.Stderr, "bench: -no-java: tables are read back by our own reader only")
	} else if err := startJava(o, t); err != nil {
		return nil, err
	}
	runs := make([][]*figures, len(ws))
	printHeader(os.Stdout)
	for range f.repeat {
		for i, w := range ws {
			r, err := runOn(ctx, f, o, w.scaled(f.scale))
			if err != nil {
				return nil, err
			}
			printFigures(os.Stdout, r)
			runs[i] = append(runs[i], r)
		}
	}
	var out []*figures
	for _, r := range runs {
		out = append(out, middle(r))
	}
	return out, nil
}

// runOn runs a workload on the broker that was asked for.
func runOn(ctx context.Context, f *flags, o *options, w workload) (*figures, error) {
	if f.kafka {
		k := &harness.Outside{Dir: o.dir}
		defer k.End()
		brokers, err := realKafka(k)
		if err != nil {
			return nil, err
		}
		with := *o
		with.brokers = brokers
		o = &with
	}
	return run(ctx, o, w)
}

// prepare builds the daemon.
func prepare(f *flags, t *harness.Outside) (*options, error) {
	dir, err := os.MkdirTemp(f.dir, "applier-bench-")
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Dir = dir
	o := &options{dir: dir, memory: f.memory, profile: f.profile, seconds: f.seconds, digests: &digests{}, targets: &targets{dir: dir, fileRows: fileRows}}
	if f.profile != "" {
		if err := os.MkdirAll(f.profile, 0o755); err != nil {
			return nil, err
		}
	}
	o.binary = filepath.Join(dir, "applier")
	build := exec.Command("go", "build", "-trimpath", "-o", o.binary, "applier/cmd/applier")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the daemon: %w\n%s", err, out)
	}
	return o, nil
}

// startJava starts Paimon's Java core as a judge.
func startJava(o *options, t *harness.Outside) error {
	err := harness.Attempt(func() error {
		j := harness.JavaBig(t, "6g")
		o.java = &j
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot start Paimon's Java core, which reads the tables back (-no-java does without): %w", err)
	}
	return nil
}

// finish writes the figures and says whether all of them count.
func finish(f *flags, fs []*figures) error {
	if f.out != "" {
		b, err := json.MarshalIndent(fs, "", "  ")
		if err == nil {
			err = os.WriteFile(f.out, append(b, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing the figures: %w", err)
		}
	}
	for _, r := range fs {
		if !r.Verified {
			return fmt.Errorf("%s is void: %w", r.Workload, r.problem)
		}
	}
	return nil
}
