package paimon

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// ErrBadName: a name in a metadata file that is no plain file name. Names come
// from files that anybody may have written, and become keys.
var ErrBadName = errors.New("bad file name")

// ErrExternalPath: a file that lies outside of the table's directory.
var ErrExternalPath = errors.New("file lies outside of the table")

// MainBranch is the branch without a name of its own.
const MainBranch = "main"

// Paths computes the keys of a table's files, relative to the table's directory
// (source: FileStorePathFactory, SnapshotManager, SchemaManager, TagManager,
// ConsumerManager). Schemas, snapshots, tags and consumers belong to a branch;
// manifests, index, statistics and data files of all branches lie together. The
// zero Paths is that of the main branch, for metadata only.
type Paths struct {
	base       string // "" or "branch/branch-<name>/"
	fields     []types.Field
	types      []types.Type
	name       string
	legacy     bool
	dataDir    string
	indexInDir bool
}

// NewPaths returns the paths of a branch ("" and "main" are the same) under a
// schema and its options.
func NewPaths(s *Schema, o Options, branch string) (Paths, error) {
	p := Paths{
		fields: s.PartitionFields(), types: s.PartitionTypes(), name: o.PartitionDefaultName, legacy: o.PartitionLegacyName,
		indexInDir: o.IndexFileInDataDir,
	}
	if branch != "" && branch != MainBranch {
		if err := checkName(branch); err != nil {
			return Paths{}, fmt.Errorf("branch: %w", err)
		}
		p.base = "branch/branch-" + branch + "/"
	}
	for part := range strings.SplitSeq(strings.Trim(o.DataFileDirectory, "/"), "/") {
		if part == "" {
			continue
		}
		if err := checkName(part); err != nil {
			return Paths{}, fmt.Errorf("data-file.path-directory: %w", err)
		}
		p.dataDir += part + "/"
	}
	return p, nil
}

// checkName refuses what is not one plain path element.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > maxNameBytes || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("%w: %q", ErrBadName, name)
	}
	return nil
}

func named(dir, name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	return dir + name, nil
}

func formatID(n int64) string { return strconv.FormatInt(n, 10) }

// SchemaDir is the folder of schema files.
func (p Paths) SchemaDir() string { return p.base + "schema" }

// SnapshotDir is the folder of snapshot files and hints.
func (p Paths) SnapshotDir() string { return p.base + "snapshot" }

// TagDir is the folder of tag files.
func (p Paths) TagDir() string { return p.base + "tag" }

// ConsumerDir is the folder of consumer files.
func (p Paths) ConsumerDir() string { return p.base + "consumer" }

// Schema is the key of a schema file.
func (p Paths) Schema(schemaID int64) string { return p.base + "schema/schema-" + formatID(schemaID) }

// Snapshot is the key of a snapshot file.
func (p Paths) Snapshot(snapshotID int64) string {
	return p.base + "snapshot/snapshot-" + formatID(snapshotID)
}

// LatestHint is the key of the hint that commits move.
func (p Paths) LatestHint() string { return p.base + "snapshot/LATEST" }

// EarliestHint is the key of the hint that expiry moves.
func (p Paths) EarliestHint() string { return p.base + "snapshot/EARLIEST" }

// Tag is the key of a tag file.
func (p Paths) Tag(name string) (string, error) { return named(p.base+"tag/", "tag-"+name) }

// Consumer is the key of a consumer file.
func (p Paths) Consumer(consumerID string) (string, error) {
	return named(p.base+"consumer/", "consumer-"+consumerID)
}

// Manifest is the key of a data manifest, manifest list or index manifest.
func (p Paths) Manifest(name string) (string, error) { return named("manifest/", name) }

// Statistics is the key of a statistics file.
func (p Paths) Statistics(name string) (string, error) { return named("statistics/", name) }

// Index is the key of an index file.
func (p Paths) Index(e *manifest.IndexEntry) (string, error) {
	if e.ExternalPath != nil {
		return "", fmt.Errorf("index file %s: %w: %s", e.Name, ErrExternalPath, *e.ExternalPath)
	}
	if !p.indexInDir {
		return named("index/", e.Name)
	}
	dir, err := p.BucketDir(e.Partition, e.Bucket)
	if err != nil {
		return "", err
	}
	return named(dir+"/", e.Name)
}

// Data is the key of a data file.
func (p Paths) Data(e *manifest.Entry) (string, error) {
	if e.File.ExternalPath != nil {
		return "", fmt.Errorf("data file %s: %w: %s", e.File.Name, ErrExternalPath, *e.File.ExternalPath)
	}
	dir, err := p.BucketDir(e.Partition, e.Bucket)
	if err != nil {
		return "", err
	}
	return named(dir+"/", e.File.Name)
}

// postponeBucket is the bucket of bucket=-2, which only primary-key tables have.
const postponeBucket = -2

// BucketDir is the folder of a bucket of a partition, given by its row bytes. In
// tables with bucket=-1 the only bucket is 0.
func (p Paths) BucketDir(partition []byte, bucket int32) (string, error) {
	values, err := binrow.Decode(p.types, partition)
	if err != nil {
		return "", fmt.Errorf("partition: %w", err)
	}
	dir, err := PartitionPath(p.fields, values, p.name, p.legacy)
	if err != nil {
		return "", err
	}
	if dir != "" {
		dir += "/"
	}
	if bucket == postponeBucket {
		return p.dataDir + dir + "bucket-postpone", nil
	}
	return p.dataDir + dir + "bucket-" + strconv.Itoa(int(bucket)), nil
}

// Names of new files: unique by their uuid, which one writer keeps, and a counter
// of the writer's for each kind. Readers take them as they are.

// ManifestName names a data manifest.
func ManifestName(uuid string, n int) string { return "manifest-" + uuid + "-" + strconv.Itoa(n) }

// ManifestListName names a manifest list.
func ManifestListName(uuid string, n int) string {
	return "manifest-list-" + uuid + "-" + strconv.Itoa(n)
}

// IndexManifestName names an index manifest.
func IndexManifestName(uuid string, n int) string {
	return "index-manifest-" + uuid + "-" + strconv.Itoa(n)
}

// IndexName names an index file.
func IndexName(uuid string, n int) string { return "index-" + uuid + "-" + strconv.Itoa(n) }

// DataName names a data file. The format must be what stands behind the last
// point, by which readers know it.
func (o *Options) DataName(uuid string, n int) string {
	name := o.DataFilePrefix + uuid + "-" + strconv.Itoa(n)
	if o.SuffixWithCompression {
		name += "." + o.FileCompression
	}
	return name + "." + o.FileFormat
}
