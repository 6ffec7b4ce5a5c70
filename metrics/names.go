package metrics

import "slices"

// Type of a metric, as Prometheus calls it.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Label is a label of a metric. Values are its possible values if they are known
// beforehand: their series exist from the start of a pipeline on, with 0, so
// that rates and alerts see the first event.
type Label struct {
	Name   string
	Values []string
}

// Desc declares a metric.
type Desc struct {
	Room   string // section of the documentation
	Name   string
	Type   Type
	Unit   string // seconds, bytes, records, ...; decides a histogram's buckets
	Labels []Label
	Help   string
}

// Labels that many metrics share.
var (
	labelPipeline  = Label{Name: "pipeline"}
	labelTable     = Label{Name: "table"}
	labelTopic     = Label{Name: "topic"}
	labelPartition = Label{Name: "partition"}
)

// perPipeline are the labels of a metric that each pipeline has.
func perPipeline(more ...Label) []Label {
	return append([]Label{labelPipeline, labelTable}, more...)
}

// perPartition are the labels of a metric that each source partition has.
func perPartition() []Label { return perPipeline(labelTopic, labelPartition) }

// oneOf is a label with known values.
func oneOf(name string, values ...string) Label { return Label{name, values} }

// errorClasses are the classes of row errors (ingest/decode).
func errorClasses() Label {
	return oneOf("class", "syntax", "envelope", "key", "null_key", "type", "range", "length", "not_null", "unavailable", "unsupported", "late", "tie")
}

// Table returns every metric, by room. Adding one is a line below and a field in
// the constructor of its room; a test compares the two.
func Table() []Desc {
	return slices.Concat(processTable(), pipelineTable(), ingestTable(), batcherTable(), mergerTable(), storageTable())
}

func processTable() []Desc {
	return []Desc{
		{
			"process", "applier_build_info", Gauge, "",
			[]Label{{Name: "version"}, {Name: "revision"}, {Name: "go"}},
			"Always 1; the labels say what is running.",
		},
		{
			"process", "applier_memory_budget_bytes", Gauge, "bytes", nil,
			"Memory the process may use for batches, indexes and buffers (config memory).",
		},
		{
			"process", "applier_memory_used_bytes", Gauge, "bytes",
			[]Label{{Name: "component"}},
			"Memory in use by component, as counted against the budget.",
		},
		{
			"process", "applier_tls_verification_disabled", Gauge, "", nil,
			"1 if the brokers' certificates are not verified (config kafka.tls.insecure).",
		},
		{
			"process", "applier_config_reload_errors_total", Counter, "", nil,
			"Configurations that SIGHUP asked for and that could not be taken; the old one stayed.",
		},
		{
			"process", "applier_config_reloads_total", Counter, "", nil,
			"Configurations that SIGHUP asked for and that were taken.",
		},
		{
			"process", "applier_config_last_reload_success_timestamp_seconds", Gauge, "seconds", nil,
			"When the configuration in effect was taken, at the start or by SIGHUP, in Unix time.",
		},
		{
			"process", "applier_config_hash", Gauge, "", nil,
			"A number that is the same for the same configuration in effect (but for secrets): instances that should be alike can be compared.",
		},
		{
			"process", "applier_clock_jumps_total", Counter, "", nil,
			"Times the wall clock jumped by a minute or more against the time that passed.",
		},
	}
}

func pipelineTable() []Desc {
	return []Desc{
		{
			"pipeline", "applier_pipeline_up", Gauge, "", perPipeline(),
			"1 unless the pipeline is paused or failed.",
		},
		{
			"pipeline", "applier_pipeline_state", Gauge, "", perPipeline(Label{"state", States()}),
			"1 for the state the pipeline is in, 0 for the others.",
		},
		{
			"pipeline", "applier_pipeline_state_since_timestamp_seconds", Gauge, "seconds", perPipeline(),
			"When the pipeline entered its state, in Unix time.",
		},
		{
			"pipeline", "applier_pipeline_halted", Gauge, "", perPipeline(Label{Name: "code"}),
			"1 for the code a failed pipeline halted with; docs/operations.md has each code's remedy.",
		},
		{
			"pipeline", "applier_freshness_seconds", Gauge, "seconds", perPipeline(),
			"Now minus the time up to which all input is visible in the table; 0 when caught up. Computed at each scrape, so it grows while a pipeline is stuck or Kafka does not answer. No series while another instance has the table.",
		},
		{
			"pipeline", "applier_freshness_slo_seconds", Gauge, "seconds", perPipeline(),
			"The freshness that is promised for the table (config freshness_slo); no series where none is.",
		},
		{
			"pipeline", "applier_lease_held", Gauge, "", perPipeline(),
			"1 while the pipeline's Kafka group gives the table to this instance, 0 while it stands by.",
		},
		{
			"pipeline", "applier_event_to_commit_seconds", Histogram, "seconds", perPipeline(),
			"Change time at the source to visible in a snapshot; the oldest and the newest change of each batch.",
		},
		{
			"pipeline", "applier_last_commit_timestamp_seconds", Gauge, "seconds", perPipeline(),
			"When the last commit of the pipeline became visible, in Unix time.",
		},
		{
			"pipeline", "applier_last_snapshot_id", Gauge, "", perPipeline(),
			"Snapshot id of the last commit of the pipeline.",
		},
		{
			"pipeline", "applier_step_age_seconds", Gauge, "seconds", perPipeline(),
			"How long the commit loop has been in its current step without any progress; 0 between steps. Above half of config stuck_after the goroutines are dumped, at stuck_after the process ends.",
		},
		{
			"pipeline", "applier_unclean_starts", Gauge, "", perPipeline(),
			"Starts in a row that followed an end without a stop in good order: a crash, a kill, out of memory.",
		},
	}
}

