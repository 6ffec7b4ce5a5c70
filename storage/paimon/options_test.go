package paimon

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseOptions_DefaultsAreJavas(t *testing.T) {
	o, err := ParseOptions(nil)
	require.NoError(t, err)
	require.Equal(t, Options{
		Type: "table", Branch: "main", Bucket: -1, BucketFunction: "default",
		FileFormat: "parquet", FileCompression: "zstd", ZstdLevel: 1, DataFilePrefix: "data-", ExternalPathStrategy: "none",
		TargetFileSize: 256 << 20, ParquetBlockSize: 128 << 20, FileIndexThreshold: 500, FileIndexRead: true,
		ManifestFormat: "avro", ManifestCompression: "zstd", ManifestTargetSize: 8 << 20, ManifestMergeMinCount: 30, ManifestFullCompactSize: 16 << 20,
		DeletionVectorTargetSize: 2 << 20, RowTrackingGroups: true, ChangelogProducer: "none",
		PartitionDefaultName: "__DEFAULT_PARTITION__", PartitionLegacyName: true, DynamicPartitionOverwrite: true,
		StatsMode: StatsMode{StatsTruncate, 16}, StatsDense: true, StatsKeepFirstColumns: -1, ColumnStatsModes: map[string]StatsMode{},
		BucketAppendOrdered: true, CommitMaxRetries: 10, CommitMinRetryWait: 10 * time.Millisecond, CommitMaxRetryWait: 10 * time.Second,
		SnapshotRetainMin: 10, SnapshotRetainMax: math.MaxInt32, SnapshotRetainTime: time.Hour, SnapshotExpireLimit: 50,
		CompactMinFiles: 5, CompactFileLimit: 100_000, CompactDeleteRatio: 0.2, CompactSmallRatio: 0.7,
		SplitTargetSize: 128 << 20, SplitOpenFileCost: 4 << 20, AddNotNullRestricted: true,
	}, o)
}

func TestParseOptions_ReadsValues(t *testing.T) {
	o, err := ParseOptions(map[string]string{
		"bucket": "+4", "file.format": "ORC", "target-file-size": "96 kb", "manifest.compression": "Snappy", "deletion-vectors.enabled": "True",
		"snapshot.time-retained": "2 h", "write.compaction-skip": "true", "snapshot.expire.clean-empty-directories": "true",
		"metadata.stats-mode": "Counts", "fields.a.b.stats-mode": "full", "fields.c.stats-mode": "truncate(3)", "fields.d.default-value": "x",
		"file-index.bloom-filter.columns": "x", "file-index.bitmap.columns": "y", "file-index.bloom-filter.x.items": "5",
		"data-file.external-paths": "a,b", "compaction.delete-ratio-threshold": "0.5",
	})
	require.NoError(t, err)
	require.Equal(t, 4, o.Bucket)
	require.Equal(t, "orc", o.FileFormat)
	require.EqualValues(t, 96<<10, o.TargetFileSize)
	require.Equal(t, "snappy", o.ManifestCompression)
	require.True(t, o.DeletionVectors)
	require.Equal(t, 2*time.Hour, o.SnapshotRetainTime)
	require.True(t, o.WriteOnly)
	require.True(t, o.CleanEmptyDirs)
	require.Equal(t, StatsMode{Kind: StatsCounts}, o.StatsMode)
	require.Equal(t, map[string]StatsMode{"a.b": {Kind: StatsFull}, "c": {StatsTruncate, 3}}, o.ColumnStatsModes)
	require.Equal(t, []string{"file-index.bitmap.columns", "file-index.bloom-filter.columns"}, fileIndexKeys(map[string]string{
		"file-index.bloom-filter.columns": "x", "file-index.bitmap.columns": "y", "file-index.bloom-filter.x.items": "5", "file-index.read.enabled": "true",
	}))
	require.Equal(t, []string{"a", "b"}, o.ExternalPaths)
	require.Equal(t, 0.5, o.CompactDeleteRatio)
	o, err = ParseOptions(map[string]string{"write-only": "false", "write.compaction-skip": "true"})
	require.NoError(t, err)
	require.False(t, o.WriteOnly, "the newer name wins")
}

