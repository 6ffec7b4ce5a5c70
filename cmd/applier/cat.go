package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/spf13/cobra"
)

func catCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cat DATABASE.TABLE",
		Short: "Print a table's rows",
		Long: `Prints the live rows of a table, in no particular order. --format jsonl prints one
JSON object a row with the columns in table order: integers as numbers, DECIMAL as
a string, dates and times as ISO texts, binary as hex, NaN and infinities as strings.`,
		Example: "  applier cat sales.orders --warehouse /data/warehouse --where-key order_id=7\n  applier cat sales.orders -c applier.yml --snapshot 12 --count",
		Args:    cobra.ExactArgs(1),
	}
	flags := addTableFlags(c)
	format := c.Flags().String("format", "table", "table, jsonl or csv")
	count := c.Flags().Bool("count", false, "print the number of rows only")
	limit := c.Flags().Int64("limit", 0, "print at most so many rows; 0 is all (100 with --format table)")
	columns := c.Flags().StringSlice("columns", nil, "columns to print; _ROW_ID and _SEQUENCE_NUMBER too in tables with row tracking")
	where := c.Flags().StringArray("where-key", nil, "COLUMN=VALUE, may be repeated")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		t, err := flags.openTable(ctx, args[0], paimon.Read)
		if err != nil {
			return err
		}
		t, st, err := flags.version(ctx, t)
		if err != nil {
			return err
		}
		conditions, err := parseKey(t, *where)
		if err != nil {
			return err
		}
		if *count && len(conditions) == 0 {
			n, err := t.CountRows(ctx, st)
			if err == nil {
				fmt.Fprintln(c.OutOrStdout(), n)
			}
			return err
		}
		cols, fields, err := chooseColumns(t, *columns)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(c.OutOrStdout())
		p, err := newPrinter(out, *format, fields)
		if err != nil {
			return err
		}
		if *format == "table" && *limit == 0 {
			*limit = 100
		}
		if err := catRows(ctx, t, st, paimon.ScanOptions{Columns: cols, Where: conditions}, catOutput{out, p, *count, *limit, *format == "table"}); err != nil {
			return err
		}
		return out.Flush()
	}
	return c
}

// catOutput is what becomes of the rows that cat reads.
type catOutput struct {
	out   io.Writer
	rows  printer
	count bool  // print their number only
	limit int64 // 0: all
	told  bool  // say that there are more
}

func catRows(ctx context.Context, t *paimon.Table, st *paimon.State, scan paimon.ScanOptions, o catOutput) error {
	var rows int64
	err := t.Scan(ctx, st, scan, func(b *types.Batch) error {
		for i := range b.Len() {
			if !o.count {
				if o.limit > 0 && rows == o.limit {
					return errEnough
				}
				o.rows.row(b, i)
			}
			rows++
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if o.count {
		fmt.Fprintln(o.out, rows)
		return nil
	}
	o.rows.end()
	if err != nil && o.told {
		fmt.Fprintf(o.out, "… the first %d rows; --limit for more\n", rows)
	}
	return nil
}

// chooseColumns finds columns by their names; none are all of the table's own.
func chooseColumns(t *paimon.Table, names []string) (cols []int, fields []types.Field, err error) {
	if len(names) == 0 {
		return nil, t.Schema().Fields, nil
	}
	hidden := map[string]int{paimon.ColumnRowID: paimon.RowIDColumn, paimon.ColumnSequenceNumber: paimon.SequenceColumn}
	for _, name := range names {
		c, ok := hidden[name]
		if !ok {
			if c = t.Schema().Column(name); c < 0 {
				return nil, nil, usageError("--columns: the table has no column %q", name)
			}
		}
		f, err := t.ColumnField(c)
		if err != nil {
			return nil, nil, usageError("--columns: %v", err)
		}
		cols, fields = append(cols, c), append(fields, f)
	}
	return cols, fields, nil
}

var errEnough = errors.New("enough rows")

// printer writes rows in one of the formats.
type printer interface {
	row(b *types.Batch, i int)
	end()
}

func newPrinter(w io.Writer, format string, fields []types.Field) (printer, error) {
	switch format {
	case "table":
		return &tablePrinter{w: w, fields: fields}, nil
	case "jsonl":
		return &jsonPrinter{w: w, fields: fields}, nil
	case "csv":
		p := &csvPrinter{w: csv.NewWriter(w), fields: fields}
		var head []string
		for _, f := range fields {
			head = append(head, f.Name)
		}
		return p, p.w.Write(head)
	}
	return nil, usageError("--format %q: use table, jsonl or csv", format)
}

type jsonPrinter struct {
	w      io.Writer
	fields []types.Field
	buf    []byte
}

func (p *jsonPrinter) row(b *types.Batch, i int) {
	p.buf = append(p.buf[:0], '{')
	for c, f := range p.fields {
		if c > 0 {
			p.buf = append(p.buf, ',')
		}
		p.buf = types.AppendJSONString(p.buf, []byte(f.Name))
		p.buf = append(p.buf, ':')
		p.buf = types.AppendJSON(p.buf, f.Type, b.Cols[c].Datum(i))
	}
	p.buf = append(p.buf, '}', '\n')
	_, _ = p.w.Write(p.buf) // the buffered writer keeps the error for Flush
}

func (p *jsonPrinter) end() {}

type csvPrinter struct {
	w      *csv.Writer
	fields []types.Field
	record []string
}

func (p *csvPrinter) row(b *types.Batch, i int) {
	p.record = p.record[:0]
	for c, f := range p.fields {
		p.record = append(p.record, string(types.AppendText(nil, f.Type, b.Cols[c].Datum(i))))
	}
	_ = p.w.Write(p.record)
}

func (p *csvPrinter) end() { p.w.Flush() }

// tablePrinter collects rows and draws them with aligned columns.
type tablePrinter struct {
	w      io.Writer
	fields []types.Field
	cells  [][]string
}

func (p *tablePrinter) row(b *types.Batch, i int) {
	row := make([]string, len(p.fields))
	for c, f := range p.fields {
		d := b.Cols[c].Datum(i)
		if row[c] = "NULL"; !d.Null {
			row[c] = string(types.AppendText(nil, f.Type, d))
		}
	}
	p.cells = append(p.cells, row)
}

func (p *tablePrinter) end() {
	var head []string
	var right []bool
	for _, f := range p.fields {
		head = append(head, f.Name)
		right = append(right, f.Type.IsNumeric())
	}
	drawTable(p.w, head, p.cells, right)
	fmt.Fprintf(p.w, "%d row(s)\n", len(p.cells))
}
