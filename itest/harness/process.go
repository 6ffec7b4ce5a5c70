package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// pipeGrace is how long a dead child's output is still waited for when a
// grandchild keeps the pipe open.
const pipeGrace = 5 * time.Second

// Spec says what to start.
type Spec struct {
	Name string   // for messages and the log file
	Path string   // the program
	Args []string // without the program itself
	Env  []string // KEY=VALUE, added to this process's environment
	Dir  string   // working folder; empty: the current one
	Log  string   // file that collects the output; empty: memory only
	UID  int      // run as this user and group, without others; 0: as the caller

	// Protocol gives the child pipes: standard input and output belong to the
	// caller and only standard error is logged.
	Protocol bool
}

// Process is a running or ended child. It is safe for concurrent use.
type Process struct {
	Spec   Spec
	Output *Output // what it printed so far

	stdin  io.WriteCloser
	stdout io.ReadCloser
	cmd    *exec.Cmd
	done   chan struct{}
	err    error // of Wait; valid once done is closed
}

// spawn runs f on a thread that never ends: Linux sends the parent-death signal
// when the starting thread dies, not when the process does.
var spawn = sync.OnceValue(func() func(f func() error) error {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return func(f func() error) error {
		res := make(chan error)
		work <- func() { res <- f() }
		return <-res
	}
})

// Start runs a child. The caller ends it with Kill or Stop.
func Start(s Spec) (*Process, error) {
	out, err := newOutput(s.Log)
	if err != nil {
		return nil, err
	}
	p := &Process{Spec: s, Output: out, done: make(chan struct{})}
	p.cmd = exec.Command(s.Path, s.Args...)
	p.cmd.Env = append(os.Environ(), s.Env...)
	p.cmd.Dir = s.Dir
	p.cmd.SysProcAttr = childAttr(s.UID)
	p.cmd.WaitDelay = pipeGrace
	p.cmd.Stderr = out
	if s.Protocol {
		p.stdout, err = p.cmd.StdoutPipe()
	} else {
		p.cmd.Stdout = out
	}
	if err == nil {
		p.stdin, err = p.cmd.StdinPipe() // kept open: a child that watches it knows that we live
	}
	if err == nil {
		err = spawn()(p.cmd.Start)
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	if !s.Protocol { // a protocol's reader must see the end of the output before Wait closes the pipe
		go p.reap()
	}
	return p, nil
}

// reap waits for the child; a Protocol's reader calls it after the last byte.
func (p *Process) reap() {
	p.err = p.cmd.Wait()
	p.Output.close()
	close(p.done)
}

// PID is the process id, also of its process group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited tells whether the child has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal signals the child alone.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", p.Spec.Name, err)
	}
	return nil
}

// Kill sends SIGKILL to the child's whole process group and waits for its end.
func (p *Process) Kill() {
	if !p.Exited() {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // a group that is gone already is what we want
	}
	<-p.done
}

// Stop asks the child to end with SIGTERM and returns its exit code; one that
// does not end within the time is killed, which is an error.
func (p *Process) Stop(within time.Duration) (int, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return -1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	code, err := p.Wait(ctx)
	if err != nil {
		p.Kill()
		return -1, fmt.Errorf("%s did not end within %v of SIGTERM:\n%s", p.Spec.Name, within, p.Output.Tail(20))
	}
	return code, nil
}

// Wait waits for the child's end and returns its exit code, -1 for a signal.
func (p *Process) Wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return -1, fmt.Errorf("waiting for %s to end: %w", p.Spec.Name, ctx.Err())
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) && !errors.Is(p.err, exec.ErrWaitDelay) {
		return -1, fmt.Errorf("waiting for %s: %w", p.Spec.Name, p.err)
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// WaitOutput waits until the child printed the text, from the beginning of its
// output on. The child's end is an error that shows its last lines.
func (p *Process) WaitOutput(ctx context.Context, text string) error {
	for from := 0; ; {
		changed, next, found := p.Output.find(text, from)
		if found {
			return nil
		}
		from = next
		select {
		case <-changed:
		case <-p.done:
			if _, _, found := p.Output.find(text, from); found {
				return nil
			}
			return fmt.Errorf("%s ended (%v) before it printed %q:\n%s", p.Spec.Name, p.err, text, p.Output.Tail(30))
		case <-ctx.Done():
			return fmt.Errorf("%s did not print %q: %w\n%s", p.Spec.Name, text, ctx.Err(), p.Output.Tail(30))
		}
	}
}

// Output collects what a child prints, in memory and in a file.
type Output struct {
	mu      sync.Mutex
	text    strings.Builder
	file    *os.File
	changed chan struct{}
}

func newOutput(file string) (*Output, error) {
	o := &Output{changed: make(chan struct{})}
	if file == "" {
		return o, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("making the log folder: %w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	o.file = f
	return o, nil
}

// Write appends; it never fails, so that a full disk does not stop the child.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	if o.file != nil {
		_, _ = o.file.Write(b)
	}
	close(o.changed)
	o.changed = make(chan struct{})
	return len(b), nil
}

func (o *Output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
		o.file = nil
	}
}

// find searches from an offset on; next is where a later search may start, and
// changed is closed when there is more to search.
func (o *Output) find(text string, from int) (changed <-chan struct{}, next int, found bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.text.String()
	return o.changed, max(from, len(all)-len(text)+1), strings.Contains(all[from:], text)
}

// String returns everything printed so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Tail returns the last n lines.
func (o *Output) Tail(n int) string {
	lines := strings.Split(strings.TrimRight(o.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
