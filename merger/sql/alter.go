package sql

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"applier/merger/defaults"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

func (r *run) alterTable(ctx context.Context, n *sqlparse.AlterTable) (*Result, error) {
	switch a := n.Action.(type) {
	case *sqlparse.RenameTable:
		return r.renameTable(ctx, n, a)
	case *sqlparse.DropPartitions:
		return r.alterPartitions(ctx, n, a)
	}
	for range attempts {
		name, t, err := r.open(ctx, n.Table, paimon.Read)
		if err != nil {
			return nil, err
		}
		changed, err := r.alterOnce(ctx, n, t)
		if errors.Is(err, objstore.ErrExist) {
			continue // somebody else has changed the schema: the change is made on theirs
		}
		if err != nil {
			return nil, r.alterProblem(n, err)
		}
		note := "nothing to change"
		if changed {
			note = "changed table " + name.String()
		}
		return r.snapshot(ctx, name, t, note)
	}
	return nil, fail(n.Pos, ClassOvertaken, "the statement was overtaken %d times by other changes of the schema: run it again", attempts)
}

// alterProblem gives an error of the storage the place of the statement's action.
func (r *run) alterProblem(n *sqlparse.AlterTable, err error) error {
	if errors.Is(err, paimon.ErrSchemaChange) {
		class := ClassSchemaChange
		if errors.Is(err, paimon.ErrDefault) {
			class = ClassDefault
		}
		return fail(n.Action.Position(), class, "%v", err)
	}
	return err
}

// alterOnce writes the next version of the schema, if it differs.
func (r *run) alterOnce(ctx context.Context, n *sqlparse.AlterTable, t *paimon.Table) (bool, error) {
	id, err := paimon.LatestSnapshotID(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return false, err
	}
	edit := t.Schema().Edit(id > 0)
	if err := r.edit(edit, t.Schema(), n.Action); err != nil {
		return false, err
	}
	s, changed, err := edit.Schema(r.o.Now().UnixMilli())
	if err != nil || !changed {
		return false, err
	}
	if err := paimon.Refuse(s, paimon.Write); err != nil && paimon.Refuse(t.Schema(), paimon.Write) == nil {
		return false, err
	}
	return true, paimon.AddSchema(ctx, t.Bucket(), t.Paths(), s)
}

func (r *run) edit(edit *paimon.SchemaEdit, s *paimon.Schema, action sqlparse.AlterAction) error {
	switch a := action.(type) {
	case *sqlparse.AddColumns:
		return r.addColumns(edit, s, a)
	case *sqlparse.DropColumns:
		return dropColumns(edit, s, a)
	case *sqlparse.RenameColumn:
		to := sqlparse.Name{Parts: append(slices.Clone(a.Path.Parts[:len(a.Path.Parts)-1]), a.To)}
		if fieldOf(s, to) && !sameName(a.To.Name, a.Path.Last()) {
			return fail(a.To.Pos, ClassFieldExists, "column %s exists already", to)
		}
		return edit.RenameColumn(a.Path.Strings(), a.To.Name)
	case *sqlparse.AlterColumns:
		for i := range a.Changes {
			if err := r.alterColumn(edit, s, &a.Changes[i]); err != nil {
				return err
			}
		}
	case *sqlparse.SetProperties:
		for _, p := range a.Properties {
			if p.Key == "comment" {
				edit.SetTableComment(&p.Value)
				continue
			}
			if err := edit.SetOption(p.Key, p.Value); err != nil {
				return err
			}
		}
	case *sqlparse.UnsetProperties:
		for _, k := range a.Keys {
			if k == "comment" {
				edit.SetTableComment(nil)
				continue
			}
			if err := edit.RemoveOption(k); err != nil {
				return err
			}
		}
	}
	return nil
}

func place(p *sqlparse.ColumnPosition) *paimon.ColumnPlace {
	if p == nil {
		return nil
	}
	return &paimon.ColumnPlace{First: p.After == "", After: p.After}
}

func (r *run) addColumns(edit *paimon.SchemaEdit, s *paimon.Schema, a *sqlparse.AddColumns) error {
	next := s.HighestFieldID
	for i := range a.Columns {
		d := &a.Columns[i]
		f, stored, err := r.columnField(d)
		if err != nil {
			return err
		}
		if d.Default != nil && len(d.Path.Parts) > 1 {
			return fail(d.Pos, ClassDefault, "a field of a struct cannot have a default")
		}
		if err := edit.AddColumn(d.Path.Strings(), f, place(d.Where)); err != nil {
			if fieldOf(s, d.Path) {
				return fail(d.Pos, ClassFieldExists, "column %s exists already", d.Path)
			}
			return err
		}
		next++
		if stored.dynamic != "" {
			if err := edit.SetOption(defaults.OptDynamic+strconv.Itoa(next), stored.dynamic); err != nil {
				return err
			}
		}
		next += fieldCount(f.Type)
	}
	return nil
}

