package harness

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func dialFake(t *testing.T) *client {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c, err := dial(t.Context(), Spec{Name: "fake", Path: self, Env: []string{"HARNESS_ROLE=judge"}})
	require.NoError(t, err)
	t.Cleanup(c.close)
	return c
}

type echoed struct{ Text string }

func TestClient_AnswersReachTheirCallersInAnyOrder(t *testing.T) {
	c := dialFake(t)
	slow := make(chan error, 1)
	var late echoed
	ch, err := c.send("slow", Args{"text": "late"})
	require.NoError(t, err)
	go func() {
		a := <-ch
		late.Text = string(a.line)
		slow <- a.err
	}()
	var early echoed
	require.NoError(t, c.Call(t.Context(), "echo", Args{"text": "early"}, &early))
	require.Equal(t, "early", early.Text)
	require.NoError(t, <-slow)
	require.Contains(t, late.Text, `"late"`)
}

func TestClient_IsSafeForManyCallers(t *testing.T) {
	c := dialFake(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 20 {
				var r echoed
				if err := c.Call(context.Background(), "echo", Args{"text": "x"}, &r); err != nil || r.Text != "x" {
					t.Errorf("%q %v", r.Text, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestClient_RemoteErrorsKeepTheJudgeAlive(t *testing.T) {
	c := dialFake(t)
	err := c.Call(t.Context(), "fail", nil, nil)
	var remote *RemoteError
	require.ErrorAs(t, err, &remote)
	require.Equal(t, &RemoteError{Judge: "fake", Cmd: "fail", Class: "SomeException", Message: "Outer: x <- SomeException: conflict", Stack: []string{"a"}}, remote)
	require.True(t, IsConflict(err))
	require.NoError(t, c.Call(t.Context(), "echo", nil, nil))
}

func TestClient_ReadsLongLines(t *testing.T) {
	c := dialFake(t)
	var r echoed
	require.NoError(t, c.Call(t.Context(), "big", nil, &r))
	require.Len(t, r.Text, 8<<20)
}

func TestClient_ALateAnswerIsDropped(t *testing.T) {
	c := dialFake(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Call(ctx, "slow", nil, nil), context.DeadlineExceeded)
	require.NoError(t, c.Call(t.Context(), "echo", nil, nil))
}

func TestClient_ADeadJudgeFailsWhoWaitsAndWhoComesLater(t *testing.T) {
	c := dialFake(t)
	err := c.Call(t.Context(), "die", nil, nil)
	require.ErrorContains(t, err, "last words")
	require.False(t, c.alive())
	require.ErrorContains(t, c.Call(t.Context(), "echo", nil, nil), "exit status 3")
}

func TestClient_ABrokenProtocolIsAnError(t *testing.T) {
	c := dialFake(t)
	require.ErrorContains(t, c.Call(t.Context(), "noise", nil, nil), "broke the protocol")
}

func TestDial_FailsForAProgramThatDoesNotGreet(t *testing.T) {
	_, err := dial(t.Context(), Spec{Name: "mute", Path: "sh", Args: []string{"-c", "echo no classpath >&2; exit 1"}})
	require.ErrorContains(t, err, "no classpath")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = dial(ctx, Spec{Name: "sleeper", Path: "sleep", Args: []string{"3600"}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
