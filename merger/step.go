package merger

import (
	"fmt"
	"maps"

	"applier/ingest/change"
	"applier/storage/mutant"
)

// retriesBeforeHalt is how often a failing effect is tried before the pipeline
// says so; codes that retry go on behind the halt.
const retriesBeforeHalt = 3

// Step advances the commit loop by one event. It is pure: same state and
// event, same result.
func Step(s State, ev Event) (State, []Effect) {
	switch e := ev.(type) {
	case Assigned:
		return s.assigned()
	case Revoked:
		return s.revoked()
	case BatchReady:
		return s.batchReady(e.Batch)
	case Tick:
		return s.tick()
	case PauseAsked:
		s.Paused = true
		return s, nil
	case ResumeAsked:
		s.Paused = false
		return s.recheck()
	case RecheckAsked:
		return s.recheck()
	case Maintained:
		s.Own = nil
		return s, nil
	case StopAsked:
		s.Stop = true
		return s.settle()
	case SourceHalted:
		return s.sourceHalted(e.Halt)
	case ReopenAsked:
		s.Reopen = s.Owned
		return s.settle()
	case PublishFailed:
		s.Doubt = &e.Why
		return s, nil
	}
	s.Waiting = false
	if f, ok := ev.(Failed); ok {
		return s.failed(f)
	}
	switch e := ev.(type) {
	case Looked:
		return s.looked(e)
	case Resolved:
		return s.resolved(e)
	case Resumed:
		return s.resumed(e)
	case Synced:
		return s.through(e.Problem, PhasePlan)
	case Planned:
		return s.planned(e)
	case Written:
		return s.written(e)
	case Stilled:
		return s.stilled(e)
	case Published:
		return s.published(e)
	case Slot:
		return s.slot(e)
	case ReadBacked:
		return s.readBacked(e)
	case Hinted:
		return s.begin(PhaseAck)
	case Acked:
		return s.acked(e.Record)
	case Waited:
		return s.waited()
	}
	panic(fmt.Sprintf("merger: event %T", ev)) // a new event type without a case: a programming error
}

// begin enters a phase and asks for its effect.
func (s State) begin(p Phase) (State, []Effect) {
	s.Phase = p
	s.Waiting = true
	switch p {
	case PhaseRecover:
		return s, []Effect{Look{Known: s.Known, Full: true}}
	case PhaseLook:
		s.Unlooked = false
		return s, []Effect{Look{Known: s.Known}}
	case PhaseConfirm:
		return s, []Effect{Look{Known: s.Known, Confirm: true}}
	case PhaseResolve:
		return s, []Effect{ResolveStart{}}
	case PhaseResume:
		return s, []Effect{Resume{s.Positions, s.Topics, s.Cluster, s.Deletes}}
	case PhaseSync:
		return s, []Effect{Sync{s.Base, s.Batch, s.Deletes}}
	case PhasePlan:
		return s, []Effect{Plan{s.Batch}}
	case PhaseWrite:
		return s, []Effect{Write{
			Batch: s.Batch, Base: s.Base, Target: s.Target, Seq: s.Seq + 1, Epoch: s.Epoch,
			Chain: s.Chain, Gaps: s.Gaps + s.Batch.Gaps, Deletes: s.Deletes, Topics: s.Topics, Cluster: s.Cluster, Attempt: s.Attempt,
			Unlooked: s.Unlooked,
		}}
	case PhaseStill:
		return s, []Effect{Still{s.Base}}
	case PhasePublish:
		s.InFlight, s.Doubt = true, nil
		return s, []Effect{Publish{s.Target}}
	case PhaseSlot:
		return s, []Effect{ReadSlot{s.Target, s.Txn}}
	case PhaseAfter:
		return s, []Effect{ReadBack{s.Target, s.Txn, s.Base}}
	case PhaseHint:
		return s, []Effect{WriteHint{s.Target}}
	case PhaseAck:
		return s, []Effect{Acknowledge{Batch: s.Batch, Target: s.Target}}
	}
	s.Waiting = false
	return s, nil
}

func (s State) with(before []Effect, next func(State) (State, []Effect)) (State, []Effect) {
	s, after := next(s)
	return s, append(before, after...)
}

