package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// MemoryGroup is a memory cgroup of a limited size, for runs that must not be
// killed by the kernel. It needs root, or a delegated hierarchy.
type MemoryGroup struct {
	dir string
	v2  bool
}

// cgroupRoots are where the hierarchies are mounted.
var (
	cgroupV1 = "/sys/fs/cgroup/memory"
	cgroupV2 = "/sys/fs/cgroup"

	groups atomic.Int64
)

// NewMemoryGroup makes a group that may use so many bytes, page cache included.
// The test's end removes it, after the processes in it, which must have been
// started later. A machine where no group can be made fails the test.
func NewMemoryGroup(t testing.TB, limit int64) *MemoryGroup {
	t.Helper()
	g, err := newMemoryGroup(limit)
	if err != nil {
		t.Fatalf("making a memory cgroup (it takes root or a delegated hierarchy): %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(g.dir) }) // fails only while a process is in it, which is reported elsewhere
	return g
}

func newMemoryGroup(limit int64) (*MemoryGroup, error) {
	g := &MemoryGroup{}
	name := fmt.Sprintf("applier-itest-%d-%d", os.Getpid(), groups.Add(1))
	if _, err := os.Stat(filepath.Join(cgroupV1, "memory.limit_in_bytes")); err == nil {
		g.dir = filepath.Join(cgroupV1, name)
	} else {
		g.v2, g.dir = true, filepath.Join(cgroupV2, name)
		// Not every hierarchy hands the memory controller on by itself.
		_ = os.WriteFile(filepath.Join(cgroupV2, "cgroup.subtree_control"), []byte("+memory"), 0o644)
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	file, swap := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	if g.v2 {
		file, swap = "memory.max", "memory.swap.max"
	}
	err := os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.FormatInt(limit, 10)), 0o644)
	if err != nil {
		return nil, errors.Join(err, os.Remove(g.dir))
	}
	swapLimit := strconv.FormatInt(limit, 10)
	if g.v2 {
		swapLimit = "0"
	}
	_ = os.WriteFile(filepath.Join(g.dir, swap), []byte(swapLimit), 0o644) // absent where the kernel counts no swap
	return g, nil
}

// enter has a shell enter a group and then become the program.
func enter(dir, path string, args []string) (string, []string) {
	script := `echo $$ > "$1/cgroup.procs" && shift && exec "$@"`
	return "/bin/sh", append([]string{"-c", script, "sh", dir, path}, args...)
}

// OOMKills is how often the kernel killed a process of the group.
func (g *MemoryGroup) OOMKills() (int64, error) {
	file := "memory.oom_control"
	if g.v2 {
		file = "memory.events"
	}
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, fmt.Errorf("reading the cgroup's events: %w", err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strconv.ParseInt(n, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s tells of no OOM kills: %q", file, b)
}

// Peak is the most memory that the group ever used, page cache included.
func (g *MemoryGroup) Peak() (int64, error) {
	file := "memory.max_usage_in_bytes"
	if g.v2 {
		file = "memory.peak"
	}
	b, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0, fmt.Errorf("reading the cgroup's peak: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// CPUGroup is a cgroup with a share of a CPU. It needs root, or a delegated
// hierarchy.
type CPUGroup struct {
	dir string
	v2  bool
}

// NewCPUGroup makes a group that may use so many per cent of one CPU. The test's
// end removes it; a machine where no group can be made fails the test.
func NewCPUGroup(t testing.TB, percent int) *CPUGroup {
	t.Helper()
	g := &CPUGroup{}
	name := fmt.Sprintf("applier-itest-%d-%d", os.Getpid(), groups.Add(1))
	if _, err := os.Stat("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"); err == nil {
		g.dir = filepath.Join("/sys/fs/cgroup/cpu", name)
	} else {
		g.v2, g.dir = true, filepath.Join(cgroupV2, name)
		_ = os.WriteFile(filepath.Join(cgroupV2, "cgroup.subtree_control"), []byte("+cpu"), 0o644)
	}
	err := os.Mkdir(g.dir, 0o755)
	if err == nil {
		t.Cleanup(func() { _ = os.Remove(g.dir) })
		err = g.Set(percent)
	}
	if err != nil {
		t.Fatalf("making a CPU cgroup (it takes root or a delegated hierarchy): %v", err)
	}
	return g
}

// Set changes the share, in per cent of one CPU; 0 lifts the limit.
func (g *CPUGroup) Set(percent int) error {
	const period = 100_000 // microseconds
	quota := strconv.Itoa(period * percent / 100)
	if g.v2 {
		if percent == 0 {
			quota = "max"
		}
		return os.WriteFile(filepath.Join(g.dir, "cpu.max"), fmt.Appendf(nil, "%s %d", quota, period), 0o644)
	}
	if percent == 0 {
		quota = "-1"
	}
	return os.WriteFile(filepath.Join(g.dir, "cpu.cfs_quota_us"), []byte(quota), 0o644)
}
