//go:build synctests

package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"applier/batcher"
	"applier/storage/objstore"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	bubbles    = flag.Int("bubbles", 30, "random schedules of the whole program")
	bubbleSeed = flag.Int("bubbleseed", -1, "run this schedule only")
)

// TestBubble_RandomSchedulesEndHealed lets members come, go, crash and lose
// sight of the others while brokers, the group and the store misbehave, each as
// the seed says; then everything is healed. The table must equal the model and
// stand at the logs' ends, and no pipeline may stand still.
func TestBubble_RandomSchedulesEndHealed(t *testing.T) {
	met := map[string]int{}
	for seed := range *bubbles {
		if *bubbleSeed >= 0 && seed > 0 {
			break
		}
		seed = max(seed, *bubbleSeed)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { stormOf(t, uint64(seed), met) })
	}
	t.Logf("met: %v", met)
	if *bubbles < 30 || *bubbleSeed >= 0 || t.Failed() {
		return
	}
	for _, what := range []string{"take-over", "fenced", "unknown outcome", "lost race or fence after an unknown outcome", "halt that ended", "memory pause", "growth", "aborted transaction"} {
		require.NotZero(t, met[what], "never met: %s", what)
	}
}

func stormOf(t *testing.T, seed uint64, met map[string]int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	more, all := mirror, false
	if rng.IntN(3) == 0 {
		more, all = "    apply: append\n    batch: { interval: 500ms, idle_flush: 100ms }\n", true
	}
	inBubble(t, more, func(b *bubble) {
		b.want.all = all
		s := &storm{b: b, rng: rng, partitions: 2, met: met, heard: map[string]time.Time{}}
		s.listen()
		b.join()
		for range 30 + rng.IntN(30) {
			s.step()
			time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
		}
		s.heal()
		b.holds(15 * time.Minute)
		for _, m := range b.members {
			m.drain()
		}
		require.Equal(t, b.want.texts(), b.rows(), "%s", b.story())
		s.count()
	})
}

// storm draws what happens.
type storm struct {
	b          *bubble
	rng        *rand.Rand
	partitions int32
	faults     []*kfake.FaultHandle
	removed    []int32 // brokers
	hogs       []*batcher.Account
	met        map[string]int
	mu         sync.Mutex
	heard      map[string]time.Time // the last heartbeat of each member of the group
}

func (s *storm) step() {
	b, rng := s.b, s.rng
	b.put(b.want.some(rng, rng.IntN(20), s.partitions)...)
	m := s.living()
	switch n := rng.IntN(100); {
	case m == nil || n < 14 && s.alive() < 3:
		b.join()
	case n < 20:
		m.drain()
	case n < 25:
		m.crash()
	case n < 32:
		b.brokers.RehashCoordinators()
	case n < 39:
		b.brokers.ShufflePartitionLeaders()
	case n < 44:
		s.broker()
	case n < 62:
		s.faults = append(s.faults, b.brokers.Fault(s.fault()))
	case n < 74:
		m.store.Add(s.storeFault())
	case n < 76:
		s.zombie(m)
	case n < 79:
		s.lose(m)
	case n < 83:
		s.hog(m)
	case n < 87:
		s.pause(m)
	case n < 89 && s.partitions < 5:
		s.partitions++
		b.grow(int(s.partitions))
		s.met["growth"]++
	case n < 93:
		s.transaction()
	default:
		m.heal()
	}
}

