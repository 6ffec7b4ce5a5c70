//go:build itest

package itest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// s3Rig is a pipeline on a real S3 server with a proxy before it that breaks
// requests. Two rows are in its table.
type s3Rig struct {
	*rig
	server *harness.S3Server
	proxy  *harness.S3Proxy
	m      *model
	p      *harness.Process
}

func newS3Rig(t *testing.T, run ...harness.Run) *s3Rig {
	t.Helper()
	topic := newTopic(t, 1)
	f := &s3Rig{server: harness.S3(t, "lake"), m: newModel([]string{"id", "v"}, []string{"id"})}
	f.proxy = harness.NewS3Proxy(t, f.server.Endpoint, false)
	f.rig = newRig(t, "", pipe{Topic: topic, More: idAndText})
	f.onS3(f.server, f.proxy.Endpoint)
	f.session = "30s"
	f.configure("")
	f.change(1, "before")
	f.change(2, "before")
	f.p = f.start(run...)
	if len(run) == 0 {
		f.waitApplied(f.p)
	}
	return f
}

func (f *s3Rig) change(id int, v string) {
	f.t.Helper()
	f.feed(f.m, put(f.pipes[0].Topic, 0, row(id, v)))
}

// ends waits until all is applied, in which a halt that passes may show, stops the
// daemon and compares.
func (f *s3Rig) ends() {
	f.t.Helper()
	f.waitRecovered(f.p)
	harness.MustStop(f.t, f.p)
	f.equals(f.m)
	f.proxy.Break(nil)
	f.proven()
}

var (
	dataPut    = harness.S3Request(http.MethodPut, "/bucket-0/")
	publishPut = harness.S3Request(http.MethodPut, "/snapshot/snapshot-")
)

func TestFault_C1_ErrorsOfTheServerAreTriedAgain(t *testing.T) {
	for _, status := range []int{500, 502, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			f := newS3Rig(t)
			broken := f.proxy.Once(2, dataPut, harness.Fault{Status: status, Code: "InternalError"})
			f.change(1, "after")
			f.ends()
			require.Equal(t, 2, broken())
			require.NotContains(t, f.p.Output.String(), "a step of the commit failed")
		})
	}
}

// TestFault_C2_AStoreThatAsksForLessGetsLess: ten seconds of nothing but SlowDown.
// That pauses grow through an hour is shown in storage/objstore.
func TestFault_C2_AStoreThatAsksForLessGetsLess(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	f.proxy.Seen()
	f.proxy.Break(func(*http.Request) *harness.Fault {
		return &harness.Fault{Status: 503, Code: "SlowDown", Headers: http.Header{"Retry-After": {"1"}}}
	})
	f.change(1, "after")
	time.Sleep(10 * time.Second) // the time under which nothing works is the point
	requests := len(f.proxy.Seen())
	require.Greater(t, requests, 2)
	require.Less(t, requests, 100, "in ten seconds")
	f.proxy.Break(nil)
	f.ends()
}

func TestFault_C3_DataWhoseAnswerIsLostIsUsed(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	broken := f.proxy.Once(1, dataPut, harness.Fault{Applied: true})
	f.change(1, "after")
	f.ends()
	require.Equal(t, 1, broken())
	require.NotContains(t, f.p.Output.String(), "a step of the commit failed")
}

// publishFault breaks one publish: what is under the name tells what became of it.
func publishFault(t *testing.T, fault harness.Fault, notice string) {
	t.Parallel()
	f := newS3Rig(t)
	broken := f.proxy.Once(1, publishPut, fault)
	f.change(1, "after")
	f.ends()
	require.Equal(t, 1, broken())
	if notice != "" {
		require.Contains(t, f.p.Output.String(), "what="+notice)
	}
	require.Len(t, snapshotIDs(f.ref()), 3, "the start's, the rows', and one of the change")
}

func TestFault_C4_APublishThatWasAppliedIsACommit(t *testing.T) {
	publishFault(t, harness.Fault{Applied: true}, "unknown_won")
}

func TestFault_C5_APublishThatWasNotAppliedIsMadeAgain(t *testing.T) {
	publishFault(t, harness.Fault{Status: 500, Code: "InternalError"}, "unknown_absent")
}

