//go:build itest

package itest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"applier/itest/harness"
)

// typeColumn is a column of a table of the matrix.
type typeColumn struct {
	name, typ string
	label     string   // how the matrix calls it
	values    []string // rows go through them, and NULL unless full
	full      bool
	// byDefault is what a row gets that leaves the column out, once it has a default.
	byDefault string
}

// schemaChange is one change of a schema: as Java makes it, as `applier sql` does
// ("": it has no word for it), and what becomes of the model.
type schemaChange struct {
	java  harness.Args
	sql   string
	model func(t *typeTable)
}

// evolution is a step of a table's life, with the columns that it is about; each
// table has one column of each type of its group beside them.
type evolution struct {
	name    string
	columns func(g typeGroup) []typeColumn
	changes func(g typeGroup) []schemaChange
}

func columnOf(name, typ string) typeColumn {
	return typeColumn{name: name, typ: typ, label: typ, values: typeValues(typ)}
}

// perType makes columns PREFIX0, PREFIX1, … of the group's types.
func perType(g typeGroup, prefix string) []typeColumn {
	var out []typeColumn
	for i, typ := range g.types {
		out = append(out, columnOf(fmt.Sprintf("%s%d", prefix, i), typ))
	}
	return out
}

// eachType joins the changes of every type of a group.
func eachType(g typeGroup, f func(i int, typ string) []schemaChange) []schemaChange {
	var out []schemaChange
	for i, typ := range g.types {
		out = append(out, f(i, typ)...)
	}
	return out
}

func noColumns(typeGroup) []typeColumn { return nil }

func evolutions() []evolution {
	return []evolution{
		{"none", noColumns, func(typeGroup) []schemaChange { return nil }},
		{"add column", noColumns, func(g typeGroup) []schemaChange {
			return eachType(g, func(i int, typ string) []schemaChange {
				return []schemaChange{addColumn(columnOf(fmt.Sprintf("a%d", i), typ))}
			})
		}},
		{"add nested field", nestedColumns, addFields},
		{"rename", renamedColumns, rename},
		{"drop", droppedColumns, drop},
		{"reorder", noColumns, func(g typeGroup) []schemaChange {
			return eachType(g, func(i int, _ string) []schemaChange { return []schemaChange{moveFirst(fmt.Sprintf("c%d", i))} })
		}},
		{"widen", widenedColumns, widen},
		{"NOT NULL", nullableColumns, nullability},
		{"default", defaultColumns, setDefaults},
	}
}

func addColumn(c typeColumn) schemaChange {
	ch := schemaChange{
		java: harness.Args{"op": "add_column", "name": c.name, "type": c.typ},
		model: func(t *typeTable) {
			t.columns = append(t.columns, c)
			for _, row := range t.rows {
				row[c.name] = "null"
			}
		},
	}
	if typ := sqlType(mustType(c.typ)); typ != "" {
		ch.sql = fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", matrixTable, c.name, typ)
	}
	return ch
}

func dropColumn(path ...string) schemaChange {
	return schemaChange{
		java: harness.Args{"op": "drop_column", "path": path},
		sql:  fmt.Sprintf("ALTER TABLE %s DROP COLUMN %s", matrixTable, strings.Join(path, ".")),
		model: func(t *typeTable) {
			if len(path) > 1 {
				return
			}
			t.columns = slices.DeleteFunc(t.columns, func(c typeColumn) bool { return c.name == path[0] })
			for _, row := range t.rows {
				delete(row, path[0])
			}
		},
	}
}

func renameColumn(to string, path ...string) schemaChange {
	return schemaChange{
		java: harness.Args{"op": "rename_column", "path": path, "to": to},
		sql:  fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", matrixTable, strings.Join(path, "."), to),
		model: func(t *typeTable) {
			if len(path) > 1 {
				return
			}
			t.column(path[0]).name = to
			for _, row := range t.rows {
				row[to] = row[path[0]]
				delete(row, path[0])
			}
		},
	}
}

