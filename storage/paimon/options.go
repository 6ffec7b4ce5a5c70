package paimon

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys of table options that are looked at by name elsewhere.
const (
	OptBucket                  = "bucket"
	OptBucketKey               = "bucket-key"
	OptBucketFunction          = "bucket-function.type"
	OptFileFormat              = "file.format"
	OptDeletionVectors         = "deletion-vectors.enabled"
	OptDeletionVectorsBitmap64 = "deletion-vectors.bitmap64"
	OptRowTracking             = "row-tracking.enabled"
	OptDataEvolution           = "data-evolution.enabled"
	OptPartitionLegacyName     = "partition.legacy-name"
	OptPartitionDefaultName    = "partition.default-name"
)

// Options are a table's options with Java's defaults for what is not set
// (source: CoreOptions). Options that only steer engines are not here.
type Options struct {
	Type           string // type, default "table"
	Branch         string // branch, default "main"
	Bucket         int    // bucket, default -1
	BucketFunction string // bucket-function.type, default "default"

	FileFormat            string   // file.format, lower case, default "parquet"
	FileCompression       string   // file.compression, default "zstd"
	ZstdLevel             int      // file.compression.zstd-level, default 1
	SuffixWithCompression bool     // file.suffix.include.compression
	DataFilePrefix        string   // data-file.prefix, default "data-"
	DataFileDirectory     string   // data-file.path-directory, a folder below the table, default none
	ExternalPaths         []string // data-file.external-paths
	ExternalPathStrategy  string   // data-file.external-paths.strategy, default "none"
	TargetFileSize        int64    // target-file-size in bytes, default 256 MB for append tables
	ParquetBlockSize      int64    // parquet.block.size in bytes, default 128 MB
	FileIndexThreshold    int64    // file-index.in-manifest-threshold in bytes, default 500
	FileIndexRead         bool     // file-index.read.enabled, default true

	ManifestFormat            string // manifest.format, default "avro"
	ManifestCompression       string // manifest.compression, default "zstd"
	ManifestTargetSize        int64  // manifest.target-file-size in bytes, default 8 MB
	ManifestMergeMinCount     int    // manifest.merge-min-count, default 30
	ManifestFullCompactSize   int64  // manifest.full-compaction-threshold-size in bytes, default 16 MB
	ManifestDropsStatsOfFiles bool   // manifest.delete-file-drop-stats

	DeletionVectors           bool  // deletion-vectors.enabled
	DeletionVectorsModifiable bool  // deletion-vectors.modifiable
	Bitmap64                  bool  // deletion-vectors.bitmap64
	DeletionVectorTargetSize  int64 // deletion-vector.index-file.target-size in bytes, default 2 MB
	IndexFileInDataDir        bool  // index-file-in-data-file-dir

	RowTracking              bool     // row-tracking.enabled
	RowTrackingGroups        bool     // row-tracking.partition-group-on-commit, default true
	DataEvolution            bool     // data-evolution.enabled
	ChangelogProducer        string   // changelog-producer, default "none"
	IncrementalClustering    bool     // clustering.incremental
	ClusteringColumns        []string // clustering.columns
	SequenceSnapshotOrdering bool     // sequence.snapshot-ordering

	PartitionDefaultName      string // partition.default-name, default "__DEFAULT_PARTITION__"
	PartitionLegacyName       bool   // partition.legacy-name, default true
	DynamicPartitionOverwrite bool   // dynamic-partition-overwrite, default true

	StatsMode             StatsMode            // metadata.stats-mode, default truncate(16)
	StatsDense            bool                 // metadata.stats-dense-store, default true
	StatsKeepFirstColumns int                  // metadata.stats-keep-first-n-columns, default -1: all
	ColumnStatsModes      map[string]StatsMode // fields.<column>.stats-mode

	WriteOnly           bool // write-only
	BucketAppendOrdered bool // bucket-append-ordered, default true

	CommitUserPrefix   string        // commit.user-prefix
	CommitMaxRetries   int           // commit.max-retries, default 10
	CommitTimeout      time.Duration // commit.timeout, 0: none
	CommitMinRetryWait time.Duration // commit.min-retry-wait, default 10 ms
	CommitMaxRetryWait time.Duration // commit.max-retry-wait, default 10 s

	SnapshotRetainMin    int           // snapshot.num-retained.min, default 10
	SnapshotRetainMax    int           // snapshot.num-retained.max, default unlimited
	SnapshotRetainTime   time.Duration // snapshot.time-retained, default 1 h
	SnapshotExpireLimit  int           // snapshot.expire.limit, default 50
	CleanEmptyDirs       bool          // snapshot.clean-empty-directories
	ConsumerExpiration   time.Duration // consumer.expiration-time, 0: never
	ConsumerChangelog    bool          // consumer.changelog-only
	CompactMinFiles      int           // compaction.min.file-num, default 5
	CompactFileLimit     int           // compaction.file-num-limit, default 100000
	CompactDeleteRatio   float64       // compaction.delete-ratio-threshold, default 0.2
	CompactSmallRatio    float64       // compaction.small-file-ratio, default 0.7
	SplitTargetSize      int64         // source.split.target-size in bytes, default 128 MB
	SplitOpenFileCost    int64         // source.split.open-file-cost in bytes, default 4 MB
	AddNotNullRestricted bool          // alter-column-null-to-not-null.disabled, default true
}

