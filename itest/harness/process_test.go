package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Spec{Name: "script", Path: "sh", Args: []string{"-c", script}, Log: filepath.Join(t.TempDir(), "logs", "script.log"), Env: []string{"GREETING=hello"}})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func TestProcess_CollectsOutputInMemoryAndFile(t *testing.T) {
	p := shell(t, `echo "$GREETING"; echo there >&2; exit 4`)
	code, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, code)
	require.ElementsMatch(t, []string{"hello", "there"}, strings.Fields(p.Output.String()))
	file, err := os.ReadFile(p.Spec.Log)
	require.NoError(t, err)
	require.Equal(t, p.Output.String(), string(file))
	require.Len(t, strings.Split(p.Output.Tail(1), "\n"), 1)
}

func TestProcess_WaitOutputSeesTextThatArrivesInPieces(t *testing.T) {
	p := shell(t, `printf 'rea'; sleep 0.05; printf 'dy\n'; sleep 60`)
	require.NoError(t, p.WaitOutput(t.Context(), "ready"))
	require.False(t, p.Exited())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.WaitOutput(ctx, "never"), context.DeadlineExceeded)
}

func TestProcess_WaitOutputFailsWhenTheChildEndsFirst(t *testing.T) {
	p := shell(t, `echo "config error"; exit 2`)
	require.ErrorContains(t, p.WaitOutput(t.Context(), "ready"), "config error")
}

func TestProcess_StopReturnsTheCodeAndKillsTheStubborn(t *testing.T) {
	polite := shell(t, `trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.02; done`)
	require.NoError(t, polite.WaitOutput(t.Context(), "up"))
	code, err := polite.Stop(time.Minute)
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.Contains(t, polite.Output.String(), "bye")

	stubborn := shell(t, `trap '' TERM; echo up; while :; do sleep 0.02; done`)
	require.NoError(t, stubborn.WaitOutput(t.Context(), "up"))
	_, err = stubborn.Stop(50 * time.Millisecond)
	require.ErrorContains(t, err, "did not end")
	require.True(t, stubborn.Exited())
}

func TestProcess_KillEndsGrandchildrenToo(t *testing.T) {
	p := shell(t, `sleep 3600 & echo "grandchild $!"; wait`)
	require.NoError(t, p.WaitOutput(t.Context(), "\n"))
	var pid int
	_, err := fmt.Sscanf(p.Output.String(), "grandchild %d", &pid)
	require.NoError(t, err)
	p.Kill()
	gone(t, pid)
	code, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, -1, code)
	p.Kill() // twice is fine
	require.NoError(t, p.Signal(syscall.SIGTERM))
}

// gone waits until a process no longer runs.
func gone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, poll(ctx, "the process to be gone", func() (bool, error) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z "), nil
	}))
}

func TestProcess_ChildrenDieWithAKilledTestBinary(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Fatal("only Linux can have the kernel kill children with their parent: run the integration tests there")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	parent, err := Start(Spec{Name: "parent", Path: self, Env: []string{"HARNESS_ROLE=parent"}})
	require.NoError(t, err)
	t.Cleanup(parent.Kill)
	require.NoError(t, parent.WaitOutput(t.Context(), "\n"))
	var pid int
	_, err = fmt.Sscanf(parent.Output.String(), "child %d", &pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, parent.Signal(syscall.SIGKILL)) // the parent alone, not its group
	gone(t, pid)
}

func TestStart_NamesWhatIsMissing(t *testing.T) {
	_, err := Start(Spec{Name: "thing", Path: "/no/such/program"})
	require.ErrorContains(t, err, "starting thing")
}

func TestBuild_RunsACommandOfTheModule(t *testing.T) {
	p := StartBinary(t, Build(t, "./itest/harness/testdata/echo"), Run{Args: []string{"a", "b"}, Env: []string{"X=1"}})
	require.NoError(t, p.WaitOutput(t.Context(), "started [a b] 1"))
	MustStop(t, p)
	require.Contains(t, p.Output.String(), "drained")
	require.Equal(t, Build(t, "./itest/harness/testdata/echo"), Build(t, "./itest/harness/testdata/echo"))
	require.NotEqual(t, Build(t, "./itest/harness/testdata/echo", "failpoints"), Build(t, "./itest/harness/testdata/echo"))
}

func TestFreePort_NeverRepeats(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		p := FreePort(t)
		require.False(t, seen[p])
		require.True(t, p >= firstPort && p < lastPort)
		seen[p] = true
	}
}
