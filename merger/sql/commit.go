package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"applier/merger/publish"
	"applier/merger/sqlparse"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// attempts bounds how often a statement that others keep overtaking is planned anew.
const attempts = 50

// plan fills an editor for a statement, on the target's snapshot.
type plan func(ctx context.Context, r *run, tg *target, e *editor) error

// planOf returns what a statement does, and the table it does it to.
func planOf(stmt sqlparse.Statement) (plan, sqlparse.Name, *sqlparse.Alias) {
	switch n := stmt.(type) {
	case *sqlparse.Insert:
		return func(ctx context.Context, r *run, tg *target, e *editor) error { return r.insert(ctx, n, tg, e) }, n.Table, nil
	case *sqlparse.Delete:
		return func(ctx context.Context, r *run, tg *target, e *editor) error { return r.delete(ctx, n, tg, e) }, n.Table, n.Alias
	case *sqlparse.Update:
		return func(ctx context.Context, r *run, tg *target, e *editor) error { return r.update(ctx, n, tg, e) }, n.Table, n.Alias
	case *sqlparse.Merge:
		return func(ctx context.Context, r *run, tg *target, e *editor) error { return r.merge(ctx, n, tg, e) }, n.Table, n.Alias
	case *sqlparse.TruncateTable:
		return func(ctx context.Context, r *run, tg *target, e *editor) error { return r.truncate(ctx, n, tg, e) }, n.Table, nil
	}
	return nil, sqlparse.Name{}, nil
}

// change runs a statement that changes a table: it is planned on the newest
// snapshot, its files are written, the snapshot is published. Whoever was overtaken
// plans again, on what the other one left: two statements never mix.
func (r *run) change(ctx context.Context, stmt sqlparse.Statement) (*Result, error) {
	if m, ok := stmt.(*sqlparse.Merge); ok && r.evolves(m) {
		var err error
		if stmt, err = r.evolve(ctx, m); err != nil {
			return nil, err
		}
	}
	do, name, alias := planOf(stmt)
	return r.changeBy(ctx, name, alias, do)
}

func (r *run) changeBy(ctx context.Context, name sqlparse.Name, alias *sqlparse.Alias, do plan) (*Result, error) {
	for range attempts {
		tg, err := r.target(ctx, name, alias)
		if err != nil {
			return nil, err
		}
		e, err := r.editor(ctx, tg, false)
		if err != nil {
			return nil, err
		}
		done, err := r.attempt(ctx, do, tg, e)
		if err != nil && r.expired(ctx, tg, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if done {
			r.warnOfDefaults(tg)
			// What is done is done, whoever cancels now.
			return r.snapshot(context.WithoutCancel(ctx), tg.name, tg.t, e.note())
		}
	}
	return nil, fail(name.Position(), ClassOvertaken, "the statement was overtaken %d times by other commits to the table: run it again", attempts)
}

// expired reports whether an error comes from a snapshot that was removed, with files
// that only it named, while it was read: the newest one has all of its own.
func (r *run) expired(ctx context.Context, tg *target, err error) bool {
	if !errors.Is(err, objstore.ErrNotExist) || tg.st.Snapshot == nil {
		return false
	}
	id, err := paimon.LatestSnapshotID(ctx, tg.t.Bucket(), tg.t.Paths())
	return err == nil && id > tg.st.Snapshot.ID
}

// newestSchema returns the id of the table's newest schema. It does not fit if it lacks
// a column that the statement was planned with, or has it under another name or type:
// then the statement means something else. Files keep the schema that they were made with.
func (tg *target) newestSchema(ctx context.Context) (id int64, fits bool, err error) {
	s, err := paimon.LatestSchema(ctx, tg.t.Bucket(), tg.t.Paths())
	if err != nil || s.ID == tg.t.Schema().ID {
		return 0, err == nil, err
	}
	for _, f := range tg.t.Schema().Fields {
		at := s.ColumnByID(f.ID)
		if at < 0 || s.Fields[at].Name != f.Name || !s.Fields[at].Type.Equal(f.Type) {
			return s.ID, false, nil
		}
	}
	return s.ID, true, nil
}

// attempt plans, writes and publishes once; not done if somebody else was first.
func (r *run) attempt(ctx context.Context, do plan, tg *target, e *editor) (done bool, err error) {
	keep := false
	defer func() {
		if !keep {
			e.discard(ctx)
		}
	}()
	if err := do(ctx, r, tg, e); err != nil {
		return false, err
	}
	if e.empty() {
		return true, nil
	}
	ch, err := e.changes(ctx)
	if err != nil {
		return false, err
	}
	for range attempts {
		schemaID, fits, err := tg.newestSchema(ctx)
		if err != nil || !fits {
			return false, err
		}
		won, unknown, err := r.publish(ctx, tg, ch, e, schemaID)
		keep = won || unknown
		if won || err != nil {
			return won, err
		}
		if !e.appends {
			return false, nil
		}
		// New rows alone are as right on any other snapshot.
		t, st, err := tg.t.Version(ctx, paimon.Version{})
		if err != nil {
			return false, err
		}
		if st.Snapshot == nil || st.Snapshot.SchemaID != t.Schema().ID {
			return false, nil
		}
		tg.st = st
	}
	return false, nil
}

// publish makes one snapshot of the changes; unknown if nobody knows whether it did.
func (r *run) publish(ctx context.Context, tg *target, ch paimon.Changes, e *editor, schemaID int64) (won, unknown bool, err error) {
	if err := publish.Secure(ctx, tg.t, tg.st.Snapshot, r.o.Now()); err != nil {
		return false, false, err
	}
	c, err := tg.t.BuildCommit(ctx, tg.st, ch, paimon.CommitInfo{
		UUID: r.o.NewUUID(), User: r.o.User, Identifier: paimon.BatchCommitIdentifier, Operation: e.op,
		TimeMillis: r.o.Now().UnixMilli(), NewUUID: r.o.NewUUID, SchemaID: schemaID,
	})
	if err != nil {
		return false, false, err
	}
	objects := c.Objects
	if ch.Index != nil {
		objects = append(slices.Clip(objects), ch.Index.Objects...)
	}
	for _, o := range objects {
		e.written = append(e.written, o.Key)
	}
	if err := tg.t.Bucket().PutAll(ctx, objects); err != nil {
		return false, false, fmt.Errorf("writing the metadata of snapshot %d: %w", c.Snapshot.ID, err)
	}
	won, err = publish.Snapshot(ctx, tg.t, c)
	if err != nil {
		return false, true, err
	}
	if won {
		// Readers list if the hint is stale.
		_ = paimon.WriteLatestHint(ctx, tg.t.Bucket(), tg.t.Paths(), c.Snapshot.ID)
	}
	return won, false, nil
}

// note says what was done to rows.
func (e *editor) note() string {
	if e.empty() {
		return "nothing to change"
	}
	text := ""
	for _, c := range []struct {
		n    int64
		what string
	}{{e.inserted, "inserted"}, {e.updated, "updated"}, {e.deleted, "deleted"}} {
		if c.n > 0 {
			if text != "" {
				text += ", "
			}
			rows := "rows"
			if c.n == 1 {
				rows = "row"
			}
			text += fmt.Sprintf("%d %s %s", c.n, rows, c.what)
		}
	}
	return text
}