func TestFault_C6_APublishThatLandsAfterItsRepetitionDoesNothing(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	f.proxy.Once(1, publishPut, harness.Fault{Late: 2 * time.Second})
	f.change(1, "after")
	f.waitRecovered(f.p)
	time.Sleep(3 * time.Second) // until the first one has landed
	f.change(2, "after")
	f.ends()
	require.Contains(t, f.p.Output.String(), "what=unknown_absent")
}

func TestFault_C7_APublishThatLandsAfterARestart(t *testing.T) {
	for _, late := range []time.Duration{500 * time.Millisecond, 6 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			t.Parallel()
			f := newS3Rig(t)
			broken := f.proxy.Once(1, publishPut, harness.Fault{Late: late})
			f.change(1, "after")
			harness.Until(t, patience, "the publish", func() (bool, error) { return broken() == 1, nil })
			f.p.Kill()
			f.change(2, "after")
			f.p = f.start()
			f.waitRecovered(f.p)
			time.Sleep(late) // until the first one has landed
			f.change(1, "at the end")
			f.ends()
		})
	}
}

func TestFault_C8_ARefusalForOurOwnSnapshotIsACommit(t *testing.T) {
	publishFault(t, harness.Fault{Applied: true, Status: 412, Code: "PreconditionFailed"}, "unknown_won")
}

func TestFault_C9_ASnapshotOfSomebodyElseIsBuiltOn(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t, harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=commit/publish=stop@3"}})
	f.waitApplied(f.p)
	f.change(1, "ours")
	stopped(t, f.p, 1)
	// Who writes into the server's own folder is not seen by its conditions, so the
	// other one comes through S3 too.
	_ = f.must("sql", "-e", "INSERT INTO "+f.pipes[0].Table+" VALUES (9, 'theirs')")
	f.m.insert(row(9, "theirs"))
	proceed(t, f.p)
	f.ends()
	require.Contains(t, f.p.Output.String(), "what=lost_race")
}

func TestFault_C10_AConflictingRequestIsMadeAgain(t *testing.T) {
	publishFault(t, harness.Fault{Status: 409, Code: "ConditionalRequestConflict"}, "unknown_absent")
}

func TestFault_C13_AnswersThatEndEarlyAreAskedForAgain(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	var n atomic.Int64
	f.proxy.Break(func(r *http.Request) *harness.Fault {
		if r.Method == http.MethodGet && n.Add(1)%2 == 0 {
			return &harness.Fault{Cut: 20}
		}
		return nil
	})
	f.change(1, "after")
	f.waitRecovered(f.p)
	f.p.Kill() // what a start reads is cut, too
	f.change(2, "after")
	f.p = f.start()
	f.ends()
}

// TestFault_C13_AnswersWithOtherBytesAreFound: metadata that lies halts, and nothing
// is built on it; once the answers are right again it goes on.
func TestFault_C13_AnswersWithOtherBytesAreFound(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	harness.MustStop(t, f.p)
	before := snapshotIDs(f.ref())
	f.proxy.Break(func(r *http.Request) *harness.Fault {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifest/") {
			return &harness.Fault{Flip: true}
		}
		return nil
	})
	f.change(1, "after")
	f.p = f.start()
	f.waitHalt(f.p, "T-CORRUPT")
	require.Equal(t, before, snapshotIDs(f.ref()))
	f.proxy.Break(nil)
	f.resumed(f.p)
	f.ends()
}

// TestFault_C14_AStoreThatForgetsForAWhile: what was just published, and is listed, is
// not there for whoever asks. It is not written again and nothing is built on it.
func TestFault_C14_AStoreThatForgetsForAWhile(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	f.proxy.Break(func(r *http.Request) *harness.Fault {
		if r.Method != http.MethodPut && strings.HasSuffix(r.URL.Path, "/snapshot-3") {
			return &harness.Fault{Status: 404, Code: "NoSuchKey"}
		}
		return nil
	})
	f.change(1, "after")
	s := f.waitHalt(f.p, "T-CORRUPT")
	require.Contains(t, s.Halt.Message, "snapshot-3")
	require.Len(t, snapshotIDs(f.ref()), 3)
	f.proxy.Break(nil)
	f.resumed(f.p)
	f.change(2, "after")
	f.ends()
}

