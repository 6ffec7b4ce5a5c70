package paimon

import (
	"context"
	"errors"
	"fmt"
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
	schema  *Schema
	options Options
	paths   Paths
	codec   *manifest.Codec
	buffers *datafile.Buffers
	schemas sync.Map // schema id → *Schema
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
	return openAt(b, s, a)
}

func openAt(b objstore.Bucket, s *Schema, a Access) (*Table, error) {
	if err := Refuse(s, a); err != nil {
		return nil, err
	}
	o, err := ParseOptions(s.Options)
	if err != nil {
		return nil, err
	}
	paths, err := NewPaths(s, o, o.Branch)
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
	return &Table{bucket: b, schema: s, options: o, paths: paths, codec: codec, buffers: buffers, entries: newEntryCache()}, nil
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
		return nil, fmt.Errorf("reading schema %d: %w", id, err)
	}
	t.schemas.Store(id, s)
	return s, nil
}

// State is the state of a table at a snapshot, without its files' entries.
type State struct {
	// Snapshot is nil before the first one.
	Snapshot *Snapshot
	// Manifests are those of the base list, then those of the delta list.
	Manifests []manifest.Meta
	// Index are all live index files.
	Index []manifest.IndexEntry
	// complete: nothing in the lists is unknown, so that they may be written again.
	complete bool
}

// State reads the lists of a snapshot; nil stands for a table without one.
func (t *Table) State(ctx context.Context, s *Snapshot) (*State, error) {
	st := &State{Snapshot: s, complete: true}
	if s == nil {
		return st, nil
	}
	for _, name := range []string{s.BaseManifestList, s.DeltaManifestList} {
		metas, complete, err := t.list(ctx, name)
		if err != nil {
			return nil, err
		}
		st.Manifests = append(st.Manifests, metas...)
		st.complete = st.complete && complete
	}
	if s.IndexManifest == nil {
		return st, nil
	}
	index, complete, err := t.index(ctx, *s.IndexManifest)
	if err != nil {
		return nil, err
	}
	st.Index, st.complete = index, st.complete && complete
	return st, nil
}

func (t *Table) get(ctx context.Context, name string) ([]byte, error) {
	key, err := t.paths.Manifest(name)
	if err != nil {
		return nil, err
	}
	b, err := t.bucket.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return b, nil
}

func (t *Table) list(ctx context.Context, name string) ([]manifest.Meta, bool, error) {
	b, err := t.get(ctx, name)
	if err != nil {
		return nil, false, err
	}
	metas, complete, err := t.codec.DecodeList(b)
	if err != nil {
		return nil, false, fmt.Errorf("reading manifest list %s: %w", name, err)
	}
	return metas, complete, nil
}

func (t *Table) index(ctx context.Context, name string) ([]manifest.IndexEntry, bool, error) {
	b, err := t.get(ctx, name)
	if err != nil {
		return nil, false, err
	}
	entries, complete, err := t.codec.DecodeIndex(b)
	if err != nil {
		return nil, false, fmt.Errorf("reading index manifest %s: %w", name, err)
	}
	return entries, complete, nil
}

// Index reads the index manifest of a snapshot: all its live index files.
func (t *Table) Index(ctx context.Context, s *Snapshot) ([]manifest.IndexEntry, error) {
	if s == nil || s.IndexManifest == nil {
		return nil, nil
	}
	entries, _, err := t.index(ctx, *s.IndexManifest)
	return entries, err
}

// Entries reads a data manifest. The entries are shared: do not change them.
func (t *Table) Entries(ctx context.Context, m manifest.Meta) ([]manifest.Entry, error) {
	entries, _, err := t.readEntries(ctx, m)
	return entries, err
}

func (t *Table) readEntries(ctx context.Context, m manifest.Meta) ([]manifest.Entry, bool, error) {
	if c, ok := t.entries.get(m.Name); ok {
		return c.entries, c.complete, nil
	}
	b, err := t.get(ctx, m.Name)
	if err != nil {
		return nil, false, err
	}
	entries, complete, err := t.codec.DecodeEntries(b)
	if err != nil {
		return nil, false, fmt.Errorf("reading manifest %s: %w", m.Name, err)
	}
	t.entries.put(m.Name, entries, complete)
	return entries, complete, nil
}

// Files returns the live data files of a state. keep, if not nil, says which
// manifests to read by their partition bounds; leaving one out is right only
// if none of its entries matter.
func (t *Table) Files(ctx context.Context, st *State, keep func(manifest.Meta) bool) ([]manifest.Entry, error) {
	lists := make([][]manifest.Entry, 0, len(st.Manifests))
	for _, m := range st.Manifests {
		if keep != nil && !keep(m) {
			continue
		}
		entries, err := t.Entries(ctx, m)
		if err != nil {
			return nil, err
		}
		lists = append(lists, entries)
	}
	if keep != nil {
		// A DELETE may be left whose ADD stands in a manifest that was passed over.
		merged, err := manifest.Merge(lists...)
		if err != nil {
			return nil, err
		}
		live := merged[:0:0]
		for _, e := range merged {
			if e.Kind == manifest.Add {
				live = append(live, e)
			}
		}
		return live, nil
	}
	return manifest.Live(lists...)
}

