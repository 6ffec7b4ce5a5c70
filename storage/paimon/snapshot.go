package paimon

import (
	"encoding/json"
	"errors"
	"fmt"
)

// SnapshotVersion is the version of snapshot files.
const SnapshotVersion = 3

// CommitKind says what a snapshot did to its predecessor's content.
type CommitKind string

// The kinds; Java knows no others.
const (
	CommitAppend    CommitKind = "APPEND"
	CommitCompact   CommitKind = "COMPACT"
	CommitOverwrite CommitKind = "OVERWRITE"
	CommitAnalyze   CommitKind = "ANALYZE"
)

// Operation says what statement made a snapshot. Java fails on a snapshot with
// another value than these.
type Operation string

// The operations, since Paimon 2.0.
const (
	OperationWrite                        Operation = "WRITE"
	OperationOverwrite                    Operation = "OVERWRITE"
	OperationDelete                       Operation = "DELETE"
	OperationTruncate                     Operation = "TRUNCATE"
	OperationUpdate                       Operation = "UPDATE"
	OperationMerge                        Operation = "MERGE"
	OperationCreateTableAsSelect          Operation = "CREATE_TABLE_AS_SELECT"
	OperationReplaceTableAsSelect         Operation = "REPLACE_TABLE_AS_SELECT"
	OperationCreateOrReplaceTableAsSelect Operation = "CREATE_OR_REPLACE_TABLE_AS_SELECT"
)

// BatchCommitIdentifier is the commit identifier of writers that do not number
// their commits (Java's Long.MAX_VALUE).
const BatchCommitIdentifier int64 = 1<<63 - 1

// Snapshot is the content of snapshot/snapshot-<ID> (source: Paimon Snapshot).
// Nil pointers and empty texts of optional members are absent in the file.
type Snapshot struct {
	Version int
	UUID    string // optional
	ID      int64
	// SchemaID is the latest schema at commit time, not that of the files.
	SchemaID int64
	// The manifest lists: the state before, the changes of this snapshot, and the
	// changelog, which append tables have not. Sizes are in bytes.
	BaseManifestList          string
	BaseManifestListSize      *int64
	DeltaManifestList         string
	DeltaManifestListSize     *int64
	ChangelogManifestList     *string
	ChangelogManifestListSize *int64
	// IndexManifest is the complete list of live index files; absent if there
	// never was one.
	IndexManifest    *string
	CommitUser       string
	WriterVersion    *string
	CommitIdentifier int64
	CommitKind       CommitKind
	// TimeMillis is the commit time, milliseconds since the epoch.
	TimeMillis int64
	// TotalRecordCount counts the rows of all live files, deleted ones included;
	// DeltaRecordCount is its change.
	TotalRecordCount     int64
	DeltaRecordCount     int64
	ChangelogRecordCount *int64
	Watermark            *int64
	Statistics           *string
	// Properties are not inherited by the next snapshot. Empty is absent.
	Properties map[string]string
	NextRowID  *int64
	Operation  Operation // optional

	propertyOrder []string // as in the file
	extra         []member // members that are not known here
}

// ParseSnapshot reads a snapshot file. Members that are not known are kept for
// Encode. A version or kind that is not known is ErrNewer, anything else that is
// wrong ErrCorrupt.
func ParseSnapshot(b []byte) (*Snapshot, error) {
	ms, err := parseObject(b)
	var s *Snapshot
	if err == nil {
		s, err = parseSnapshot(ms)
	}
	if err != nil {
		return nil, corruptUnlessNewer("snapshot", err)
	}
	return s, nil
}

func corruptUnlessNewer(what string, err error) error {
	if errors.Is(err, ErrNewer) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrCorrupt, what, err)
}

