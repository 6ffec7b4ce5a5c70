package paimon

import (
	"context"
	"fmt"

	"applier/storage/paimon/manifest"
)

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
	for _, l := range []struct {
		name string
		size *int64
	}{{s.BaseManifestList, s.BaseManifestListSize}, {s.DeltaManifestList, s.DeltaManifestListSize}} {
		metas, complete, err := t.list(ctx, l.name, l.size)
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

// get reads a file of the folder manifest. An Avro file that was cut off behind
// a block is still one, so its recorded size, if known, is part of the check.
func (t *Table) get(ctx context.Context, name string, size *int64) ([]byte, error) {
	key, err := t.paths.Manifest(name)
	if err != nil {
		return nil, err
	}
	b, err := t.bucket.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	if size != nil && *size != int64(len(b)) {
		return nil, fmt.Errorf("reading %s: %w: it has %d bytes, %d were written", key, ErrCorrupt, len(b), *size)
	}
	return b, nil
}

func (t *Table) list(ctx context.Context, name string, size *int64) ([]manifest.Meta, bool, error) {
	b, err := t.get(ctx, name, size)
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
	b, err := t.get(ctx, name, nil)
	if err != nil {
		return nil, false, err
	}
	entries, complete, err := t.codec.DecodeIndex(b)
	if err != nil {
		return nil, false, fmt.Errorf("reading index manifest %s: %w", name, err)
	}
	for i := range entries {
		e := &entries[i]
		if e.Kind != manifest.Add {
			return nil, false, fmt.Errorf("reading index manifest %s: %w: a stored %s of %s", name, ErrCorrupt, e.Kind, e.Name)
		}
		if e.Type == manifest.IndexDeletionVectors && e.Rows != int64(len(e.Vectors)) {
			return nil, false, fmt.Errorf("reading index manifest %s: %w: %d vectors in %s, which has %d", name, ErrCorrupt, len(e.Vectors), e.Name, e.Rows)
		}
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
	c, ok := t.entries.get(m.Name)
	if !ok {
		b, err := t.get(ctx, m.Name, &m.Size)
		if err != nil {
			return nil, false, err
		}
		if c.entries, c.complete, err = t.codec.DecodeEntries(b); err != nil {
			return nil, false, fmt.Errorf("reading manifest %s: %w", m.Name, err)
		}
		t.entries.put(m.Name, c.entries, c.complete)
	}
	if err := checkEntries(m, c.entries); err != nil {
		return nil, false, fmt.Errorf("reading manifest %s: %w", m.Name, err)
	}
	return c.entries, c.complete, nil
}

// checkEntries compares a manifest with what its list says of it. Java skips
// manifests by these counts, so where they are wrong readers see different tables.
func checkEntries(m manifest.Meta, entries []manifest.Entry) error {
	var added, deleted int64
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case manifest.Add:
			added++
		case manifest.Delete:
			deleted++
		default:
			return fmt.Errorf("%w: %s of %s", ErrCorrupt, e.Kind, e.File.Name)
		}
		if e.File.Rows < 0 || e.File.Size < 0 {
			return fmt.Errorf("%w: data file %s of %d rows and %d bytes", ErrCorrupt, e.File.Name, e.File.Rows, e.File.Size)
		}
	}
	if added != m.Added || deleted != m.Deleted {
		return fmt.Errorf("%w: it adds %d files and deletes %d, its list says %d and %d", ErrCorrupt, added, deleted, m.Added, m.Deleted)
	}
	return nil
}

// Files returns the live data files of a state. keep, if not nil, says which
// manifests to read by their partition bounds; leaving one out is right only
// if none of its entries matter: what it returns of the partitions of such a
// manifest may be files that have gone.
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
	if len(lists) == len(st.Manifests) {
		return manifest.Live(lists...)
	}
	// A DELETE may be left whose ADD stands in a manifest that was passed over.
	merged, err := manifest.Merge(lists...)
	if err != nil {
		return nil, err
	}
	live := merged[:0]
	for _, e := range merged {
		if e.Kind == manifest.Add {
			live = append(live, e)
		}
	}
	return live, nil
}

// Delta reads what a snapshot changed: the entries of its delta list.
func (t *Table) Delta(ctx context.Context, s *Snapshot) ([]manifest.Entry, error) {
	metas, _, err := t.list(ctx, s.DeltaManifestList, s.DeltaManifestListSize)
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