// Delta reads what a snapshot changed: the entries of its delta list.
func (t *Table) Delta(ctx context.Context, s *Snapshot) ([]manifest.Entry, error) {
	metas, _, err := t.list(ctx, s.DeltaManifestList)
	if err != nil {
		return nil, err
	}
	var out []manifest.Entry
	for _, m := range metas {
		entries, err := t.Entries(ctx, m)
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
	}
	return out, nil
}

// SyncSnapshot makes a snapshot of another writer durable, with everything that
// is new in it: Paimon's Java writers do not sync on a local disk, and a commit
// built on what a power cut may take would leave a hole (reliability.md §1.1).
func (t *Table) SyncSnapshot(ctx context.Context, s *Snapshot) error {
	names := []string{s.BaseManifestList, s.DeltaManifestList}
	keys := []string{t.paths.Snapshot(s.ID)}
	metas, _, err := t.list(ctx, s.DeltaManifestList)
	if err != nil {
		return err
	}
	for _, m := range metas {
		names = append(names, m.Name)
		entries, err := t.Entries(ctx, m)
		if err != nil {
			return err
		}
		for i := range entries {
			if entries[i].Kind != manifest.Add || entries[i].File.ExternalPath != nil {
				continue
			}
			key, err := t.paths.Data(&entries[i])
			if err != nil {
				return err
			}
			keys = append(keys, key)
		}
	}
	if s.IndexManifest != nil {
		names = append(names, *s.IndexManifest)
		index, err := t.Index(ctx, s)
		if err != nil {
			return err
		}
		for i := range index {
			key, err := t.paths.Index(&index[i])
			if err != nil {
				return err
			}
			keys = append(keys, key)
		}
	}
	for _, n := range names {
		key, err := t.paths.Manifest(n)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	if err := t.bucket.Sync(ctx, keys...); err != nil {
		return fmt.Errorf("making snapshot %d durable: %w", s.ID, err)
	}
	return nil
}

// OpenedFile is an open data file.
type OpenedFile struct {
	*datafile.File
	reader objstore.Reader
}

// Close releases the file.
func (f *OpenedFile) Close() error { return f.reader.Close() }

// ErrTypeChanged: a file holds a column with another type than the table has now.
var ErrTypeChanged = errors.New("column type differs from the file's")

// OpenFile opens a data file for the given columns of the table's schema. They
// are followed by field id into the file's own schema; a column the file does
// not have reads as NULL. The file's partition columns must not be trusted:
// they come from the entry.
func (t *Table) OpenFile(ctx context.Context, e *manifest.Entry, cols []int) (*OpenedFile, error) {
	file, err := t.SchemaByID(ctx, e.File.SchemaID)
	if err != nil {
		return nil, err
	}
	fields, err := fileFields(t.schema, file, cols)
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", e.File.Name, err)
	}
	key, err := t.paths.Data(e)
	if err != nil {
		return nil, err
	}
	r, err := t.bucket.Open(ctx, key, e.File.Size)
	if err != nil {
		return nil, fmt.Errorf("opening data file %s: %w", key, err)
	}
	f, err := datafile.Open(r, e.File.Size, datafile.ReadOptions{Fields: fields, Buffers: t.buffers})
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("reading data file %s: %w", key, err)
	}
	if f.Rows() != e.File.Rows {
		_ = r.Close()
		return nil, fmt.Errorf("data file %s: %w: it has %d rows, the manifest says %d", key, ErrCorrupt, f.Rows(), e.File.Rows)
	}
	return &OpenedFile{f, r}, nil
}

// fileFields finds the wanted columns in a file's schema.
func fileFields(table, file *Schema, cols []int) ([]types.Field, error) {
	out := make([]types.Field, len(cols))
	for i, c := range cols {
		want := table.Fields[c]
		out[i] = want
		out[i].Type.NotNull = false
		at := file.ColumnByID(want.ID)
		if at < 0 {
			// No column of this id: a name that cannot be in the file makes it NULL.
			out[i].Name = absentColumn
			continue
		}
		have := file.Fields[at]
		if !have.Type.EqualIgnoringNull(want.Type) {
			return nil, fmt.Errorf("%w: column %s is %s in the file and %s in the table", ErrTypeChanged, want.Name, have.Type, want.Type)
		}
		out[i].Name = have.Name
		out[i].Type.NotNull = have.Type.NotNull
	}
	return out, nil
}

// absentColumn is the name of no column: system names cannot be given to columns.
const absentColumn = "_KEY_\x00absent"

// entryCache keeps the decoded entries of recent small manifests: those that
// merging reads again soon.
type entryCache struct {
	mu    sync.Mutex
	names []string
	items map[string]cachedEntries
}

type cachedEntries struct {
	entries  []manifest.Entry
	complete bool
}

// Manifests of more entries are not cached, nor more of them.
const (
	cachedManifestEntries = 1000
	cachedManifests       = 64
)

func newEntryCache() *entryCache { return &entryCache{items: map[string]cachedEntries{}} }

func (c *entryCache) get(name string) (cachedEntries, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[name]
	return e, ok
}

func (c *entryCache) put(name string, entries []manifest.Entry, complete bool) {
	if len(entries) > cachedManifestEntries {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[name]; ok {
		return
	}
	if len(c.names) == cachedManifests {
		delete(c.items, c.names[0])
		c.names = c.names[1:]
	}
	c.names = append(c.names, name)
	c.items[name] = cachedEntries{entries, complete}
}
