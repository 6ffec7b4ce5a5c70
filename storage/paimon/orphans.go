package paimon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"applier/storage/objstore"
)

// MinOrphanAge is the least age of a file that may be called an orphan. A writer
// that was held up for so long finds that the files it staged are gone.
const MinOrphanAge = time.Hour

// ErrOrphanAge: files so young may belong to a commit that is under way.
var ErrOrphanAge = errors.New("too young for the search for orphans")

// Orphan is a file that nothing names.
type Orphan struct {
	Key      string
	Size     int64
	Modified time.Time
}

// FindOrphans lists the files in the table's folders that no snapshot, tag or
// branch names and that were last changed before before: what failed commits,
// interrupted expiries and rollbacks leave. It deletes nothing. Only names that
// Paimon's writers give are looked at; anything else in a folder is not ours to
// judge. A snapshot that cannot be read is an error: its files are not known.
//
// The snapshots are read before and after the listing. So a file that a slow
// writer named meanwhile is not taken for an orphan.
func (t *Table) FindOrphans(ctx context.Context, now, before time.Time) ([]Orphan, error) {
	if now.Sub(before) < MinOrphanAge {
		return nil, fmt.Errorf("%w: files must be %s old", ErrOrphanAge, MinOrphanAge)
	}
	if err := t.refuseChangelog(ctx); err != nil {
		return nil, err
	}
	r := newReferences(t)
	if err := t.everything(ctx, r); err != nil {
		return nil, err
	}
	w := orphanWalk{t: t, ctx: ctx, r: r, before: before}
	if err := w.run(); err != nil {
		return nil, err
	}
	if err := t.everything(ctx, r); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(w.found, func(o Orphan) bool { return r.keys[o.Key] }), nil
}

// Uploads counts the table's unfinished uploads in an object store that began before
// before, and ends them if abort says so; on a disk there are none.
func (t *Table) Uploads(ctx context.Context, now, before time.Time, abort bool) (int, error) {
	u, ok := t.bucket.(interface {
		Uploads(ctx context.Context, before time.Time, abort bool) (int, error)
	})
	if !ok {
		return 0, nil
	}
	if now.Sub(before) < MinOrphanAge {
		return 0, fmt.Errorf("%w: uploads must be %s old", ErrOrphanAge, MinOrphanAge)
	}
	n, err := u.Uploads(ctx, before, abort)
	if err != nil {
		return n, fmt.Errorf("ending unfinished uploads: %w", err)
	}
	return n, nil
}

// DeleteOrphans deletes what FindOrphans found.
func (t *Table) DeleteOrphans(ctx context.Context, found []Orphan) error {
	for part := range slices.Chunk(found, deleteBatch) {
		var keys []string
		for _, o := range part {
			keys = append(keys, o.Key)
		}
		if err := t.bucket.Delete(ctx, keys...); err != nil {
			return fmt.Errorf("deleting orphans: %w", err)
		}
	}
	return nil
}

// everything adds what all snapshots, tags and branches name.
func (t *Table) everything(ctx context.Context, r *references) error {
	add := func(what string, s *Snapshot) error {
		err := r.all(ctx, s)
		if errors.Is(err, objstore.ErrNotExist) {
			// Expired between the listing and now, or damaged: the former is gone.
			if _, e := t.bucket.Stat(ctx, t.paths.Snapshot(s.ID)); what == "" && errors.Is(e, objstore.ErrNotExist) {
				return nil
			}
		}
		if err != nil && what != "" {
			return fmt.Errorf("%s: %w", what, err)
		}
		return err
	}
	err := t.snapshotsOf(ctx, t.paths, MainBranch, func(_ string, s *Snapshot) error { return add("", s) })
	if err != nil {
		return err
	}
	return t.besides(ctx, add)
}

// orphanWalk goes through the folders that hold files of snapshots.
type orphanWalk struct {
	t      *Table
	ctx    context.Context
	r      *references
	before time.Time
	found  []Orphan
}

func (w *orphanWalk) run() error {
	folders := map[string][]string{
		"manifest": {"manifest-", "index-manifest-"}, "index": {"index-"}, "statistics": {"stat-", "stats-"},
	}
	for folder, prefixes := range folders {
		if err := w.folder(folder, prefixes, nil); err != nil {
			return err
		}
	}
	for _, folder := range []string{w.t.paths.SnapshotDir(), w.t.paths.TagDir(), w.t.paths.ConsumerDir(), w.t.paths.SchemaDir()} {
		if err := w.folder(folder, nil, nil); err != nil {
			return err
		}
	}
	return w.partitions(strings.TrimSuffix(w.t.paths.dataDir, "/"), len(w.t.schema.PartitionKeys))
}

// folder looks at the files of a folder whose names begin with a prefix, and at
// what a writer of ours left unfinished; sub is told of the folders in it.
func (w *orphanWalk) folder(dir string, prefixes []string, sub func(key string) error) error {
	var folders []string
	err := w.t.bucket.List(w.ctx, dir, func(i objstore.Info) error {
		name := baseName(i.Key)
		switch {
		case i.Folder:
			folders = append(folders, i.Key)
		case !i.Modified.Before(w.before) || w.r.keys[i.Key]:
		case objstore.IsTemp(i.Key), slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }):
			w.found = append(w.found, Orphan{i.Key, i.Size, i.Modified})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("listing %q: %w", dir, err)
	}
	for _, f := range folders {
		if sub == nil {
			return nil
		}
		if err := sub(strings.TrimSuffix(f, "/")); err != nil {
			return err
		}
	}
	return nil
}

// partitions goes down depth levels of column=value folders, then into buckets.
func (w *orphanWalk) partitions(dir string, depth int) error {
	return w.folder(dir, nil, func(key string) error {
		name := baseName(key)
		switch {
		case depth > 0 && strings.Contains(name, "="):
			return w.partitions(key, depth-1)
		case depth == 0 && strings.HasPrefix(name, "bucket-"):
			prefixes := []string{w.t.options.DataFilePrefix, "changelog-"}
			if w.t.paths.indexInDir {
				prefixes = append(prefixes, "index-")
			}
			return w.folder(key, prefixes, nil)
		}
		return nil
	})
}