// settle is where the loop decides what to do next when nothing is under way.
func (s State) settle() (State, []Effect) {
	if s.Waiting {
		return s, nil
	}
	switch {
	case s.Phase == PhaseStopped:
		return s, nil
	case s.Stop && s.idle(), !s.Owned, s.Stop && s.Phase == PhaseHalted:
		return s.leave()
	case s.Again && s.Phase == PhaseIdle:
		return s.recover()
	case s.Trouble != nil && s.Phase == PhaseIdle && s.Batch == nil:
		return s.halt(*s.Trouble)
	case s.Reopen && s.Phase == PhaseIdle && s.Batch == nil:
		return s.reopen()
	case s.Phase == PhaseIdle && s.Batch != nil && (!s.Paused || mutant.On(mutant.PauseHolds)):
		s.Attempt = 1
		return s.firstAttempt()
	}
	return s, nil
}

// firstAttempt begins a batch with a look at the table. Where nobody else was seen to
// commit since our own last commit, what a look would find is known: there the attempt
// is built on that commit at once, and the look is asked beside its files, which saves
// a store far away a round trip. Nothing is published before that look is answered, so
// all that it may find is found as before, only after the files were written:
//
//	we:     commit 7 │ plan, write 8 beside a look │ still, publish 8
//	others:          8 ............................. the look finds it: plan anew, on 8
//	                 rollback, schema, record ...... the look finds it: halt, reopen, fenced
//	                                        8 ...... the name is taken: look, plan anew
//	                                        rollback the base is gone: read back halts
//
// The last two are those that an attempt meets which looked first. Who commits often to the same table would make each such attempt a wasted one: after
// a commit of somebody else batches look first until one finds nothing new.
func (s State) firstAttempt() (State, []Effect) {
	own := s.Own
	s.Own, s.Moved = nil, false
	if own == nil || s.Batch.Op != "" {
		return s.begin(PhaseLook)
	}
	s.adoptRecord(own)
	s.Base, s.Target, s.Unlooked = s.Known, s.Known.ID+1, true
	return s.begin(PhaseSync)
}

// idle: no batch is in hand, or one that may not be begun now.
func (s State) idle() bool { return s.Batch == nil || s.Phase == PhaseIdle && s.Paused }

// leave ends the work on the table, for good or until the group gives it back.
// What was wrong with it is for the next owner to find.
func (s State) leave() (State, []Effect) {
	s.Phase = PhaseStandby
	if s.Stop {
		s.Phase = PhaseStopped
	} else {
		s.Halt, s.Reopen = nil, false
	}
	s.Again, s.Retries = false, 0
	return s.dropBatch(func(s State) (State, []Effect) { return s, nil })
}

// reopen ends the loop so that another one takes its place, with the table's newest
// schema. Nothing is in flight: a batch in hand is read again.
func (s State) reopen() (State, []Effect) {
	s.Reopen, s.Stop = true, true
	return s.with([]Effect{Note{NoticeReopened}}, State.leave)
}

// dropBatch forgets the batch in hand; the source reads it again if it matters.
func (s State) dropBatch(next func(State) (State, []Effect)) (State, []Effect) {
	var out []Effect
	if s.Batch != nil {
		out = append(out, Drop{s.Batch})
	}
	s.Batch, s.InFlight, s.Txn, s.Attempt = nil, false, "", 0
	return s.with(out, next)
}

func (s State) assigned() (State, []Effect) {
	s.Owned = true
	if s.Stop {
		return s, nil
	}
	if s.Waiting {
		// What is under way is protected by the fence like everything else; the
		// source gets its positions when it is done.
		s.Again = true
		return s, nil
	}
	return s.recover()
}

// revoked: before the publish the attempt is abandoned at its next event; a
// publish in flight is resolved first, for only reading tells its outcome.
func (s State) revoked() (State, []Effect) {
	s.Owned = false
	return s.settle()
}

// recover reads the table anew and drops what was built on older knowledge.
func (s State) recover() (State, []Effect) {
	s.Again, s.Trouble, s.Reopen, s.Own = false, nil, false, nil
	return s.dropBatch(func(s State) (State, []Effect) { return s.begin(PhaseRecover) })
}

// batchReady takes a batch into hand, or sends it away. The source goes on from
// its end all the same, so unless it is told soon anyway from where to read, it
// is told again.
func (s State) batchReady(b *BatchInfo) (State, []Effect) {
	drop := []Effect{Drop{b}}
	switch {
	case s.Phase == PhaseHalted, s.Phase == PhaseStopped, !s.Owned:
		return s, drop
	case s.Waiting, s.Batch != nil:
		s.Again = true
		return s, drop
	case b.operator():
	case s.Positions == nil || !b.Start.SameNext(s.Positions):
		return s.with(drop, State.recover) // it reads from elsewhere than the table stands
	}
	s.Batch = b
	return s.settle()
}

