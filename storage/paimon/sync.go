package paimon

import (
	"context"
	"fmt"
	"path"

	"applier/storage/paimon/manifest"
)

// SyncSnapshot makes a snapshot of another writer durable, with everything that
// may be new in it: Paimon's Java writers do not sync on a local disk, and a
// commit built on what a power cut may take would leave a hole (reliability.md
// §1.1). That is the snapshot, its schema, its statistics, its lists with all
// manifests they name (merged ones are new too, and stand in the base list), its
// index files, and the data files it added. Data files of earlier snapshots are
// for earlier calls.
func (t *Table) SyncSnapshot(ctx context.Context, s *Snapshot) error {
	keys := []string{t.paths.Snapshot(s.ID), t.paths.Schema(s.SchemaID)}
	metadata, err := t.metadataKeys(ctx, s)
	if err != nil {
		return err
	}
	added, err := t.addedKeys(ctx, s)
	if err != nil {
		return err
	}
	keys = append(append(keys, metadata...), added...)
	if err := t.bucket.Sync(ctx, keys...); err != nil {
		return fmt.Errorf("making snapshot %d durable: %w", s.ID, err)
	}
	return nil
}

// SyncLive makes all data files that a snapshot holds durable, whoever added them:
// for a snapshot whose predecessors have expired. Files created before since, in
// epoch milliseconds, are left out.
func (t *Table) SyncLive(ctx context.Context, s *Snapshot, since int64) error {
	st, err := t.State(ctx, s)
	if err != nil {
		return err
	}
	files, err := t.Files(ctx, st, nil)
	if err != nil {
		return err
	}
	var keys []string
	for i := range files {
		if at := files[i].File.CreationTime; at != nil && *at < since {
			continue
		}
		if keys, err = t.appendDataKeys(keys, &files[i]); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if err := t.bucket.Sync(ctx, keys...); err != nil {
		return fmt.Errorf("making the files of snapshot %d durable: %w", s.ID, err)
	}
	return nil
}

// metadataKeys are all files of a snapshot but its data files.
func (t *Table) metadataKeys(ctx context.Context, s *Snapshot) ([]string, error) {
	st, err := t.State(ctx, s)
	if err != nil {
		return nil, err
	}
	names := []string{s.BaseManifestList, s.DeltaManifestList}
	if s.IndexManifest != nil {
		names = append(names, *s.IndexManifest)
	}
	for _, m := range st.Manifests {
		names = append(names, m.Name)
	}
	var keys []string
	for _, n := range names {
		key, err := t.paths.Manifest(n)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	for i := range st.Index {
		key, err := t.paths.Index(&st.Index[i])
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if s.Statistics != nil {
		key, err := t.paths.Statistics(*s.Statistics)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// addedKeys are the data files that a snapshot added, with their companions.
func (t *Table) addedKeys(ctx context.Context, s *Snapshot) ([]string, error) {
	delta, err := t.Delta(ctx, s)
	if err != nil {
		return nil, err
	}
	var keys []string
	for i := range delta {
		if delta[i].Kind != manifest.Add {
			continue
		}
		if keys, err = t.appendDataKeys(keys, &delta[i]); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// FileKeys are the keys of a data file and its companions, none if they lie outside of
// the table.
func (t *Table) FileKeys(e *manifest.Entry) ([]string, error) { return t.appendDataKeys(nil, e) }

// appendDataKeys adds a data file and its companions. Files outside of the table
// are their store's affair.
func (t *Table) appendDataKeys(keys []string, e *manifest.Entry) ([]string, error) {
	if e.File.ExternalPath != nil {
		return keys, nil
	}
	key, err := t.paths.Data(e)
	if err != nil {
		return nil, err
	}
	keys = append(keys, key)
	for _, name := range e.File.ExtraFiles {
		extra, err := named(path.Dir(key)+"/", name)
		if err != nil {
			return nil, fmt.Errorf("companion of data file %s: %w", e.File.Name, err)
		}
		keys = append(keys, extra)
	}
	return keys, nil
}
