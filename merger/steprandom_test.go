package merger

import (
	"fmt"
	"testing"

	"applier/ingest/change"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// stepWorld answers effects at random, but honestly: it keeps the table's record
// and which publishes were applied, and checks what the core may never do.
type stepWorld struct {
	t       *rapid.T
	s       State
	due     Effect
	next    int64 // where the table stands
	top     SnapRef
	found   SnapRef // by the last look since the batch in hand came; -1: there was none
	epoch   int64
	record  bool
	batches uint64
	fate    map[uint64]string // of the batches of Kafka: dropped, committed
	quiet   bool              // paused, and said to be quiet
	away    bool              // revoked, and at rest
	still   bool              // the last answer before a publish was that nothing moved
	patient bool              // no more trouble: every effect succeeds
	trace   []string
}

func (w *stepWorld) step(ev Event) {
	before := w.s
	s, effects := Step(w.s, ev)
	w.trace = append(w.trace, fmt.Sprintf("%T%v: %s → %s [%s]", ev, ev, stateText(before), stateText(s), effectsText(effects)))
	w.s = s
	if b := s.Batch; b != nil && b != before.Batch && b.Op == "" {
		w.found = SnapRef{ID: -1}
	}
	for _, e := range effects {
		w.effect(e)
	}
	require.Equal(w.t, w.s.Waiting, w.due != nil, "waiting without one effect under way: %v", w.trace)
	require.False(w.t, w.s.Phase == PhaseStopped && (w.s.Batch != nil || w.s.Waiting), "stopped with work in hand")
	if w.s.Batch == nil {
		require.False(w.t, w.s.InFlight, "a publish of no batch")
	}
	w.away = w.s.Phase == PhaseStandby || w.s.Phase == PhaseStopped
	w.quiet = w.s.Quiet()
}

func (w *stepWorld) effect(e Effect) {
	switch e := e.(type) {
	case Drop:
		w.settleBatch(e.Batch, "dropped")
	case Mark, Discard, Halted:
	case Note:
		if e.What == NoticeCommitted {
			return
		}
	case Publish:
		require.False(w.t, w.away, "publishes without the table: %v", w.trace)
		require.False(w.t, w.quiet, "publishes while paused: %v", w.trace)
		require.True(w.t, w.still || w.s.Retries > 0, "publishes without looking")
		require.Equal(w.t, w.found, w.s.Base, "publishes on another snapshot than it has found: %v", w.trace)
		w.await(e)
	default:
		w.await(e)
	}
}

func (w *stepWorld) await(e Effect) {
	require.Nil(w.t, w.due, "two effects under way: %v", w.trace)
	w.due = e
}

func (w *stepWorld) settleBatch(b *BatchInfo, fate string) {
	if b.Op != "" {
		return
	}
	require.Empty(w.t, w.fate[b.ID], "batch %d is %s after it was %s: %v", b.ID, fate, w.fate[b.ID], w.trace)
	w.fate[b.ID] = fate
}

func (w *stepWorld) pick(n int) int {
	if w.patient {
		return 99
	}
	return rapid.IntRange(0, n).Draw(w.t, "pick")
}

// answer performs the effect under way.
func (w *stepWorld) answer() {
	e := w.due
	w.due = nil
	_, publish := e.(Publish)
	_, wait := e.(Wait)
	if x := w.pick(19); !wait && x < 3 {
		code := []Code{CodeIO, CodeCorrupt, CodePanic}[x]
		if publish && x == 0 && rapid.Bool().Draw(w.t, "applied") {
			w.publish() // it happened, but nobody knows
		}
		w.step(Failed{code, "x"})
		return
	}
	w.step(w.event(e))
}

func (w *stepWorld) event(e Effect) Event {
	switch e := e.(type) {
	case Look:
		return w.look()
	case ResolveStart:
		return Resolved{Start: at(0), Topics: map[string]string{"t": "id"}}
	case Resume:
		if w.pick(9) == 0 {
			return Resumed{Problem: &Halt{CodeNoTopic, "x"}}
		}
		return Resumed{}
	case Sync:
		return Synced{}
	case Plan:
		switch w.pick(9) {
		case 0:
			return Planned{Problem: &Halt{CodeTwoParts, "x"}}
		case 1:
			return Planned{Refused: true}
		}
		return Planned{}
	case Write:
		return Written{Txn: fmt.Sprint("txn", w.batches), Conflict: w.pick(9) == 0}
	case Still:
		w.still = w.pick(4) > 0
		return Stilled{Same: w.still}
	case Publish:
		return Published{w.publishResult()}
	case ReadSlot:
		return Slot{w.slot()}
	case ReadBack:
		switch w.pick(9) {
		case 0:
			return ReadBacked{BackReplaced}
		case 1:
			return ReadBacked{BackBroken}
		}
		return ReadBacked{BackSound}
	case WriteHint:
		return Hinted{}
	case Acknowledge:
		w.settleBatch(e.Batch, "committed")
		return Acked{recordAt(w.next, w.epoch)}
	}
	return Waited{}
}

func (w *stepWorld) look() Looked {
	l := Looked{KnownIntact: true, Marker: w.record, Pinned: w.record, Stale: w.pick(5) == 0}
	if w.record {
		l.Record = recordAt(w.next, w.epoch)
	}
	switch w.pick(19) {
	case 0:
		l.Problem = &Halt{CodeChain, "x"}
	case 1: // another instance went on
		w.record, w.epoch, w.next = true, w.epoch+2, w.next+5
		l.Record = recordAt(w.next, w.epoch)
		w.top = SnapRef{w.top.ID + 2, fmt.Sprint("s", w.next)}
	case 2: // rolled back
		if w.record && w.next > 3 {
			w.next -= 3
			l.Record = recordAt(w.next, w.epoch)
			w.top = SnapRef{w.top.ID - 1, fmt.Sprint("r", w.next)}
		}
	case 3: // somebody else added rows
		w.top = SnapRef{w.top.ID + 1, "foreign"}
	}
	l.Latest, l.RecordAt, w.found = w.top, w.top, w.top
	return l
}

// publish lets the batch in hand into the table.
func (w *stepWorld) publish() {
	if b := w.s.Batch; b != nil && b.Next != nil {
		w.next, w.epoch, w.record = b.Next[stepPart].Next, w.s.Epoch, true
		w.top = SnapRef{w.s.Target, w.s.Txn}
	}
}

func (w *stepWorld) publishResult() PublishResult {
	switch w.pick(6) {
	case 5:
		return PublishVoid
	case 0:
		return PublishExists
	case 1:
		return PublishUnknown
	case 2:
		w.publish()
		return PublishUnknown
	}
	w.publish()
	return PublishWon
}

func (w *stepWorld) slot() SlotHolder {
	if w.patient {
		return SlotOther
	}
	return SlotHolder(rapid.IntRange(0, 3).Draw(w.t, "slot"))
}

// act lets one thing happen that nobody waits for.
func (w *stepWorld) act() {
	switch rapid.IntRange(0, 11).Draw(w.t, "act") {
	case 0:
		w.step(Assigned{})
	case 1:
		w.step(Revoked{})
	case 2:
		w.step(PauseAsked{})
	case 3:
		w.step(ResumeAsked{})
	case 4:
		w.step(RecheckAsked{})
	case 5:
		w.step(SourceHalted{Halt: Halt{CodeGap, "x"}})
	case 6:
		w.step(Tick{})
	case 7:
		w.step(Maintained{})
	default:
		from := w.next
		if rapid.IntRange(0, 4).Draw(w.t, "elsewhere") == 0 {
			from++
		}
		w.batches++
		w.fate[w.batches] = ""
		w.step(BatchReady{&BatchInfo{ID: w.batches, Start: at(from), Next: at(from + 5)}})
	}
}

func TestStep_HoldsItsPromisesUnderAnyEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &stepWorld{t: t, fate: map[uint64]string{}}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			if w.due != nil && rapid.IntRange(0, 3).Draw(t, "answer") > 0 {
				w.answer()
			} else {
				w.act()
			}
		}
		w.patient = true
		w.step(StopAsked{})
		for i := 0; w.due != nil; i++ {
			require.Less(t, i, 60, "does not stop: %v", w.trace)
			w.answer()
		}
		require.Equal(t, PhaseStopped, w.s.Phase, "%v", w.trace)
		for id, fate := range w.fate {
			require.NotEmpty(t, fate, "batch %d was neither dropped nor committed: %v", id, w.trace)
		}
	})
}