const mb = 1 << 20

// ParseOptions reads a table's options. Options are complete in any case; the
// error lists every value that is none of its kind, in place of which the
// default stands.
func ParseOptions(m map[string]string) (Options, error) {
	p := optionParser{m: m}
	var o Options
	p.files(&o)
	p.features(&o)
	p.maintenance(&o)
	p.perColumn(&o)
	return o, errors.Join(p.errs...)
}

type optionParser struct {
	m    map[string]string
	errs []error
}

func (p *optionParser) files(o *Options) {
	o.Type = p.text("type", "table")
	o.Branch = p.text("branch", "main")
	o.Bucket = p.int(OptBucket, -1)
	o.BucketFunction = p.text(OptBucketFunction, "default")
	o.FileFormat = strings.ToLower(p.text(OptFileFormat, "parquet"))
	o.FileCompression = p.text("file.compression", "zstd")
	o.ZstdLevel = p.int("file.compression.zstd-level", 1)
	o.SuffixWithCompression = p.bool("file.suffix.include.compression", false)
	o.DataFilePrefix = p.text("data-file.prefix", "data-")
	o.DataFileDirectory = p.text("data-file.path-directory", "")
	if v := p.text("data-file.external-paths", ""); v != "" {
		o.ExternalPaths = strings.Split(v, ",")
	}
	o.ExternalPathStrategy = strings.ToLower(p.text("data-file.external-paths.strategy", "none"))
	o.TargetFileSize = p.size("target-file-size", 256*mb)
	o.ParquetBlockSize = p.size("parquet.block.size", 128*mb)
	o.FileIndexThreshold = p.size("file-index.in-manifest-threshold", 500)
	o.FileIndexRead = p.bool("file-index.read.enabled", true)
	o.ManifestFormat = strings.ToLower(p.text("manifest.format", "avro"))
	o.ManifestCompression = strings.ToLower(p.text("manifest.compression", "zstd"))
	o.ManifestTargetSize = p.size("manifest.target-file-size", 8*mb)
	o.ManifestMergeMinCount = p.int("manifest.merge-min-count", 30)
	o.ManifestFullCompactSize = p.size("manifest.full-compaction-threshold-size", 16*mb)
	o.ManifestDropsStatsOfFiles = p.bool("manifest.delete-file-drop-stats", false)
}

func (p *optionParser) features(o *Options) {
	o.DeletionVectors = p.bool(OptDeletionVectors, false)
	o.DeletionVectorsModifiable = p.bool("deletion-vectors.modifiable", false)
	o.Bitmap64 = p.bool(OptDeletionVectorsBitmap64, false)
	o.DeletionVectorTargetSize = p.size("deletion-vector.index-file.target-size", 2*mb)
	o.IndexFileInDataDir = p.bool("index-file-in-data-file-dir", false)
	o.RowTracking = p.bool(OptRowTracking, false)
	o.RowTrackingGroups = p.bool("row-tracking.partition-group-on-commit", true)
	o.DataEvolution = p.bool(OptDataEvolution, false)
	o.ChangelogProducer = strings.ToLower(p.text("changelog-producer", "none"))
	o.IncrementalClustering = p.bool("clustering.incremental", false)
	for name := range strings.SplitSeq(p.text(p.either("clustering.columns", "sink.clustering.by-columns"), ""), ",") {
		if name = strings.TrimSpace(name); name != "" {
			o.ClusteringColumns = append(o.ClusteringColumns, name)
		}
	}
	o.SequenceSnapshotOrdering = p.bool("sequence.snapshot-ordering", false)
	o.PartitionDefaultName = p.text(OptPartitionDefaultName, "__DEFAULT_PARTITION__")
	o.PartitionLegacyName = p.bool(OptPartitionLegacyName, true)
	o.DynamicPartitionOverwrite = p.bool("dynamic-partition-overwrite", true)
	o.WriteOnly = p.bool(p.either("write-only", "write.compaction-skip"), false)
	o.BucketAppendOrdered = p.bool("bucket-append-ordered", true)
}