func (s State) tick() (State, []Effect) {
	if s.Waiting || s.Phase != PhaseIdle || s.Batch != nil || !s.Owned || mutant.On(mutant.IdleTick) {
		return s, nil
	}
	return s.begin(PhaseLook)
}

// recheck looks at the table now: an operator changed something. It ends a halt
// if its cause is gone.
func (s State) recheck() (State, []Effect) {
	if s.Waiting || s.Phase != PhaseHalted {
		s, out := s.settle()
		if len(out) > 0 {
			return s, out
		}
		return s.tick()
	}
	s.Retries = 0
	if s.InFlight {
		s.Halt = nil
		return s.begin(PhaseSlot)
	}
	return s.recover()
}

// sourceHalted: what was read before the trouble is sound and goes on first.
// Without the table there is nothing to stop, but a group that cannot be joined
// must show.
func (s State) sourceHalted(h Halt) (State, []Effect) {
	if s.Phase == PhaseStandby {
		return s.show(h)
	}
	s.Trouble = &h
	return s.settle()
}

// halt stops the pipeline. Codes that retry look again after a pause.
func (s State) halt(h Halt) (State, []Effect) {
	s, out := s.show(h)
	if h.Code.Info().Retries && s.Owned && !s.Stop {
		s.Retries = max(s.Retries, retriesBeforeHalt)
		s, wait := s.retry(PhaseRecover)
		return s, append(out, wait...)
	}
	s.Phase = PhaseHalted
	return s.with(out, func(s State) (State, []Effect) {
		if s.InFlight && s.Owned && !s.Stop {
			return s, nil // its outcome may still be learnt
		}
		return s.dropBatch(State.settle)
	})
}

// show makes a halt visible, once. What is tried again says the same with other
// facts each time (the name of a temporary file, say): no news.
func (s State) show(h Halt) (State, []Effect) {
	old := s.Halt
	s.Halt = &h
	if old != nil && (*old == h || old.Code == h.Code && h.Code.Info().Retries) {
		return s, nil
	}
	return s, []Effect{Halted{h}}
}

// retry enters phase after behind a pause; a publish in flight is always
// resolved first, whatever else failed.
func (s State) retry(after Phase) (State, []Effect) {
	if s.InFlight && after != PhasePublish {
		after = PhaseSlot
	}
	switch {
	case s.givesUp(after):
		return s.dropBatch(State.settle)
	case s.rests(after):
		s.Phase = PhaseIdle
		return s.settle()
	}
	s.Retries++
	s.After = after
	s.Phase, s.Waiting = PhaseBackoff, true
	return s, []Effect{Wait{s.Retries}}
}

// givesUp: a retry is not worth waiting for, since the table is not ours any more
// or the program ends, and nothing can have been published.
func (s State) givesUp(after Phase) bool {
	return !s.InFlight && !committed(after) && (!s.Owned || s.Stop)
}

// rests: a pause falls between two tries of a batch, so the next one can wait.
func (s State) rests(after Phase) bool { return s.Paused && !s.InFlight && after == PhaseLook }

// failed handles an effect that could not be done: nothing changed, try again.
func (s State) failed(f Failed) (State, []Effect) {
	if s.abandoned() {
		return s.settle()
	}
	if !f.Code.Info().Retries {
		return s.halt(Halt(f))
	}
	after := PhaseLook
	switch {
	case s.committed():
		after = s.Phase
	case s.Batch == nil, s.Batch.Op == "start":
		after = PhaseRecover
	}
	var out []Effect
	if s.Retries >= retriesBeforeHalt {
		s, out = s.show(Halt(f))
	}
	s, wait := s.retry(after)
	return s, append(out, wait...)
}

// abandoned: the attempt is not worth going on with, and nothing of it can have
// been published.
func (s State) abandoned() bool {
	return !s.Owned && !s.InFlight && !s.committed() && !mutant.On(mutant.DropOnRevoke)
}

// committed: the batch is in the table, only the work after it is left.
func (s State) committed() bool { return committed(s.Phase) }

func committed(p Phase) bool { return p == PhaseAfter || p == PhaseHint || p == PhaseAck }

