package admin

import (
	"context"
	"errors"
	"time"
)

// Source tells how the process is. Its methods are called concurrently and must
// return what is known without waiting.
type Source interface {
	// Ready returns why the process does not do its work now; nothing means it
	// does. The texts are public: no values, no secrets.
	Ready() []string
	// Status returns everything the status page shows. It must hold no secrets
	// and no row values.
	Status() Status
}

// Control carries out an operator's commands. Methods are called concurrently;
// they return when the command has taken effect, or with ctx. Errors wrap
// ErrNotFound, ErrInvalid or ErrConflict where one fits; their texts are shown
// to the operator.
type Control interface {
	// Pause stops a pipeline after the batch in flight, until Resume.
	Pause(ctx context.Context, pipeline string) error
	// Resume starts a paused or failed pipeline.
	Resume(ctx context.Context, pipeline string) error
	// Flush commits the open batch now.
	Flush(ctx context.Context, pipeline string) error
	// Offsets returns the positions recorded in the table and those of Kafka.
	Offsets(ctx context.Context, pipeline string) (Offsets, error)
	// ChangeOffsets moves the recorded positions and returns the new ones, or
	// those that would be with DryRun.
	ChangeOffsets(ctx context.Context, pipeline string, change OffsetChange) (Offsets, error)
}

// What a command may fail with.
var (
	ErrNotFound = errors.New("no such pipeline")                  // 404
	ErrInvalid  = errors.New("not a valid request")               // 400
	ErrConflict = errors.New("not possible in the present state") // 409
	ErrDenied   = errors.New("not allowed")                       // 401, 403; from the server only
)

// Status is the state of the process.
type Status struct {
	Version     string           `json:"version"`
	Revision    string           `json:"revision,omitempty"`
	Instance    string           `json:"instance,omitempty"`
	Started     time.Time        `json:"started"`
	Ready       bool             `json:"ready"`
	NotReady    []string         `json:"not_ready,omitempty"`
	MemoryUsed  int64            `json:"memory_used_bytes"`
	MemoryLimit int64            `json:"memory_limit_bytes"`
	Pipelines   []PipelineStatus `json:"pipelines"`
	// Config is the configuration in effect, as YAML without secrets.
	Config string `json:"config,omitempty"`
}

// PipelineStatus is the state of a pipeline.
type PipelineStatus struct {
	Name   string    `json:"name"`
	ID     string    `json:"id"`
	Table  string    `json:"table"`
	Apply  string    `json:"apply"`
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Halt   *Halt     `json:"halt,omitempty"`
	Detail string    `json:"detail,omitempty"` // what it is doing, for people
	// Why says what keeps it from its work, for people; empty while nothing does. A
	// halt and the last error say more.
	Why string `json:"why,omitempty"`
	// Alarms are what an operator should know although the pipeline goes on.
	Alarms []Halt `json:"alarms,omitempty"`
	// LastError is the last error that did not halt the pipeline.
	LastError     string    `json:"last_error,omitempty"`
	LastErrorTime time.Time `json:"last_error_time,omitzero"`

	Snapshot   int64     `json:"snapshot,omitempty"`
	LastCommit time.Time `json:"last_commit,omitzero"`
	// FreshnessSeconds is how old the table is, 0 if all input is in it. It is known
	// once Kafka said what there is. FreshnessSLOSeconds is what is promised, 0 if
	// nothing is.
	FreshnessSeconds    float64 `json:"freshness_seconds"`
	FreshnessKnown      bool    `json:"freshness_known"`
	FreshnessSLOSeconds float64 `json:"freshness_slo_seconds,omitempty"`
	LagRecords          int64   `json:"lag_records"`
	// Commits are the last ones of this process, the newest first.
	Commits []CommitStatus `json:"commits,omitempty"`
	// Health is the shape of the table, nil until it is known.
	Health *TableHealth `json:"table_health,omitempty"`

	Batch BatchStatus `json:"batch"`
	Index IndexStatus `json:"index"`
	// Deletes are the remembered deletes, nil if none are remembered.
	Deletes *DeletesStatus `json:"deletes,omitempty"`
	Rows    RowCounts      `json:"rows"`

	Partitions []PartitionStatus `json:"partitions,omitempty"`
}

// Halt is why a pipeline failed, and which command or change resolves it.
type Halt struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// CommitStatus is a commit of a batch.
type CommitStatus struct {
	Snapshot int64     `json:"snapshot"`
	Time     time.Time `json:"time"`
	Records  int64     `json:"records"`
	Inserted int64     `json:"inserted"`
	Updated  int64     `json:"updated"`
	Deleted  int64     `json:"deleted"`
	Seconds  float64   `json:"seconds"` // from the closed batch to the snapshot
}

// TableHealth is what readers of a table pay for.
type TableHealth struct {
	LiveRows    int64 `json:"live_rows"`
	DeletedRows int64 `json:"deleted_rows"` // that are skipped by deletion vectors
	Files       int   `json:"files"`
	SmallFiles  int   `json:"small_files"`
	Snapshots   int64 `json:"snapshots"`
	// UncompactedSeconds is how long compaction has had something to do.
	UncompactedSeconds float64 `json:"uncompacted_seconds"`
}