func TestFault_C16_CredentialsThatExpireAreRenewed(t *testing.T) {
	expired := harness.Fault{Status: 403, Code: "ExpiredToken"}
	t.Run("in a put of data", func(t *testing.T) {
		t.Parallel()
		f := newS3Rig(t)
		f.proxy.Once(2, dataPut, expired)
		f.change(1, "after")
		f.ends()
	})
	t.Run("in the publish", func(t *testing.T) { publishFault(t, expired, "unknown_absent") })
}

func TestFault_C17_AUserWhoMayNotListIsToldSo(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	harness.MustStop(t, f.p)
	f.proxy.Break(func(*http.Request) *harness.Fault { return &harness.Fault{Forbid: true} })
	f.change(1, "after")
	f.p = f.start()
	f.waitStatus(f.p, "p", "the cause", func(s pipelineStatus) bool { return strings.Contains(s.LastError, "s3:ListBucket") })
	f.proxy.Break(nil)
	f.ends()
}

// TestFault_C18_ObjectsThatSomebodyDeletes: nothing is built on a table with holes.
func TestFault_C18_ObjectsThatSomebodyDeletes(t *testing.T) {
	for what, code := range map[string]string{"snapshot/snapshot-3": "T-", "manifest": "T-CORRUPT"} {
		t.Run(filepath.Base(what), func(t *testing.T) {
			t.Parallel()
			f := newS3Rig(t)
			f.change(1, "after")
			f.waitApplied(f.p)
			f.change(2, "after")
			f.waitApplied(f.p)
			harness.MustStop(t, f.p)
			path := filepath.Join(tableDir(f.ref()), what)
			away := filepath.Join(t.TempDir(), "away")
			require.NoError(t, os.Rename(path, away))
			before := snapshotIDs(f.ref())
			f.change(1, "at the end")
			f.p = f.start()
			f.waitStatus(f.p, "p", "a halt", func(s pipelineStatus) bool { return strings.HasPrefix(s.code(), code) })
			require.Equal(t, before, snapshotIDs(f.ref()))
			require.NoError(t, os.Rename(away, path))
			f.resumed(f.p)
			f.ends()
		})
	}
}

func TestFault_C19_AClockThatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	f.proxy.Break(func(*http.Request) *harness.Fault { return &harness.Fault{Status: 403, Code: "RequestTimeTooSkewed"} })
	f.change(1, "after")
	s := f.waitHalt(f.p, "S-CLOCK")
	require.Contains(t, s.Halt.Message, "clock")
	f.proxy.Break(nil)
	f.ends()
}

func TestFault_C20_AStoreOutOfReachIsWaitedFor(t *testing.T) {
	t.Run("the server is gone", func(t *testing.T) {
		t.Parallel()
		f := newS3Rig(t)
		f.server.Stop()
		f.change(1, "after")
		f.waitHalt(f.p, "D-IO")
		f.server.Start(t)
		f.ends()
	})
	t.Run("its certificate is unknown", func(t *testing.T) {
		t.Parallel()
		f := newS3Rig(t)
		harness.MustStop(t, f.p)
		secure := harness.NewS3Proxy(t, f.server.Endpoint, true)
		f.change(1, "after")
		f.onS3(f.server, secure.Endpoint)
		f.p = f.start()
		f.waitStatus(f.p, "p", "the cause", func(s pipelineStatus) bool { return strings.Contains(s.LastError, "certificate") })
		f.end(f.p)
		f.store = strings.Replace(f.store, "path_style", fmt.Sprintf("ca: %q, path_style", secure.CA), 1)
		f.configure(f.top)
		f.p = f.start()
		f.ends()
	})
}

// TestFault_C21_ASlowLineIsNoFailure: a batch of some hundred kilobytes at 20 KB a
// second takes longer than requests without a body may.
func TestFault_C21_ASlowLineIsNoFailure(t *testing.T) {
	t.Parallel()
	f := newS3Rig(t)
	f.proxy.Break(func(r *http.Request) *harness.Fault {
		if dataPut(r) {
			return &harness.Fault{Rate: 10 << 10}
		}
		return nil
	})
	noise := make([]byte, 0, 350<<10)
	for i := range 350 << 8 {
		noise = fmt.Appendf(noise, "%04x", i*2654435761>>7&0xffff)
	}
	f.change(1, string(noise))
	f.ends()
	require.NotContains(t, f.p.Output.String(), "a step of the commit failed")
}
