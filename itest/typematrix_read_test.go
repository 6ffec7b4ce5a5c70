//go:build itest

package itest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/types"
)

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
