package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"applier/merger/expr"
	"applier/merger/sql"
	"applier/storage/types"
)

// resultPrinter prints what a statement gave; text is that in which err has its place.
type resultPrinter interface {
	print(statement, text string, res *sql.Result, err error)
}

func newResultPrinter(out, errs io.Writer, format string) (resultPrinter, error) {
	switch format {
	case "table":
		return &resultTable{out, errs}, nil
	case "json":
		return &resultJSON{out}, nil
	case "csv":
		return &resultCSV{out, errs}, nil
	}
	return nil, usageError("--format %q: use table, json or csv", format)
}

// resultTable draws results for people.
type resultTable struct{ out, errs io.Writer }

func (p *resultTable) print(_, text string, res *sql.Result, err error) {
	if err != nil {
		fmt.Fprintln(p.errs, sql.Render(text, err))
		return
	}
	if len(res.Columns) == 0 {
		note := res.Note
		for _, t := range slices.Sorted(maps.Keys(res.Snapshot)) {
			note += fmt.Sprintf(" (%s: snapshot %d)", t, res.Snapshot[t])
		}
		if note != "" {
			fmt.Fprintln(p.out, note)
		}
		return
	}
	if len(res.Columns) == 1 && (res.Columns[0].Name == "plan" || res.Columns[0].Name == "createtab_stmt") {
		for _, row := range res.Rows { // lines of text are no cells
			fmt.Fprintln(p.out, string(row[0].B))
		}
		return
	}
	var head []string
	var right []bool
	for _, c := range res.Columns {
		head = append(head, c.Name)
		right = append(right, c.Type.Kind >= expr.TinyInt && c.Type.Kind <= expr.Decimal)
	}
	var cells [][]string
	for _, row := range res.Rows {
		cells = append(cells, cellTexts(res, row, "NULL"))
	}
	drawTable(p.out, head, cells, right)
	fmt.Fprintf(p.out, "%d row(s)\n", len(cells))
}

// cellTexts are the values of a row as plain text.
func cellTexts(res *sql.Result, row []types.Datum, null string) []string {
	cells := make([]string, len(row))
	for i, d := range row {
		if cells[i] = null; d.Null {
			continue
		}
		switch t := res.Columns[i].Type; t.Kind {
		case expr.Binary:
			cells[i] = fmt.Sprintf("%x", d.B)
		default:
			cells[i] = expr.Text(t, d, nil)
		}
	}
	return cells
}

// resultCSV prints the rows of queries, each result under its own head.
type resultCSV struct{ out, errs io.Writer }

func (p *resultCSV) print(_, text string, res *sql.Result, err error) {
	if err != nil {
		fmt.Fprintln(p.errs, sql.Render(text, err))
		return
	}
	if len(res.Columns) == 0 {
		return
	}
	w := csv.NewWriter(p.out)
	var head []string
	for _, c := range res.Columns {
		head = append(head, c.Name)
	}
	_ = w.Write(head) // the buffered writer below keeps the error for Flush
	for _, row := range res.Rows {
		_ = w.Write(cellTexts(res, row, ""))
	}
	w.Flush()
}

// resultJSON prints one object a statement.
type resultJSON struct{ out io.Writer }

type jsonResult struct {
	Statement string            `json:"statement"`
	Columns   [][2]string       `json:"columns,omitempty"`
	Rows      []json.RawMessage `json:"rows,omitzero"`
	Snapshot  map[string]int64  `json:"snapshot,omitempty"`
	Error     *jsonError        `json:"error,omitempty"`
}

type jsonError struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

func (p *resultJSON) print(statement, text string, res *sql.Result, err error) {
	o := jsonResult{Statement: statement}
	if err != nil {
		d := sql.Describe(err)
		message := d.Message
		if d.Pos.Line > 0 {
			message += " (" + d.Pos.String() + ")"
		}
		o.Error = &jsonError{d.Class, message}
	} else {
		o.Snapshot = res.Snapshot
		for _, c := range res.Columns {
			o.Columns = append(o.Columns, [2]string{c.Name, c.Type.String()})
		}
		if len(res.Columns) > 0 {
			o.Rows = []json.RawMessage{}
		}
		for _, row := range res.Rows {
			b := []byte{'['}
			for i, d := range row {
				if i > 0 {
					b = append(b, ',')
				}
				b = expr.AppendJSON(b, res.Columns[i].Type, d)
			}
			o.Rows = append(o.Rows, append(b, ']'))
		}
	}
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		fmt.Fprintf(p.out, "{\"statement\":%q,\"error\":{\"class\":\"INTERNAL\",\"message\":%q}}\n", statement, err.Error())
	}
}
