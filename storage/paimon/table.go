package paimon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"applier/storage/objstore"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// Table is a table opened at one schema. It is immutable and safe for
// concurrent use; a later schema is seen by opening the table again.
type Table struct {
	bucket  objstore.Bucket
	branch  string
	schema  *Schema
	options Options
	paths   Paths
	codec   *manifest.Codec
	buffers *datafile.Buffers
	// The partition columns: their positions in the schema, and types.
	partitionCols  []int
	partitionTypes []types.Type
	buckets        buckets
	blooms         []bloomColumn // what data files have filters of

	schemas *sync.Map // schema id → *Schema
	entries *entryCache
}

// OpenTable opens the table whose directory is the root of b at its latest
// schema. Errors: objstore.ErrNotExist if there is no table, a *Refusal if the
// access is not possible.
func OpenTable(ctx context.Context, b objstore.Bucket, a Access) (*Table, error) {
	s, err := LatestSchema(ctx, b, Paths{})
	if err != nil {
		return nil, err
	}
	t, err := openAt(b, s, "", a)
	if err != nil || a == Read {
		return t, err
	}
	if zoned(s, &t.options) {
		if err := t.checkZone(ctx); err != nil {
			return t, err
		}
	}
	if s.ID == 0 {
		return t, nil
	}
	return t, t.checkHistory(ctx)
}

// checkHistory refuses a table of several schemas whose rows tell that an option
// was changed which must not be.
func (t *Table) checkHistory(ctx context.Context) error {
	id, err := LatestSnapshotID(ctx, t.bucket, t.paths)
	if err != nil || id == 0 {
		return err
	}
	s, err := ReadSnapshot(ctx, t.bucket, t.paths, id)
	if errors.Is(err, objstore.ErrNotExist) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNewer) {
		return nil // every commit looks again; whoever reads the snapshot says what it is
	}
	if err != nil {
		return err
	}
	if err := t.checkTracking(ctx, &State{Snapshot: s}); err != nil || t.options.DeletionVectors {
		return err
	}
	index, err := t.Index(ctx, s)
	if err != nil || !slices.ContainsFunc(index, func(e manifest.IndexEntry) bool { return len(e.Vectors) > 0 }) {
		return nil // an index that cannot be read: see above
	}
	return &Refusal{[]Reason{{CodeVectorsOff, fmt.Sprintf("deletion-vectors.enabled was set to false when snapshot %d had deletion vectors: "+
		"for every engine the rows that those had deleted are back; set it to true again, purge them with a full compaction, and then set it to false", s.ID)}}}
}

// openAt opens a table at a schema; branch "" is the one that the options name.
func openAt(b objstore.Bucket, s *Schema, branch string, a Access) (*Table, error) {
	if err := Refuse(s, a); err != nil {
		return nil, err
	}
	o, err := ParseOptions(s.Options)
	if err != nil {
		return nil, err
	}
	if branch == "" {
		branch = o.Branch
	}
	paths, err := NewPaths(s, o, branch)
	if err != nil {
		return nil, err
	}
	codec, err := manifest.NewCodec(manifest.Options{Compression: o.ManifestCompression, Level: o.ZstdLevel})
	if err != nil {
		return nil, err
	}
	buffers, err := datafile.NewBuffers()
	if err != nil {
		return nil, err
	}
	t := &Table{
		bucket: b, branch: branch, schema: s, options: o, paths: paths, codec: codec, buffers: buffers,
		partitionTypes: s.PartitionTypes(), schemas: &sync.Map{}, entries: newEntryCache(),
	}
	t.buckets = newBuckets(s, &o)
	t.blooms, _ = bloomColumns(s) // Refuse has seen it; for reading it does not matter
	for _, key := range s.PartitionKeys {
		t.partitionCols = append(t.partitionCols, s.Column(key))
	}
	return t, nil
}

// CreateTable writes schema 0 of a new table below the root of b;
// objstore.ErrExist if there is one.
func CreateTable(ctx context.Context, b objstore.Bucket, s *Schema) error {
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return b.PutIfAbsent(ctx, Paths{}.Schema(0), data)
}

// Bucket returns the table's store.
func (t *Table) Bucket() objstore.Bucket { return t.bucket }

// Schema returns the schema the table was opened at.
func (t *Table) Schema() *Schema { return t.schema }

// Options returns the table's options.
func (t *Table) Options() *Options { return &t.options }

// Paths returns the table's paths.
func (t *Table) Paths() Paths { return t.paths }

// SchemaByID returns a schema of the table's history.
func (t *Table) SchemaByID(ctx context.Context, id int64) (*Schema, error) {
	if id == t.schema.ID {
		return t.schema, nil
	}
	if s, ok := t.schemas.Load(id); ok {
		return s.(*Schema), nil
	}
	s, err := ReadSchema(ctx, t.bucket, t.paths, id)
	if err != nil {
		return nil, err
	}
	t.schemas.Store(id, s)
	return s, nil
}

// AtSchema returns the table as readers of another schema of its history see it,
// for reading only: other engines read an old snapshot with the schema, and the
// options, of its time (Snapshot.SchemaID).
func (t *Table) AtSchema(ctx context.Context, id int64) (*Table, error) {
	if id == t.schema.ID {
		return t, nil
	}
	s, err := t.SchemaByID(ctx, id)
	if err != nil {
		return nil, err
	}
	at, err := openAt(t.bucket, s, t.branch, Read)
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", id, err)
	}
	at.buffers, at.schemas, at.entries = t.buffers, t.schemas, t.entries
	return at, nil
}
