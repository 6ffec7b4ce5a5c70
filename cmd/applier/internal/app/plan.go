package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"applier/config"
	"applier/merger"
	"applier/merger/sqlparse"
	"applier/metrics/admin"
	"applier/storage/catalog"
	"applier/storage/paimon"
)

// Plan returns what a pipeline does with each change, as the statement that would do
// the same in Spark, and checks it against the table. It reads and changes nothing
// else. note says what could not be checked.
func Plan(ctx context.Context, cfg *config.Config, name string) (statement, note string, err error) {
	p := cfg.Pipelines[name]
	if p == nil {
		return "", "", fmt.Errorf("%w: %s; the configuration has %s", admin.ErrNotFound, name, strings.Join(cfg.Names(), ", "))
	}
	statement, err = equivalent(p)
	if err != nil {
		return "", "", err
	}
	c, err := newCatalog(cfg, nil)
	if err != nil {
		return "", "", err
	}
	tn, err := catalog.ParseName(p.Target.Table)
	if err != nil {
		return "", "", err
	}
	t, err := c.Open(ctx, tn, paimon.Write)
	switch {
	case errors.Is(err, catalog.ErrNoTable):
		return statement, "the table does not exist yet: names and types are not checked", nil
	case err != nil:
		return "", "", err
	}
	_, err = bind(p, t)
	return statement, "", err
}

// equivalent writes a pipeline as a statement over its changes.
func equivalent(p *config.Pipeline) (string, error) {
	head := "-- changes: the columns of the table as far as a record has them, __op (c, u, r, d), __ts (change time)\n"
	if p.OnTruncate == config.OnTruncateApply {
		head += "-- a truncate of the source table is TRUNCATE TABLE, before the changes that follow it; under order_by rows that are newer stay\n"
	}
	if p.Merge == nil && p.Apply == config.ApplyAppend {
		return head + "-- one row a change; deletes are left out unless columns.add stores op\n" +
			"INSERT INTO " + quoted(strings.Split(p.Target.Table, ".")...) + " SELECT * FROM changes", nil
	}
	lines, err := clauseLines(p)
	if err != nil {
		return "", err
	}
	var on []string
	for _, k := range p.Key {
		on = append(on, quoted("t", k)+" = "+quoted("s", k))
	}
	head += "-- one change after the other, as if each were a statement of its own; columns that a change lacks keep their value\n"
	if p.Merge == nil && p.Apply == config.ApplySoftDelete {
		head += "-- s." + merger.DeletedAt + " is NULL\n"
	}
	if p.OrderBy.RememberDeletes > 0 {
		head += "-- changes older than a remembered delete of their key are left out\n"
	}
	return head + "MERGE INTO " + quoted(strings.Split(p.Target.Table, ".")...) + " AS t\nUSING changes AS s\nON " + strings.Join(on, " AND ") + "\nWHEN " + strings.Join(lines, "\nWHEN "), nil
}

// clauseLines are the clauses of a pipeline, those of a preset too. MERGE wants those
// with MATCHED first.
func clauseLines(p *config.Pipeline) ([]string, error) {
	if p.Merge == nil {
		return presetLines(p), nil
	}
	clauses, err := merger.ParseMerge(p.Merge.When)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(clauses))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(clauses[a].Family) - int(clauses[b].Family) })
	var lines []string
	for _, i := range order {
		lines = append(lines, strings.TrimSpace(p.Merge.When[i]))
	}
	return lines, nil
}

// presetLines says what a preset does in clauses.
func presetLines(p *config.Pipeline) []string {
	newer := newerCondition(p.OrderBy)
	insert := "NOT MATCHED AND s.__op <> 'd' THEN INSERT *"
	switch p.Apply {
	case config.ApplyUpsert:
		return []string{"MATCHED AND s.__op <> 'd'" + newer + " THEN UPDATE SET *", insert}
	case config.ApplyInsertOnly:
		return []string{insert}
	case config.ApplySoftDelete:
		set := merger.DeletedAt + " = s.__ts"
		for _, c := range p.OrderBy.By {
			set += ", " + quoted(c) + " = " + quoted("s", c)
		}
		return []string{"MATCHED AND s.__op = 'd'" + newer + " THEN UPDATE SET " + set, "MATCHED" + newer + " THEN UPDATE SET *", insert}
	}
	return []string{"MATCHED AND s.__op = 'd'" + newer + " THEN DELETE", "MATCHED" + newer + " THEN UPDATE SET *", insert}
}

// newerCondition is what order_by asks of a change; "" for nothing. A stored NULL is
// older than everything, as it is inside of structs.
func newerCondition(o config.OrderBy) string {
	if len(o.By) == 0 || o.Late == config.LateApply && o.OnTie == config.OnTieLast {
		return ""
	}
	op := " >= "
	switch {
	case o.Late == config.LateApply:
		op = " <> "
	case o.OnTie != config.OnTieLast:
		op = " > "
	}
	side := func(table string) string {
		var cols []string
		for _, c := range o.By {
			cols = append(cols, quoted(table, c))
		}
		return "struct(" + strings.Join(cols, ", ") + ")"
	}
	return " AND " + side("s") + op + side("t")
}

// quoted spells a name of several parts.
func quoted(parts ...string) string {
	var n sqlparse.Name
	for _, p := range parts {
		n.Parts = append(n.Parts, sqlparse.Ident{Name: p})
	}
	return sqlparse.Format(&sqlparse.ColumnRef{Name: n})
}
