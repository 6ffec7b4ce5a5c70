package merger

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"applier/ingest/change"

	"github.com/stretchr/testify/require"
)

var rewriteGolden = flag.Bool("rewrite-golden", false, "write the golden files of this package anew")

var stepPart = change.Partition{Topic: "t", Partition: 0}

func at(n int64) change.Positions { return change.Positions{stepPart: {Next: n, Epoch: -1}} }

func recordAt(n, epoch int64) *Record {
	r := &Record{Version: 1, Txn: "x", Seq: 4, Epoch: epoch, Chain: "c"}
	r.setPositions(at(n), map[string]string{"t": "id"})
	return r
}

// sound is what a look at a healthy table finds.
func sound(n, epoch int64) Looked {
	return Looked{Latest: SnapRef{9, "s9"}, Record: recordAt(n, epoch), RecordAt: SnapRef{9, "s9"}, KnownIntact: true, Marker: true, Pinned: true}
}

// play feeds events and returns the last state.
func play(t require.TestingT, events ...Event) State {
	var s State
	for _, e := range events {
		s, _ = Step(s, e)
	}
	return s
}

// reached are the states that the loop can be in, each by the way that leads there.
func reached(t require.TestingT) []struct {
	name string
	s    State
} {
	idle := []Event{Assigned{}, sound(10, 2), Resumed{}}
	batch := BatchReady{&BatchInfo{ID: 1, Start: at(10), Next: at(20)}}
	then := func(more ...Event) []Event { return append(append([]Event{}, idle...), more...) }
	look := then(batch)
	sync := append(then(batch), sound(10, 2))
	plan := append(sync[:len(sync):len(sync)], Synced{})
	write := append(plan[:len(plan):len(plan)], Planned{})
	still := append(write[:len(write):len(write)], Written{Txn: "txn"})
	publish := append(still[:len(still):len(still)], Stilled{Same: true})
	slot := append(publish[:len(publish):len(publish)], Published{PublishUnknown})
	after := append(publish[:len(publish):len(publish)], Published{PublishWon})
	hint := append(after[:len(after):len(after)], ReadBacked{BackSound})
	ack := append(hint[:len(hint):len(hint)], Hinted{})
	with := func(base []Event, more ...Event) []Event { return append(base[:len(base):len(base)], more...) }
	own := with(ack, Acked{recordAt(20, 2)})
	unlooked := with(own, BatchReady{&BatchInfo{ID: 3, Start: at(20), Next: at(30)}})
	io := Failed{CodeIO, "io"}
	list := []struct {
		name   string
		events []Event
	}{
		{"standby", nil},
		{"recover", []Event{Assigned{}}},
		{"resolve", []Event{Assigned{}, Looked{KnownIntact: true}}},
		{"resume", []Event{Assigned{}, sound(10, 2)}},
		{"start: look", []Event{Assigned{}, Looked{KnownIntact: true}, Resolved{Start: at(0)}}},
		{"idle", idle},
		{"idle: paused", then(PauseAsked{})},
		{"idle: paused, batch", then(PauseAsked{}, batch)},
		{"tick: look", then(Tick{})},
		{"look", look},
		{"sync", sync},
		{"plan", plan},
		{"write", write},
		{"still", still},
		{"publish", publish},
		{"slot", slot},
		{"after", after},
		{"hint", hint},
		{"ack", ack},
		{"idle: own", own},
		{"unlooked: sync", unlooked},
		{"unlooked: confirm", with(unlooked, Synced{}, Planned{}, Written{Txn: "2"})},
		{"backoff: recover", []Event{Assigned{}, io}},
		{"backoff: look", with(write, io)},
		{"backoff: slot", with(slot, Slot{SlotUnreadable})},
		{"backoff: publish", with(slot, Slot{SlotAbsent})},
		{"backoff: after", with(after, io)},
		{"backoff: ack", with(ack, io)},
		{"halted", with(plan, Planned{Problem: &Halt{CodeTwoParts, "x"}})},
		{"halted: in flight", with(publish, Failed{CodePanic, "x"})},
		{"stopped", then(StopAsked{})},
	}
	var out []struct {
		name string
		s    State
	}
	for _, l := range list {
		out = append(out, struct {
			name string
			s    State
		}{l.name, play(t, l.events...)})
	}
	return out
}

