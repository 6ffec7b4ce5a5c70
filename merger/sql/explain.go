package sql

import (
	"context"
	"fmt"
	"strings"

	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
)

// explain says what a statement would do, and writes nothing: the files it would
// touch, and the snapshot it would make.
func (r *run) explain(ctx context.Context, n *sqlparse.Explain) (*Result, error) {
	res := texts("plan")
	if q, ok := n.Stmt.(*sqlparse.QueryStmt); ok {
		p, err := query.Compile(ctx, q.Query, r, r.env)
		if err != nil {
			return nil, err
		}
		res.add("query: " + sqlparse.Format(q.Query))
		for _, c := range p.Columns() {
			res.add("  " + c.Name + " " + c.Type.String())
		}
		reads, err := p.Reads(ctx)
		for _, line := range reads {
			for l := range strings.SplitSeq(line, "\n") {
				res.add(l)
			}
		}
		return res, err
	}
	stmt := n.Stmt
	if m, ok := stmt.(*sqlparse.Merge); ok && r.evolves(m) {
		_, t, err := r.open(ctx, m.Table, paimon.Write)
		if err != nil {
			return nil, err
		}
		ev, err := r.evolution(ctx, m, t.Schema())
		if err != nil {
			return nil, err
		}
		if len(ev.paths) > 0 {
			res.add("new columns: " + ev.added())
		}
		stmt = ev.rewritten(t.Schema().Fields)
	}
	do, name, alias := planOf(stmt)
	if do == nil {
		res.add("no rows are changed: " + sqlparse.Format(n.Stmt))
		return res, nil
	}
	tg, err := r.target(ctx, name, alias)
	if err != nil {
		return nil, err
	}
	e, err := r.editor(ctx, tg, true)
	if err != nil {
		return nil, err
	}
	if err := do(ctx, r, tg, e); err != nil {
		return nil, err
	}
	e.explain(res)
	return res, nil
}

// explain describes what an editor that wrote nothing has gathered.
func (e *editor) explain(res *Result) {
	base := int64(0)
	if s := e.tg.st.Snapshot; s != nil {
		base = s.ID
	}
	mode := "copy-on-write"
	if e.tg.t.Options().DeletionVectors {
		mode = "deletion vectors"
	}
	res.add(fmt.Sprintf("table %s (%s), planned on snapshot %d", e.tg.name, mode, base))
	if !e.force && len(e.order) == 0 && e.inserted == 0 && e.updated == 0 {
		res.add("no snapshot: nothing to change")
		return
	}
	kind := paimon.CommitAppend
	if e.overwrite || len(e.order) > 0 {
		kind = paimon.CommitOverwrite
	}
	res.add(fmt.Sprintf("snapshot %d: kind %s, operation %s", base+1, kind, e.op))
	res.add(fmt.Sprintf("rows: %d inserted, %d updated, %d deleted", e.inserted, e.updated, e.deleted))
	for _, t := range e.order {
		what := fmt.Sprintf("%d of its %d rows are marked as deleted", t.drop.GetCardinality(), t.entry.File.Rows)
		switch {
		case t.whole || int64(t.drop.GetCardinality()) == t.entry.File.Rows && !e.tg.t.Options().DeletionVectors:
			what = fmt.Sprintf("goes with its %d rows", t.entry.File.Rows)
		case !e.tg.t.Options().DeletionVectors:
			what = fmt.Sprintf("written again without %d of its %d rows", t.drop.GetCardinality(), t.entry.File.Rows)
		}
		res.add("file " + t.entry.File.Name + ": " + what)
	}
	if n := e.inserted + e.updated; n > 0 {
		res.add(fmt.Sprintf("new files with %d rows", n))
	}
}