// BatchStatus is the batch that is being filled.
type BatchStatus struct {
	Records int64     `json:"records"`
	Bytes   int64     `json:"bytes"`
	Since   time.Time `json:"since,omitzero"`
}

// DeletesStatus is what a pipeline remembers of deletes (order_by.remember_deletes).
type DeletesStatus struct {
	Remembered  int   `json:"remembered"`
	MemoryBytes int64 `json:"memory_bytes"`
	// Deletes committed from ForgottenSince to ForgottenUntil are forgotten: a late
	// change that is older than one of them brings its row back. Zero: none are.
	ForgottenSince time.Time `json:"forgotten_since,omitzero"`
	ForgottenUntil time.Time `json:"forgotten_until,omitzero"`
}

// Forgotten says in one line which deletes are forgotten, "" for none.
func (d *DeletesStatus) Forgotten() string {
	if d == nil || d.ForgottenSince.IsZero() {
		return ""
	}
	return "deletes from " + d.ForgottenSince.UTC().Format(time.RFC3339) + " to " + d.ForgottenUntil.UTC().Format(time.RFC3339) +
		" are forgotten: a late change that is older than one of them brings its row back"
}

// IndexStatus is the key index of a pipeline.
type IndexStatus struct {
	Keys        int64   `json:"keys"`
	MemoryBytes int64   `json:"memory_bytes"`
	Progress    float64 `json:"progress"` // of a rebuild, 1 when none runs
}

// RowCounts counts since the start of the process.
type RowCounts struct {
	Inserted  int64 `json:"inserted"`
	Updated   int64 `json:"updated"`
	Deleted   int64 `json:"deleted"`
	Unchanged int64 `json:"unchanged"`
	Collapsed int64 `json:"collapsed"` // changes that a later one of the same batch replaced
	Dropped   int64 `json:"dropped"`
	Errors    int64 `json:"errors"`
	Commits   int64 `json:"commits"`
}

// PartitionStatus is a source partition.
type PartitionStatus struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Next      int64  `json:"next"`     // recorded in the table
	Received  int64  `json:"received"` // next offset to fetch
	End       int64  `json:"end"`
	Note      string `json:"note,omitempty"` // such as: held back
}

// Offsets is the positions of a pipeline.
type Offsets struct {
	Pipeline   string            `json:"pipeline"`
	Table      string            `json:"table"`
	Snapshot   int64             `json:"snapshot,omitempty"` // that records them
	Partitions []PartitionOffset `json:"partitions"`
	Note       string            `json:"note,omitempty"` // what a change did, for people
}

// PartitionOffset is the position in a source partition.
type PartitionOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Next      int64  `json:"next"`  // recorded in the table; -1 none
	Start     int64  `json:"start"` // oldest offset in Kafka; -1 unknown
	End       int64  `json:"end"`   // end offset in Kafka; -1 unknown
}

// The actions of OffsetChange.
const (
	ActionSet   = "set"   // to Positions, or to the records at Time; others stay, new ones begin at the log's start
	ActionSkip  = "skip"  // forward to Positions, or over what Kafka removed, recording the gap
	ActionAdopt = "adopt" // take over the record found in the table
)

// OffsetChange moves the positions of a pipeline.
type OffsetChange struct {
	Action    string     `json:"action"`
	Positions []Position `json:"positions,omitempty"`
	Time      time.Time  `json:"time,omitzero"`
	// DryRun only returns what would be.
	DryRun bool `json:"dry_run,omitempty"`
}

// Position is where a source partition is to be read next.
type Position struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Next      int64  `json:"next"`
}

// check finds what no pipeline could accept. The error wraps ErrInvalid.
func (c OffsetChange) check() error {
	invalid := func(text string) error { return wrap(ErrInvalid, text) }
	switch c.Action {
	case ActionSet: // without both: the log's start where no record applies
		if len(c.Positions) > 0 && !c.Time.IsZero() {
			return invalid("set takes positions or a time, not both")
		}
	case ActionSkip: // without positions: over what Kafka removed
		if !c.Time.IsZero() {
			return invalid("skip takes positions, not a time")
		}
	case ActionAdopt:
		if len(c.Positions) > 0 || !c.Time.IsZero() {
			return invalid("adopt takes the positions of the table and no others")
		}
	default:
		return invalid("action must be set, skip or adopt")
	}
	seen := map[Position]bool{}
	for _, p := range c.Positions {
		key := Position{Topic: p.Topic, Partition: p.Partition}
		if p.Topic == "" || p.Partition < 0 || p.Next < 0 {
			return invalid("a position needs a topic, a partition and an offset from 0")
		}
		if seen[key] {
			return invalid("a partition is named twice")
		}
		seen[key] = true
	}
	return nil
}
