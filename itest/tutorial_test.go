//go:build itestfull

package itest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// tutorialStep is a block of commands of the page, and what the reader will see then.
type tutorialStep struct {
	section, commands string
	sees              []string
}

// readTutorial finds them, and the command of the first terminal.
func readTutorial(t *testing.T) (terminal string, steps []tutorialStep) {
	t.Helper()
	page, err := os.ReadFile("../docs/tutorial.md")
	require.NoError(t, err)
	section := ""
	for _, m := range regexp.MustCompile("(?ms)^##+ ([^\n]*)$|^```([a-z ]+)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		switch m[2] {
		case "":
			section = m[1]
		case "sh terminal":
			terminal = strings.TrimSpace(m[3])
		case "sh":
			steps = append(steps, tutorialStep{section: section, commands: m[3]})
		case "text":
			require.NotEmpty(t, steps)
			steps[len(steps)-1].sees = strings.Split(strings.TrimSpace(m[3]), "\n")
		default:
			t.Fatalf("a block of %q", m[2])
		}
	}
	return terminal, steps
}

// shell is the reader's second terminal.
type shell struct {
	in   io.Writer
	pipe *os.File
	out  *bufio.Reader
	done int
}

func openShell(t *testing.T, dir string) *shell {
	t.Helper()
	cmd := exec.Command("bash", "-e")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	w.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the daemon in its background, too
		_ = cmd.Wait()
		out.Close()
	})
	return &shell{in: in, pipe: out, out: bufio.NewReader(out)}
}

// run runs commands and returns what they print. A command that fails ends the shell.
func (s *shell) run(t *testing.T, commands string) string {
	t.Helper()
	s.done++
	end := fmt.Sprintf("the end of step %d", s.done)
	_, err := fmt.Fprintf(s.in, "%s\necho %s\n", commands, end)
	require.NoError(t, err)
	var all bytes.Buffer
	late := time.AfterFunc(3*patience, func() { s.pipe.Close() })
	defer late.Stop()
	for {
		line, err := s.out.ReadString('\n')
		require.NoError(t, err, "a command of these failed, or took too long:\n%s\nwith\n%s", commands, all.String())
		if strings.TrimSpace(line) == end {
			return all.String()
		}
		all.WriteString(line)
	}
}

// spaces makes texts comparable whatever the width of columns.
func spaces(s string) string { return strings.Join(strings.Fields(s), " ") }

// The tutorial's commands do what it says, break by break, and nothing is lost: its own
// last commands compare the table with PostgreSQL.
func TestTutorial_EveryCommandDoesWhatThePageSays(t *testing.T) {
	terminal, steps := readTutorial(t)
	require.Equal(t, "make stack", terminal)
	ways := 0
	for i, s := range steps {
		if regexp.MustCompile(`^\d+\. `).MatchString(s.section) && (i == 0 || steps[i-1].section != s.section) {
			ways++
		}
	}
	require.GreaterOrEqual(t, ways, 10, "ways to break it")
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	stack, err := harness.Start(harness.Spec{Name: "make stack", Path: "make", Args: []string{"stack"}, Dir: root})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = syscall.Kill(-stack.PID(), syscall.SIGINT) // as Ctrl-C does
		<-stack.Done()
	})
	harness.Until(t, 10*time.Minute, "the stack", func() (bool, error) {
		if stack.Exited() {
			return false, fmt.Errorf("it ended:\n%s", stack.Output.Tail(30))
		}
		return strings.Contains(stack.Output.String(), "Everything runs."), nil
	})
	sh, seen := openShell(t, root), ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what was seen last: %s\nthe stack said:\n%s", seen, stack.Output.Tail(20))
		}
	})
	for _, step := range steps {
		t.Logf("%s:\n%s", step.section, step.commands)
		said := sh.run(t, step.commands)
		harness.Until(t, patience, fmt.Sprintf("%q after\n%s", step.sees, step.commands), func() (bool, error) {
			if len(step.sees) == 0 {
				return true, nil
			}
			seen = spaces(said + sh.run(t, "applier status -c docs/tutorial/applier.yml || true"))
			for _, line := range step.sees {
				if !strings.Contains(seen, spaces(line)) {
					return false, nil
				}
			}
			return true, nil
		})
	}
}