func (p *optionParser) maintenance(o *Options) {
	o.CommitUserPrefix = p.text("commit.user-prefix", "")
	o.CommitMaxRetries = p.int("commit.max-retries", 10)
	o.CommitTimeout = p.duration("commit.timeout", 0)
	o.CommitMinRetryWait = p.duration("commit.min-retry-wait", 10*time.Millisecond)
	o.CommitMaxRetryWait = p.duration("commit.max-retry-wait", 10*time.Second)
	o.SnapshotRetainMin = p.int("snapshot.num-retained.min", 10)
	o.SnapshotRetainMax = p.int("snapshot.num-retained.max", math.MaxInt32)
	o.SnapshotRetainTime = p.duration("snapshot.time-retained", time.Hour)
	o.SnapshotExpireLimit = p.int("snapshot.expire.limit", 50)
	o.CleanEmptyDirs = p.bool(p.either("snapshot.clean-empty-directories", "snapshot.expire.clean-empty-directories"), false)
	o.ConsumerExpiration = p.duration("consumer.expiration-time", 0)
	o.ConsumerChangelog = p.bool("consumer.changelog-only", false)
	o.CompactMinFiles = p.int("compaction.min.file-num", 5)
	o.CompactFileLimit = p.int("compaction.file-num-limit", 100_000)
	o.CompactDeleteRatio = p.float("compaction.delete-ratio-threshold", 0.2)
	o.CompactSmallRatio = p.float("compaction.small-file-ratio", 0.7)
	o.SplitTargetSize = p.size("source.split.target-size", 128*mb)
	o.SplitOpenFileCost = p.size("source.split.open-file-cost", 4*mb)
	o.AddNotNullRestricted = p.bool("alter-column-null-to-not-null.disabled", true)
}

// perColumn reads the statistics' modes and the options that name columns.
func (p *optionParser) perColumn(o *Options) {
	o.StatsMode = p.statsMode("metadata.stats-mode", StatsMode{Kind: StatsTruncate, Length: 16})
	o.StatsDense = p.bool("metadata.stats-dense-store", true)
	o.StatsKeepFirstColumns = p.int("metadata.stats-keep-first-n-columns", -1)
	o.ColumnStatsModes = map[string]StatsMode{}
	for key := range p.m {
		if column, ok := strings.CutSuffix(key, ".stats-mode"); ok {
			if column, ok = strings.CutPrefix(column, "fields."); ok {
				o.ColumnStatsModes[column] = p.statsMode(key, o.StatsMode)
			}
		}
	}
	slices.SortFunc(p.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}

// either returns the key that is set, the first one before its older name.
func (p *optionParser) either(key, older string) string {
	if _, ok := p.m[key]; !ok {
		if _, ok := p.m[older]; ok {
			return older
		}
	}
	return key
}

func (p *optionParser) text(key, def string) string {
	if v, ok := p.m[key]; ok {
		return v
	}
	return def
}

// parsed reads a value with f, or keeps the default and notes the error.
func parsed[T any](p *optionParser, key string, def T, f func(string) (T, error)) T {
	s, ok := p.m[key]
	if !ok {
		return def
	}
	v, err := f(s)
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("option %s: %q is no value: %w", key, s, err))
		return def
	}
	return v
}

func (p *optionParser) int(key string, def int) int {
	return parsed(p, key, def, func(s string) (int, error) {
		v, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return 0, errors.New("a whole number is expected")
		}
		return int(v), nil
	})
}

func (p *optionParser) float(key string, def float64) float64 {
	return parsed(p, key, def, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return 0, errors.New("a number is expected")
		}
		return v, nil
	})
}

func (p *optionParser) bool(key string, def bool) bool {
	return parsed(p, key, def, func(s string) (bool, error) {
		switch strings.ToLower(s) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return false, errors.New("true or false is expected")
	})
}

func (p *optionParser) size(key string, def int64) int64 { return parsed(p, key, def, ParseSize) }

func (p *optionParser) duration(key string, def time.Duration) time.Duration {
	return parsed(p, key, def, ParseDuration)
}

func (p *optionParser) statsMode(key string, def StatsMode) StatsMode {
	return parsed(p, key, def, ParseStatsMode)
}
