package paimon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrRefused is what a *Refusal is, by errors.Is.
var ErrRefused = errors.New("table refused")

// Code names a reason for a refusal. Codes are stable: logs, metrics and
// documentation use them.
type Code string

// The codes.
const (
	CodeSchemaVersion    Code = "schema_version"
	CodeUnknownType      Code = "unknown_type"
	CodeBadOption        Code = "bad_option"
	CodeTableType        Code = "table_type"
	CodePrimaryKey       Code = "primary_key"
	CodeDataEvolution    Code = "data_evolution"
	CodeFileFormat       Code = "file_format"
	CodeManifestFormat   Code = "manifest_format"
	CodeColumnType       Code = "column_type"
	CodePartitionType    Code = "partition_type"
	CodeFallbackBranch   Code = "fallback_branch"
	CodeBranch           Code = "branch"
	CodeBuckets          Code = "buckets"
	CodeBucketFunction   Code = "bucket_function"
	CodeRowTracking      Code = "row_tracking"
	CodeVectorsOff       Code = "vectors_off"
	CodeExternalPaths    Code = "external_paths"
	CodeFileIndex        Code = "file_index"
	CodeChangelog        Code = "changelog_producer"
	CodeClustering       Code = "incremental_clustering"
	CodeSequenceOrdering Code = "sequence_ordering"
)

// Reason is one reason for a refusal: what the table is, and what to do.
type Reason struct {
	Code Code
	Text string
}

// Refusal says why a table cannot be read or written here. It is ErrRefused.
type Refusal struct {
	Reasons []Reason
}

// Error lists all reasons.
func (r *Refusal) Error() string {
	var b strings.Builder
	b.WriteString(ErrRefused.Error())
	for i, x := range r.Reasons {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		fmt.Fprintf(&b, "%s [%s]", x.Text, x.Code)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrRefused) true.
func (r *Refusal) Is(target error) bool { return target == ErrRefused }

// Has reports whether a code is among the reasons.
func (r *Refusal) Has(c Code) bool {
	return slices.ContainsFunc(r.Reasons, func(x Reason) bool { return x.Code == c })
}

// Access is what one wants to do with a table.
type Access uint8

// The accesses. Each includes those before it.
const (
	Read Access = iota + 1
	Write
	// Create is Write to a table that has no file yet.
	Create
)

// Refuse returns nil if the table can be accessed, otherwise a *Refusal with
// every reason, found before anything is read or written. Reading is allowed for
// much that is not written yet.
func Refuse(s *Schema, a Access) error {
	o, err := ParseOptions(s.Options)
	c := refuser{s: s, o: o}
	if err != nil {
		c.add(CodeBadOption, "an option has a value that is none (%s): correct it with ALTER TABLE … SET", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	c.always()
	if a >= Write {
		c.writing()
	}
	if a == Create && zoned(s, &o) {
		c.add(CodePartitionType, "it is partitioned by a TIMESTAMP WITH LOCAL TIME ZONE and partition.legacy-name is false, so that its directory names "+
			"depend on the time zone of each writer: partition by another type")
	}
	if len(c.reasons) == 0 {
		return nil
	}
	return &Refusal{c.reasons}
}

type refuser struct {
	s       *Schema
	o       Options
	reasons []Reason
}

func (c *refuser) add(code Code, format string, a ...any) {
	c.reasons = append(c.reasons, Reason{code, fmt.Sprintf(format, a...)})
}

// always collects what stands against reading, too.
func (c *refuser) always() {
	s, o := c.s, c.o
	if s.Version > SchemaVersion {
		c.add(CodeSchemaVersion, "its schema has version %d, %d is the highest known here: use a newer applier", s.Version, SchemaVersion)
	}
	if o.Type != "table" {
		c.add(CodeTableType, "it is of type %q: only ordinary tables are supported", o.Type)
	}
	if len(s.PrimaryKeys) > 0 {
		c.add(CodePrimaryKey, "it has a primary key (%s): such tables merge by themselves, use Flink CDC or Spark to write them; "+
			"for applier create the table without PRIMARY KEY and name the key in the pipeline", strings.Join(s.PrimaryKeys, ", "))
	}
	if o.DataEvolution {
		c.add(CodeDataEvolution, "data-evolution.enabled is true, whose files hold parts of rows: use Spark, or a table without it")
	}
	if o.FileFormat != "parquet" {
		c.add(CodeFileFormat, "its data files are %s: create the table with file.format=parquet", o.FileFormat)
	}
	if o.ManifestFormat != "avro" {
		c.add(CodeManifestFormat, "its manifests are %s: only manifest.format=avro is supported", o.ManifestFormat)
	}
	for _, f := range s.Fields {
		if !f.Type.Supported() {
			c.add(CodeColumnType, "column %q is of type %s, which is not supported: use a table without the column", f.Name, f.Type)
		}
	}
	for _, f := range s.PartitionFields() {
		if !partitionable(f.Type) {
			c.add(CodePartitionType, "partition key %q is of type %s, which names no directory: partition by another column", f.Name, f.Type)
		}
	}
	for _, k := range []string{"scan.fallback-branch", "scan.primary-branch", "scan.fallback-snapshot-branch", "scan.fallback-delta-branch"} {
		if v, ok := s.Options[k]; ok {
			c.add(CodeFallbackBranch, "%s is %q, so its content lies in two branches: remove the option", k, v)
		}
	}
}

// writing collects what the options have against writing.
func (c *refuser) writing() {
	o := c.o
	if o.Branch != "main" {
		c.add(CodeBranch, "branch is %q: only the main branch is written", o.Branch)
	}
	c.refuseBuckets()
	if o.RowTracking && o.Bucket != -1 {
		c.add(CodeRowTracking, "row-tracking.enabled is true and bucket=%d: row ids are for tables without buckets, create the table with bucket=-1", o.Bucket)
	}
	if o.ExternalPathStrategy != "none" {
		for _, root := range o.ExternalPaths {
			if _, err := localPath(strings.TrimRight(strings.TrimSpace(root), "/")+"/x", "x"); err != nil {
				c.add(CodeExternalPaths, "data-file.external-paths names %q: files outside of the table are read from this machine's disk only, "+
					"set data-file.external-paths.strategy=none if there are none yet", strings.TrimSpace(root))
			}
		}
	}
	if _, err := bloomColumns(c.s); err != nil {
		c.add(CodeFileIndex, "it asks for file indexes that are not written (%s): remove or correct the option", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if o.ChangelogProducer != "none" {
		c.add(CodeChangelog, "changelog-producer is %q: changelogs are not written, set it to none", o.ChangelogProducer)
	}
	if o.IncrementalClustering && o.Bucket != -1 {
		// Java refuses both, too (SchemaValidation).
		if o.DeletionVectors {
			c.add(CodeClustering, "clustering.incremental and deletion-vectors.enabled are true and bucket=%d: "+
				"with buckets a table has one of them, create it with bucket=-1 or without one of the two", o.Bucket)
		}
		if o.BucketAppendOrdered {
			c.add(CodeClustering, "clustering.incremental is true, and bucket=%d keeps rows in the order they came: set bucket-append-ordered=false", o.Bucket)
		}
	}
	if o.SequenceSnapshotOrdering {
		c.add(CodeSequenceOrdering, "sequence.snapshot-ordering is true: sequence numbers are not assigned by snapshot, remove the option")
	}
}
