package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// injectTimeout bounds attaching to and detaching from a process.
const injectTimeout = 30 * time.Second

// Injection is a running strace that changes what a process's system calls do.
type Injection struct {
	t testing.TB
	p *Process
}

// Inject attaches strace to a running process: args say what it injects where,
// such as "-e", "inject=fsync:error=EIO", "-P", path. It ends with Stop, or with the
// test. A machine without strace fails the test.
func Inject(t testing.TB, target *Process, args ...string) *Injection {
	t.Helper()
	tools, err := fetch("tools")
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-f", "-o", filepath.Join(t.TempDir(), "strace"), "-p", strconv.Itoa(target.PID())}, args...)
	p, err := Start(Spec{Name: "strace", Path: tools["strace"], Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(context.Background(), injectTimeout)
	defer cancel()
	if err := p.WaitOutput(ctx, "attached"); err != nil {
		t.Fatal(err)
	}
	return &Injection{t, p}
}

// Kill ends strace at once: what it holds up comes free, ended processes too.
func (i *Injection) Kill() { i.p.Kill() }

// Stop detaches; the process goes on without faults.
func (i *Injection) Stop() {
	i.t.Helper()
	if _, err := i.p.Stop(injectTimeout); err != nil {
		i.t.Fatal(err)
	}
}

// Tmpfs mounts a file system in memory, with options such as "size=1m", and
// returns its folder. It needs root: a test that cannot have it fails.
func Tmpfs(t testing.TB, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("applier-itest", dir, "tmpfs", 0, options); err != nil {
		t.Fatalf("mounting a tmpfs (it takes root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Fuse mounts a folder through FUSE (bindfs) and returns it: what programs see there
// is a file system of which nobody knows where it is.
func Fuse(t testing.TB) string {
	t.Helper()
	tools, err := fetch("tools")
	if err != nil {
		t.Fatal(err)
	}
	behind, dir := t.TempDir(), t.TempDir()
	p, err := Start(Spec{Name: "bindfs", Path: tools["bindfs"], Args: []string{"-f", behind, dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		p.Kill()
	})
	Until(t, injectTimeout, "the FUSE mount", func() (bool, error) {
		var st unix.Statfs_t
		if p.Exited() {
			return false, fmt.Errorf("bindfs ended: %s", p.Output.Tail(5))
		}
		return unix.Statfs(dir, &st) == nil && st.Type == unix.FUSE_SUPER_MAGIC, nil
	})
	return dir
}

// Remount makes a file system of Tmpfs read-only, or writable again.
func Remount(t testing.TB, dir string, readOnly bool) {
	t.Helper()
	flags := uintptr(unix.MS_REMOUNT)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	// A file that is being written at this moment keeps it writable.
	Until(t, injectTimeout, "the remount", func() (bool, error) {
		err := unix.Mount("", dir, "", flags, "")
		if err == syscall.EBUSY {
			return false, nil
		}
		return err == nil, err
	})
}

// Fill takes all space of the file system of a folder; free gives it back.
func Fill(t testing.TB, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, ".ballast")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// LimitFiles changes how many files a running process may have open.
func LimitFiles(t testing.TB, p *Process, n uint64) {
	t.Helper()
	var limit unix.Rlimit
	err := unix.Prlimit(p.PID(), unix.RLIMIT_NOFILE, nil, &limit)
	if err == nil {
		limit.Cur = min(n, limit.Max)
		err = unix.Prlimit(p.PID(), unix.RLIMIT_NOFILE, &limit, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}
