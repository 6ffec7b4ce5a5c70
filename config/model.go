package config

import "time"

// This file is the contract: one struct field is one key. The comment of a
// field is its text in docs/config.md and in the JSON Schema, so it is written
// for operators. Tags:
//
//	koanf     the key
//	required  "true": the key must be written
//	default   the value when the key is absent
//	shown     what the reference prints as default when code decides it
//	enum      the allowed values; "later" and "never" are values refused by name
//	min, max  the range of a size, duration or number
//	check     a named check of values.go for a text, or each text of a list or map
//	keys      a named check for the keys of a map
//	short     "true": a scalar or list in place of the block sets this member;
//	          "only": and the member is no key of the block
//	empty     "true": the empty text is a value
//	raw       "true": numbers and booleans are taken as the text that was written

// Config is a whole configuration with defaults applied. It is read-only after Load.
type Config struct {
	// Version of this file's format. It is 1.
	Version int `koanf:"version" required:"true" check:"version"`
	// The Kafka cluster that is read, and that dead letters are written to.
	Kafka Kafka `koanf:"kafka" required:"true"`
	// The Paimon warehouse that holds the target tables.
	Warehouse Warehouse `koanf:"warehouse" required:"true"`
	// Memory for batches, key indexes, fetch and write buffers and compaction of
	// the whole process. When it is used up, reading from Kafka pauses; an index that does
	// not fit pauses its pipeline.
	Memory Size `koanf:"memory" default:"512MiB" min:"64MiB"`
	// Folder for caches of the key indexes, which are rebuilt from the tables, and
	// for remembered deletes (order_by.remember_deletes), which are not: put it on a
	// disk that stays if you use them. It must not lie inside the warehouse.
	StateDir string `koanf:"state_dir" shown:"$STATE_DIRECTORY, else applier in the user's cache folder"`
	// How long a step of a commit may go on without any progress (a hung disk, a
	// deadlock) before the process ends itself, which is safe at any point. At half
	// of it the goroutines are written to the log. 0s switches this off.
	StuckAfter time.Duration `koanf:"stuck_after" default:"15m" min:"0s" max:"24h"`
	// HTTP endpoints and logging.
	Server Server `koanf:"server"`
	// Settings that every pipeline inherits unless it says otherwise.
	Defaults Policy `koanf:"defaults"`
	// The pipelines by name. A pipeline applies one stream of changes to one table.
	Pipelines map[string]*Pipeline `koanf:"pipelines" required:"true" keys:"name"`

	// Warnings are findings that do not stop a start, in the order of the file.
	Warnings Problems `koanf:"-"`
}

// Kafka is the connection to a Kafka cluster.
type Kafka struct {
	// Bootstrap brokers, as host:port. The port is 9092 if absent.
	Brokers []string `koanf:"brokers" required:"true" check:"broker"`
	// Client id shown in the brokers' logs and quotas.
	ClientID string `koanf:"client_id" default:"applier"`
	// TLS to the brokers. An empty block ({}) switches it on with the system's
	// certificate authorities.
	TLS *TLS `koanf:"tls"`
	// SASL authentication.
	SASL *SASL `koanf:"sasl"`
	// How long an instance may be silent before the brokers give its pipelines to
	// another one: what a killed instance costs, also when it comes back at once.
	// Brokers allow 6s to 30m unless told otherwise.
	SessionTimeout time.Duration `koanf:"session_timeout" default:"10s" min:"1s" max:"30m"`
}

// TLS is how a server proves itself to us, and we to it.
type TLS struct {
	// PEM file with the certificate authorities to trust instead of the system's.
	CA string `koanf:"ca"`
	// PEM file with the client certificate; needs key. Read again at every
	// handshake, so a renewed certificate needs no restart.
	Cert string `koanf:"cert"`
	// PEM file with the private key of cert.
	Key string `koanf:"key"`
	// Name to verify in the brokers' certificates, if it differs from their
	// host names.
	ServerName string `koanf:"server_name"`
	// Do not verify the brokers' certificates. Anybody on the network path can
	// then read and change the traffic; a warning and a metric say so.
	Insecure bool `koanf:"insecure" default:"false"`
}

// SASL is a user's proof of identity to Kafka.
type SASL struct {
	// Mechanism of the exchange. plain sends the password itself, so it needs
	// kafka.tls.
	Mechanism string `koanf:"mechanism" required:"true" enum:"plain,scram-sha-256,scram-sha-512" never:"oauthbearer,aws-msk-iam,gssapi"`
	// User name.
	Username string `koanf:"username" required:"true"`
	// Password. Write it as a reference to a variable or a file; a file is read
	// again at every login.
	Password Secret `koanf:"password" required:"true"`
	// Allow mechanism plain without TLS, which shows the password to the network.
	AllowPlaintext bool `koanf:"allow_plaintext" default:"false"`
}

