package paimon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
)

// references are the keys of files that some snapshots name: lists, manifests,
// index files, statistics, data files and their companions. What stands in it
// must not be deleted.
type references struct {
	t    *Table
	keys map[string]bool
	// manifests whose entries are in keys already.
	read map[string]bool
}

func newReferences(t *Table) *references {
	return &references{t: t, keys: map[string]bool{}, read: map[string]bool{}}
}

// metadata adds everything a snapshot names but data files.
func (r *references) metadata(ctx context.Context, s *Snapshot) error {
	keys, err := r.t.metadataKeys(ctx, s)
	if err != nil {
		return fmt.Errorf("snapshot %d: %w", s.ID, err)
	}
	r.add(keys)
	return nil
}

func (r *references) add(keys []string) {
	for _, k := range keys {
		r.keys[k] = true
	}
}

// all adds everything a snapshot names, data files included. A file that a
// manifest only removes counts too: it costs nothing to keep one for longer.
func (r *references) all(ctx context.Context, s *Snapshot) error {
	if err := r.metadata(ctx, s); err != nil {
		return err
	}
	st, err := r.t.State(ctx, s)
	if err != nil {
		return fmt.Errorf("snapshot %d: %w", s.ID, err)
	}
	for _, m := range st.Manifests {
		if r.read[m.Name] {
			continue
		}
		entries, err := r.t.Entries(ctx, m)
		if err != nil {
			return fmt.Errorf("snapshot %d: %w", s.ID, err)
		}
		for i := range entries {
			if err := r.file(&entries[i]); err != nil {
				return fmt.Errorf("snapshot %d: %w", s.ID, err)
			}
		}
		r.read[m.Name] = true
	}
	return nil
}

// live adds the metadata and the live data files of a snapshot.
func (r *references) live(ctx context.Context, s *Snapshot) error {
	if err := r.metadata(ctx, s); err != nil {
		return err
	}
	st, err := r.t.State(ctx, s)
	if err != nil {
		return fmt.Errorf("snapshot %d: %w", s.ID, err)
	}
	files, err := r.t.Files(ctx, st, nil)
	if err != nil {
		return fmt.Errorf("snapshot %d: %w", s.ID, err)
	}
	for i := range files {
		if err := r.file(&files[i]); err != nil {
			return fmt.Errorf("snapshot %d: %w", s.ID, err)
		}
	}
	return nil
}

// added adds the metadata of a snapshot and the data files that it added.
func (r *references) added(ctx context.Context, s *Snapshot) error {
	if err := r.metadata(ctx, s); err != nil {
		return err
	}
	keys, err := r.t.addedKeys(ctx, s)
	if err != nil {
		return fmt.Errorf("snapshot %d: %w", s.ID, err)
	}
	r.add(keys)
	return nil
}

func (r *references) file(e *manifest.Entry) error {
	keys, err := r.t.appendDataKeys(nil, e)
	r.add(keys)
	return err
}

// besides calls fn for every snapshot that lives beside the main branch's chain:
// its tags, and all snapshots and tags of all branches. One that vanishes
// meanwhile is passed over; one that cannot be read is an error.
func (t *Table) besides(ctx context.Context, fn func(what string, s *Snapshot) error) error {
	branches, err := ListBranches(ctx, t.bucket)
	if err != nil {
		return err
	}
	for _, name := range append([]string{MainBranch}, branches...) {
		p, err := NewPaths(t.schema, t.options, name)
		if err != nil {
			return fmt.Errorf("branch %q: %w", name, err)
		}
		if name != MainBranch {
			if err := t.snapshotsOf(ctx, p, name, fn); err != nil {
				return err
			}
		}
		tags, err := ListTags(ctx, t.bucket, p)
		if err != nil {
			return err
		}
		for _, tag := range tags {
			s, err := ReadTag(ctx, t.bucket, p, tag)
			if errors.Is(err, objstore.ErrNotExist) {
				continue
			}
			if err == nil {
				err = fn("tag "+tag+" of branch "+name, &s.Snapshot)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Table) snapshotsOf(ctx context.Context, p Paths, branch string, fn func(string, *Snapshot) error) error {
	ids, err := ListSnapshotIDs(ctx, t.bucket, p)
	if err != nil {
		return err
	}
	for _, id := range ids {
		s, err := ReadSnapshot(ctx, t.bucket, p, id)
		if errors.Is(err, objstore.ErrNotExist) {
			continue
		}
		if err == nil {
			err = fn(fmt.Sprintf("snapshot %d of branch %s", id, branch), s)
		}
		if err != nil {
			return fmt.Errorf("branch %s: %w", branch, err)
		}
	}
	return nil
}

// ListBranches returns the names of a table's branches, main not among them.
func ListBranches(ctx context.Context, b objstore.Bucket) ([]string, error) {
	var names []string
	err := b.List(ctx, "branch", func(i objstore.Info) error {
		if name, ok := strings.CutPrefix(baseName(i.Key), "branch-"); ok && name != "" && i.Folder {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing branches: %w", err)
	}
	return names, nil
}
