//go:build failpoints

package failpoint

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// child makes this test binary the program under test: it passes the point "p"
// three times and says how far it came.
const child = "APPLIER_FAILPOINT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	for i := range 3 {
		if err := Hit("p"); errors.Is(err, ErrInjected) {
			fmt.Printf("error %d: %v\n", i+1, err)
			continue
		}
		_ = Hit("q")
		fmt.Printf("passed %d\n", i+1)
	}
}

func runChild(t *testing.T, spec string) (stdout string, state *os.ProcessState, stderr string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1", Variable+"="+spec)
	var errOut []byte
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		errOut = exit.Stderr
	} else {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState, string(errOut)
}

func TestHit_Actions(t *testing.T) {
	const all = "passed 1\npassed 2\npassed 3\n"
	for _, test := range []struct {
		spec, stdout, stderr string
		signal               syscall.Signal
		code                 int
	}{
		{spec: "", stdout: all},
		{spec: "other=kill", stdout: all},
		{spec: "p=kill", signal: syscall.SIGKILL, stderr: "failpoint p: kill"},
		{spec: "p=kill@3", stdout: "passed 1\npassed 2\n", signal: syscall.SIGKILL},
		{spec: "p=kill@4", stdout: all},
		{spec: "p=exit@2", stdout: "passed 1\n", code: 86},
		{spec: "p=panic@2", stdout: "passed 1\n", code: 2, stderr: "panic: failpoint p"},
		{spec: "p=error@2", stdout: "passed 1\nerror 2: failpoint: injected error at p\npassed 3\n"},
		{spec: "p=error%0", stdout: all},
		{spec: "p=error%100,q=exit", stdout: "error 1: failpoint: injected error at p\nerror 2: failpoint: injected error at p\n" +
			"error 3: failpoint: injected error at p\n"},
		{spec: " p=sleep:1ms , q=exit@2 ", stdout: "passed 1\n", code: 86},
		{spec: "p=kil", code: 2, stderr: `"kil" is none of`},
	} {
		t.Run(test.spec, func(t *testing.T) {
			stdout, state, stderr := runChild(t, test.spec)
			require.Equal(t, test.stdout, stdout)
			require.Contains(t, stderr, test.stderr)
			status := state.Sys().(syscall.WaitStatus)
			require.Equal(t, test.signal != 0, status.Signaled())
			if test.signal != 0 {
				require.Equal(t, test.signal, status.Signal())
			} else {
				require.Equal(t, test.code, state.ExitCode())
			}
		})
	}
}

func TestHit_StopWaitsForSIGCONT(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1", Variable+"=p=stop@2")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stderr).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "failpoint p: stop\n", line)
	var status syscall.WaitStatus
	_, err = syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
	require.NoError(t, syscall.Kill(cmd.Process.Pid, syscall.SIGCONT))
	require.NoError(t, cmd.Wait())
	require.Equal(t, "passed 1\npassed 2\npassed 3\n", stdout.String())
}

func TestParse_ReadsAllForms(t *testing.T) {
	m, err := parse("a=kill, b=error@7 ,c=sleep:1m30s%25,,d=exit%100")
	require.NoError(t, err)
	require.Equal(t, map[string]*point{
		"a": {action: "kill", percent: 100},
		"b": {action: "error", percent: 100, nth: 7},
		"c": {action: "sleep", sleep: 90 * time.Second, percent: 25},
		"d": {action: "exit", percent: 100},
	}, m)
}

func TestParse_RefusesWhatWouldNeverFire(t *testing.T) {
	for _, spec := range []string{
		"a", "=kill", "a=", "a=kil", "a=KILL", "a=kill@", "a=kill@0", "a=kill@-1", "a=kill@x", "a=error%", "a=error%101", "a=error%-1",
		"a=sleep", "a=sleep:", "a=sleep:10", "a=sleep:x@1", "a=kill,a=error", "a=kill@1%50", "a=kill:now",
	} {
		_, err := parse(spec)
		require.Error(t, err, spec)
	}
}

func TestPoint_PercentFiresAboutThatOften(t *testing.T) {
	p := &point{action: "error", percent: 30}
	n := 0
	for range 10_000 {
		if p.fires() {
			n++
		}
	}
	require.InDelta(t, 3000, n, 500, "eleven standard deviations")
}

func TestPoint_NthHitIsOneOfManyGoroutines(t *testing.T) {
	p := &point{action: "error", nth: 500, percent: 100}
	var fired atomic.Int32
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 100 {
				if p.fires() {
					fired.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, fired.Load())
	require.Equal(t, 1000, p.hits)
}