// Warehouse is where the tables are.
type Warehouse struct {
	// Local folder, or s3://BUCKET/FOLDER; a table is PATH/DATABASE.db/TABLE.
	Path string `koanf:"path" short:"true" required:"true" check:"warehouse"`
	// Allow a folder on a network file system (NFS, SMB, FUSE …). There, exclusive
	// creation and durability depend on the server and its mount options; be sure
	// of both, or commits can be lost.
	Network bool `koanf:"network" default:"false"`
	// How the store of an s3:// path is reached. It must know conditional writes
	// (If-None-Match), which is tried at the start. Without this block Amazon's own
	// store is asked, with the credentials that its tools find.
	S3 *S3 `koanf:"s3"`
}

// S3 is how an object store is reached.
type S3 struct {
	// URL of the store: https://HOST:PORT.
	Endpoint string `koanf:"endpoint" shown:"Amazon's own of the region" check:"endpoint"`
	// Region that requests are signed for.
	Region string `koanf:"region" shown:"AWS_REGION of the environment, else us-east-1"`
	// Put the bucket into the path of requests instead of the host name, as most
	// stores but Amazon's want it.
	PathStyle bool `koanf:"path_style" default:"false"`
	// Access key. Write keys as references to variables or files.
	AccessKey Secret `koanf:"access_key"`
	// Secret key of access_key.
	SecretKey Secret `koanf:"secret_key"`
	// Session token of temporary keys.
	SessionToken Secret `koanf:"session_token"`
	// Where keys come from: static are those written here, default_chain the
	// environment (AWS_ACCESS_KEY_ID …), the shared credentials file, or the role of
	// the container or machine.
	Credentials string `koanf:"credentials" shown:"static with access_key, else default_chain" enum:"static,default_chain"`
	// Encryption that is asked for new objects; without it the bucket's own applies.
	Encryption string `koanf:"encryption" enum:"AES256,aws:kms"`
	// Key of encryption aws:kms.
	KMSKey string `koanf:"kms_key"`
	// PEM file with the certificate authorities to trust instead of the system's.
	CA string `koanf:"ca"`
}

// Server is how operators reach the process.
type Server struct {
	// Address of /metrics, /healthz and /readyz, and nothing else.
	Listen string `koanf:"listen" default:":9464" check:"listen"`
	// The port for people and commands.
	Admin Admin `koanf:"admin"`
	// Metrics of every source partition (lag, retention headroom). Switch them off
	// where thousands of partitions make too many series; /status still shows each.
	PartitionMetrics bool `koanf:"partition_metrics" default:"true"`
	// The log, written to standard error. A reader that is too slow loses lines and
	// holds up nothing.
	Log Log `koanf:"log"`
}

// Admin is the port with the status page and the commands.
type Admin struct {
	// Address of the status page, /status, /debug/pprof and the commands
	// (pause, resume, flush, offsets). Requests from this host need no token.
	Listen string `koanf:"listen" default:"127.0.0.1:9465" check:"listen"`
	// Bearer token for requests that come from other hosts or through a proxy.
	// Without one they are refused.
	Token Secret `koanf:"token"`
}

// Log is what is logged, and how.
type Log struct {
	// Least severe level to write.
	Level string `koanf:"level" default:"info" enum:"debug,info,warn,error"`
	// One line of key=value pairs, or one JSON object, a message.
	Format string `koanf:"format" default:"text" enum:"text,json"`
}

// Policy is what a pipeline inherits from defaults.
type Policy struct {
	// When a batch is closed and committed: at the first limit that is reached.
	Batch Batch `koanf:"batch"`
	// What to do with a record that cannot be applied: pause the pipeline, skip
	// and count it, or send it to the dead letter topic.
	OnError OnError `koanf:"on_error" default:"pause" enum:"pause,skip,dead_letter"`
	// Where on_error: dead_letter, and order_by, send records.
	DeadLetter DeadLetter `koanf:"dead_letter"`
	// Keep a Paimon consumer file in the table so that snapshot expiry by other
	// engines cannot remove the last recorded Kafka positions. While the pipeline
	// is stopped it holds back all expiry of the table; a metric counts the
	// snapshots behind it.
	Pin bool `koanf:"pin" default:"true"`
	// Largest Kafka record that is decoded; a larger one is an error of its row.
	MaxRecordBytes Size `koanf:"max_record_bytes" default:"16MiB" min:"1KiB" max:"1GiB"`
	// Keep the table in shape beside the pipeline. Nothing of it is on by itself.
	Maintenance Maintenance `koanf:"maintenance"`
	// Longest time from a change's arrival in Kafka to its visibility in the table
	// that is promised to the table's readers. It changes nothing that the pipeline
	// does; the metric applier_freshness_slo_seconds, `applier status` and the alert
	// FreshnessSLO measure the pipeline by it.
	FreshnessSLO time.Duration `koanf:"freshness_slo" shown:"nothing is promised" min:"1s" max:"365d"`
}