func ingestTable() []Desc {
	pauses := oneOf("reason", "memory", "commit", "backoff")
	return []Desc{
		{
			"ingest", "applier_source_records_total", Counter, "records", perPipeline(oneOf("op", "insert", "update", "read", "delete", "truncate")),
			"Changes decoded from records, and truncates of the source table that are applied.",
		},
		{
			"ingest", "applier_source_bytes_total", Counter, "bytes", perPipeline(),
			"Bytes of the records read: keys, values and headers.",
		},
		{
			"ingest", "applier_source_lag_records", Gauge, "records", perPartition(),
			"End offset minus the position recorded in the table.",
		},
		{
			"ingest", "applier_source_lag_seconds", Gauge, "seconds", perPartition(),
			"Age of the oldest record that is not yet in the table; 0 when there is none.",
		},
		{
			"ingest", "applier_source_lso_lag_records", Gauge, "records", perPartition(),
			"Records behind the last stable offset: they wait for an open transaction of their producer.",
		},
		{
			"ingest", "applier_source_alarms", Gauge, "partitions", perPipeline(Label{Name: "code"}),
			"Partitions with an alarm, by code; the pipeline goes on, docs/operations.md has each code's remedy.",
		},
		{
			"ingest", "applier_source_retention_headroom_seconds", Gauge, "seconds", perPartition(),
			"Time until retention removes records that are not yet in the table; all of the topic's retention when none wait.",
		},
		{
			"ingest", "applier_source_retention_seconds", Gauge, "seconds", perPipeline(labelTopic),
			"How long the topic keeps its records (retention.ms); no series where it keeps them for ever.",
		},
		{
			"ingest", "applier_source_partitions_assigned", Gauge, "partitions", perPipeline(),
			"Source partitions this instance owns; either all of the pipeline's or none does work.",
		},
		{
			"ingest", "applier_source_partitions_held_back", Gauge, "partitions", perPipeline(),
			"New partitions that wait until the older ones pass the end noted when they appeared.",
		},
		{
			"ingest", "applier_source_rebalances_total", Counter, "", perPipeline(),
			"Times the group gave the table to this instance; one that grows by itself is a group that finds no rest.",
		},
		{
			"ingest", "applier_schema_changes_total", Counter, "columns", perPipeline(oneOf("kind", "add", "widen", "rejected")),
			"Changes of the table's columns because its records' schema asked for them (config schema.evolve); rejected are those that the table's format does not allow.",
		},
		{
			"ingest", "applier_ownership_flaps_total", Counter, "", perPipeline(),
			"Times another instance with the same identity was found to have committed.",
		},
		{
			"ingest", "applier_fetch_paused_seconds_total", Counter, "seconds", perPipeline(pauses),
			"Time reading was paused.",
		},
		{
			"ingest", "applier_fetch_pauses_total", Counter, "", perPipeline(pauses),
			"Times reading was paused.",
		},
		{
			"ingest", "applier_records_dropped_total", Counter, "records", perPipeline(oneOf("reason",
				"late", "tie", "duplicate", "collapsed", "ignored", "delete", "skipped_error", "before_start", "tombstone", "heartbeat",
				"transaction", "schema_change", "truncate", "message", "control")),
			"Records that changed no row, by reason: every record is counted here, as an error or as applied.",
		},
		{
			"ingest", "applier_row_errors_total", Counter, "records", perPipeline(errorClasses()),
			"Records that could not be applied, whatever on_error made of them.",
		},
		{
			"ingest", "applier_dead_letters_total", Counter, "records", perPipeline(errorClasses()),
			"Records sent to the dead letter topic and acknowledged there.",
		},
	}
}

