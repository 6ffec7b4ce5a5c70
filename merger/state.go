package merger

import (
	"fmt"
	"strings"

	"applier/ingest/change"
)

// Phase is where the commit loop stands.
type Phase uint8

// The phases. From Look to Ack they follow the steps of the commit protocol.
const (
	PhaseStandby Phase = iota // the table is not ours to write
	PhaseRecover              // reading the table before anything else
	PhaseResolve              // first start: asking Kafka where to begin
	PhaseResume               // telling the source from where to read
	PhaseIdle                 // waiting for a batch
	PhaseLook                 // step 2, 3: find the latest snapshot and the record, fence
	PhaseSync                 // step 4: bring the index up to the latest snapshot
	PhasePlan                 // step 5: look keys up, decide rows
	PhaseWrite                // step 6–9: write data, vectors, manifests; build the snapshot
	PhaseConfirm              // step 2, 3 of an attempt that began without them
	PhaseStill                // step 10: is the base still the latest?
	PhasePublish              // step 11: create snapshot-N
	PhaseSlot                 // step 12: read snapshot-N to learn what happened
	PhaseAfter                // step 13: read back
	PhaseHint                 // step 14
	PhaseAck                  // step 15
	PhaseBackoff              // waiting before the next try
	PhaseHalted               // stopped with a code
	PhaseStopped              // shut down
)

var phaseNames = [...]string{
	"standby", "recover", "resolve", "resume", "idle", "look", "sync", "plan", "write", "confirm",
	"still", "publish", "slot", "after", "hint", "ack", "backoff", "halted", "stopped",
}

// String returns the phase's name.
func (p Phase) String() string { return phaseNames[p] }

// SnapRef identifies a snapshot: ids are re-used after a rollback, so the
// identity (uuid, or a hash of the file for writers without) goes with it.
type SnapRef struct {
	ID    int64
	Ident string
}

// BatchInfo is what the core knows of a batch; its rows are with the shell.
type BatchInfo struct {
	ID    uint64
	Start change.Positions // the table must stand exactly here
	Next  change.Positions // and stands here afterwards
	Op    string           // "" for records of Kafka, else as Record.Op
	// Topics and Cluster go into the record; for batches of Kafka they are those
	// of the record before.
	Topics  map[string]string
	Cluster string
	// Gaps are records an operator skips with this batch.
	Gaps int64
}

// operator reports whether the batch was made by a command: it may start on
// any record, adopt another pipeline's, or none.
func (b *BatchInfo) operator() bool { return b.Op == "set" || b.Op == "skip" || b.Op == "adopt" }

// State is everything the commit loop remembers. It is a value: Step never
// changes what an older State can see.
type State struct {
	Phase Phase
	// After is the phase that a backoff leads to: PhaseRecover, PhaseLook, PhaseSlot,
	// PhasePublish, or one of those after the commit.
	After Phase
	// Waiting: an effect is under way and its event is due.
	Waiting bool

	Owned  bool // the group gave us the table
	Paused bool // by an operator
	Stop   bool // shut down when the batch in hand is done
	Again  bool // recover when what is under way is done
	// Reopen: the table is to be opened anew, once the batches in hand are through;
	// with Stop, the loop ends for it.
	Reopen bool
	// Trouble is what the source reported; it halts the pipeline once the batches
	// before it are through.
	Trouble *Halt

	Epoch     int64
	Seq       int64
	Chain     string
	Gaps      int64
	Deletes   *RememberedDeletes // of the newest record; never changed
	Topics    map[string]string  // topic ids
	Cluster   string
	Positions change.Positions // of the newest record, as far as known; nil before the first look
	Known     SnapRef          // newest snapshot seen and found sound
	Batch     *BatchInfo
	// Own is the record of the newest snapshot, if this loop committed it and has seen
	// nobody else commit since the commit before: the next batch begins on it without
	// a look. nil: it looks first.
	Own      *Record
	Unlooked bool    // this attempt began on Own; it looks before it publishes
	Moved    bool    // somebody else committed before this batch
	Attempt  int     // of this batch, from 1
	Base     SnapRef // what this attempt is built on
	Target   int64   // the snapshot id this attempt publishes
	InFlight bool    // a publish of this attempt may have happened
	Doubt    *Halt   // why the outcome of the last publish is unknown; nil without one
	Retries  int     // consecutive failures, for the backoff
	Halt     *Halt
	Txn      string // identifies the snapshot of this attempt
}

// Quiet reports whether a paused loop publishes nothing more until it is resumed.
func (s State) Quiet() bool { return s.Paused && s.idle() }