// stateText shows what matters of a state.
func stateText(s State) string {
	out := []string{s.Phase.String()}
	flag := func(on bool, name string) {
		if on {
			out = append(out, name)
		}
	}
	flag(s.Phase == PhaseBackoff, "before "+s.After.String())
	flag(s.Waiting, "waiting")
	flag(s.Batch != nil, "batch"+s.Batch.String())
	flag(s.InFlight, "in-flight")
	flag(s.Again, "again")
	flag(s.Paused, "paused")
	flag(s.Stop, "stop")
	flag(!s.Owned, "not-owned")
	flag(s.Trouble != nil, "trouble")
	if s.Halt != nil {
		out = append(out, string(s.Halt.Code))
	}
	return strings.Join(out, " ")
}

func effectsText(effects []Effect) string {
	var out []string
	for _, e := range effects {
		name := strings.TrimPrefix(fmt.Sprintf("%T", e), "merger.")
		switch e := e.(type) {
		case Note:
			name = "note:" + string(e.What)
		case Halted:
			name = "halted:" + string(e.Halt.Code)
		case Wait:
			name = fmt.Sprintf("wait:%d", e.Retries)
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// TestStep_EveryEventInEveryPhase writes down what every control event and every
// kind of failure does in every state. The table is to be read: a changed line is
// a changed decision.
func TestStep_EveryEventInEveryPhase(t *testing.T) {
	events := []struct {
		name string
		ev   Event
	}{
		{"assigned", Assigned{}},
		{"revoked", Revoked{}},
		{"tick", Tick{}},
		{"pause", PauseAsked{}},
		{"resume", ResumeAsked{}},
		{"recheck", RecheckAsked{}},
		{"stop", StopAsked{}},
		{"trouble", SourceHalted{Halt: Halt{CodeGap, "gap"}}},
		{"batch", BatchReady{&BatchInfo{ID: 2, Start: at(10), Next: at(15)}}},
		{"other batch", BatchReady{&BatchInfo{ID: 2, Start: at(7), Next: at(15)}}},
		{"fails, retry", Failed{CodeIO, "io"}},
		{"fails, for good", Failed{CodeCorrupt, "bad"}},
	}
	var b strings.Builder
	for _, r := range reached(t) {
		fmt.Fprintf(&b, "%s: %s\n", r.name, stateText(r.s))
		for _, e := range events {
			if _, failure := e.ev.(Failed); failure && (!r.s.Waiting || r.s.Phase == PhaseBackoff) {
				continue // nothing is under way that could fail
			}
			s, effects := Step(r.s, e.ev)
			line := fmt.Sprintf("  %-16s %s", e.name, stateText(s))
			if len(effects) > 0 {
				line += " → " + effectsText(effects)
			}
			b.WriteString(line + "\n")
		}
	}
	golden(t, "testdata/step/matrix.txt", b.String())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewriteGolden {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// A halt that is tried again gives other facts each time; it is news once, and the
// state shows the newest.
func TestStep_AHaltThatRepeatsIsToldOnce(t *testing.T) {
	s, out := State{}.show(Halt{CodeFull, "writing a"})
	require.Equal(t, []Effect{Halted{Halt{CodeFull, "writing a"}}}, out)
	s, out = s.show(Halt{CodeFull, "writing b"})
	require.Empty(t, out)
	require.Equal(t, "writing b", s.Halt.Facts)
	s, out = s.show(Halt{CodeIO, "reading c"})
	require.Len(t, out, 1, "another code is news")
	_, out = s.show(Halt{CodeRow, "offset 1"})
	require.Len(t, out, 1)
	s, _ = s.show(Halt{CodeRow, "offset 1"})
	_, out = s.show(Halt{CodeRow, "offset 2"})
	require.Len(t, out, 1, "what is not tried again is another trouble each time")
}
