package sql

import (
	"context"
	"strconv"

	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
)

func (r *run) update(ctx context.Context, n *sqlparse.Update, tg *target, e *editor) error {
	e.op = paimon.OperationUpdate
	where, pushed, err := r.condition(ctx, n.Where, n.With, tg)
	if err != nil {
		return err
	}
	scope := tg.scope(r)
	scope.Subquery = query.Subqueries(ctx, n.With, r, r.env)
	scope.Lazy = true // the values stand in the branch of a condition
	set, err := tg.Assignments(n.Set, scope)
	if err != nil {
		return err
	}
	return tg.scan(ctx, pushed, func(entry *manifest.Entry, pos uint32, row expr.Row) error {
		if where != nil {
			if hit, err := where.Test(row); !hit || err != nil {
				return err
			}
		}
		next, err := tg.Apply(set, row, row)
		if err != nil {
			return err
		}
		return e.update(ctx, entry, pos, row, next)
	})
}

func itoa(i int) string { return strconv.Itoa(i) }