// Effects: what the core asks of the world. Those up to Wait are answered by
// exactly one event; the others by none.
type (
	// Look: find the latest snapshot and the newest record → Looked or Failed.
	Look struct {
		Known SnapRef
		Full  bool // list and check the whole chain, the schema and the identity
		// Confirm: it is asked beside the files of an attempt that began without it.
		Confirm bool
	}
	// ResolveStart: ask Kafka where a first start begins → Resolved or Failed.
	ResolveStart struct{}
	// Resume: check positions against Kafka and read from there → Resumed or Failed.
	Resume struct {
		Positions change.Positions
		Topics    map[string]string
		Cluster   string
		Deletes   *RememberedDeletes
	}
	// Sync: bring the index to snapshot To, and the remembered deletes to those of
	// its record → Synced or Failed.
	// Only the state is needed for batches without rows of Kafka.
	Sync struct {
		To      SnapRef
		Batch   *BatchInfo
		Deletes *RememberedDeletes
	}
	// Plan: decide the batch's rows on the synced index → Planned or Failed.
	Plan struct{ Batch *BatchInfo }
	// Write: write all files of the attempt and build its snapshot → Written or Failed.
	Write struct {
		Batch   *BatchInfo
		Base    SnapRef
		Target  int64
		Seq     int64
		Epoch   int64
		Chain   string
		Gaps    int64
		Deletes *RememberedDeletes // of the record before
		Topics  map[string]string
		Cluster string
		Attempt int
		// Unlooked: the look that comes next is to be asked beside the files.
		Unlooked bool
	}
	// Still: is Base still the latest, are we still a member → Stilled or Failed.
	Still struct{ Base SnapRef }
	// Publish: create snapshot Target with the bytes Write built → Published.
	Publish struct{ Target int64 }
	// ReadSlot: whose snapshot is Target → Slot.
	ReadSlot struct {
		Target int64
		Txn    string
	}
	// ReadBack: is our snapshot there, on its base → ReadBacked or Failed.
	ReadBack struct {
		Target int64
		Txn    string
		Base   SnapRef
	}
	// WriteHint: LATEST, best effort → Hinted.
	WriteHint struct{ Target int64 }
	// Acknowledge: advance the index, release the batch, write marker and pin, commit group offsets → Acked or Failed.
	Acknowledge struct {
		Batch  *BatchInfo
		Target int64
	}
	// Wait: let time pass, more with each try → Waited.
	Wait struct{ Retries int }

	// Drop: forget the batch.
	Drop struct{ Batch *BatchInfo }
	// Mark: write the marker and the consumer pin for the record at a snapshot, best effort.
	Mark struct{ At SnapRef }
	// Discard: forget what the attempt planned; its files stay.
	Discard struct{}
	// Halted: the pipeline stands still.
	Halted struct{ Halt Halt }
	// Note: something worth counting happened.
	Note struct{ What Notice }
)

// Effect is one of the effect types above.
type Effect interface{ effect() }

func (Look) effect()         {}
func (ResolveStart) effect() {}
func (Resume) effect()       {}
func (Sync) effect()         {}
func (Plan) effect()         {}
func (Write) effect()        {}
func (Still) effect()        {}
func (Publish) effect()      {}
func (ReadSlot) effect()     {}
func (ReadBack) effect()     {}
func (WriteHint) effect()    {}
func (Acknowledge) effect()  {}
func (Wait) effect()         {}
func (Drop) effect()         {}
func (Mark) effect()         {}
func (Discard) effect()      {}
func (Halted) effect()       {}
func (Note) effect()         {}

// Notice names what the core noticed, for metrics, logs and the simulation's
// sometimes-assertions.
type Notice string

// The notices.
const (
	NoticeFenced        Notice = "fenced"         // the table stood elsewhere than the batch starts
	NoticeFencedEpoch   Notice = "fenced_epoch"   // another instance with a higher epoch committed
	NoticeMovedBack     Notice = "moved_back"     // the table's record went back: a rollback
	NoticeMovedOn       Notice = "moved_on"       // another instance of this pipeline went on
	NoticeLostSnapshot  Notice = "lost_snapshot"  // a snapshot of ours was replaced
	NoticeLostRace      Notice = "lost_race"      // somebody took the snapshot id
	NoticeStillMoved    Notice = "still_moved"    // the table moved before we published
	NoticeUnknown       Notice = "unknown"        // the publish's outcome was unknown
	NoticeUnknownWon    Notice = "unknown_won"    // … and it had been applied
	NoticeUnknownLost   Notice = "unknown_lost"   // … and somebody else's is there
	NoticeUnknownAbsent Notice = "unknown_absent" // … and nothing is there: same bytes again
	NoticeFirstStart    Notice = "first_start"
	NoticeCarried       Notice = "carried" // an empty commit carried the record forward
	NoticeConflict      Notice = "conflict"
	NoticeVoid          Notice = "void"           // the attempt's files, or its table, are not there any more
	NoticeStarved       Notice = "commit_starved" // a batch loses its races for long
	NoticeReopened      Notice = "reopened"       // the table is opened anew, with its newest schema
	NoticeCommitted     Notice = "committed"
)