// living draws a member that runs; nil without one.
func (s *storm) living() *member {
	var out []*member
	for _, m := range s.b.members {
		if !m.over {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[s.rng.IntN(len(out))]
}

func (s *storm) alive() (n int) {
	for _, m := range s.b.members {
		if !m.over {
			n++
		}
	}
	return n
}

// broker takes a broker away, or brings one back.
func (s *storm) broker() {
	if len(s.removed) > 0 {
		id := s.removed[0]
		s.removed = s.removed[1:]
		_, _, err := s.b.brokers.AddNode(id, firstPort+int(id))
		require.NoError(s.b.t, err)
		return
	}
	id := s.rng.Int32N(bubbleBrokers)
	if id == s.b.controller {
		return // nobody would take its place here
	}
	s.b.remove(id)
	s.removed = append(s.removed, id)
}

// answers are errors that a broker may give for a while.
var answers = []struct {
	key  kmsg.Key
	errs []*kerr.Error
}{
	{kmsg.Fetch, []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.KafkaStorageError, kerr.RequestTimedOut, kerr.UnknownTopicOrPartition, kerr.OffsetNotAvailable, kerr.UnknownServerError}},
	{kmsg.ListOffsets, []*kerr.Error{kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.RequestTimedOut}},
	{kmsg.OffsetForLeaderEpoch, []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch}},
	{kmsg.Metadata, []*kerr.Error{kerr.LeaderNotAvailable}},
	{kmsg.JoinGroup, []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.UnknownMemberID, kerr.RebalanceInProgress}},
	{kmsg.SyncGroup, []*kerr.Error{kerr.RebalanceInProgress, kerr.NotCoordinator, kerr.UnknownMemberID, kerr.IllegalGeneration}},
	{kmsg.Heartbeat, []*kerr.Error{kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.CoordinatorNotAvailable}},
	{kmsg.OffsetFetch, []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.NotCoordinator}},
	{kmsg.OffsetCommit, []*kerr.Error{kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.CoordinatorNotAvailable}},
}

func (s *storm) fault() kfake.Fault {
	a := answers[s.rng.IntN(len(answers))]
	return kfake.Fault{Keys: []kmsg.Key{a.key}, Err: a.errs[s.rng.IntN(len(a.errs))], Count: 1 + s.rng.IntN(8)}
}

var errStore = errors.New("injected by the test")

func (s *storm) storeFault() objstore.Rule {
	r := objstore.Rule{Nth: 1 + s.rng.IntN(3)}
	switch s.rng.IntN(6) {
	case 0: // the outcome is unknown: applied
		r.Op, r.Err, r.After = "put_if_absent", errStore, true
	case 1: // not applied
		r.Op, r.Err = "put_if_absent", errStore
	case 2: // the store takes its time over a publish
		r.Op, r.Delay = "put_if_absent", time.Duration(1+s.rng.IntN(25))*time.Second
	case 3:
		r.Op, r.Delay = "put_all", time.Duration(1+s.rng.IntN(25))*time.Second
	case 4:
		r.Op, r.Err = "put_all", errStore
	default:
		r.Op, r.Err = "get", errStore
	}
	return r
}

// lose takes a member's network away for a while that may outlast its session.
func (s *storm) lose(m *member) {
	if s.rng.IntN(2) == 0 {
		m.link.cut()
	} else {
		m.link.silence()
	}
	time.Sleep(time.Duration(s.rng.Int64N(int64(20 * time.Second))))
	if s.rng.IntN(2) == 0 {
		m.link.repair()
	}
}

// zombie lets a member lose sight of the brokers while it is slow over a commit:
// somebody else may have the table when it goes on.
func (s *storm) zombie(m *member) {
	slow := objstore.Rule{Op: "put_all", Nth: 1, Delay: time.Duration(8+s.rng.IntN(15)) * time.Second}
	if s.rng.IntN(2) == 0 {
		slow.Op = "put_if_absent"
	}
	m.store.Add(slow)
	s.b.put(s.b.want.some(s.rng, 5, s.partitions)...)
	time.Sleep(time.Second)
	m.link.silence()
	if s.alive() < 2 {
		s.b.join()
	}
	time.Sleep(time.Duration(8+s.rng.IntN(15)) * time.Second)
	m.link.repair()
}

// hog takes the member's memory.
func (s *storm) hog(m *member) {
	a := m.app.budget.Account()
	a.Set(1 << 50)
	s.hogs = append(s.hogs, a)
	if s.rng.IntN(2) == 0 {
		s.release()
	}
}

func (s *storm) release() {
	for _, a := range s.hogs {
		a.Set(0)
	}
	s.hogs = nil
}