// fieldCount is the number of ids that fields inside of a type take.
func fieldCount(t types.Type) int {
	n := len(t.Fields)
	for _, f := range t.Fields {
		n += fieldCount(f.Type)
	}
	for _, p := range []*types.Type{t.Key, t.Elem} {
		if p != nil {
			n += fieldCount(*p)
		}
	}
	return n
}

// fieldOf reports whether a name is a column of the schema.
func fieldOf(s *paimon.Schema, path sqlparse.Name) bool {
	return len(path.Parts) == 1 && slices.ContainsFunc(s.Fields, func(f types.Field) bool { return sameName(f.Name, path.Last()) })
}

func dropColumns(edit *paimon.SchemaEdit, s *paimon.Schema, a *sqlparse.DropColumns) error {
	for _, p := range a.Paths {
		if len(p.Parts) == 1 {
			at := slices.IndexFunc(s.Fields, func(f types.Field) bool { return sameName(f.Name, p.Last()) })
			if at < 0 && a.IfExists {
				continue
			}
			if at < 0 {
				return fail(p.Position(), ClassNoColumn, "there is no column %s", p)
			}
			if err := edit.RemoveOption(defaults.OptDynamic + strconv.Itoa(s.Fields[at].ID)); err != nil {
				return err
			}
		}
		if err := edit.DropColumn(p.Strings()); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) alterColumn(edit *paimon.SchemaEdit, s *paimon.Schema, c *sqlparse.ColumnChange) error {
	path := c.Path.Strings()
	switch {
	case c.Type != nil:
		t, err := storageType(c.Type)
		if err != nil {
			return err
		}
		return edit.SetType(path, t)
	case c.Comment != nil:
		return edit.SetComment(path, c.Comment)
	case c.NotNull != nil:
		return edit.SetNotNull(path, *c.NotNull)
	case c.Where != nil:
		return edit.Move(path, *place(c.Where))
	}
	return r.alterDefault(edit, s, c)
}

// alterDefault is SET DEFAULT and DROP DEFAULT.
func (r *run) alterDefault(edit *paimon.SchemaEdit, s *paimon.Schema, c *sqlparse.ColumnChange) error {
	at := slices.IndexFunc(s.Fields, func(f types.Field) bool { return sameName(f.Name, c.Path.Parts[0].Name) })
	if at < 0 {
		return fail(c.Position(), ClassNoColumn, "there is no column %s", c.Path)
	}
	if len(c.Path.Parts) > 1 {
		return fail(c.Position(), ClassDefault, "a field of a struct cannot have a default")
	}
	f := s.Fields[at]
	option := defaults.OptDynamic + strconv.Itoa(f.ID)
	var stored storedDefault
	if !c.DropDefault {
		var err error
		if stored, err = storeDefault(c.Default, f, r.env); err != nil {
			return err
		}
	}
	if stored.dynamic != "" {
		if err := edit.SetOption(option, stored.dynamic); err != nil {
			return err
		}
	} else if err := edit.RemoveOption(option); err != nil {
		return err
	}
	return edit.SetDefault(f.Name, stored.text)
}

func (r *run) renameTable(ctx context.Context, n *sqlparse.AlterTable, a *sqlparse.RenameTable) (*Result, error) {
	from, err := r.table(n.Table)
	if err != nil {
		return nil, err
	}
	to, err := r.table(a.To)
	if err != nil {
		return nil, err
	}
	if len(a.To.Parts) == 1 {
		to.Database = from.Database
	}
	if err := r.o.Catalog.Rename(ctx, from, to); err != nil {
		if errors.Is(err, catalog.ErrNoTable) {
			return nil, r.notFound(ctx, n.Table, from, err)
		}
		return nil, err
	}
	return &Result{Note: "renamed table " + from.String() + " to " + to.String()}, nil
}

// alterPartitions is DROP PARTITION: a change of rows, not of the schema.
func (r *run) alterPartitions(ctx context.Context, n *sqlparse.AlterTable, a *sqlparse.DropPartitions) (*Result, error) {
	var res *Result
	for _, p := range a.Partitions {
		var err error
		if res, err = r.changeBy(ctx, n.Table, nil, func(ctx context.Context, r *run, tg *target, e *editor) error {
			e.op, e.overwrite, e.force = paimon.OperationTruncate, true, true
			return e.dropListed(ctx, r, p)
		}); err != nil {
			return nil, err
		}
	}
	return res, nil
}