func TestParseOptions_ListsAllBadValuesAndKeepsDefaults(t *testing.T) {
	o, err := ParseOptions(map[string]string{
		"bucket": "x", "target-file-size": "1 pb", "snapshot.time-retained": "PT1H", "write-only": "yes", "metadata.stats-mode": "half",
		"fields.a.stats-mode": "truncate(0)", "compaction.delete-ratio-threshold": "much",
	})
	for _, key := range []string{"bucket", "target-file-size", "snapshot.time-retained", "write-only", "metadata.stats-mode", "fields.a.stats-mode", "compaction.delete-ratio-threshold"} {
		require.ErrorContains(t, err, "option "+key+":")
	}
	require.Equal(t, -1, o.Bucket)
	require.EqualValues(t, 256<<20, o.TargetFileSize)
	require.Equal(t, time.Hour, o.SnapshotRetainTime)
}

// What Paimon's MemorySize and TimeUtils answered (1.4.2).
func TestParseSize_IsJavas(t *testing.T) {
	for s, want := range map[string]int64{
		"128 mb": 134217728, "128mb": 134217728, "8 MB": 8388608, "1 k": 1024, "1kb": 1024, "5 kibibytes": 5120, "2 g": 2147483648,
		"1 t": 1099511627776, "100": 100, "100 b": 100, "7 bytes": 7, " 1 mb ": 1048576, "1 mebibytes": 1048576, "1 gibibytes": 1073741824,
		"1 tb": 1099511627776, "1 tebibytes": 1099511627776, "0": 0, "9223372036854775807": math.MaxInt64,
	} {
		got, err := ParseSize(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"1.5 mb", "-1 mb", "", "mb", "1 mib", "1 pb", "99999999999 t", "9223372036854775808", "1 h"} {
		_, err := ParseSize(s)
		require.Error(t, err, s)
	}
}

func TestParseDuration_IsJavas(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"1 h": time.Hour, "1h": time.Hour, "10 min": 10 * time.Minute, "5m": 5 * time.Minute, "1 d": 24 * time.Hour, "3 days": 72 * time.Hour,
		"10": 10 * time.Millisecond, "10 ms": 10 * time.Millisecond, "500ms": 500 * time.Millisecond, "1 s": time.Second, "7 µs": 7 * time.Microsecond,
		"9 ns": 9, "1 H": time.Hour, " 1 h ": time.Hour, "1 hours": time.Hour, "2 minutes": 2 * time.Minute, "3 secs": 3 * time.Second,
		"4 micros": 4 * time.Microsecond, "99999999999 d": math.MaxInt64,
	} {
		got, err := ParseDuration(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"7 us", "PT1H", "1.5 h", "-1 h", "", "h", "1 mo", "99999999999999999999 s"} {
		_, err := ParseDuration(s)
		require.Error(t, err, s)
	}
}

func TestStatsModeOf_PrefersTheColumnsOwnMode(t *testing.T) {
	o, err := ParseOptions(map[string]string{"metadata.stats-keep-first-n-columns": "1", "fields.c.stats-mode": "full", "metadata.stats-mode": "counts"})
	require.NoError(t, err)
	require.Equal(t, StatsMode{Kind: StatsCounts}, o.StatsModeOf(0, "a"))
	require.Equal(t, StatsMode{}, o.StatsModeOf(1, "b"))
	require.Equal(t, StatsMode{Kind: StatsFull}, o.StatsModeOf(2, "c"))
	require.Equal(t, StatsMode{StatsTruncate, 128}, o.StatsModeOf(3, "_ROW_ID"))
	require.Equal(t, StatsMode{StatsTruncate, 128}, o.StatsModeOf(4, "_SEQUENCE_NUMBER"))
}

func TestParseStatsMode_RefusesOthers(t *testing.T) {
	for _, s := range []string{"", "truncate", "truncate(", "truncate()", "truncate(0)", "truncate(-1)", "truncate(x)", "truncate(16) ", "truncate(99999999999)"} {
		_, err := ParseStatsMode(s)
		require.Error(t, err, s)
	}
}
