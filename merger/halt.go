package merger

import (
	"fmt"
	"slices"
	"strings"
)

// Code names a reason for which a pipeline stops instead of guessing. Codes are
// stable: they stand in logs, metrics, /status and docs/operations.md.
type Code string

// The codes. T: table, K: Kafka, D: disk or data, C: configuration, I: index, P: program.
const (
	CodeHole        Code = "T-HOLE"
	CodeChain       Code = "T-CHAIN"
	CodeRollback    Code = "T-ROLLBACK"
	CodeOffsetLost  Code = "T-OFFSET-LOST"
	CodeSecondGroup Code = "T-SECOND-GROUP"
	CodeVersion     Code = "T-VERSION"
	CodeCorrupt     Code = "T-CORRUPT"
	CodeGone        Code = "T-GONE"
	CodeReplaced    Code = "T-REPLACED"
	CodeSchema      Code = "T-SCHEMA"
	CodeOptions     Code = "T-OPTIONS"
	CodeClone       Code = "T-CLONE"
	CodeGap         Code = "K-GAP"
	CodeTruncated   Code = "K-TRUNCATED"
	CodeRecreated   Code = "K-RECREATED"
	CodeNoTopic     Code = "K-NO-TOPIC"
	CodeCluster     Code = "K-CLUSTER"
	CodeAuth        Code = "K-AUTH"
	CodeTLS         Code = "K-TLS"
	CodeACL         Code = "K-ACL"
	CodePartial     Code = "K-PARTIAL"
	CodeTwoParts    Code = "K-KEY-IN-TWO-PARTITIONS"
	CodeBadBatch    Code = "K-CORRUPT"
	CodeUnavailable Code = "K-UNAVAILABLE"
	CodeOpenTxn     Code = "K-LSO"
	CodeTombstones  Code = "K-TOMBSTONES"
	CodeRow         Code = "D-ROW"
	CodeTruncate    Code = "D-TRUNCATE"
	CodeFull        Code = "D-FULL"
	CodeIO          Code = "D-IO"
	CodeReadOnly    Code = "D-READONLY"
	CodePermission  Code = "D-PERM"
	CodeFiles       Code = "D-FILES"
	CodeClock       Code = "S-CLOCK"
	CodeStoreTLS    Code = "S-TLS"
	CodeDeadLetter  Code = "D-DLQ"
	CodeConfig      Code = "C-CHANGED"
	CodeMemory      Code = "I-MEMORY"
	CodeIndexDisk   Code = "I-FULL"
	CodeMismatch    Code = "I-MISMATCH"
	CodePanic       Code = "P-PANIC"
)

// CodeInfo explains a code to an operator.
type CodeInfo struct {
	Code Code
	// Means says what was found.
	Means string
	// Do says what to do; commands stand in backquotes and exist (a test of the
	// command line checks each).
	Do string
	// Retries: the pipeline tries again by itself; the halt ends when the cause does.
	Retries bool
	// Alarm: nothing stops; it is shown while it lasts, or until the process ends.
	Alarm bool
}

// Codes lists every code in the order of the operations manual.
func Codes() []CodeInfo { return slices.Clone(codeList) }