// TestStep_StateIsAValue: an older state never changes under a later step.
func TestStep_StateIsAValue(t *testing.T) {
	for _, r := range reached(t) {
		before := stateText(r.s) + fmt.Sprint(r.s.Positions, r.s.Topics)
		for _, ev := range []Event{Assigned{}, Revoked{}, StopAsked{}, PauseAsked{}, BatchReady{&BatchInfo{ID: 9, Start: at(10), Next: at(11)}}} {
			s := r.s
			for range 3 {
				s, _ = Step(s, ev)
			}
			require.Equal(t, before, stateText(r.s)+fmt.Sprint(r.s.Positions, r.s.Topics), "%s, %T", r.name, ev)
		}
	}
}

// TestStep_Decisions are the rules that the table of all events cannot show: they
// take more than one step.
func TestStep_Decisions(t *testing.T) {
	batch := &BatchInfo{ID: 1, Start: at(10), Next: at(20)}
	idle := []Event{Assigned{}, sound(10, 2), Resumed{}}
	upTo := func(more ...Event) []Event { return append(append([]Event{}, idle...), more...) }
	attempt := upTo(BatchReady{batch}, sound(10, 2), Synced{}, Planned{}, Written{Txn: "txn"}, Stilled{Same: true})
	with := func(base []Event, more ...Event) []Event { return append(base[:len(base):len(base)], more...) }
	unsound := sound(10, 2)
	unsound.Record = nil
	stale := sound(10, 2)
	stale.Stale = true
	unmarked := sound(10, 2)
	unmarked.Pinned = false
	newer := sound(10, 9)
	// Behind a commit of our own nobody else's was seen: the next batch has no look first.
	won := []Event{Published{PublishWon}, ReadBacked{BackSound}, Hinted{}, Acked{recordAt(20, 2)}}
	own := with(attempt, won...)
	second := BatchReady{&BatchInfo{ID: 2, Start: at(20), Next: at(30)}}
	unlooked := with(own, second, Synced{}, Planned{})
	same := sound(20, 2)
	same.Latest = SnapRef{10, "txn"}
	foreign := same
	foreign.Latest = SnapRef{11, "s11"}
	other := sound(10, 2)
	other.Record.Topics = map[string]RecordTopic{stepPart.Topic: {ID: "another", Partitions: other.Record.Topics[stepPart.Topic].Partitions}}
	for _, c := range []struct {
		name   string
		events []Event
		state  string
		effect string // of the last event
	}{
		{"behind our own commit a batch begins without a look", with(own, second), "sync waiting batch{t/0[20,30)}", "Sync"},
		{"… and looks before it publishes", with(unlooked, Written{Txn: "2"}), "confirm waiting batch{t/0[20,30)}", "Look"},
		{"… where nothing moved it goes on", with(unlooked, Written{Txn: "2"}, same), "still waiting batch{t/0[20,30)}", "Still"},
		{"… where somebody else has committed it is made anew on that", with(unlooked, Written{Txn: "2"}, foreign), "sync waiting batch{t/0[20,30)}", "note:still_moved Discard Sync"},
		{"… and the attempt on that has looked", with(unlooked, Written{Txn: "2"}, foreign, Synced{}, Planned{}, Written{Txn: "3"}), "still waiting batch{t/0[20,30)}", "Still"},
		{"… where another instance of us has gone on it is fenced", with(unlooked, Written{Txn: "2"}, sound(25, 5)), "resume waiting", "note:still_moved Discard note:fenced Drop Resume"},
		{"… where the look finds trouble it halts", with(unlooked, Written{Txn: "2"}, Looked{Problem: &Halt{CodeRollback, "x"}}), "halted T-ROLLBACK", "halted:T-ROLLBACK Drop"},
		{"… where the schema has changed it is opened anew", with(unlooked, Written{Txn: "2"}, Looked{Reopen: true}), "stopped stop", "note:reopened Drop"},
		{"… revoked meanwhile it is left", with(unlooked, Written{Txn: "2"}, Revoked{}, same), "standby not-owned", "Drop"},
		{"… a look that fails is made again, and first", with(unlooked, Written{Txn: "2"}, Failed{CodeIO, "x"}, Waited{}), "look waiting batch{t/0[20,30)}", "Look"},
		{"… and an attempt that fails looks first, too", with(unlooked, Failed{CodeIO, "x"}, Waited{}), "look waiting batch{t/0[20,30)}", "Look"},
		{"a look at the idle table changes nothing in that", with(own, Tick{}, same, second), "sync waiting batch{t/0[20,30)}", "Sync"},
		{"… unless it finds a commit of somebody else", with(own, Tick{}, foreign, second), "look waiting batch{t/0[20,30)}", "Look"},
		{"maintenance that has committed is one, too", with(own, Maintained{}, second), "look waiting batch{t/0[20,30)}", "Look"},
		{"behind a commit of somebody else the next batch looks first", with(unlooked, append([]Event{Written{Txn: "2"}, foreign, Synced{}, Planned{}, Written{Txn: "3"}, Stilled{Same: true}}, append(won[:3:3], Acked{recordAt(30, 2)}, BatchReady{&BatchInfo{ID: 3, Start: at(30), Next: at(40)}})...)...), "look waiting batch{t/0[30,40)}", "Look"},
		{"a batch behind the commit of a position looks first", []Event{Assigned{}, Looked{KnownIntact: true}, Resolved{Start: at(3)}, Looked{KnownIntact: true}, Synced{}, Planned{}, Written{Txn: "t"}, Stilled{Same: true}, Published{PublishWon}, ReadBacked{BackSound}, Hinted{}, Acked{recordAt(3, 1)}}, "recover waiting", "note:committed Look"},
		{"a fenced batch is dropped and the source told again", upTo(BatchReady{batch}, sound(12, 5)), "resume waiting", "note:fenced Drop Resume"},
		{"a higher epoch fences too", upTo(BatchReady{batch}, newer), "resume waiting", "note:fenced_epoch Drop Resume"},
		{"the same numbers in another topic fence", upTo(BatchReady{batch}, other), "resume waiting", "note:fenced Drop Resume"},
		{"… and move an idle loop", upTo(Tick{}, other), "resume waiting", "note:moved_on Resume"},
		{"no record at all fences", upTo(BatchReady{batch}, unsound), "halted T-OFFSET-LOST", "note:fenced Drop halted:T-OFFSET-LOST"},
		{"an idle table that lost its record halts", upTo(Tick{}, unsound), "halted T-OFFSET-LOST", "halted:T-OFFSET-LOST"},
		{"a rollback under an idle loop is followed", upTo(Tick{}, sound(7, 2)), "resume waiting", "note:moved_back Resume"},
		{"another instance's progress is followed", upTo(Tick{}, sound(17, 5)), "resume waiting", "note:moved_on Resume"},
		{"a record that grows old is carried forward", upTo(Tick{}, stale), "sync waiting batch{carry t/0[10,10)}", "Sync"},
		{"but not while paused", upTo(PauseAsked{}, Tick{}, stale), "idle paused", ""},
		{"a missing pin is written again", upTo(Tick{}, unmarked), "idle", "Mark"},
		{"an exists is read before it is believed", with(attempt, Published{PublishExists}), "slot waiting batch{t/0[10,20)} in-flight", "ReadSlot"},
		{"… ours: won", with(attempt, Published{PublishExists}, Slot{SlotOurs}), "after waiting batch{t/0[10,20)}", "note:unknown_won ReadBack"},
		{"… another's: the keys are looked up again", with(attempt, Published{PublishExists}, Slot{SlotOther}), "look waiting batch{t/0[10,20)}", "note:lost_race Discard Look"},
		{"… nobody's: the same bytes once more", with(attempt, Published{PublishUnknown}, Slot{SlotAbsent}, Waited{}), "publish waiting batch{t/0[10,20)} in-flight", "Publish"},
		{"its files are gone: everything once more", with(attempt, Published{PublishVoid}), "look waiting batch{t/0[10,20)}", "note:void Discard Look"},
		{"… nobody's, and the table is not ours: let it be", with(attempt, Revoked{}, Published{PublishUnknown}, Slot{SlotAbsent}), "standby not-owned", "note:unknown_absent Drop"},
		{"… nobody's, and the table is taken from us in between: look once more and let it be", with(attempt, Published{PublishUnknown}, Slot{SlotAbsent}, Revoked{}, Waited{}), "slot waiting batch{t/0[10,20)} in-flight not-owned", "ReadSlot"},
		{"revoked before the publish", upTo(BatchReady{batch}, sound(10, 2), Synced{}, Planned{}, Written{Txn: "x"}, Revoked{}, Stilled{Same: true}), "standby not-owned", "Drop"},
		{"revoked during the publish: its outcome first", with(attempt, Revoked{}, Published{PublishWon}), "after waiting batch{t/0[10,20)} not-owned", "ReadBack"},
		{"… acknowledged, then at rest", with(attempt, Revoked{}, Published{PublishWon}, ReadBacked{BackSound}, Hinted{}, Acked{}), "standby not-owned", "note:committed"},
		{"revoked and given back during an attempt", with(attempt, Revoked{}, Assigned{}, Published{PublishWon}, ReadBacked{BackSound}, Hinted{}, Acked{}), "recover waiting", "note:committed Look"},
		{"a replaced snapshot starts over from the table", with(attempt, Published{PublishWon}, ReadBacked{BackReplaced}), "recover waiting", "note:lost_snapshot Drop Look"},
		{"a broken base halts", with(attempt, Published{PublishWon}, ReadBacked{BackBroken}), "halted T-CHAIN", "halted:T-CHAIN Drop"},
		{"trouble waits for the batch before it", with(attempt, SourceHalted{Halt: Halt{CodeRow, "x"}}, Published{PublishWon}, ReadBacked{BackSound}, Hinted{}, Acked{}), "halted trouble D-ROW", "note:committed halted:D-ROW"},
		{"a halt that retries shows and goes on", upTo(BatchReady{batch}, sound(10, 2), Synced{}, Planned{Problem: &Halt{CodeDeadLetter, "x"}}, Waited{}), "recover waiting D-DLQ", "Drop Look"},
		{"… and is over when reading goes on", upTo(BatchReady{batch}, sound(10, 2), Synced{}, Planned{Problem: &Halt{CodeDeadLetter, "x"}}, Waited{}, sound(10, 2), Resumed{}), "idle", ""},
		{"a refused row goes back to the source", upTo(BatchReady{batch}, sound(10, 2), Synced{}, Planned{Refused: true}), "recover waiting", "Drop Look"},
		{"a pause between two tries keeps the batch", upTo(BatchReady{batch}, sound(10, 2), Synced{}, Planned{}, PauseAsked{}, Failed{CodeIO, "x"}), "idle batch{t/0[10,20)} paused", ""},
		{"stop between two tries drops it", upTo(BatchReady{batch}, sound(10, 2), Synced{}, Planned{}, StopAsked{}, Failed{CodeIO, "x"}), "stopped stop", "Drop"},
		{"stop with a publish in flight resolves it", with(attempt, StopAsked{}, Published{PublishUnknown}, Slot{SlotUnreadable}, Waited{}, Slot{SlotOurs}, ReadBacked{BackSound}, Hinted{}, Acked{}), "stopped stop", "note:committed"},
		{"stop with a publish in flight that cannot be resolved", with(attempt, StopAsked{}, Failed{CodePanic, "x"}), "stopped stop P-PANIC", "halted:P-PANIC Drop"},
		{"the first start is committed before anything is read", []Event{Assigned{}, Looked{KnownIntact: true}, Resolved{Start: at(3)}}, "look waiting batch{start t/0[0,3)}", "note:first_start Look"},
		{"… and fenced by a record that came meanwhile", []Event{Assigned{}, Looked{KnownIntact: true}, Resolved{Start: at(3)}, sound(10, 2)}, "resume waiting", "note:fenced Drop Resume"},
		{"… but not while paused", []Event{Assigned{}, PauseAsked{}, Looked{KnownIntact: true}, Resolved{Start: at(3)}}, "idle batch{start t/0[0,3)} paused", "note:first_start"},
		{"a marker without a record is a loss", []Event{Assigned{}, Looked{KnownIntact: true, Marker: true}}, "halted T-OFFSET-LOST", "halted:T-OFFSET-LOST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := play(t, c.events[:len(c.events)-1]...)
			s, effects := Step(s, c.events[len(c.events)-1])
			require.Equal(t, c.state, stateText(s))
			require.Equal(t, c.effect, effectsText(effects))
		})
	}
}