// Maintenance is how a pipeline keeps its table in shape. It works only while the
// pipeline runs on this instance, and never stops it. Tables with write-only: true
// are left to another job.
type Maintenance struct {
	// Join small files and purge deleted rows, as the table's options say
	// (target-file-size, compaction.*).
	Compact bool `koanf:"compact" default:"false"`
	// Remove old snapshots, as the table's options say (snapshot.*). What tags,
	// branches and consumers need stays, and so do the newest Kafka positions.
	Expire bool `koanf:"expire" default:"false"`
	// Once a day, delete files that no snapshot, tag or branch names and that were
	// not changed for three days.
	Orphans bool `koanf:"orphans" default:"false"`
	// How often the table is looked at.
	Every time.Duration `koanf:"every" default:"10m" min:"1s" max:"7d"`
	// Time of day of compactions, in local time; it may pass midnight:
	// 22:00-06:00. The empty text is the whole day.
	Window string `koanf:"window" shown:"the whole day" check:"window" empty:"true"`
	// Most bytes a second that compactions read, on average.
	Rate Size `koanf:"rate" default:"64MiB" min:"64KiB" max:"64GiB"`
	// Share of deleted rows above which compaction writes a file again.
	DeletedRatio Ratio `koanf:"deleted_ratio" shown:"decided by the sizes of commits and table"`
}

// On reports whether anything is to be done.
func (m Maintenance) On() bool { return m.Compact || m.Expire || m.Orphans }

// Batch is the limits of a micro-batch.
type Batch struct {
	// Longest time from a batch's first record to its commit.
	Interval time.Duration `koanf:"interval" default:"10s" min:"10ms" max:"24h"`
	// Most records.
	Rows int64 `koanf:"rows" default:"50_000" min:"1" max:"10_000_000"`
	// Most bytes of records, as decoded.
	Bytes Size `koanf:"bytes" default:"64MiB" min:"64KiB" max:"16GiB"`
	// Commit early when no record came for so long. 0s switches it off.
	IdleFlush time.Duration `koanf:"idle_flush" default:"2s" min:"0s" max:"24h"`
}

// OnError is what happens to a record that cannot be applied.
type OnError string

// The decisions.
const (
	OnErrorPause      OnError = "pause"
	OnErrorSkip       OnError = "skip"
	OnErrorDeadLetter OnError = "dead_letter"
)

// DeadLetter is where refused records go.
type DeadLetter struct {
	// Kafka topic of the dead letters. It must exist and be no pipeline's source.
	Topic string `koanf:"topic" check:"topic"`
}

// Pipeline is one stream of changes into one table.
type Pipeline struct {
	// Name is the key of the pipeline's block.
	Name string `koanf:"-"`
	// Identity of the pipeline: it names the record of Kafka positions in the
	// table and the consumer group. Set it to the old name when a pipeline is renamed.
	ID string `koanf:"id" shown:"the pipeline's name" check:"name"`
	// Where the changes come from.
	Source Source `koanf:"source" required:"true"`
	// The table they are applied to, as database.table.
	Target Target `koanf:"target" required:"true"`
	// Columns of the target that identify a row: a change applies to all rows
	// with the same values. Required unless apply is append.
	Key []string `koanf:"key" check:"column"`
	// What changes do. mirror: upsert, deletes remove rows. upsert: deletes are
	// ignored. insert_only: the first row of a key wins, deletes are ignored.
	// soft_delete: deletes set the column deleted_at. append: every change is a
	// new row.
	Apply Apply `koanf:"apply" default:"mirror" enum:"mirror,upsert,insert_only,soft_delete,append"`
	// What changes do, as clauses of MERGE in place of apply.
	Merge *Merge `koanf:"merge"`
	// Columns of the target that decide which change of a key is newer, instead of
	// the Kafka offset. An older change than the stored row is dropped and
	// counted. Under apply: mirror it needs remember_deletes, because a removed row
	// leaves nothing to compare with.
	OrderBy OrderBy `koanf:"order_by"`
	// What to do when a record says that the source's table was emptied (Debezium's op
	// t, which the connector sends with skipped.operations: none). apply: at its place
	// in the order the rows of the target go; needs apply: mirror, one topic, and
	// either one partition or order_by. ignore: rows stay, the record is counted.
	// pause: the pipeline stops before it with D-TRUNCATE.
	OnTruncate OnTruncate `koanf:"on_truncate" shown:"pause; ignore under apply: upsert and insert_only, which ignore deletes" enum:"apply,ignore,pause"`
	// How the table's columns follow the schema that its records carry.
	Schema TableSchema `koanf:"schema"`
	// How columns of the target are filled besides the columns of the change.
	Columns Columns `koanf:"columns"`
	// Create the table if it does not exist. Its columns come from types, else
	// from the schema that the records carry; an empty block ({}) is enough when
	// they carry one.
	Create *Create `koanf:"create"`

	Policy `koanf:",squash"`
}