func moveFirst(name string) schemaChange {
	return schemaChange{
		java: harness.Args{"op": "update_position", "name": name, "first": true},
		sql:  fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s FIRST", matrixTable, name),
		model: func(t *typeTable) {
			c := *t.column(name)
			t.columns = slices.DeleteFunc(t.columns, func(c typeColumn) bool { return c.name == name })
			t.columns = slices.Insert(t.columns, 0, c)
		},
	}
}

// reshaped is what a change inside of a column does to it: its type, its values
// that are there, and those of new rows.
func reshaped(ch schemaChange, name, typ string, after func(string) string, fresh ...string) schemaChange {
	ch.model = func(t *typeTable) {
		c := t.column(name)
		c.typ, c.values = typ, fresh
		for _, row := range t.rows {
			if v := row[name]; v != "null" && after != nil {
				row[name] = after(v)
			}
		}
	}
	return ch
}

func addField(typ string, path ...string) schemaChange {
	ch := schemaChange{java: harness.Args{"op": "add_column", "path": path, "type": typ}}
	if sql := sqlType(mustType(typ)); sql != "" {
		ch.sql = fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", matrixTable, strings.Join(path, "."), sql)
	}
	return ch
}

// nestedColumns are rows that get a field of each type, and collections of rows.
func nestedColumns(g typeGroup) []typeColumn {
	var out []typeColumn
	for i, typ := range g.types {
		out = append(out, typeColumn{name: fmt.Sprintf("n%d", i), typ: "ROW<a INT>", label: "ROW, " + typ + " added", values: []string{`{"a":null}`, `{"a":1}`}})
	}
	return append(out,
		typeColumn{name: "l", typ: "ARRAY<ROW<x INT>>", label: "ARRAY of ROW, field added", values: []string{`[]`, `[null,{"x":1}]`}},
		typeColumn{name: "m", typ: "MAP<STRING, ROW<x INT>>", label: "MAP of ROW, field added", values: []string{`{}`, `{"a":{"x":1},"b":null}`}})
}

func addFields(g typeGroup) []schemaChange {
	out := eachType(g, func(i int, typ string) []schemaChange {
		var fresh []string
		for _, v := range append(typeValues(typ), "null") {
			fresh = append(fresh, `{"a":2,"z":`+v+`}`)
		}
		name := fmt.Sprintf("n%d", i)
		after := func(v string) string { return strings.TrimSuffix(v, "}") + `,"z":null}` }
		return []schemaChange{reshaped(addField(typ, name, "z"), name, "ROW<a INT, z "+typ+">", after, fresh...)}
	})
	after := func(v string) string { return strings.ReplaceAll(v, `{"x":1}`, `{"x":1,"y":null}`) }
	return append(out,
		reshaped(addField("STRING", "l", "element", "y"), "l", "ARRAY<ROW<x INT, y STRING>>", after, `[{"x":2,"y":"new"}]`),
		reshaped(addField("STRING", "m", "value", "y"), "m", "MAP<STRING, ROW<x INT, y STRING>>", after, `{"c":{"x":2,"y":"new"}}`))
}

func renamedColumns(typeGroup) []typeColumn {
	return []typeColumn{
		{name: "n", typ: "ROW<a INT, b ARRAY<ROW<x INT>>>", label: "ROW, fields renamed", values: []string{`{"a":null,"b":null}`, `{"a":1,"b":[{"x":2},null]}`}},
		{name: "m", typ: "MAP<STRING, ROW<x INT>>", label: "MAP of ROW, field renamed", values: []string{`{}`, `{"k":{"x":1},"l":null}`}},
	}
}