func batcherTable() []Desc {
	return []Desc{
		{
			"batcher", "applier_batch_flushes_total", Counter, "", perPipeline(oneOf("reason",
				"rows", "bytes", "interval", "idle", "memory", "revoke", "drain", "manual", "truncate")),
			"Batches closed, by the limit that closed them.",
		},
		{
			"batcher", "applier_batch_records", Histogram, "records", perPipeline(),
			"Changes in a batch, before one a key is kept.",
		},
		{
			"batcher", "applier_batch_keys", Histogram, "records", perPipeline(),
			"Changes left in a batch, one a key.",
		},
		{
			"batcher", "applier_batch_open_records", Gauge, "records", perPipeline(),
			"Changes in the batch that is being filled.",
		},
		{
			"batcher", "applier_batch_open_bytes", Gauge, "bytes", perPipeline(),
			"Memory of the batch that is being filled.",
		},
		{
			"batcher", "applier_batch_stage_seconds", Histogram, "seconds", perPipeline(oneOf("stage",
				"resolve", "resume", "look", "sync", "plan", "write", "write_data", "write_dv", "still", "publish", "classify", "after", "hint", "ack")),
			"Time of each step of the commit loop (docs/architecture.md, The commit); plan is the lookup of keys and the reading of old rows, write_data and write_dv are parts of write.",
		},
		{
			"batcher", "applier_batch_split_keys_total", Counter, "records", perPipeline(),
			"Keys seen in two source partitions of one batch, where offsets give no order.",
		},
		{
			"batcher", "applier_batch_holes_total", Counter, "cells", perPipeline(oneOf("source", "batch", "table", "unfilled")),
			"Cells a change did not carry, by where their value was found.",
		},
	}
}

func mergerTable() []Desc {
	return []Desc{
		{
			"merger", "applier_rows_applied_total", Counter, "rows", perPipeline(
				oneOf("action", "inserted", "updated", "deleted", "unchanged"), oneOf("moved", "false", "true")),
			"Rows of the table that changed; moved to another partition or not.",
		},
		{
			"merger", "applier_commits_total", Counter, "", perPipeline(oneOf("result", "committed", "conflict", "diverged", "unknown", "failed")),
			"Attempts to publish a snapshot: conflict is planned again, unknown is resolved by reading, diverged stops; failed are steps of attempts that could not be done and are tried again.",
		},
		{
			"merger", "applier_commit_seconds", Histogram, "seconds", perPipeline(),
			"From a closed batch to its published snapshot.",
		},
		{
			"merger", "applier_foreign_commits_absorbed_total", Counter, "", perPipeline(),
			"Snapshots of other writers that were taken into the index.",
		},
		{
			"merger", "applier_foreign_duplicate_keys_total", Counter, "rows", perPipeline(),
			"Rows that another writer inserted although the table had a row of their key. The next change of the key updates all of its rows.",
		},
		{
			"merger", "applier_commits_starved_total", Counter, "", perPipeline(),
			"Batches that lost the race for a snapshot to other writers for 30 s; they are tried on.",
		},
		{
			"merger", "applier_batches_fenced_total", Counter, "", perPipeline(),
			"Batches dropped because the table's positions were not where the batch starts.",
		},
		{
			"merger", "applier_index_keys", Gauge, "keys", perPipeline(),
			"Keys in the index.",
		},
		{
			"merger", "applier_index_bytes", Gauge, "bytes", perPipeline(),
			"Bytes of the index on disk.",
		},
		{
			"merger", "applier_index_memory_bytes", Gauge, "bytes", perPipeline(),
			"Memory of the index, off the Go heap.",
		},
		{
			"merger", "applier_index_lookups_total", Counter, "keys", perPipeline(oneOf("result", "hit", "miss", "collision")),
			"Keys looked up; a collision is a long key whose hash fits a row that differs.",
		},
		{
			"merger", "applier_index_rebuilds_total", Counter, "", perPipeline(),
			"Times the index was built from the table.",
		},
		{
			"merger", "applier_index_rebuild_progress_ratio", Gauge, "", perPipeline(),
			"Part of the table that a running rebuild has read, 1 when none runs.",
		},
		{
			"merger", "applier_verify_mismatches_total", Counter, "", perPipeline(oneOf("kind", "index", "table")),
			"Times the pipeline found the key index (I-MISMATCH) or a file of the table (T-CORRUPT) to contradict the rest, and halted; must stay 0.",
		},
		{
			"merger", "applier_late_changes_total", Counter, "changes", perPipeline(oneOf("action", "drop", "apply", "dead_letter")),
			"Changes older by order_by than what was applied of their key, by what was done about them (config order_by.late).",
		},
		{
			"merger", "applier_truncates_total", Counter, "", perPipeline(),
			"Commits that emptied the table because the source's was truncated (config on_truncate).",
		},
		{
			"merger", "applier_deletes_remembered", Gauge, "deletes", perPipeline(),
			"Deletes whose place in the order is remembered (config order_by.remember_deletes).",
		},
		{
			"merger", "applier_deletes_memory_bytes", Gauge, "bytes", perPipeline(),
			"Memory of the remembered deletes.",
		},
		{
			"merger", "applier_deletes_forgotten_since_timestamp_seconds", Gauge, "seconds", perPipeline(),
			"Time from which on deletes were forgotten that should be remembered (state_dir was lost), in Unix time; 0 when none are.",
		},
	}
}

