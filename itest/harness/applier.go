package harness

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// built remembers the binaries of this test binary by package and tags.
var built = map[string]string{} // guarded by warm.mu

// Build compiles a command of this module once and returns the binary's path.
// Tags are build tags such as "failpoints"; ITEST_RACE=1 adds the race detector.
func Build(t testing.TB, pkg string, tags ...string) string {
	t.Helper()
	warm.mu.Lock()
	defer warm.mu.Unlock()
	key := pkg + " " + strings.Join(tags, ",")
	if path := built[key]; path != "" {
		return path
	}
	dir, err := workDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bin", strings.NewReplacer("/", "_", " ", "_", ",", "_", ".", "").Replace(key))
	args := []string{"build", "-o", path, "-tags", strings.Join(tags, ",")}
	if raceWanted() {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = repoDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	built[key] = path
	warm.closers = append(warm.closers, func() { delete(built, key) })
	return path
}

// Run is one run of the applier binary.
type Run struct {
	Args []string
	Env  []string // KEY=VALUE, added
	Dir  string   // working folder; empty: a new one of the test
	Tags []string // build tags, such as failpoints
	Name string   // in messages; empty: applier

	UID    int          // runs as this user; 0: as the caller
	Memory *MemoryGroup // runs in this cgroup
	CPU    *CPUGroup    // runs in this cgroup
}

// Applier builds the daemon's binary, once, and starts it. The test's end kills
// it; a failed test shows its last lines.
func Applier(t testing.TB, r Run) *Process {
	t.Helper()
	return StartBinary(t, Build(t, "./cmd/applier", r.Tags...), r)
}

// StartBinary starts any binary as Applier does.
func StartBinary(t testing.TB, path string, r Run) *Process {
	t.Helper()
	if r.Dir == "" {
		r.Dir = t.TempDir()
	}
	if r.Name == "" {
		r.Name = "applier"
	}
	args := r.Args
	if r.Memory != nil {
		path, args = enter(r.Memory.dir, path, args)
	}
	if r.CPU != nil {
		path, args = enter(r.CPU.dir, path, args)
	}
	p, err := Start(Spec{Name: r.Name, Path: path, Args: args, Env: r.Env, Dir: r.Dir, UID: r.UID})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("last lines of %s:\n%s", r.Name, p.Output.Tail(40))
		}
	})
	return p
}

// ApplierOutput runs a command of the applier binary to its end and returns its
// exit code and everything it printed.
func ApplierOutput(ctx context.Context, t testing.TB, args ...string) (code int, output string) {
	t.Helper()
	p := Applier(t, Run{Args: args, Name: fmt.Sprintf("applier %s", strings.Join(args, " "))})
	code, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return code, p.Output.String()
}

// stopTimeout is how long a daemon may take to drain in tests.
const stopTimeout = time.Minute

// MustSay fails unless the child has printed the text or does within seconds: the
// log is written behind what it tells. meaning says what its absence would mean.
func MustSay(t testing.TB, p *Process, text string, meaning ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := p.WaitOutput(ctx, text); err != nil {
		t.Fatal(append([]any{err}, meaning...)...)
	}
}

// MustStop ends a process with SIGTERM and fails the test unless it exits with
// code 0.
func MustStop(t testing.TB, p *Process) {
	t.Helper()
	code, err := p.Stop(stopTimeout)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s ended with code %d:\n%s", p.Spec.Name, code, p.Output.Tail(20))
	}
	if err != nil {
		t.Fatal(err)
	}
}
