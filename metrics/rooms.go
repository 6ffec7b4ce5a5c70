package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// The vectors of a room. Every vector's labels are (pipeline, table, ...) in the
// order of the table in names.go, unless the comment says otherwise. They are
// safe for concurrent use and work without a registerer. Resolve the series of
// hot paths once, with WithLabelValues, and keep them.

// Process is the metrics of the process as a whole.
type Process struct {
	MemoryBudget *prometheus.GaugeVec // no labels
	MemoryUsed   *prometheus.GaugeVec // component
	TLSInsecure  *prometheus.GaugeVec // no labels

	ConfigReloadErrors *prometheus.CounterVec // no labels
	ConfigReloads      *prometheus.CounterVec // no labels
	ConfigTaken        *prometheus.GaugeVec   // no labels
	ConfigHash         *prometheus.GaugeVec   // no labels
	ClockJumps         *prometheus.CounterVec // no labels
}

// NewProcess builds the metrics of the process.
func NewProcess(reg prometheus.Registerer) *Process { return newProcess(builder{reg: reg}) }

func newProcess(b builder) *Process {
	return &Process{
		MemoryBudget: b.gauge("applier_memory_budget_bytes"),
		MemoryUsed:   b.gauge("applier_memory_used_bytes"),
		TLSInsecure:  b.gauge("applier_tls_verification_disabled"),

		ConfigReloadErrors: b.counter("applier_config_reload_errors_total"),
		ConfigReloads:      b.counter("applier_config_reloads_total"),
		ConfigTaken:        b.gauge("applier_config_last_reload_success_timestamp_seconds"),
		ConfigHash:         b.gauge("applier_config_hash"),
		ClockJumps:         b.counter("applier_clock_jumps_total"),
	}
}

// Ingest is the metrics of reading and decoding.
type Ingest struct {
	Records            *prometheus.CounterVec // op
	Bytes              *prometheus.CounterVec
	LagRecords         *prometheus.GaugeVec // topic, partition
	LagSeconds         *prometheus.GaugeVec // topic, partition
	LSOLagRecords      *prometheus.GaugeVec // topic, partition
	Alarms             *prometheus.GaugeVec // code
	RetentionHeadroom  *prometheus.GaugeVec // topic, partition
	Retention          *prometheus.GaugeVec // topic
	PartitionsAssigned *prometheus.GaugeVec
	PartitionsHeldBack *prometheus.GaugeVec
	Rebalances         *prometheus.CounterVec
	SchemaChanges      *prometheus.CounterVec // kind
	OwnershipFlaps     *prometheus.CounterVec
	FetchPausedSeconds *prometheus.CounterVec // reason
	FetchPauses        *prometheus.CounterVec // reason
	Dropped            *prometheus.CounterVec // reason
	RowErrors          *prometheus.CounterVec // class
	DeadLetters        *prometheus.CounterVec // class
}

// NewIngest builds the metrics of ingest.
func NewIngest(reg prometheus.Registerer) *Ingest { return newIngest(builder{reg: reg}) }

func newIngest(b builder) *Ingest {
	return &Ingest{
		Records:            b.counter("applier_source_records_total"),
		Bytes:              b.counter("applier_source_bytes_total"),
		LagRecords:         b.gauge("applier_source_lag_records"),
		LagSeconds:         b.gauge("applier_source_lag_seconds"),
		LSOLagRecords:      b.gauge("applier_source_lso_lag_records"),
		Alarms:             b.gauge("applier_source_alarms"),
		RetentionHeadroom:  b.gauge("applier_source_retention_headroom_seconds"),
		Retention:          b.gauge("applier_source_retention_seconds"),
		PartitionsAssigned: b.gauge("applier_source_partitions_assigned"),
		PartitionsHeldBack: b.gauge("applier_source_partitions_held_back"),
		Rebalances:         b.counter("applier_source_rebalances_total"),
		SchemaChanges:      b.counter("applier_schema_changes_total"),
		OwnershipFlaps:     b.counter("applier_ownership_flaps_total"),
		FetchPausedSeconds: b.counter("applier_fetch_paused_seconds_total"),
		FetchPauses:        b.counter("applier_fetch_pauses_total"),
		Dropped:            b.counter("applier_records_dropped_total"),
		RowErrors:          b.counter("applier_row_errors_total"),
		DeadLetters:        b.counter("applier_dead_letters_total"),
	}
}