func storageTable() []Desc {
	return []Desc{
		{
			"storage", "applier_commit_bytes_total", Counter, "bytes", perPipeline(oneOf("kind", "data", "dv", "manifest")),
			"Bytes written by commits.",
		},
		{
			"storage", "applier_commit_requests_total", Counter, "", perPipeline(oneOf("direction", "read", "write")),
			"Requests of commits to the object store (on a disk: calls), from the batch taken to its acknowledgement, lost attempts included; divided by the rate of applier_commits_total they are those of one commit.",
		},
		{
			"storage", "applier_commit_store_bytes_total", Counter, "bytes", perPipeline(oneOf("direction", "read", "write")),
			"Bytes of objects that commits read and wrote, from the batch taken to its acknowledgement, lost attempts, snapshots and hints included.",
		},
		{
			"storage", "applier_table_live_rows", Gauge, "rows", perPipeline(),
			"Rows of the table, without deleted ones.",
		},
		{
			"storage", "applier_table_deleted_rows", Gauge, "rows", perPipeline(),
			"Rows that readers skip by deletion vectors.",
		},
		{
			"storage", "applier_table_files", Gauge, "files", perPipeline(),
			"Data files of the table.",
		},
		{
			"storage", "applier_table_small_files", Gauge, "files", perPipeline(),
			"Data files below a quarter of the target size.",
		},
		{
			"storage", "applier_table_dv_bytes", Gauge, "bytes", perPipeline(),
			"Bytes of the table's deletion vectors.",
		},
		{
			"storage", "applier_table_snapshots", Gauge, "snapshots", perPipeline(),
			"Snapshots of the table.",
		},
		{
			"storage", "applier_table_partitions", Gauge, "partitions", perPipeline(),
			"Partitions of the table with data.",
		},
		{
			"storage", "applier_table_oldest_uncompacted_seconds", Gauge, "seconds", perPipeline(),
			"How long compaction has had something to do: small files to join since there were enough of them, rows to purge since this process saw them. 0 when there is nothing; looked at every five minutes.",
		},
		{
			"storage", "applier_snapshots_pinned", Gauge, "snapshots", perPipeline(),
			"Snapshots that our consumer file keeps from expiring (config pin). It grows while a pipeline is stopped.",
		},
		{
			"storage", "applier_maintenance_runs_total", Counter, "",
			perPipeline(oneOf("action", "compact", "expire", "orphans"), oneOf("result", "done", "nothing", "failed")),
			"Rounds of maintenance (config maintenance): the table needed something, nothing, or it failed and is tried again.",
		},
		{
			"storage", "applier_maintenance_seconds", Histogram, "seconds", perPipeline(oneOf("action", "compact", "expire", "orphans")),
			"Time of each action of a round of maintenance.",
		},
		{
			"storage", "applier_maintenance_bytes_total", Counter, "bytes", perPipeline(oneOf("direction", "read", "written")),
			"Bytes of data files that compactions read and wrote.",
		},
		{
			"storage", "applier_maintenance_files_compacted_total", Counter, "files", perPipeline(),
			"Data files that compactions replaced by fewer or cleaner ones.",
		},
		{
			"storage", "applier_maintenance_rows_purged_total", Counter, "rows", perPipeline(),
			"Deleted rows that compactions left out of new files.",
		},
		{
			"storage", "applier_maintenance_snapshots_expired_total", Counter, "snapshots", perPipeline(),
			"Snapshots that maintenance removed.",
		},
		{
			"storage", "applier_maintenance_orphans_deleted_total", Counter, "files", perPipeline(),
			"Files without an owner that maintenance deleted.",
		},
		{
			"storage", "applier_store_requests_total", Counter, "",
			[]Label{{Name: "op"}, oneOf("result", "ok", "not_found", "exists", "error")},
			"Requests to the file system or object store.",
		},
		{
			"storage", "applier_store_request_seconds", Histogram, "seconds",
			[]Label{{Name: "op"}},
			"Time of a request to the file system or object store.",
		},
	}
}