var codeList = []CodeInfo{
	{
		CodeHole, "A snapshot between the earliest and the latest is missing: a rollback raced with a commit, or a file was deleted by hand.",
		"Look with `applier inspect snapshots DB.TABLE`. Readers that follow the LATEST hint are below the hole or above it: decide which side is right. For the lower side move the snapshot files above the hole out of the table's snapshot folder, for the upper one restore the missing files, then `applier resume PIPELINE`.", false, false,
	},
	{
		CodeChain, "A commit of this pipeline stands on a snapshot that is no longer there: the table was rolled back, or its history rewritten, while a commit was in flight.",
		"Compare with `applier inspect snapshots DB.TABLE` and decide which state is right. After a rollback move the snapshot that the message names first out of the table's snapshot folder, then `applier resume PIPELINE`: it reads again from where the rolled-back table stands. To keep the newer state instead, `applier offsets set PIPELINE` with the positions that belong to it.", false, false,
	},
	{
		CodeRollback, "The newest snapshots look like a rollback made by adding a snapshot, to a state without a position record.",
		"State the positions that belong to the rolled-back content: `applier offsets set PIPELINE`.", false, false,
	},
	{
		CodeOffsetLost, "The pipeline has committed to this table before, but no position record is left in the retained snapshots.",
		"State where to go on: `applier offsets set PIPELINE`. Keep the consumer pin on, so that expiry cannot drop the record again.", false, false,
	},
	{
		CodeSecondGroup, "Another pipeline id has already committed records of the same topic to this table.",
		"Give this pipeline the old `id`, or take the other record over with `applier offsets adopt PIPELINE`.", false, false,
	},
	{
		CodeVersion, "The snapshot or the position record was written by a newer version of the program or of the table format.",
		"Upgrade this instance, then `applier resume PIPELINE`.", false, false,
	},
	{
		CodeCorrupt, "A file of the table cannot be read or contradicts the metadata.",
		"`applier verify PIPELINE` (and `--full`) names the file. Restore it, or roll the table back to a snapshot that reads fully, then `applier resume PIPELINE`.", false, false,
	},
	{
		CodeGone, "The table is not there any more: dropped or renamed.",
		"Restore it or change `target`, then `applier resume PIPELINE`. Nothing is created in its place.", false, false,
	},
	{
		CodeReplaced, "The table was dropped and created again: it is another table now.",
		"If the new table is meant, `applier offsets set PIPELINE` starts on it.", false, false,
	},
	{
		CodeSchema, "The table's schema changed in a way this pipeline cannot follow.",
		"Change the table back, then `applier resume PIPELINE`; or change the pipeline to fit, and restart.", false, false,
	},
	{
		CodeOptions, "The table is of a kind, or was given an option, that this version does not write.",
		"Undo the option or follow the advice in the message, then restart.", false, false,
	},
	{
		CodeClone, "The position record belongs to another table: this one is a copy.",
		"If the copy is to be fed from here on, `applier offsets adopt PIPELINE`.", false, false,
	},
	{
		CodeGap, "Kafka no longer has the records that come next: retention or a delete removed them.",
		"Restore them, or accept the loss with `applier offsets skip PIPELINE`; the gap is recorded in the table.", false, false,
	},
	{
		CodeTruncated, "Kafka's log ends before the position already applied, or was cut and grew again: an unclean election or a restored broker.",
		"Records in the table may be gone from Kafka. Decide from where to read: `applier offsets set PIPELINE`.", false, false,
	},
	{
		CodeRecreated, "The topic was deleted and created again: its offsets mean other records now.",
		"Start on the new topic with `applier offsets set PIPELINE`.", false, false,
	},
	{
		CodeNoTopic, "The topic is missing, or not visible to this user.",
		"Create it or grant access, then `applier resume PIPELINE`.", true, false,
	},
	{
		CodeCluster, "The brokers belong to another Kafka cluster than the one in the position record.",
		"Correct `kafka.brokers`; if the move is meant, `applier offsets set PIPELINE` with positions of the new cluster.", false, false,
	},
	{CodeAuth, "Kafka refuses the credentials.", "Correct `kafka.sasl` or `kafka.tls` and restart; the pipeline keeps trying.", true, false},
	{
		CodeTLS, "A broker's certificate is refused: expired, for another host, or of an unknown authority.",
		"Renew it, or correct `kafka.tls.ca`, `kafka.tls.server_name` or `kafka.brokers`; the pipeline keeps trying.", true, false,
	},
	{CodeACL, "Kafka denies access to the topic or the group.", "Grant Read and Describe on the topic and Read on the group; the pipeline keeps trying.", true, false},
	{
		CodePartial, "This instance was given only some partitions of the table: another consumer uses the group.",
		"Stop the foreign member of the group; the pipeline goes on when it has all partitions.", true, false,
	},
	{
		CodeTwoParts, "One merge key was found in two partitions of one batch, so offsets do not say which change is newer.",
		"Key the topic by the merge key, or set `order_by`. `applier resume PIPELINE` accepts arrival order once more.", false, false,
	},
	{
		CodeBadBatch, "A record batch fails its checksum or cannot be decompressed.",
		"Repair the broker's log, or step over it with `applier offsets skip PIPELINE --to TOPIC/PARTITION=OFFSET`, stating the offset behind it.", true, false,
	},
	{
		CodeUnavailable, "The Kafka brokers do not answer, or answer with errors.",
		"Look at the error, the brokers and the network; the pipeline keeps trying.", true, false,
	},
	{
		CodeRow, "A record cannot be applied and `on_error` is pause.",
		"Correct the table or the pipeline, or set `on_error: dead_letter`, and restart; or step over the record with `applier offsets skip PIPELINE --to TOPIC/PARTITION=OFFSET`, stating the offset behind it.", false, false,
	},
	{
		CodeTruncate, "The source table was truncated, and `on_truncate` does not say that the target is emptied, or cannot be followed where several partitions are read without `order_by`.",
		"Everything before it is committed. To follow it, empty the target (TRUNCATE TABLE, with `applier sql`) and then `applier resume PIPELINE`; to keep the rows, `applier resume PIPELINE` alone. Where several partitions are read, rows that came after it may be in the table already: load it anew instead. `on_truncate` and a restart decide for later ones.", false, false,
	},
	{CodeFull, "No space is left where the table, or `state_dir`, lives.", "Free space; the pipeline goes on by itself.", true, false},
	{CodeIO, "Reading or writing the table fails.", "Look at the error, the disk and the kernel log; the pipeline keeps trying.", true, false},
	{CodeReadOnly, "The file system is read-only.", "Remount it; the pipeline goes on by itself.", true, false},
	{
		CodePermission, "The table's folders, or the bucket, refuse this user.",
		"Correct owner or mode; on S3 the keys, or the user's policy (s3:ListBucket on the bucket; s3:GetObject, PutObject, DeleteObject, AbortMultipartUpload on its objects). The pipeline keeps trying.", true, false,
	},
	{
		CodeFiles, "The process or the machine is out of file descriptors.",
		"Raise the limit (`ulimit -n`, LimitNOFILE= of systemd); the pipeline keeps trying.", true, false,
	},
	{CodeClock, "The object store refuses requests because its clock and this machine's differ by minutes.", "Set the clock (NTP); the pipeline goes on by itself.", true, false},
	{
		CodeStoreTLS, "The object store's certificate is refused: expired, for another host, or of an unknown authority.",
		"Renew it, or correct `warehouse.s3.ca` or `warehouse.s3.endpoint`; the pipeline keeps trying.", true, false,
	},
	{
		CodeDeadLetter, "Dead letters cannot be written, so the batch that produced them waits.",
		"Make the dead letter topic writable; the pipeline goes on by itself.", true, false,
	},
	{
		CodeConfig, "A setting that the applied data depends on was changed (merge key, apply or merge.when, topics).",
		"Undo the change, or accept it from the next record on with `applier offsets adopt PIPELINE`.", false, false,
	},
	{
		CodeMemory, "The key index, or the remembered deletes, do not fit the memory they may use.",
		"Raise `memory` to the number in the message, or lower `order_by.remember_deletes`, and restart.", false, false,
	},
	{
		CodeIndexDisk, "The key index cannot be written to `state_dir`: no space, read-only, or no permission.",
		"Free space in `state_dir` or correct its owner; the pipeline goes on by itself.", true, false,
	},
	{
		CodeMismatch, "The key index contradicts the table.",
		"`applier resume PIPELINE` builds the index again. Please report it with the log.", false, false,
	},
	{CodePanic, "The program failed on this pipeline.", "Please report the stack in the log; `applier resume PIPELINE` tries again.", false, false},
	{
		Code: CodeOpenTxn, Alarm: true, Means: "A producer's transaction has been open for minutes: what was written behind it cannot be read before it ends.",
		Do: "Find out what became of the producer in the message; end its transaction with Kafka's own tool (kafka-transactions.sh abort) if nobody else will. Nothing is skipped meanwhile.",
	},
	{
		Code: CodeTombstones, Alarm: true, Means: "A compacted topic was left unread for longer than its delete.retention.ms: tombstones may have been removed before they were read, so deleted rows may be left in the table.",
		Do: "Compare the table with its source, or load it anew. Keep the pipeline running, or raise delete.retention.ms above the longest stop.",
	},
}

// Info returns a code's explanation.
func (c Code) Info() CodeInfo {
	for _, i := range codeList {
		if i.Code == c {
			return i
		}
	}
	return CodeInfo{Code: c, Means: "unknown code", Do: "`applier resume PIPELINE`"}
}

// Halt is why a pipeline stands still.
type Halt struct {
	Code  Code
	Facts string // what exactly: names, numbers, never cell values
}

// String returns one line: code, facts and what to do.
func (h Halt) String() string {
	return fmt.Sprintf("%s: %s. %s", h.Code, strings.TrimSuffix(h.Facts, "."), h.Code.Info().Do)
}

// Error makes a Halt usable as an error.
func (h *Halt) Error() string { return h.String() }
