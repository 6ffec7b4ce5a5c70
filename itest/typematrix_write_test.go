//go:build itest

package itest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// newRows makes a writer's rows of a phase, and puts them into the model if it is
// given them.
func (x *typeTable) newRows(writer, phase int) (ids []int, texts []string) {
	from, to := 0, rowsPerPhase
	if x.leavesOut {
		from, to = rowsPerPhase, idsPerPhase
	}
	for k := from; k < to; k++ {
		id := writer*idsPerWriter + phase*idsPerPhase + k
		row := map[string]string{}
		for i, c := range x.columns {
			n := len(c.values)
			at := k + 3*writer + 5*phase + i
			if !c.full && (c.byDefault == "" || typeWriters[writer] != "pypaimon" || x.leavesOut) {
				n++
			}
			row[c.name] = "null"
			if at%n < len(c.values) {
				row[c.name] = c.values[at%n]
			}
		}
		row["mark"] = "null"
		ids = append(ids, id)
		texts = append(texts, x.rowText(id, row))
		x.rows[id] = row
	}
	return ids, texts
}

func (x *typeTable) rowText(id int, row map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%d,"mark":%s`, id, row["mark"])
	for _, c := range x.columns {
		fmt.Fprintf(&b, `,%q:%s`, c.name, row[c.name])
	}
	return b.String() + "}"
}

// insert has every writer insert its rows of a phase.
func (x *typeTable) insert(phase int) {
	for w, writer := range typeWriters {
		if why := x.r.cannotWrite(x, writer); why != nil {
			x.r.refusedWriter(x, writer, phase, why, x.tryOnCopy(writer, w, phase, why))
			continue
		}
		ids, texts := x.newRows(w, phase)
		if err := x.write(x.ref(), writer, texts, phase); err != nil {
			for _, id := range ids {
				delete(x.rows, id)
			}
			x.t.Errorf("%s: %s cannot insert: %v", x.typeCase, writer, short(err))
			continue
		}
		x.applyDefaults(ids)
	}
}

// applyDefaults: NULL is the default, where there is one.
func (x *typeTable) applyDefaults(ids []int) {
	for _, id := range ids {
		for _, c := range x.columns {
			if c.byDefault != "" && x.rows[id][c.name] == "null" {
				x.rows[id][c.name] = c.byDefault
			}
		}
	}
}

// leaveOut has pypaimon leave columns out that have a default.
func (x *typeTable) leaveOut() {
	if slices.ContainsFunc(x.columns, func(c typeColumn) bool { return c.byDefault != "" }) {
		x.leavesOut = true
		w := slices.Index(typeWriters, "pypaimon")
		x.r.leftOut(x, pypaimonDefaults, x.tryOnCopy("pypaimon", w, 1, pypaimonDefaults))
		x.leavesOut = false
	}
}

// write inserts rows with one engine. Flink and `applier sql` take them from a
// table of Java's: SQL has no literals for all values.
func (x *typeTable) write(ref harness.Ref, writer string, texts []string, phase int) error {
	ctx, java := x.t.Context(), harness.Java(x.t)
	switch writer {
	case "applier":
		for _, text := range texts {
			x.kafka.Produce(x.t, put(x.pipes[0].Topic, 0, text))
		}
		x.waitApplied(x.daemon)
		return nil
	case "Java":
		_, err := java.Do(ctx, ref, harness.InsertRows(anyRows(texts)...))
		return err
	case "pypaimon":
		return harness.PyPaimon(x.t).Insert(ctx, ref, anyRows(texts)...)
	}
	seed := harness.Ref{Warehouse: ref.Warehouse, Table: fmt.Sprintf("db.seed_%s_%d", strings.ReplaceAll(writer, " ", "_"), phase)}
	require.NoError(x.t, java.Create(ctx, seed, harness.TableSpec{Columns: x.seedColumns(ref), Options: map[string]string{"bucket": "-1"}}))
	_, err := java.Do(ctx, seed, harness.InsertRows(anyRows(texts)...))
	require.NoError(x.t, err)
	if writer == "Flink" {
		_, err = harness.Flink(x.t).SQL(ctx, ref.Warehouse, fmt.Sprintf("INSERT INTO p.%s SELECT * FROM p.%s", ref.Table, seed.Table))
		return err
	}
	code, output := harness.ApplierOutput(ctx, x.t, "sql", "--warehouse", ref.Warehouse, "-e", fmt.Sprintf("INSERT INTO %s SELECT * FROM %s", ref.Table, seed.Table))
	if code != 0 {
		return fmt.Errorf("%s", output)
	}
	return nil
}

// seedColumns are the table's columns as they are now, without defaults.
func (x *typeTable) seedColumns(ref harness.Ref) []harness.Column {
	spec, err := harness.Java(x.t).Schema(x.t.Context(), ref)
	require.NoError(x.t, err)
	for i := range spec.Columns {
		spec.Columns[i].Default = ""
	}
	byName := map[string]string{}
	for _, c := range x.schema() {
		byName[c.Name] = c.Type
	}
	for i, c := range spec.Columns { // the model's spelling: Java's of nested types is not read back
		spec.Columns[i].Type = byName[c.Name]
	}
	return spec.Columns
}

// tryOnCopy has a writer of an exception do what it cannot, on a copy of the
// table, and returns what came of it.
func (x *typeTable) tryOnCopy(writer string, w, phase int, why *typeException) error {
	ref := harness.Ref{Warehouse: x.t.TempDir(), Table: matrixTable}
	require.NoError(x.t, os.MkdirAll(filepath.Dir(tableDir(ref)), 0o755))
	require.NoError(x.t, os.CopyFS(tableDir(ref), os.DirFS(tableDir(x.ref()))))
	model := maps.Clone(x.rows)
	defer func() { x.rows = model }()
	ids, texts := x.newRows(w, phase)
	if writer == "applier" {
		return x.halted(ref, texts)
	}
	x.applyDefaults(ids)
	if err := x.write(ref, writer, texts, phase); err != nil {
		return err
	}
	rows, err := harness.Java(x.t).Read(x.t.Context(), ref, harness.Query{})
	if err != nil {
		return err
	}
	for _, f := range x.compare("Java", rows, x.columns) {
		if f.writer == writer {
			return fmt.Errorf("column %s, row %d: %s instead of %s", f.column.name, f.id, f.got, f.want)
		}
	}
	return nil
}

// halted has a daemon of its own take rows that it cannot write, and returns what it
// says when it stops.
func (x *typeTable) halted(ref harness.Ref, texts []string) error {
	topic := topicName(fmt.Sprintf("%s-%d", x.t.Name(), len(x.rows)))
	x.kafka.CreateTopic(x.t, harness.Topic{Name: topic, Partitions: 1})
	r := newRig(x.t, ref.Warehouse, pipe{Topic: topic, Table: ref.Table, Format: "{ type: json, binary: hex }"})
	for _, text := range texts {
		r.kafka.Produce(x.t, put(topic, 0, text))
	}
	p := r.start()
	s := r.waitStatus(p, r.pipes[0].Name, "a halt", func(s pipelineStatus) bool { return s.Halt != nil })
	p.Kill()
	return fmt.Errorf("%s: %s", s.Halt.Code, s.Halt.Message)
}

// evolve carries the step out, by Java or by us as far as we have words for it.
func (x *typeTable) evolve() {
	var args []harness.Args
	var statements []string
	changes := x.step.changes(x.group)
	for _, c := range changes {
		if x.java || c.sql == "" {
			args = append(args, c.java)
		} else {
			statements = append(statements, c.sql)
		}
	}
	if len(statements) > 0 {
		sqlOn(x.t, x.ref(), strings.Join(statements, "; "))
	}
	for len(args) > 0 { // Java takes one change inside of a column at a time
		n := max(1, slices.IndexFunc(append(args, harness.Args{"path": []string{"", ""}}), inside))
		require.NoError(x.t, harness.Java(x.t).Alter(x.t.Context(), x.ref(), args[:n]...))
		args = args[n:]
	}
	for _, c := range changes {
		c.model(x)
	}
}

// inside tells whether a change is one inside of a column.
func inside(a harness.Args) bool {
	path, ok := a["path"].([]string)
	return ok && len(path) > 1
}

// class are the ids of the rows of which the same becomes.
func (x *typeTable) class(n int) []int {
	var ids []int
	for id := range x.rows {
		if id%7 == n {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (x *typeTable) mark(class int, v string) {
	for _, id := range x.class(class) {
		x.rows[id]["mark"] = v
	}
}

func (x *typeTable) remove(class int) {
	for _, id := range x.class(class) {
		delete(x.rows, id)
	}
}

// changeByUs updates and deletes rows of every writer, before and after the step, by
// statements and by records that name one column.
func (x *typeTable) changeByUs() {
	topic := x.pipes[0].Topic
	sqlOn(x.t, x.ref(), fmt.Sprintf("UPDATE %s SET mark = 1 WHERE id %% 7 = %d", matrixTable, sqlUpdates))
	x.mark(sqlUpdates, "1")
	for _, id := range x.class(daemonUpdates) {
		x.kafka.Produce(x.t, put(topic, 0, fmt.Sprintf(`{"id":%d,"mark":2}`, id)))
	}
	x.mark(daemonUpdates, "2")
	for _, id := range x.class(daemonDeletes) {
		x.kafka.Produce(x.t, del(topic, 0, fmt.Sprintf(`{"id":%d}`, id)))
	}
	x.remove(daemonDeletes)
	x.waitApplied(x.daemon)
	sqlOn(x.t, x.ref(), fmt.Sprintf("DELETE FROM %s WHERE id %% 7 = %d", matrixTable, sqlDeletes))
	x.remove(sqlDeletes)
}

// changeByJava does the same to other rows.
func (x *typeTable) changeByJava() {
	keys := func(class int) (out [][]any) {
		for _, id := range x.class(class) {
			out = append(out, []any{id})
		}
		return out
	}
	java := harness.Java(x.t)
	do(x.t, java, x.ref(), harness.UpdateKeys(map[string]any{"mark": 3}, []string{"id"}, keys(javaUpdates)...))
	x.mark(javaUpdates, "3")
	do(x.t, java, x.ref(), harness.DeleteKeys([]string{"id"}, keys(javaDeletes)...))
	x.remove(javaDeletes)
}