func (s *storm) pause(m *member) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if s.rng.IntN(2) == 0 {
		_ = m.app.Pause(ctx, "p") // refused while it starts
		return
	}
	_ = m.app.Resume(ctx, "p")
}

// transaction writes some changes, or takes them back.
func (s *storm) transaction() {
	b := s.b
	cl := b.client(kgo.TransactionalID("tx"))
	defer cl.Close()
	ctx := context.Background()
	require.NoError(b.t, cl.BeginTransaction())
	changes := b.want.some(s.rng, 1+s.rng.IntN(6), s.partitions)
	for _, c := range changes {
		require.NoError(b.t, cl.ProduceSync(ctx, c.record()).FirstErr())
	}
	if s.rng.IntN(2) == 0 {
		require.NoError(b.t, cl.EndTransaction(ctx, kgo.TryAbort))
		s.met["aborted transaction"]++
		return
	}
	require.NoError(b.t, cl.EndTransaction(ctx, kgo.TryCommit))
	for _, c := range changes {
		b.want.apply(c)
	}
}

// heal ends every fault, and sees to it that somebody works.
func (s *storm) heal() {
	for _, f := range s.faults {
		f.Remove()
	}
	for len(s.removed) > 0 {
		s.broker()
	}
	s.release()
	for _, m := range s.b.members {
		m.heal()
	}
	if s.alive() == 0 {
		s.b.join()
	}
	for _, m := range s.b.members {
		if m.over {
			continue
		}
		s.b.eventually(5*time.Minute, "a resume", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return m.app.Resume(ctx, "p") == nil
		})
	}
	time.Sleep(2 * time.Minute)
	s.exorcise()
}

// exorcise puts members out of the group whom Apache Kafka would have put out, and
// kfake does not. Everybody, of a group that waits for members that crashed while
// they joined: kfake sets the deadline of a rebalance anew with every join, so
// members that try again keep it from ever passing. And who has sent no heartbeat
// for far longer than a session lasts.
func (s *storm) exorcise() {
	g := s.b.brokers.GroupInfo("applier.p")
	if g == nil {
		return
	}
	var ghosts []string
	for _, m := range g.Members {
		if g.State == "PreparingRebalance" || g.State == "Stable" && s.silent(m.MemberID) {
			ghosts = append(ghosts, m.MemberID)
		}
	}
	if len(ghosts) == 0 {
		return
	}
	cl := s.b.client()
	defer cl.Close()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = g.Group
	for _, id := range ghosts {
		gone := kmsg.NewLeaveGroupRequestMember()
		gone.MemberID = id
		req.Members = append(req.Members, gone)
	}
	_, err := req.RequestWith(context.Background(), cl)
	require.NoError(s.b.t, err)
	s.met["exorcism"]++
}

// listen notes the heartbeats of members.
func (s *storm) listen() {
	s.b.brokers.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.b.brokers.KeepControl()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard[req.(*kmsg.HeartbeatRequest).MemberID] = time.Now()
		return nil, nil, false
	})
}

// silent reports whether a member has sent no heartbeat for a minute.
func (s *storm) silent(member string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.heard[member]) > time.Minute
}

// count notes what this schedule has met.
func (s *storm) count() {
	for _, m := range s.b.members {
		add := func(what string, n int) { s.met[what] += n }
		fenced := m.log.count("noticed", "what=fenced")
		unknown := m.log.count("the outcome of a commit is unknown")
		add("fenced", fenced)
		add("unknown outcome", unknown)
		add("halt that ended", m.log.count("the halt is over"))
		add("lost race or fence after an unknown outcome", min(unknown, fenced+m.log.count("noticed", "what=lost_race")))
		add("commits", m.log.count("INFO committed"))
		add("records", int(commitsOf(m)))
	}
	if n := len(slices.DeleteFunc(slices.Clone(s.b.members), func(m *member) bool { return commitsOf(m) == 0 })); n > 1 {
		s.met["take-over"] += n - 1
	}
	for _, m := range s.b.members {
		if pausedFor(m) > 0 {
			s.met["memory pause"]++
		}
	}
}

func commitsOf(m *member) int64 {
	p := m.pipeline()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.totals.commits
}