// Source is the topics of a pipeline and how they are read.
type Source struct {
	// The Kafka topic.
	Topic string `koanf:"topic" check:"topic"`
	// Several topics that feed one table, instead of topic.
	Topics []string `koanf:"topics" check:"topic"`
	// Format of the records.
	Format Format `koanf:"format" required:"true"`
	// Where the key of a change is read: record_key takes the record's key, and
	// the value for what that does not hold; value ignores the record's key, for
	// topics that are keyed for their partitions only. A record without value then
	// changes nothing.
	KeyFrom string `koanf:"key_from" default:"record_key" enum:"record_key,value"`
	// Where to start when the table has no recorded positions yet; ignored
	// afterwards.
	Start Start `koanf:"start"`
}

// Format is how records are decoded.
type Format struct {
	// Name of the format.
	Type string `koanf:"type" short:"true" required:"true" enum:"debezium-json,json" later:"debezium-avro,debezium-unwrapped,canal-json,maxwell-json,avro" never:"json-schema,protobuf"`
	// Text a Debezium connector writes for a value it could not read; such a cell
	// keeps its old value. The empty text switches this off. debezium-json only.
	UnavailableValue string `koanf:"unavailable_value" shown:"__debezium_unavailable_value" empty:"true"`
	// What a base64 decimal without schema is: exact refuses its row, because the
	// scale cannot be seen; unscaled takes the scale of the target column.
	// debezium-json only.
	Decimals string `koanf:"decimals" default:"exact" enum:"exact,unscaled"`
	// How text stands for bytes in a binary column where no schema says so
	// (Debezium's binary.handling.mode).
	Binary string `koanf:"binary" default:"base64" enum:"base64,base64url,hex"`
}

// Start is where a new pipeline begins to read. Exactly one member is set.
type Start struct {
	// The oldest or the newest record of each partition.
	Position string `koanf:"position" short:"only" shown:"earliest" enum:"earliest,latest"`
	// The first record of each partition that is not older.
	Time time.Time `koanf:"time"`
	// Next offset by partition, for a single topic; partitions that are not
	// named start at the earliest record.
	Offset map[int32]int64 `koanf:"offset"`
}

// The values of Source.KeyFrom.
const (
	KeyFromRecordKey = "record_key"
	KeyFromValue     = "value"
)

// The values of Format.Decimals.
const (
	DecimalsExact    = "exact"
	DecimalsUnscaled = "unscaled"
)

// The positions of Start.
const (
	StartEarliest = "earliest"
	StartLatest   = "latest"
)

// Target is the table of a pipeline.
type Target struct {
	// Name of the table, as database.table.
	Table string `koanf:"table" short:"true" required:"true" check:"table"`
}

// Apply is what changes do to the target; see Pipeline.Apply.
type Apply string

// The presets.
const (
	ApplyMirror     Apply = "mirror"
	ApplyUpsert     Apply = "upsert"
	ApplyInsertOnly Apply = "insert_only"
	ApplySoftDelete Apply = "soft_delete"
	ApplyAppend     Apply = "append"
)

// MergeName is what stands in the place of a preset's name for pipelines with clauses.
const MergeName = "merge"

// Preset names what changes do: a preset, or MergeName.
func (p *Pipeline) Preset() string {
	if p.Merge != nil {
		return MergeName
	}
	return string(p.Apply)
}

// Merge is what changes do, clause by clause.
type Merge struct {
	// The clauses, as in MERGE INTO of applier sql, without their WHEN: the first one
	// whose condition is true applies; if none is, the row stays as it is. t is a row
	// of the change's key, s the change: its columns, s.__op (c, u, r, d), s.__ts
	// (change time), s.__topic, s.__partition, s.__offset. docs/merge.md explains them.
	When []string `koanf:"when" required:"true"`
	// Write no new version of a row that equals the one that is there.
	SkipUnchanged bool `koanf:"skip_unchanged" default:"false"`
}

