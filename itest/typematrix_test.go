//go:build itest

package itest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/types"
)

// The matrix of types: writer × reader × type × mode × evolution step. A table
// has one column of each type of a group and lives in one mode. Every writer
// inserts rows before the step and after it; then rows of all of them are changed
// and deleted by us (the daemon, `applier sql`) and by Java, so that readers see
// rows that were carried, copied and marked. Every value that a reader gives is
// compared with what was inserted. A cell of the matrix passes when all of its
// values did; what an engine cannot do is in typeExceptions, is tried all the
// same, and is counted apart.

const matrixTable = "db.t"

// The engines, by the names of the matrix. The first two are ours: the daemon
// (as a reader: `applier cat`) and SQL.
var (
	typeWriters = []string{"applier", "applier sql", "Java", "Flink", "pypaimon"}
	typeReaders = []string{"applier", "Java", "Flink", "pypaimon"}
)

// typeModes are the kinds of append tables.
var typeModes = []tableMode{
	{name: "copy-on-write", options: map[string]string{"bucket": "-1"}},
	{name: "vectors", options: map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}},
	{name: "64-bit vectors", options: map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"}},
	{name: "row tracking", options: map[string]string{"bucket": "-1", "row-tracking.enabled": "true"}},
	{name: "row tracking, vectors", options: map[string]string{"bucket": "-1", "row-tracking.enabled": "true", "deletion-vectors.enabled": "true"}},
	{name: "buckets, copy-on-write", options: map[string]string{"bucket": "3", "bucket-key": "id"}},
	{name: "buckets, vectors", options: map[string]string{"bucket": "3", "bucket-key": "id", "deletion-vectors.enabled": "true"}},
}

// typeCase names one table of the matrix.
type typeCase struct {
	group typeGroup
	mode  tableMode
	step  evolution
	java  bool // the step is Java's, else that of `applier sql`
}

func (c typeCase) String() string {
	by := "applier"
	if c.java {
		by = "Java"
	}
	return fmt.Sprintf("%s/%s/%s by %s", c.group.name, c.mode.name, c.step.name, by)
}