// Events: what the world tells the core. The first group answers effects.
type (
	// Looked answers Look.
	Looked struct {
		Problem *Halt
		Latest  SnapRef
		// Record is the pipeline's newest record, nil if there is none in the
		// retained snapshots; RecordAt is its snapshot.
		Record   *Record
		RecordAt SnapRef
		// KnownIntact: the snapshot Look.Known is still there unchanged (or was zero).
		KnownIntact bool
		// Marker: a marker says that this pipeline has committed to this table.
		Marker bool
		// Stale: foreign snapshots pile up behind the record; carry it forward.
		Stale bool
		// Pinned: the consumer pin is there and names the record.
		Pinned bool
		// Reopen: the table has a schema that the pipeline can follow, as another loop.
		Reopen bool
	}
	// Resolved answers ResolveStart.
	Resolved struct {
		Problem *Halt
		Start   change.Positions
		Topics  map[string]string
		Cluster string
	}
	// Resumed answers Resume.
	Resumed struct{ Problem *Halt }
	// Synced answers Sync.
	Synced struct{ Problem *Halt }
	// Planned answers Plan.
	Planned struct {
		Problem *Halt
		// Refused: a row cannot be applied, and the source was told which.
		Refused bool
	}
	// Written answers Write.
	Written struct {
		Txn string
		// Conflict: the plan no longer fits the table; look again.
		Conflict bool
	}
	// Stilled answers Still.
	Stilled struct{ Same bool }
	// PublishFailed says why the outcome of the publish under way will be unknown. It
	// comes before Published.
	PublishFailed struct{ Why Halt }
	// Published answers Publish.
	Published struct{ Result PublishResult }
	// Slot answers ReadSlot.
	Slot struct{ Holder SlotHolder }
	// ReadBacked answers ReadBack.
	ReadBacked struct{ Result ReadBackResult }
	// Hinted answers WriteHint.
	Hinted struct{}
	// Acked answers Acknowledge. Record is that of the snapshot; nobody changes it.
	Acked struct{ Record *Record }
	// Waited answers Wait.
	Waited struct{}
	// Failed answers any effect that could not be done. Nothing is known to have
	// changed, but for Publish, which answers Published{Unknown} instead.
	Failed struct {
		// Code is shown when the failure lasts; it must be one that Retries, or
		// the pipeline halts at once.
		Code  Code
		Facts string
	}

	// Assigned: the group gave us all partitions.
	Assigned struct{}
	// Revoked: the table is no longer ours.
	Revoked struct{}
	// BatchReady: a batch was closed.
	BatchReady struct{ Batch *BatchInfo }
	// Tick: time to look at an idle table.
	Tick struct{}
	// PauseAsked, ResumeAsked: an operator's commands. ResumeAsked also ends a halt.
	PauseAsked  struct{}
	ResumeAsked struct{}
	// RecheckAsked: the table was changed by a command, so look at it. It ends a
	// halt, but not a pause.
	RecheckAsked struct{}
	// Maintained: maintenance of this process has committed to the table, so the next
	// batch begins with a look.
	Maintained struct{}
	// StopAsked: finish the batch in hand and stop.
	StopAsked struct{}
	// ReopenAsked: what comes next needs the table opened anew, with another schema.
	// The source says so of what it read under a generation.
	ReopenAsked struct{ Generation uint64 }
	// SourceHalted: the source found something that must stop the pipeline, while
	// it read under a generation (0: while it did not read).
	SourceHalted struct {
		Halt       Halt
		Generation uint64
	}
)

// Event is one of the event types above.
type Event interface{ event() }

func (Looked) event()        {}
func (Resolved) event()      {}
func (Resumed) event()       {}
func (Synced) event()        {}
func (Planned) event()       {}
func (Written) event()       {}
func (Stilled) event()       {}
func (PublishFailed) event() {}
func (Published) event()     {}
func (Slot) event()          {}
func (ReadBacked) event()    {}
func (Hinted) event()        {}
func (Acked) event()         {}
func (Waited) event()        {}
func (Failed) event()        {}
func (Assigned) event()      {}
func (Revoked) event()       {}
func (BatchReady) event()    {}
func (Tick) event()          {}
func (PauseAsked) event()    {}
func (ResumeAsked) event()   {}
func (RecheckAsked) event()  {}
func (Maintained) event()    {}
func (StopAsked) event()     {}
func (ReopenAsked) event()   {}
func (SourceHalted) event()  {}

// PublishResult is the answer of the create-if-absent.
type PublishResult uint8

// The results. There is no "failed": an error is unknown until the slot is read.
const (
	PublishWon PublishResult = iota
	PublishExists
	PublishUnknown
	// PublishVoid: nothing was published, for files of the attempt are gone, or the
	// table it was made for. It has to be made again, if at all.
	PublishVoid
)

// SlotHolder says whose snapshot stands under a name.
type SlotHolder uint8

// The holders.
const (
	SlotAbsent SlotHolder = iota
	SlotOurs
	SlotOther
	SlotUnreadable
)

// ReadBackResult is what became of an acknowledged publish.
type ReadBackResult uint8

// The results.
const (
	BackSound    ReadBackResult = iota // there, on the base it was built on
	BackReplaced                       // somebody overwrote it, or it is gone
	BackBroken                         // there, but its base is not: the chain is broken
)

// String shows a batch in traces.
func (b *BatchInfo) String() string {
	if b == nil {
		return "none"
	}
	s := b.Op
	for _, p := range b.Next.Sorted() {
		s += fmt.Sprintf(" %s[%d,%d)", p, b.Start[p].Next, b.Next[p].Next)
	}
	return "{" + strings.TrimSpace(s) + "}"
}