// OnTruncate is what happens when the source's table was emptied.
type OnTruncate string

// The decisions.
const (
	OnTruncateApply  OnTruncate = "apply"
	OnTruncateIgnore OnTruncate = "ignore"
	OnTruncatePause  OnTruncate = "pause"
)

// OrderBy is what makes a change newer than another.
type OrderBy struct {
	// Columns of the target, the most significant first. A delete takes its values
	// from metadata (columns.add) only: a before image tells the place of the change
	// before it.
	By []string `koanf:"by" short:"true" check:"column"`
	// Which of two changes of a key stays when their values are the same:
	// last_offset is the one that arrived last; first_offset drops that one and
	// counts it, dead_letter sends it to the dead letter topic.
	OnTie OnTie `koanf:"on_tie" shown:"last_offset" enum:"last_offset,first_offset,dead_letter"`
	// What to do with a change that is older than what was applied of its key: drop
	// and count it, apply and count it all the same, or send its record to the dead
	// letter topic.
	Late Late `koanf:"late" shown:"drop" enum:"drop,apply,dead_letter"`
	// For how long a delete that left no row is remembered, so that an older change
	// of its key that comes later is late; counted from its commit by the clock of
	// the instance. The memory is kept in state_dir: what is lost there is forgotten
	// (it is reported). Each delete takes some 60 bytes plus key and values.
	RememberDeletes time.Duration `koanf:"remember_deletes" shown:"deletes are not remembered" min:"1m" max:"3650d"`
}

// OnTie says which of two changes of the same place in the order stays.
type OnTie string

// The ways to settle a tie.
const (
	OnTieLast       OnTie = "last_offset"
	OnTieFirst      OnTie = "first_offset"
	OnTieDeadLetter OnTie = "dead_letter"
)

// Late says what happens to a late change.
type Late string

// The ways to treat late changes.
const (
	LateDrop       Late = "drop"
	LateApply      Late = "apply"
	LateDeadLetter Late = "dead_letter"
)

// DeadLetters reports whether the order sends records to the dead letter topic.
func (o OrderBy) DeadLetters() bool {
	return o.OnTie == OnTieDeadLetter || o.Late == LateDeadLetter
}

// DeadLetters reports whether the pipeline may send records to its dead letter
// topic.
func (p *Pipeline) DeadLetters() bool {
	return p.OnError == OnErrorDeadLetter || p.OrderBy.DeadLetters()
}

// Columns is what fills columns of the target besides the change itself.
type Columns struct {
	// Target column: source. A source is op, ts_ms, source.NAME (Debezium's source
	// block), kafka.topic, kafka.partition, kafka.offset, kafka.timestamp or
	// header.NAME.
	Add map[string]string `koanf:"add" check:"meta" keys:"column"`
}

// Evolve says how far a table follows the schema of its records.
type Evolve string

// The ways.
const (
	EvolveStrict      Evolve = "strict"
	EvolveAdd         Evolve = "add"
	EvolveAddAndWiden Evolve = "add_and_widen"
)

// TableSchema is how a table's schema changes while the pipeline runs.
type TableSchema struct {
	// What happens when a record's own schema (Kafka Connect's, beside the value) has
	// more than the table. strict: nothing, columns that the table has not are named
	// in the log once and not kept. add: the pipeline adds new columns, and new fields
	// of nested ones; they are NULL in older rows. add_and_widen: it also makes types
	// wider (INT to BIGINT, more digits of a DECIMAL, finer timestamps), but for merge
	// key, order_by, partition and bucket columns and those that create.types names.
	// Nothing is ever dropped, renamed or made narrower.
	Evolve Evolve `koanf:"evolve" default:"strict" enum:"strict,add,add_and_widen"`
}

// Create is how a missing table is created.
type Create struct {
	// Partition columns.
	PartitionBy []string `koanf:"partition_by" check:"column"`
	// Column: SQL type, for columns whose type the changes do not tell or that
	// shall differ, such as DECIMAL(18,2).
	Types map[string]string `koanf:"types" keys:"column"`
	// Paimon table options, such as target-file-size: 128mb. Unless they are named
	// here, bucket is -1 and deletion-vectors.enabled is true.
	Options map[string]string `koanf:"options" raw:"true" keys:"option"`

	// order has the names of Types as they stand in the file.
	order []string `koanf:"-"`
}

// TypeOrder returns the names of Types in the order of the file: columns that
// nothing else names are made in it.
func (c *Create) TypeOrder() []string { return c.order }