// typeCases are the tables of a run. The slice has every step, mode and group, each
// in some company; the full matrix has all of them in every company.
func typeCases() []typeCase {
	var out []typeCase
	groups, steps := typeGroups(), evolutions()
	for g, group := range groups {
		for m, mode := range typeModes {
			for s, step := range steps {
				c := typeCase{group, mode, step, (g+m+s)%2 == 0}
				if fullMatrix || sliced(g, m, s) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// sliced chooses a case for the short run: the scalars in every step, the modes in
// turn, and one table of each other group.
func sliced(group, mode, step int) bool {
	switch group {
	case 0:
		return mode == step%len(typeModes)
	default:
		return mode == (2*group-1)%len(typeModes) && step == []int{0, 2, 6, 1, 4}[group]
	}
}

// typeTable is a table of the matrix and its model.
type typeTable struct {
	*rig
	typeCase
	r       *matrixResult
	daemon  *harness.Process
	columns []typeColumn              // beside id and mark, in table order
	rows    map[int]map[string]string // by id: cells by column
	// leavesOut: pypaimon, which knows no defaults, leaves such columns out all the same.
	leavesOut bool
	wrong     map[string][]string // readers and what is wrong: writers and columns
}

// TestTypeMatrix_EveryWriterReaderTypeModeAndStep.
func TestTypeMatrix_EveryWriterReaderTypeModeAndStep(t *testing.T) {
	r := newMatrixResult()
	cases := typeCases()
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) { runTypeCase(t, r, c) })
	}
	r.finish(t, len(cases))
}

// Row ids say who wrote a row and when; what becomes of it is its id modulo 7.
const (
	rowsPerPhase = 14
	idsPerPhase  = 20
	idsPerWriter = 2 * idsPerPhase
)

// What becomes of rows, by their ids modulo 7; those of class 6 stay untouched.
const (
	sqlUpdates = iota
	daemonUpdates
	daemonDeletes
	sqlDeletes
	javaUpdates
	javaDeletes
)

func writerOf(id int) string { return typeWriters[id/idsPerWriter] }

func runTypeCase(t *testing.T, result *matrixResult, c typeCase) {
	topic := newTopic(t, 1)
	table := &typeTable{typeCase: c, r: result, rows: map[int]map[string]string{}, wrong: map[string][]string{}}
	table.rig = newRig(t, "", pipe{Topic: topic, Table: matrixTable, Format: "{ type: json, binary: hex }"})
	table.columns = append(perType(c.group, "c"), c.step.columns(c.group)...)
	spec := harness.TableSpec{Columns: table.schema(), Options: map[string]string{"alter-column-null-to-not-null.disabled": "false"}}
	for k, v := range c.mode.options {
		spec.Options[k] = v
	}
	require.NoError(t, harness.Java(t).Create(t.Context(), table.ref(), spec))
	table.daemon = table.start()

	table.insert(0)
	table.evolve()
	table.insert(1)
	if c.step.name == "default" {
		table.leaveOut()
	}
	table.read(fullMatrix)
	table.changeByUs()
	table.read(false)
	table.changeByJava()
	table.read(true)
	harness.MustStop(t, table.daemon)
	if fullMatrix {
		code, output := harness.ApplierOutput(t.Context(), t, "compact", "--full", matrixTable, "--warehouse", table.Warehouse)
		require.Zero(t, code, output)
		table.read(true)
	}
	for what, where := range table.wrong {
		t.Errorf("%s: %d times, such as %s", what, len(where), strings.Join(where[:min(len(where), 4)], "; "))
	}
}

// failed notes a cell that is wrong and no exception.
func (x *typeTable) failed(c typeCell, what string) {
	key := c.reader + " of " + c.typ
	if !strings.HasPrefix(what, "reads ") {
		key = c.reader + ": " + what
	}
	x.wrong[key] = append(x.wrong[key], fmt.Sprintf("%s's %s: %s", c.writer, c.typ, what))
}

func (x *typeTable) column(name string) *typeColumn {
	i := slices.IndexFunc(x.columns, func(c typeColumn) bool { return c.name == name })
	if i < 0 {
		panic("no column " + name)
	}
	return &x.columns[i]
}

func (x *typeTable) schema() []harness.Column {
	out := []harness.Column{{Name: "id", Type: "BIGINT"}, {Name: "mark", Type: "INT"}}
	for _, c := range x.columns {
		out = append(out, harness.Column{Name: c.name, Type: c.typ})
	}
	return out
}

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

// read has every reader read the table, and the result note every cell of it. Flink
// takes seconds a statement.
func (x *typeTable) read(flink bool) {
	for _, reader := range typeReaders {
		if reader == "Flink" && !flink {
			continue
		}
		bad := map[string]string{} // writer, column: what is wrong
		for _, part := range x.parts(reader, x.columns) {
			if part.err != nil {
				for _, c := range part.columns {
					for _, w := range typeWriters {
						bad[w+"\x00"+c.name] = short(part.err)
					}
				}
				continue
			}
			for _, f := range x.compare(reader, part.rows, part.columns) {
				bad[f.writer+"\x00"+f.column.name] = fmt.Sprintf("reads %s instead of %s in row %d", f.got, f.want, f.id)
			}
		}
		values := map[string]int{}
		for id := range x.rows {
			values[writerOf(id)]++
		}
		for _, w := range typeWriters {
			if values[w] == 0 {
				continue
			}
			for _, c := range x.columns {
				cell := typeCell{writer: w, reader: reader, typ: c.label, mode: x.mode.name, step: x.step.name, group: x.group.name}
				x.r.note(x.t, x, cell, values[w], bad[w+"\x00"+c.name])
			}
		}
	}
}

func (x *typeTable) judge(reader string) harness.Judge {
	switch reader {
	case "Java":
		return harness.Java(x.t)
	case "Flink":
		return harness.Flink(x.t)
	case "pypaimon":
		return harness.PyPaimon(x.t)
	}
	return cat(x.t)
}

// part is some columns of a table, as a reader gave them or refused them.
type part struct {
	columns []typeColumn
	rows    *harness.Rows
	err     error
}

// parts reads all columns at once; if the reader fails it finds out which ones it
// fails at.
func (x *typeTable) parts(reader string, columns []typeColumn) []part {
	q := harness.Query{}
	if len(columns) < len(x.columns) {
		q.Columns = []string{"id", "mark"}
		for _, c := range columns {
			q.Columns = append(q.Columns, c.name)
		}
	}
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	rows, err := x.judge(reader).Read(ctx, x.ref(), q)
	switch {
	case err == nil:
		return []part{{columns, rows, nil}}
	case len(columns) == len(x.columns) && x.allFails(reader), len(columns) == 1:
		return []part{{columns, nil, err}}
	}
	half := len(columns) / 2
	return append(x.parts(reader, columns[:half]), x.parts(reader, columns[half:])...)
}

// allFails tells whether a reader cannot even read the ids.
func (x *typeTable) allFails(reader string) bool {
	_, err := x.judge(reader).Read(x.t.Context(), x.ref(), harness.Query{Columns: []string{"id"}})
	return err != nil
}

// wrongCell is a value that is not what was inserted.
type wrongCell struct {
	writer    string
	column    typeColumn
	id        int
	got, want string
}

// compare finds the first wrong value of every column and writer. A row too many
// or too few, and another mark than the model's, makes all of its columns wrong.
func (x *typeTable) compare(reader string, rows *harness.Rows, columns []typeColumn) []wrongCell {
	var out []wrongCell
	noted := map[string]bool{}
	wrong := func(id int, c typeColumn, got, want string) {
		if key := writerOf(id) + c.name; !noted[key] {
			noted[key] = true
			out = append(out, wrongCell{writerOf(id), c, id, got, want})
		}
	}
	all := func(id int, got, want string) {
		for _, c := range columns {
			wrong(id, c, got, want)
		}
	}
	parsed := make([]types.Type, len(columns))
	for i, c := range columns {
		parsed[i] = mustType(c.typ)
	}
	seen := map[int]bool{}
	for _, raw := range rows.Rows {
		var got map[string]json.RawMessage
		require.NoError(x.t, json.Unmarshal(raw, &got))
		id := atoi(x.t, string(got["id"]))
		want, there := x.rows[id]
		switch {
		case !there, seen[id]:
			require.Less(x.t, id, len(typeWriters)*idsPerWriter, "%s reads a row that nobody wrote", reader)
			all(id, "a row", "none")
			continue
		case string(got["mark"]) != want["mark"]:
			all(id, "mark "+string(got["mark"]), want["mark"])
		}
		seen[id] = true
		for i, c := range columns {
			if g := sorted(parsed[i], got[c.name]); g != sorted(parsed[i], []byte(want[c.name])) {
				wrong(id, c, g, want[c.name])
			}
		}
	}
	for id := range x.rows {
		if !seen[id] {
			all(id, "no row", "one")
		}
	}
	return out
}

// sorted is a value whose maps have their entries in the order of their texts: the
// order of entries means nothing, and Flink loses it.
func sorted(t types.Type, raw []byte) string {
	text := string(raw)
	if text == "null" || text == "" || !t.IsNested() {
		return text
	}
	var parts []string
	switch t.Kind {
	case types.Row:
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) != nil || len(m) != len(t.Fields) {
			return text
		}
		for _, f := range t.Fields {
			parts = append(parts, fmt.Sprintf("%q:%s", f.Name, sorted(f.Type, m[f.Name])))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case types.Array:
		var l []json.RawMessage
		if json.Unmarshal(raw, &l) != nil {
			return text
		}
		for _, e := range l {
			parts = append(parts, sorted(*t.Elem, e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	value := types.IntType()
	if t.Kind == types.Map {
		value = *t.Elem
	}
	if bytes.HasPrefix(raw, []byte("{")) {
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) != nil {
			return text
		}
		for k, v := range m {
			parts = append(parts, fmt.Sprintf("%q:%s", k, sorted(value, v)))
		}
	} else {
		var l [][2]json.RawMessage
		if json.Unmarshal(raw, &l) != nil {
			return text
		}
		for _, e := range l {
			parts = append(parts, string(e[0])+":"+sorted(value, e[1]))
		}
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// short is the part of an error that says what it is about.
func short(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > 400 {
		text = text[:400] + "…"
	}
	return text
}