func (s State) waited() (State, []Effect) {
	switch {
	case s.givesUp(s.After):
		return s.dropBatch(State.settle)
	case s.rests(s.After):
		s.Phase = PhaseIdle
		return s.settle()
	case s.After == PhaseRecover:
		// The source is told where to read from afterwards, so the batch goes.
		return s.recover()
	case s.After == PhaseLook:
		s.Attempt++
	case s.After == PhasePublish && !s.Owned:
		return s.begin(PhaseSlot) // not ours to try again; what became of it may be known now
	}
	return s.begin(s.After)
}

// looked is steps 2 and 3: is the table sound, does it stand where the batch starts?
func (s State) looked(l Looked) (State, []Effect) {
	if s.abandoned() {
		return s.settle()
	}
	if l.Problem != nil && (!s.overrides(l.Problem.Code) || l.Latest.ID == 0) {
		return s.halt(*l.Problem)
	}
	if l.Reopen {
		return s.reopen()
	}
	if s.Phase == PhaseRecover {
		return s.recovered(l)
	}
	var notes []Effect
	if s.Phase == PhaseConfirm {
		// With the very snapshot that the attempt is built on still the latest, all that
		// it took for granted holds, the record's positions and epoch included.
		if l.Latest == s.Base {
			return s.begin(PhaseStill)
		}
		s.Attempt, s.Txn, s.Unlooked = s.Attempt+1, "", false
		notes = append(notes, Note{NoticeStillMoved}, Discard{})
	}
	if !l.KnownIntact {
		notes = append(notes, Note{NoticeLostSnapshot})
	}
	if s.Moved = l.Latest != s.Known; s.Moved {
		s.Own = nil
	}
	s.Known = l.Latest
	if s.Batch == nil {
		return s.with(notes, func(s State) (State, []Effect) { return s.idleLooked(l) })
	}
	if n, fenced := s.fence(l); fenced {
		notes = append(notes, Note{n})
		return s.with(notes, func(s State) (State, []Effect) {
			return s.dropBatch(func(s State) (State, []Effect) { return s.recovered(l) })
		})
	}
	s.adoptRecord(l.Record)
	s.Base, s.Target = l.Latest, l.Latest.ID+1
	return s.with(notes, func(s State) (State, []Effect) { return s.begin(PhaseSync) })
}

// operatorBatch reports whether a command's batch is in hand: it works without
// the group, for the fence protects it like any other.
func (s State) operatorBatch() bool { return s.Batch != nil && s.Batch.operator() }

// overrides: a command that states positions is the answer to these codes, if the
// snapshot is known that it is to follow.
func (s State) overrides(c Code) bool {
	if !s.operatorBatch() {
		return false
	}
	switch c {
	case CodeChain, CodeRollback, CodeOffsetLost, CodeReplaced, CodeClone, CodeSecondGroup, CodeConfig:
		return true
	}
	return false
}

// fence compares the table's record with the batch's start and our epoch.
func (s State) fence(l Looked) (Notice, bool) {
	if s.Batch.Op == "start" {
		return NoticeFenced, l.Record != nil
	}
	if s.Batch.operator() || mutant.On(mutant.FenceEveryAttempt) && s.Attempt > 1 || mutant.On(mutant.UnknownIsNotFailed) && s.Attempt > 1 {
		return "", false
	}
	if l.Record == nil {
		return NoticeFenced, true
	}
	pos, err := l.Record.Positions()
	if err != nil || !pos.SameNext(s.Batch.Start) || !s.sameTopics(l.Record) {
		return NoticeFenced, true
	}
	if l.Record.Epoch > s.Epoch {
		return NoticeFencedEpoch, true
	}
	return "", false
}

// sameTopics reports whether a record's positions are of the topics that are read:
// in a topic created anew the same numbers mean other records.
func (s State) sameTopics(r *Record) bool { return maps.Equal(r.TopicIDs(), s.Topics) }

// adoptRecord takes what the next record builds on from the newest one.
func (s *State) adoptRecord(r *Record) {
	if r == nil {
		s.Seq, s.Chain, s.Gaps, s.Deletes = 0, "", 0, nil
	} else {
		s.Seq, s.Chain, s.Gaps, s.Deletes = r.Seq, r.Chain, r.Gaps, r.Deletes
		if s.Batch.operator() {
			s.Epoch = max(s.Epoch, r.Epoch+1)
		}
	}
	if s.Batch.Topics != nil {
		s.Topics, s.Cluster = s.Batch.Topics, s.Batch.Cluster
	}
}

