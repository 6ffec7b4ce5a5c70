package harness

import (
	"context"
	"encoding/json"
)

// Ref names a table: a warehouse folder and "database.table".
type Ref struct {
	Warehouse string
	Table     string
}

// Query says what to read; the zero value is the whole table as it is now.
type Query struct {
	Snapshot int64    // 0: the latest
	Tag      string   // read at a tag
	Columns  []string // none: all, in table order
	Where    []Cond   // joined by AND; paimon-rust takes none, use its SQL
	Scan     bool     // Java only: test Where on every row instead of pruning files and row groups by it
	Limit    int      // 0: no limit; Read only
}

// Cond is one condition: Op is =, !=, <, <=, >, >=, is null, is not null, in,
// not in, between, starts with. Values are JSON values in the texts of rows.
type Cond struct {
	Column string `json:"column"`
	Op     string `json:"op"`
	Value  any    `json:"value,omitempty"`
	Values []any  `json:"values,omitempty"`
}

// Rows is what a judge read.
type Rows struct {
	Columns  []string          `json:"columns"`
	Rows     []json.RawMessage `json:"rows"`     // one object a row, in no particular order
	Files    int               `json:"files"`    // data files that were planned (Java, pypaimon)
	Snapshot int64             `json:"snapshot"` // that was read, where the judge says so
}

// Texts returns the rows as texts.
func (r *Rows) Texts() []string {
	out := make([]string, len(r.Rows))
	for i, row := range r.Rows {
		out[i] = string(row)
	}
	return out
}

// Judge reads tables; each one here is an implementation that nobody of this
// project wrote, except Cat.
type Judge interface {
	Name() string
	Read(ctx context.Context, ref Ref, q Query) (*Rows, error)
	Count(ctx context.Context, ref Ref, q Query) (int64, error)
	Digest(ctx context.Context, ref Ref, q Query) (Digest, error)
}

// Peer is a judge in a process of its own.
type Peer struct{ *client }

// Name is the judge's name.
func (p Peer) Name() string { return p.client.name }

// PID is the process id of the judge, for tests that measure it.
func (p Peer) PID() int { return p.client.proc.PID() }

// Log returns the last n lines of what the judge logged.
func (p Peer) Log(n int) string { return p.client.proc.Output.Tail(n) }

func (ref Ref) args() Args { return Args{"warehouse": ref.Warehouse, "table": ref.Table} }

func (q Query) args(ref Ref) Args {
	a := ref.args()
	if q.Snapshot != 0 {
		a["snapshot"] = q.Snapshot
	}
	if q.Tag != "" {
		a["tag"] = q.Tag
	}
	if len(q.Columns) > 0 {
		a["columns"] = q.Columns
	}
	if len(q.Where) > 0 {
		a["where"], a["pushdown"] = q.Where, !q.Scan
	}
	if q.Limit > 0 {
		a["limit"] = q.Limit
	}
	return a
}

// Read returns the rows.
func (p Peer) Read(ctx context.Context, ref Ref, q Query) (*Rows, error) {
	var r Rows
	return &r, p.Call(ctx, "read", q.args(ref), &r)
}

// Count reads the rows and returns their number.
func (p Peer) Count(ctx context.Context, ref Ref, q Query) (int64, error) {
	var r struct{ Count int64 }
	err := p.Call(ctx, "count", q.args(ref), &r)
	return r.Count, err
}

// Digest reads the rows and returns their digest.
func (p Peer) Digest(ctx context.Context, ref Ref, q Query) (Digest, error) {
	var r struct {
		Count  int64
		Digest string
	}
	err := p.Call(ctx, "digest", q.args(ref), &r)
	return Digest{Rows: r.Count, Hash: r.Digest}, err
}

// Tables lists the tables of a warehouse as "database.table".
func (p Peer) Tables(ctx context.Context, warehouse string) ([]string, error) {
	var r struct{ Tables []string }
	err := p.Call(ctx, "tables", Args{"warehouse": warehouse}, &r)
	return r.Tables, err
}

// Insert appends rows, each a JSON object or something that marshals to one.
// Java and pypaimon only.
func (p Peer) Insert(ctx context.Context, ref Ref, rows ...any) error {
	a := ref.args()
	a["rows"] = jsonRows(rows)
	return p.Call(ctx, "insert", a, nil)
}

// jsonRows takes row texts as JSON instead of as JSON strings.
func jsonRows(rows []any) []any {
	out := make([]any, len(rows))
	for i, r := range rows {
		switch r := r.(type) {
		case string:
			out[i] = json.RawMessage(r)
		case []byte:
			out[i] = json.RawMessage(r)
		default:
			out[i] = r
		}
	}
	return out
}
