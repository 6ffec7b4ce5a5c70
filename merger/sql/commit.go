package sql

import (
	"context"
	"fmt"
	"slices"

	"applier/merger/publish"
	"applier/merger/sqlparse"
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
		if err != nil {
			return nil, err
		}
		if done {
			// What is done is done, whoever cancels now.
			return r.snapshot(context.WithoutCancel(ctx), tg.name, tg.t, e.note())
		}
	}
	return nil, fail(name.Position(), ClassOvertaken, "the statement was overtaken %d times by other commits to the table: run it again", attempts)
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
		won, unknown, err := r.publish(ctx, tg, ch, e)
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
func (r *run) publish(ctx context.Context, tg *target, ch paimon.Changes, e *editor) (won, unknown bool, err error) {
	if err := publish.Secure(ctx, tg.t, tg.st.Snapshot, r.o.Now()); err != nil {
		return false, false, err
	}
	c, err := tg.t.BuildCommit(ctx, tg.st, ch, paimon.CommitInfo{
		UUID: r.o.NewUUID(), User: r.o.User, Identifier: paimon.BatchCommitIdentifier, Operation: e.op,
		TimeMillis: r.o.Now().UnixMilli(), NewUUID: r.o.NewUUID,
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
			text += fmt.Sprintf("%d rows %s", c.n, c.what)
		}
	}
	return text
}