// recovered decides how to go on from what the table says.
func (s State) recovered(l Looked) (State, []Effect) {
	s.Known = l.Latest
	if s.Stop {
		return s.settle()
	}
	if l.Record == nil {
		if l.Marker && !mutant.On(mutant.Marker) {
			return s.halt(Halt{CodeOffsetLost, "no position record is left in the retained snapshots, although this pipeline has committed before"})
		}
		return s.begin(PhaseResolve)
	}
	pos, err := l.Record.Positions()
	if err != nil {
		return s.halt(Halt{CodeVersion, err.Error()})
	}
	s.Positions = pos
	s.Epoch, s.Deletes = l.Record.Epoch+1, l.Record.Deletes
	s.Topics, s.Cluster = l.Record.TopicIDs(), l.Record.Cluster
	if !l.Marker || !l.Pinned {
		return s.with([]Effect{Mark{l.RecordAt}}, func(s State) (State, []Effect) { return s.begin(PhaseResume) })
	}
	return s.begin(PhaseResume)
}

// idleLooked compares an idle table with memory: without it a rollback is not
// noticed before the next record arrives.
func (s State) idleLooked(l Looked) (State, []Effect) {
	if l.Record == nil {
		return s.halt(Halt{CodeOffsetLost, "the position record disappeared from the retained snapshots"})
	}
	pos, err := l.Record.Positions()
	if err != nil {
		return s.halt(Halt{CodeVersion, err.Error()})
	}
	if !pos.SameNext(s.Positions) || !s.sameTopics(l.Record) || l.Record.Epoch > s.Epoch {
		n := NoticeMovedOn
		if movedBack(pos, s.Positions) {
			n = NoticeMovedBack
		}
		return s.with([]Effect{Note{n}}, func(s State) (State, []Effect) { return s.recovered(l) })
	}
	s.Retries, s.Halt = 0, nil
	if !l.Pinned || !l.Marker {
		return s.with([]Effect{Mark{l.RecordAt}}, func(s State) (State, []Effect) {
			s.Phase = PhaseIdle
			return s.settle()
		})
	}
	if l.Stale && !s.Paused && !mutant.On(mutant.CarryForward) {
		s.Batch = &BatchInfo{Start: s.Positions, Next: s.Positions, Op: "carry"}
		s.Attempt = 1
		s.adoptRecord(l.Record)
		s.Base, s.Target = l.Latest, l.Latest.ID+1
		return s.begin(PhaseSync)
	}
	s.Phase = PhaseIdle
	return s.settle()
}

func movedBack(now, before change.Positions) bool {
	for _, p := range before.Sorted() {
		if now[p].Next < before[p].Next {
			return true
		}
	}
	return false
}

func (s State) resolved(r Resolved) (State, []Effect) {
	if s.abandoned() || s.Stop {
		return s.settle()
	}
	if r.Problem != nil {
		return s.halt(*r.Problem)
	}
	if mutant.On(mutant.StartCommit) {
		s.Epoch, s.Positions, s.Topics, s.Cluster = 1, r.Start, r.Topics, r.Cluster
		return s.begin(PhaseResume)
	}
	s.Epoch = 1
	s.Topics, s.Cluster = maps.Clone(r.Topics), r.Cluster
	s.Batch = &BatchInfo{Start: change.Positions{}, Next: r.Start, Op: "start", Topics: s.Topics, Cluster: s.Cluster}
	s.Phase = PhaseIdle
	return s.with([]Effect{Note{NoticeFirstStart}}, State.settle)
}

func (s State) resumed(r Resumed) (State, []Effect) {
	if s.abandoned() {
		return s.settle()
	}
	if r.Problem != nil {
		return s.halt(*r.Problem)
	}
	s.Retries, s.Halt = 0, nil
	s.Phase = PhaseIdle
	return s.settle()
}

// through goes from one step to the next unless a problem or a revocation stops it.
func (s State) through(problem *Halt, next Phase) (State, []Effect) {
	if s.abandoned() {
		return s.settle()
	}
	if problem != nil {
		return s.halt(*problem)
	}
	return s.begin(next)
}

// planned: a row that cannot be applied sends everything back to the source, which
// stops right before its record; so the table stands there when the halt shows,
// and a command that steps over one record steps over one.
func (s State) planned(p Planned) (State, []Effect) {
	if p.Refused && !s.abandoned() {
		return s.recover()
	}
	return s.through(p.Problem, PhaseWrite)
}