func parseSnapshot(ms []member) (*Snapshot, error) {
	s := &Snapshot{Version: 1}
	r := newJSONReader(ms)
	r.get("version", &s.Version)
	r.get("uuid", &s.UUID)
	r.need("id", &s.ID)
	r.need("schemaId", &s.SchemaID)
	r.need("baseManifestList", &s.BaseManifestList)
	s.BaseManifestListSize = optional[int64](r, "baseManifestListSize")
	r.need("deltaManifestList", &s.DeltaManifestList)
	s.DeltaManifestListSize = optional[int64](r, "deltaManifestListSize")
	s.ChangelogManifestList = optional[string](r, "changelogManifestList")
	s.ChangelogManifestListSize = optional[int64](r, "changelogManifestListSize")
	s.IndexManifest = optional[string](r, "indexManifest")
	r.need("commitUser", &s.CommitUser)
	s.WriterVersion = optional[string](r, "writerVersion")
	r.need("commitIdentifier", &s.CommitIdentifier)
	r.need("commitKind", &s.CommitKind)
	r.need("timeMillis", &s.TimeMillis)
	r.get("totalRecordCount", &s.TotalRecordCount) // Java reads a missing one as 0
	r.get("deltaRecordCount", &s.DeltaRecordCount)
	s.ChangelogRecordCount = optional[int64](r, "changelogRecordCount")
	s.Watermark = optional[int64](r, "watermark")
	s.Statistics = optional[string](r, "statistics")
	var properties json.RawMessage
	r.get("properties", &properties)
	s.NextRowID = optional[int64](r, "nextRowId")
	r.get("operation", &s.Operation)
	s.extra = r.rest(ms)
	if r.err != nil {
		return nil, r.err
	}
	if properties != nil {
		var err error
		if s.Properties, s.propertyOrder, err = textMap(properties); err != nil {
			return nil, fmt.Errorf("properties: %w", err)
		}
	}
	return s, s.check()
}

// check refuses what could not be worked with.
func (s *Snapshot) check() error {
	if s.Version > SnapshotVersion {
		return fmt.Errorf("%w: version %d, %d is the highest known here", ErrNewer, s.Version, SnapshotVersion)
	}
	switch s.CommitKind {
	case CommitAppend, CommitCompact, CommitOverwrite, CommitAnalyze:
	default:
		return fmt.Errorf("%w: commit kind %q", ErrNewer, s.CommitKind)
	}
	if s.ID < 1 {
		return fmt.Errorf("id %d", s.ID)
	}
	return nil
}

// Encode returns the bytes of the snapshot file, as Java writes them. Properties
// keep the order they were read in, others follow in alphabetical order.
func (s *Snapshot) Encode() ([]byte, error) {
	var w jsonWriter
	s.write(&w)
	w.extra(s.extra)
	b, err := w.end()
	if err != nil {
		return nil, fmt.Errorf("writing snapshot %d: %w", s.ID, err)
	}
	return b, nil
}

// write writes the known members in Java's order.
func (s *Snapshot) write(w *jsonWriter) {
	w.int("version", int64(s.Version))
	if s.UUID != "" {
		w.text("uuid", s.UUID)
	}
	w.int("id", s.ID)
	w.int("schemaId", s.SchemaID)
	w.text("baseManifestList", s.BaseManifestList)
	w.optInt("baseManifestListSize", s.BaseManifestListSize)
	w.text("deltaManifestList", s.DeltaManifestList)
	w.optInt("deltaManifestListSize", s.DeltaManifestListSize)
	w.optText("changelogManifestList", s.ChangelogManifestList)
	w.optInt("changelogManifestListSize", s.ChangelogManifestListSize)
	w.optText("indexManifest", s.IndexManifest)
	w.text("commitUser", s.CommitUser)
	w.optText("writerVersion", s.WriterVersion)
	w.int("commitIdentifier", s.CommitIdentifier)
	w.text("commitKind", string(s.CommitKind))
	w.int("timeMillis", s.TimeMillis)
	w.int("totalRecordCount", s.TotalRecordCount)
	w.int("deltaRecordCount", s.DeltaRecordCount)
	w.optInt("changelogRecordCount", s.ChangelogRecordCount)
	w.optInt("watermark", s.Watermark)
	w.optText("statistics", s.Statistics)
	if len(s.Properties) > 0 {
		w.texts("properties", s.Properties, keyOrder(s.Properties, s.propertyOrder))
	}
	w.optInt("nextRowId", s.NextRowID)
	if s.Operation != "" {
		w.text("operation", string(s.Operation))
	}
}
