package sql

import (
	"context"
	"strings"

	"applier/merger/assign"
	"applier/merger/defaults"
	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// target is a table that a statement changes, at the snapshot it is planned on.
type target struct {
	assign.Target
	name catalog.Name
	t    *paimon.Table
	st   *paimon.State
	cols []expr.Column
	read []int // the columns of a row, by slots
	// seen is told of rows that were read.
	seen *reading
}

// target opens the table of a row-level statement at its newest snapshot.
func (r *run) target(ctx context.Context, n sqlparse.Name, alias *sqlparse.Alias) (*target, error) {
	if len(n.Parts) == 1 && r.views[strings.ToLower(n.Last())] != nil {
		return nil, fail(n.Position(), "UNSUPPORTED_VIEW_OPERATION", "%s is a view, which cannot be changed", n)
	}
	name, t, err := r.open(ctx, n, paimon.Write)
	if err != nil {
		return nil, err
	}
	t, st, err := t.Version(ctx, paimon.Version{})
	if err != nil {
		return nil, err
	}
	tg := &target{name: name, t: t, st: st, Target: assign.Target{
		Name: name.String(), Fields: t.Schema().Fields, Qualifier: []string{r.o.Name, name.Database, name.Table},
	}}
	if alias != nil && alias.Name != "" {
		tg.Qualifier = []string{alias.Name}
	}
	tg.cols, tg.read = tableColumns(tg.Qualifier, t)
	r.pinned = map[catalog.Name]*pinned{name: {t, st}}
	tg.seen = r.reading(st)
	tg.Defaults, err = defaults.Values(t.Schema(), r.env)
	return tg, err
}

// reading tells how far a scan has come.
type reading struct {
	r          *run
	rows, told int64
	of         int64
}

// readingStep is how many rows are read from one report to the next.
const readingStep = 100_000

func (r *run) reading(st *paimon.State) *reading {
	s := &reading{r: r}
	if st.Snapshot != nil {
		s.of = st.Snapshot.TotalRecordCount
	}
	return s
}

func (s *reading) add(rows int) {
	if s.rows += int64(rows); s.rows-s.told >= readingStep {
		s.told = s.rows
		s.r.progress("%d of %d rows read", s.rows, s.of)
	}
}

// scan hands the live rows to fn with their places. Row and entry are valid during
// the call.
func (tg *target) scan(ctx context.Context, where []paimon.Condition, fn func(e *manifest.Entry, pos uint32, row expr.Row) error) error {
	row := make(expr.Row, len(tg.read))
	return tg.t.ScanRows(ctx, tg.st, paimon.ScanOptions{Columns: tg.read, Where: where}, func(e *manifest.Entry, at []uint32, b *types.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		tg.seen.add(len(at))
		for i, pos := range at {
			fill(row, b, i)
			if err := fn(e, pos, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// scope is what a condition on the target's rows can see.
func (tg *target) scope(r *run) *expr.Scope { return &expr.Scope{Columns: tg.cols, Env: r.env} }