func (s State) written(w Written) (State, []Effect) {
	if s.abandoned() {
		return s.settle()
	}
	if w.Conflict {
		s.Attempt++
		return s.with([]Effect{Note{NoticeConflict}, Discard{}}, func(s State) (State, []Effect) { return s.begin(PhaseLook) })
	}
	s.Txn = w.Txn
	if s.Unlooked && !mutant.On(mutant.Confirm) {
		return s.begin(PhaseConfirm)
	}
	return s.begin(PhaseStill)
}

func (s State) stilled(e Stilled) (State, []Effect) {
	if s.abandoned() {
		return s.settle()
	}
	if !e.Same {
		return s.again(NoticeStillMoved)
	}
	return s.begin(PhasePublish)
}

// again re-resolves the batch on the newer table: keys are looked up again.
func (s State) again(n Notice) (State, []Effect) {
	s.InFlight, s.Txn = false, ""
	s.Attempt++
	if !s.Owned {
		return s.with([]Effect{Note{n}, Discard{}}, State.settle)
	}
	return s.with([]Effect{Note{n}, Discard{}}, func(s State) (State, []Effect) { return s.begin(PhaseLook) })
}

func (s State) published(p Published) (State, []Effect) {
	switch p.Result {
	case PublishWon:
		s.InFlight = false
		return s.begin(PhaseAfter)
	case PublishUnknown:
		if mutant.On(mutant.UnknownIsNotFailed) {
			return s.again(NoticeUnknown)
		}
		return s.with([]Effect{Note{NoticeUnknown}}, func(s State) (State, []Effect) { return s.begin(PhaseSlot) })
	case PublishVoid:
		return s.again(NoticeVoid)
	}
	return s.begin(PhaseSlot)
}

// slot resolves an unknown outcome or a taken name by reading.
func (s State) slot(e Slot) (State, []Effect) {
	switch e.Holder {
	case SlotOurs:
		s.InFlight = false
		return s.with([]Effect{Note{NoticeUnknownWon}}, func(s State) (State, []Effect) { return s.begin(PhaseAfter) })
	case SlotOther:
		return s.again(NoticeLostRace)
	case SlotAbsent:
		if !s.Owned {
			// Not ours to try again. A late arrival of the first try is a sound commit
			// for whoever owns the table, who finds it by its fence.
			return s.with([]Effect{Note{NoticeUnknownAbsent}}, State.leave)
		}
		// Nothing is there. The same bytes under the same name are safe whatever a
		// late arrival of the first try does: one of them wins, both are ours.
		notes := []Effect{Note{NoticeUnknownAbsent}}
		if s.Doubt != nil && s.Retries >= retriesBeforeHalt {
			var told []Effect
			s, told = s.show(*s.Doubt)
			notes = append(notes, told...)
		}
		return s.with(notes, func(s State) (State, []Effect) { return s.retry(PhasePublish) })
	}
	var out []Effect
	if s.Retries >= retriesBeforeHalt {
		s, out = s.show(Halt{CodeIO, fmt.Sprintf("snapshot %d cannot be read, so it is unknown whether the batch was committed", s.Target)})
	}
	s, wait := s.retry(PhaseSlot)
	return s, append(out, wait...)
}

func (s State) readBacked(r ReadBacked) (State, []Effect) {
	switch r.Result {
	case BackReplaced:
		// Overwritten by a writer that checks and then renames: our rows are gone
		// and so is their record. Start over from what the table says.
		return s.with([]Effect{Note{NoticeLostSnapshot}}, func(s State) (State, []Effect) {
			s.Known = SnapRef{}
			return s.recover()
		})
	case BackBroken:
		s.InFlight = false
		return s.halt(Halt{CodeChain, fmt.Sprintf("snapshot %d was published on snapshot %d, which was removed or replaced meanwhile", s.Target, s.Base.ID)})
	}
	return s.begin(PhaseHint)
}

func (s State) acked(r *Record) (State, []Effect) {
	b := s.Batch
	s.Own = nil
	if b.Op == "" && !s.Moved {
		s.Own = r
	}
	s.Positions = b.Next
	s.Known = SnapRef{s.Target, s.Txn}
	s.Batch, s.Txn, s.Attempt, s.Retries, s.Halt = nil, "", 0, 0, nil
	notes := []Effect{Note{NoticeCommitted}}
	if b.Op == "carry" {
		notes = append(notes, Note{NoticeCarried})
	}
	if b.Op == "start" || b.operator() {
		return s.with(notes, func(s State) (State, []Effect) {
			if s.Owned && !s.Stop {
				return s.recover()
			}
			return s.settle()
		})
	}
	s.Phase = PhaseIdle
	return s.with(notes, State.settle)
}