// rename renames every column and fields; names that others had are given anew.
func rename(g typeGroup) []schemaChange {
	out := eachType(g, func(i int, _ string) []schemaChange {
		return []schemaChange{renameColumn(fmt.Sprintf("r%d", i), fmt.Sprintf("c%d", i))}
	})
	if len(g.types) > 1 { // c1 is the name of another column now
		out = append(out, renameColumn("c1", "r0"))
	}
	renamed := strings.NewReplacer(`"a":`, `"c":`, `"x":`, `"y":`)
	return append(out,
		renameColumn("c", "n", "a"),
		reshaped(renameColumn("y", "n", "b", "element", "x"), "n", "ROW<c INT, b ARRAY<ROW<y INT>>>", renamed.Replace, `{"c":3,"b":[{"y":4}]}`),
		reshaped(renameColumn("y", "m", "value", "x"), "m", "MAP<STRING, ROW<y INT>>", renamed.Replace, `{"n":{"y":5}}`))
}

func droppedColumns(g typeGroup) []typeColumn {
	out := perType(g, "d")
	for i := range out {
		out[i].label += " dropped and added"
	}
	return append(out,
		typeColumn{name: "gone", typ: "INT", label: "gone", values: []string{"1", "2"}},
		typeColumn{name: "n", typ: "ROW<a INT, b STRING>", label: "ROW, field dropped", values: []string{`{"a":null,"b":"x"}`, `{"a":1,"b":null}`}},
		typeColumn{name: "l", typ: "ARRAY<ROW<x INT, y INT>>", label: "ARRAY of ROW, field dropped", values: []string{`[null,{"x":1,"y":2}]`}})
}

// drop drops columns and fields. A column that is added again under its old name
// is another one: rows that are there have no value for it.
func drop(g typeGroup) []schemaChange {
	out := eachType(g, func(i int, _ string) []schemaChange {
		c := perType(g, "d")[i]
		c.label += " dropped and added"
		return []schemaChange{dropColumn(c.name), addColumn(c)}
	})
	without := map[string]string{`{"a":null,"b":"x"}`: `{"b":"x"}`, `{"a":1,"b":null}`: `{"b":null}`, `[null,{"x":1,"y":2}]`: `[null,{"x":1}]`}
	after := func(v string) string { return without[v] }
	return append(out,
		dropColumn("gone"),
		reshaped(dropColumn("n", "a"), "n", "ROW<b STRING>", after, `{"b":"new"}`),
		reshaped(dropColumn("l", "element", "y"), "l", "ARRAY<ROW<x INT>>", after, `[{"x":9}]`))
}

func widenedColumns(g typeGroup) []typeColumn {
	var out []typeColumn
	for i, w := range g.widen {
		c := typeColumn{name: fmt.Sprintf("w%d", i), typ: w.from, label: w.from + " to " + w.to, values: w.before}
		if c.values == nil {
			c.values = typeValues(w.from)
		}
		out = append(out, c)
	}
	return out
}

func widen(g typeGroup) []schemaChange {
	var out []schemaChange
	for i, w := range g.widen {
		name, leaf := fmt.Sprintf("w%d", i), w.to
		if w.leaf != "" {
			leaf = w.leaf
		}
		path := append([]string{name}, w.path...)
		ch := schemaChange{java: harness.Args{"op": "update_type", "path": path, "type": leaf}}
		if sql := sqlType(mustType(leaf)); sql != "" {
			ch.sql = fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s", matrixTable, strings.Join(path, "."), sql)
		}
		fresh := w.fresh
		if fresh == nil {
			fresh = typeValues(w.to)
		}
		out = append(out, reshaped(ch, name, w.to, w.after, fresh...))
	}
	return out
}

func nullableColumns(g typeGroup) []typeColumn {
	var out []typeColumn
	for _, c := range perType(g, "q") {
		c.label += ", NOT NULL dropped"
		c.typ, c.full = c.typ+" NOT NULL", true
		out = append(out, c)
	}
	for _, c := range perType(g, "s") {
		c.label += ", NOT NULL set"
		c.full = true
		out = append(out, c)
	}
	return out
}

