// Package mutant names the rules of the commit protocol that the simulation
// switches off one at a time, to show that it would notice: a test that no
// broken program fails proves nothing. In an ordinary build On is the constant
// false and nothing of this is left in the program; with the build tag "mutants"
// a test chooses the rule that is broken (make sim-mutants).
package mutant

// Name is the rule that a mutant leaves out.
type Name string

// The rules, by where they stand in reliability.md.
const (
	// FenceEveryAttempt: the table's positions are compared at the first attempt only.
	FenceEveryAttempt Name = "fence-every-attempt"
	// LookupAgain: after a lost race the old plan is committed on the newer table.
	LookupAgain Name = "lookup-again"
	// UnknownIsNotFailed: an error of the publish is taken for a failure, and the
	// batch planned again without asking the table where it stands.
	UnknownIsNotFailed Name = "unknown-is-not-failed"
	// NeverDelete: the files of an attempt that seems to have failed are removed.
	NeverDelete Name = "never-delete"
	// PositionsFromTable: reading begins where the group's offsets say.
	PositionsFromTable Name = "positions-from-table"
	// CarryForward: a record that foreign snapshots push towards expiry stays there.
	CarryForward Name = "carry-forward"
	// Marker: no record left is taken for a first start.
	Marker Name = "marker"
	// StartCommit: a first start reads without having committed where.
	StartCommit Name = "start-commit"
	// IndexIdentity: an index is trusted for a snapshot of the same number.
	IndexIdentity Name = "index-identity"
	// RollbackSign: the newest record is searched behind a rollback by a new snapshot.
	RollbackSign Name = "rollback-sign"
	// IdleTick: an idle instance does not look at the table.
	IdleTick Name = "idle-tick"
	// BaseLink: nobody looks whether a record of ours stands on its base.
	BaseLink Name = "base-link"
	// DropOnRevoke: a batch in hand is committed although the table was revoked.
	DropOnRevoke Name = "drop-on-revoke"
	// ReadBack: a publish that was acknowledged is not read back.
	ReadBack Name = "read-back"
	// SyncFiles: data files and manifests are not synced before the publish.
	SyncFiles Name = "sync-files"
	// SyncStaged: the snapshot's own bytes are not synced before its link.
	SyncStaged Name = "sync-staged"
	// SyncName: the folder of a snapshot is not synced before the acknowledgement.
	SyncName Name = "sync-name"
	// SyncFound: a commit of ours that is found after an error is not made durable.
	SyncFound Name = "sync-found"
	// SecureForeign: a foreign snapshot is built on without being synced.
	SecureForeign Name = "secure-foreign"
	// FreshAfterFailedSync: a file whose fsync failed is synced again, not written anew.
	FreshAfterFailedSync Name = "fresh-after-failed-sync"
	// UnionVectors: a new deletion vector forgets the old one of its file.
	UnionVectors Name = "union-vectors"
	// SiblingVectors: rewriting an index file forgets the vectors of other files in it.
	SiblingVectors Name = "sibling-vectors"
	// FollowVectors: foreign deletion vectors are not taken over into the index.
	FollowVectors Name = "follow-vectors"
	// ProbeUpwards: the LATEST hint is believed without looking above it.
	ProbeUpwards Name = "probe-upwards"
	// TableIdentity: a table created anew under the old name is not noticed.
	TableIdentity Name = "table-identity"
	// SchemaCheck: a changed schema is not noticed.
	SchemaCheck Name = "schema-check"
	// OptionsCheck: options that this version does not write are not noticed.
	OptionsCheck Name = "options-check"
	// TopicIdentity: a topic created anew under the old name is not noticed.
	TopicIdentity Name = "topic-identity"
	// EpochEnds: a log that was cut and grew again is not noticed.
	EpochEnds Name = "epoch-ends"
	// LogStart: records that retention removed before they were applied are not missed.
	LogStart Name = "log-start"
	// AllPartitions: an instance reads although it has a part of the partitions.
	AllPartitions Name = "all-partitions"
	// PauseHolds: a paused instance begins its next batch.
	PauseHolds Name = "pause-holds"
	// Confirm: an attempt that began without a look is published without one.
	Confirm Name = "confirm"
)

// All lists the rules.
func All() []Name {
	return []Name{
		FenceEveryAttempt, LookupAgain, UnknownIsNotFailed, NeverDelete, PositionsFromTable, CarryForward, Marker,
		StartCommit, IndexIdentity, RollbackSign, IdleTick, BaseLink, DropOnRevoke, ReadBack, SyncFiles, SyncStaged,
		SyncName, SyncFound, SecureForeign, FreshAfterFailedSync, UnionVectors, SiblingVectors, FollowVectors,
		ProbeUpwards, TableIdentity, SchemaCheck, OptionsCheck, TopicIdentity, EpochEnds, LogStart, AllPartitions, PauseHolds,
		Confirm,
	}
}