// ForgetPartition removes the series of a source partition that is no longer
// ours, and that of its topic: their last values would look current.
func (m *Ingest) ForgetPartition(pipeline, topic string, partition int32) {
	l := prometheus.Labels{"pipeline": pipeline, "topic": topic, "partition": strconv.Itoa(int(partition))}
	for _, v := range []*prometheus.GaugeVec{m.LagRecords, m.LagSeconds, m.LSOLagRecords, m.RetentionHeadroom} {
		v.DeletePartialMatch(l)
	}
	m.Retention.DeletePartialMatch(prometheus.Labels{"pipeline": pipeline, "topic": topic})
}

// Batcher is the metrics of batching.
type Batcher struct {
	Flushes      *prometheus.CounterVec // reason
	Records      *prometheus.HistogramVec
	Keys         *prometheus.HistogramVec
	OpenRecords  *prometheus.GaugeVec
	OpenBytes    *prometheus.GaugeVec
	StageSeconds *prometheus.HistogramVec // stage
	SplitKeys    *prometheus.CounterVec
	Holes        *prometheus.CounterVec // source
}

// NewBatcher builds the metrics of the batcher.
func NewBatcher(reg prometheus.Registerer) *Batcher { return newBatcher(builder{reg: reg}) }

func newBatcher(b builder) *Batcher {
	return &Batcher{
		Flushes:      b.counter("applier_batch_flushes_total"),
		Records:      b.histogram("applier_batch_records"),
		Keys:         b.histogram("applier_batch_keys"),
		OpenRecords:  b.gauge("applier_batch_open_records"),
		OpenBytes:    b.gauge("applier_batch_open_bytes"),
		StageSeconds: b.histogram("applier_batch_stage_seconds"),
		SplitKeys:    b.counter("applier_batch_split_keys_total"),
		Holes:        b.counter("applier_batch_holes_total"),
	}
}

// Merger is the metrics of merging, committing and the key index.
type Merger struct {
	RowsApplied          *prometheus.CounterVec // action, moved
	Commits              *prometheus.CounterVec // result
	CommitSeconds        *prometheus.HistogramVec
	ForeignCommits       *prometheus.CounterVec
	ForeignDuplicates    *prometheus.CounterVec
	StarvedCommits       *prometheus.CounterVec
	FencedBatches        *prometheus.CounterVec
	IndexKeys            *prometheus.GaugeVec
	IndexBytes           *prometheus.GaugeVec
	IndexMemoryBytes     *prometheus.GaugeVec
	IndexLookups         *prometheus.CounterVec // result
	IndexRebuilds        *prometheus.CounterVec
	IndexRebuildProgress *prometheus.GaugeVec
	VerifyMismatches     *prometheus.CounterVec // kind
	LateChanges          *prometheus.CounterVec // action
	Truncates            *prometheus.CounterVec
	DeletesRemembered    *prometheus.GaugeVec
	DeletesMemoryBytes   *prometheus.GaugeVec
	DeletesForgotten     *prometheus.GaugeVec
}

// NewMerger builds the metrics of the merger.
func NewMerger(reg prometheus.Registerer) *Merger { return newMerger(builder{reg: reg}) }