func TestStep_ALastingFailureIsShownOnceAndTriedOn(t *testing.T) {
	s := play(t, Assigned{})
	var shown []string
	for range 10 {
		var effects []Effect
		s, effects = Step(s, Failed{CodeFull, "no space"})
		for _, e := range effects {
			if h, ok := e.(Halted); ok {
				shown = append(shown, string(h.Halt.Code))
			}
		}
		s, _ = Step(s, Waited{})
		require.Equal(t, PhaseRecover, s.Phase)
	}
	require.Equal(t, []string{"D-FULL"}, shown)
	require.Equal(t, CodeFull, s.Halt.Code)
	s, _ = Step(s, sound(10, 2))
	s, _ = Step(s, Resumed{})
	require.Nil(t, s.Halt)
	require.Zero(t, s.Retries)
}

func TestStep_OperatorStatementsOverrideWhatTheyAnswer(t *testing.T) {
	for _, i := range Codes() {
		s := State{Phase: PhaseIdle, Owned: true, Stop: true}
		s, _ = Step(s, BatchReady{&BatchInfo{Start: change.Positions{}, Next: at(5), Op: "set"}})
		s, _ = Step(s, Looked{Problem: &Halt{i.Code, "x"}, Latest: SnapRef{7, "s"}, KnownIntact: true, Record: recordAt(10, 3)})
		switch i.Code {
		case CodeChain, CodeRollback, CodeOffsetLost, CodeReplaced, CodeClone, CodeSecondGroup, CodeConfig:
			require.Equal(t, PhaseSync, s.Phase, i.Code)
			require.EqualValues(t, 8, s.Target)
			require.EqualValues(t, 4, s.Epoch, "a statement fences what was read before it")
		default:
			require.Equal(t, PhaseStopped, s.Phase, i.Code)
			require.Equal(t, i.Code, s.Halt.Code)
		}
	}
}

// A statement about a table whose latest snapshot nobody has seen would be
// published as snapshot 1.
func TestStep_OperatorStatementsNeedTheLatestSnapshot(t *testing.T) {
	s := State{Phase: PhaseIdle, Owned: true, Stop: true}
	s, _ = Step(s, BatchReady{&BatchInfo{Start: change.Positions{}, Next: at(5), Op: "set"}})
	s, _ = Step(s, Looked{Problem: &Halt{CodeReplaced, "x"}})
	require.Equal(t, PhaseStopped, s.Phase)
	require.Equal(t, CodeReplaced, s.Halt.Code)
}