func nullability(g typeGroup) []schemaChange {
	change := func(name string, nullable bool) schemaChange {
		word := map[bool]string{true: "DROP", false: "SET"}[nullable]
		return schemaChange{
			java: harness.Args{"op": "update_nullability", "name": name, "nullable": nullable},
			sql:  fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s %s NOT NULL", matrixTable, name, word),
			model: func(t *typeTable) {
				c := t.column(name)
				c.typ, c.full = strings.TrimSuffix(c.typ, " NOT NULL"), !nullable
				if !nullable {
					c.typ += " NOT NULL"
				}
			},
		}
	}
	return eachType(g, func(i int, _ string) []schemaChange {
		return []schemaChange{change(fmt.Sprintf("q%d", i), true), change(fmt.Sprintf("s%d", i), false)}
	})
}

// defaultText is a default of a type: as Java stores it, as SQL says it, and the
// value that it is.
type defaultText struct{ stored, sql, value string }

var defaultTexts = map[string]defaultText{
	"BOOLEAN": {"true", "true", "true"}, "TINYINT": {"-7", "-7", "-7"}, "SMALLINT": {"300", "300", "300"}, "INT": {"70000", "70000", "70000"},
	"BIGINT": {"5000000000", "5000000000", "5000000000"}, "FLOAT": {"1.5", "1.5", "1.5"}, "DOUBLE": {"-0.25", "-0.25", "-0.25"},
	"DECIMAL(9, 2)": {"1.5", "1.5", `"1.50"`}, "DECIMAL(18, 4)": {"1.5", "1.5", `"1.5000"`}, "DECIMAL(38, 18)": {"-2", "-2", `"-2.000000000000000000"`},
	"CHAR(5)": {"'ab'", "'ab'", `"ab   "`}, "VARCHAR(20)": {"'ab c'", "'ab c'", `"ab c"`}, "STRING": {"'日本'", "'日本'", `"日本"`},
	"BYTES": {"'ab'", "", `"6162"`}, "DATE": {"'2026-02-28'", "DATE'2026-02-28'", `"2026-02-28"`}, "TIME(3)": {"'12:34:56'", "", `"12:34:56.000"`},
	"TIMESTAMP(3)":                      {"'2026-01-02 03:04:05.678'", "", `"2026-01-02T03:04:05.678"`},
	"TIMESTAMP(6)":                      {"'2026-01-02 03:04:05.678901'", "TIMESTAMP_NTZ'2026-01-02 03:04:05.678901'", `"2026-01-02T03:04:05.678901"`},
	"TIMESTAMP(6) WITH LOCAL TIME ZONE": {"'2026-01-02 03:04:05.5'", "TIMESTAMP'2026-01-02 03:04:05.5 UTC'", `"2026-01-02T03:04:05.500000Z"`},
	"TIMESTAMP(9)":                      {"'2026-01-02 03:04:05.123456789'", "", `"2026-01-02T03:04:05.123456789"`},
	"ARRAY<INT>":                        {"[1, 2]", "ARRAY(1, 2)", "[1,2]"}, "ARRAY<STRING>": {"[a, b]", "ARRAY('a', 'b')", `["a","b"]`},
	"MAP<STRING, BIGINT>": {"{k -> 1}", "MAP('k', 1L)", `{"k":1}`},
}

func defaultColumns(g typeGroup) []typeColumn {
	var out []typeColumn
	for _, typ := range slices.Sorted(maps.Keys(defaultTexts)) {
		if slices.Contains(g.types, typ) {
			c := columnOf(fmt.Sprintf("u%d", len(out)), typ)
			c.label, c.full = typ+" with a default", true
			out = append(out, c)
		}
	}
	return out
}

func setDefaults(g typeGroup) []schemaChange {
	var out []schemaChange
	for _, c := range defaultColumns(g) {
		d := defaultTexts[c.typ]
		ch := schemaChange{
			java:  harness.Args{"op": "update_default", "name": c.name, "default": d.stored},
			model: func(t *typeTable) { t.column(c.name).byDefault, t.column(c.name).full = d.value, false },
		}
		if d.sql != "" {
			ch.sql = fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s", matrixTable, c.name, d.sql)
		}
		out = append(out, ch)
	}
	return out
}
