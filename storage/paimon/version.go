package paimon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"applier/storage/objstore"
)

// ErrNoVersion: the table has no such snapshot, tag or branch, or none so old.
var ErrNoVersion = errors.New("no such version of the table")

// Version names a state of a table. At most one of Snapshot, Tag and At is set;
// none is the newest one.
type Version struct {
	Branch   string // "" or "main": the main branch
	Snapshot int64
	Tag      string
	// At is the state at a time: the newest snapshot that was committed by then.
	At time.Time
}

// Version opens a version for reading, with the schema and the options of its
// time, as other engines do. The newest snapshot of a branch is read with the
// branch's latest schema. Errors: ErrNoVersion.
func (t *Table) Version(ctx context.Context, v Version) (*Table, *State, error) {
	if v.Branch != "" && v.Branch != t.branch {
		var err error
		if t, err = t.onBranch(ctx, v.Branch); err != nil {
			return nil, nil, err
		}
	}
	s, err := t.find(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	if s != nil && (v.Snapshot > 0 || v.Tag != "" || !v.At.IsZero()) {
		if t, err = t.AtSchema(ctx, s.SchemaID); err != nil {
			return nil, nil, err
		}
	}
	st, err := t.State(ctx, s)
	return t, st, err
}

// onBranch opens the table as a branch has it.
func (t *Table) onBranch(ctx context.Context, branch string) (*Table, error) {
	p, err := NewPaths(t.schema, t.options, branch)
	if err != nil {
		return nil, err
	}
	s, err := LatestSchema(ctx, t.bucket, p)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, fmt.Errorf("%w: branch %q", ErrNoVersion, branch)
	}
	if err != nil {
		return nil, fmt.Errorf("branch %q: %w", branch, err)
	}
	return openAt(t.bucket, s, branch, Read)
}

// find reads the snapshot of a version; nil for a table without any.
func (t *Table) find(ctx context.Context, v Version) (*Snapshot, error) {
	switch {
	case v.Tag != "":
		tag, err := ReadTag(ctx, t.bucket, t.paths, v.Tag)
		if errors.Is(err, objstore.ErrNotExist) {
			return nil, fmt.Errorf("%w: tag %q", ErrNoVersion, v.Tag)
		}
		if err != nil {
			return nil, err
		}
		return &tag.Snapshot, nil
	case v.Snapshot > 0:
		s, err := ReadSnapshot(ctx, t.bucket, t.paths, v.Snapshot)
		if errors.Is(err, objstore.ErrNotExist) {
			return nil, fmt.Errorf("%w: snapshot %d", ErrNoVersion, v.Snapshot)
		}
		return s, err
	case !v.At.IsZero():
		return t.snapshotAt(ctx, v.At)
	}
	id, err := LatestSnapshotID(ctx, t.bucket, t.paths)
	if err != nil || id == 0 {
		return nil, err
	}
	return ReadSnapshot(ctx, t.bucket, t.paths, id)
}

// snapshotAt finds the newest snapshot that was committed at a time or before;
// snapshot times never decrease.
func (t *Table) snapshotAt(ctx context.Context, at time.Time) (*Snapshot, error) {
	ids, err := ListSnapshotIDs(ctx, t.bucket, t.paths)
	if err != nil {
		return nil, err
	}
	var found *Snapshot
	for low, high := 0, len(ids); low < high; {
		mid := (low + high) / 2
		s, err := ReadSnapshot(ctx, t.bucket, t.paths, ids[mid])
		if err != nil {
			return nil, err
		}
		if time.UnixMilli(s.TimeMillis).After(at) {
			high = mid
		} else {
			found, low = s, mid+1
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: no snapshot as old as %s", ErrNoVersion, at.UTC().Format(time.RFC3339Nano))
	}
	return found, nil
}