func newMerger(b builder) *Merger {
	return &Merger{
		RowsApplied:          b.counter("applier_rows_applied_total"),
		Commits:              b.counter("applier_commits_total"),
		CommitSeconds:        b.histogram("applier_commit_seconds"),
		ForeignCommits:       b.counter("applier_foreign_commits_absorbed_total"),
		ForeignDuplicates:    b.counter("applier_foreign_duplicate_keys_total"),
		StarvedCommits:       b.counter("applier_commits_starved_total"),
		FencedBatches:        b.counter("applier_batches_fenced_total"),
		IndexKeys:            b.gauge("applier_index_keys"),
		IndexBytes:           b.gauge("applier_index_bytes"),
		IndexMemoryBytes:     b.gauge("applier_index_memory_bytes"),
		IndexLookups:         b.counter("applier_index_lookups_total"),
		IndexRebuilds:        b.counter("applier_index_rebuilds_total"),
		IndexRebuildProgress: b.gauge("applier_index_rebuild_progress_ratio"),
		VerifyMismatches:     b.counter("applier_verify_mismatches_total"),
		LateChanges:          b.counter("applier_late_changes_total"),
		Truncates:            b.counter("applier_truncates_total"),
		DeletesRemembered:    b.gauge("applier_deletes_remembered"),
		DeletesMemoryBytes:   b.gauge("applier_deletes_memory_bytes"),
		DeletesForgotten:     b.gauge("applier_deletes_forgotten_since_timestamp_seconds"),
	}
}

// Storage is the metrics of the tables and of the store they are in.
type Storage struct {
	CommitBytes     *prometheus.CounterVec // kind
	CommitRequests  *prometheus.CounterVec // direction
	CommitStore     *prometheus.CounterVec // direction; bytes
	LiveRows        *prometheus.GaugeVec
	DeletedRows     *prometheus.GaugeVec
	Files           *prometheus.GaugeVec
	SmallFiles      *prometheus.GaugeVec
	DVBytes         *prometheus.GaugeVec
	Snapshots       *prometheus.GaugeVec
	Partitions      *prometheus.GaugeVec
	Uncompacted     *prometheus.GaugeVec
	SnapshotsPinned *prometheus.GaugeVec
	Maintenance     Maintenance
	Requests        *prometheus.CounterVec   // op, result; no pipeline
	RequestSeconds  *prometheus.HistogramVec // op; no pipeline
}

// Maintenance is the metrics of what is done to keep tables in shape.
type Maintenance struct {
	Runs             *prometheus.CounterVec   // action, result
	Seconds          *prometheus.HistogramVec // action
	Bytes            *prometheus.CounterVec   // direction
	FilesCompacted   *prometheus.CounterVec
	RowsPurged       *prometheus.CounterVec
	SnapshotsExpired *prometheus.CounterVec
	OrphansDeleted   *prometheus.CounterVec
}

// NewStorage builds the metrics of storage.
func NewStorage(reg prometheus.Registerer) *Storage { return newStorage(builder{reg: reg}) }

func newStorage(b builder) *Storage {
	return &Storage{
		CommitBytes:     b.counter("applier_commit_bytes_total"),
		CommitRequests:  b.counter("applier_commit_requests_total"),
		CommitStore:     b.counter("applier_commit_store_bytes_total"),
		LiveRows:        b.gauge("applier_table_live_rows"),
		DeletedRows:     b.gauge("applier_table_deleted_rows"),
		Files:           b.gauge("applier_table_files"),
		SmallFiles:      b.gauge("applier_table_small_files"),
		DVBytes:         b.gauge("applier_table_dv_bytes"),
		Snapshots:       b.gauge("applier_table_snapshots"),
		Partitions:      b.gauge("applier_table_partitions"),
		Uncompacted:     b.gauge("applier_table_oldest_uncompacted_seconds"),
		SnapshotsPinned: b.gauge("applier_snapshots_pinned"),
		Maintenance: Maintenance{
			Runs:             b.counter("applier_maintenance_runs_total"),
			Seconds:          b.histogram("applier_maintenance_seconds"),
			Bytes:            b.counter("applier_maintenance_bytes_total"),
			FilesCompacted:   b.counter("applier_maintenance_files_compacted_total"),
			RowsPurged:       b.counter("applier_maintenance_rows_purged_total"),
			SnapshotsExpired: b.counter("applier_maintenance_snapshots_expired_total"),
			OrphansDeleted:   b.counter("applier_maintenance_orphans_deleted_total"),
		},
		Requests:       b.counter("applier_store_requests_total"),
		RequestSeconds: b.histogram("applier_store_request_seconds"),
	}
}
