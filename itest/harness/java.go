package harness

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// JavaPeer is Paimon's own Java library: a reader, and a foreign writer that can
// stop between writing its files and committing them.
type JavaPeer struct{ Peer }

// Column is one column of a table. Type is Paimon's text, nested ones as
// ARRAY<…>, MAP<…, …>, MULTISET<…>, ROW<name type, …>.
type Column struct {
	ID      int    `json:"id,omitempty"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Comment string `json:"comment,omitempty"`
	Default string `json:"default,omitempty"`
}

// TableSpec describes a table to create, or one that exists.
type TableSpec struct {
	SchemaID      int64             `json:"schema_id,omitempty"`
	Columns       []Column          `json:"columns"`
	PartitionKeys []string          `json:"partition_keys,omitempty"`
	PrimaryKeys   []string          `json:"primary_keys,omitempty"`
	Options       map[string]string `json:"options,omitempty"`
	Comment       string            `json:"comment,omitempty"`
}

// Create creates a table, and its database.
func (p JavaPeer) Create(ctx context.Context, ref Ref, s TableSpec) error {
	a := ref.args()
	a["columns"], a["partition_keys"], a["primary_keys"], a["options"] = s.Columns, s.PartitionKeys, s.PrimaryKeys, s.Options
	if s.Comment != "" {
		a["comment"] = s.Comment
	}
	return p.Call(ctx, "create", a, nil)
}

// Schema returns the table's latest schema.
func (p JavaPeer) Schema(ctx context.Context, ref Ref) (*TableSpec, error) {
	var s TableSpec
	return &s, p.Call(ctx, "schema", ref.args(), &s)
}

// Alter changes the schema, as in Alter(ctx, ref, Args{"op": "drop_column",
// "name": "a"}); the operations are those of java/peer/Tables.java.
func (p JavaPeer) Alter(ctx context.Context, ref Ref, changes ...Args) error {
	a := ref.args()
	a["changes"] = changes
	return p.Call(ctx, "alter", a, nil)
}

// Rename gives the table another name, "database.table".
func (p JavaPeer) Rename(ctx context.Context, ref Ref, to string) error {
	a := ref.args()
	a["to"] = to
	return p.Call(ctx, "rename", a, nil)
}

// Drop removes the table and its files.
func (p JavaPeer) Drop(ctx context.Context, ref Ref) error {
	return p.Call(ctx, "drop", ref.args(), nil)
}

// Truncate removes all rows.
func (p JavaPeer) Truncate(ctx context.Context, ref Ref) error {
	return p.Call(ctx, "truncate", ref.args(), nil)
}

// Write is one foreign write: what Insert, Delete, Update and Compact return,
// to be carried out by Do at once or by Prepare and Commit in two phases.
type Write struct {
	op   string
	args Args
}

// InsertRows appends rows, JSON objects in the texts of Rows.
func InsertRows(rows ...any) Write { return Write{"insert", Args{"rows": jsonRows(rows)}} }

// OverwriteRows replaces the partitions that the spec names (empty: those that
// the rows touch, or everything in a table without partitions).
func OverwriteRows(partition map[string]string, rows ...any) Write {
	if partition == nil {
		partition = map[string]string{}
	}
	return Write{"insert", Args{"overwrite": partition, "rows": jsonRows(rows)}}
}

// DeleteWhere removes the rows that meet all conditions: with deletion vectors
// where the table has them, else by rewriting files.
func DeleteWhere(conds ...Cond) Write { return Write{"delete", Args{"where": conds}} }

// DeleteKeys removes the rows whose key columns equal one of the keys.
func DeleteKeys(columns []string, keys ...[]any) Write {
	return Write{"delete", Args{"key_columns": columns, "keys": keys}}
}

// UpdateWhere sets columns to constants in the rows that meet all conditions.
func UpdateWhere(set map[string]any, conds ...Cond) Write {
	return Write{"update", Args{"set": set, "where": conds}}
}

// UpdateKeys sets columns to constants in the rows with one of the keys.
func UpdateKeys(set map[string]any, columns []string, keys ...[]any) Write {
	return Write{"update", Args{"set": set, "key_columns": columns, "keys": keys}}
}

// Compact is the library's own compaction; minFiles overrides its threshold for
// small files (0: the table's).
func Compact(minFiles int) Write {
	if minFiles == 0 {
		return Write{"compact", Args{}}
	}
	return Write{"compact", Args{"min_file_num": minFiles}}
}

// CompactFull rewrites all files of every partition.
func CompactFull() Write { return Write{"compact", Args{"full": true}} }

// CompactPartition rewrites all files of one partition.
func CompactPartition(partition map[string]string) Write {
	return Write{"compact", Args{"full": true, "partition": partition}}
}

// Recluster is incremental clustering by one column, of what the library picks or, full,
// of everything.
func Recluster(full bool) Write { return Write{"cluster", Args{"full": full}} }

// Written is what a write did.
type Written struct {
	Snapshots   []int64 `json:"snapshots"` // that it made; none when there was nothing to do
	Inserted    int64   `json:"inserted"`
	Deleted     int64   `json:"deleted"`
	Updated     int64   `json:"updated"`
	Tasks       int     `json:"tasks"` // of a compaction
	FilesBefore int     `json:"files_before"`
	FilesAfter  int     `json:"files_after"`
	Base        int64   `json:"base"` // snapshot that a delete or update was planned on
}

func (w Write) request(ref Ref) Args {
	a := ref.args()
	for k, v := range w.args {
		a[k] = v
	}
	return a
}

// Do writes and commits.
func (p JavaPeer) Do(ctx context.Context, ref Ref, w Write) (*Written, error) {
	var r Written
	return &r, p.Call(ctx, w.op, w.request(ref), &r)
}

// Prepared is a write whose files exist and whose commit does not.
type Prepared struct {
	Written
	Handle string `json:"handle"`
	Empty  bool   `json:"empty"` // nothing to commit
	peer   JavaPeer
}

// Prepare carries out the first phase of a write.
func (p JavaPeer) Prepare(ctx context.Context, ref Ref, w Write) (*Prepared, error) {
	a := w.request(ref)
	a["op"] = w.op
	r := Prepared{peer: p}
	return &r, p.Call(ctx, "prepare", a, &r)
}

// Commit publishes a prepared write. A conflict with what others committed in
// between is an error for which IsConflict holds.
func (w *Prepared) Commit(ctx context.Context) (*Written, error) {
	var r Written
	return &r, w.peer.Call(ctx, "commit", Args{"handle": w.Handle}, &r)
}

// Abort deletes the files of a prepared write.
func (w *Prepared) Abort(ctx context.Context) error {
	return w.peer.Call(ctx, "abort", Args{"handle": w.Handle}, nil)
}

// IsConflict tells whether Paimon gave a commit up because of what others
// committed since it was prepared.
func IsConflict(err error) bool {
	var r *RemoteError
	return errors.As(err, &r) && strings.Contains(strings.ToLower(r.Message), "conflict")
}

// Snapshot is a snapshot file; JSON is all of it.
type Snapshot struct {
	ID               int64             `json:"id"`
	SchemaID         int64             `json:"schemaId"`
	CommitUser       string            `json:"commitUser"`
	CommitIdentifier int64             `json:"commitIdentifier"`
	CommitKind       string            `json:"commitKind"`
	TimeMillis       int64             `json:"timeMillis"`
	TotalRecordCount int64             `json:"totalRecordCount"`
	DeltaRecordCount int64             `json:"deltaRecordCount"`
	IndexManifest    string            `json:"indexManifest"`
	Properties       map[string]string `json:"properties"`
	JSON             json.RawMessage   `json:"-"`
}

// Snapshots lists the snapshots there are, ascending.
func (p JavaPeer) Snapshots(ctx context.Context, ref Ref) ([]Snapshot, error) {
	var r struct{ Snapshots []json.RawMessage }
	if err := p.Call(ctx, "snapshots", ref.args(), &r); err != nil {
		return nil, err
	}
	out := make([]Snapshot, len(r.Snapshots))
	for i, raw := range r.Snapshots {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, err
		}
		out[i].JSON = raw
	}
	return out, nil
}

// DataFile is a live data file as Java sees it.
type DataFile struct {
	Partition map[string]string `json:"partition"`
	Bucket    int               `json:"bucket"`
	Name      string            `json:"name"`
	Rows      int64             `json:"rows"`
	Deleted   int64             `json:"deleted"` // rows its deletion vector marks
	Bytes     int64             `json:"bytes"`
	Schema    int64             `json:"schema"`
	Level     int               `json:"level"`
}

// Files lists the live data files.
func (p JavaPeer) Files(ctx context.Context, ref Ref, q Query) ([]DataFile, error) {
	var r struct {
		DataFiles []DataFile `json:"data_files"`
	}
	err := p.Call(ctx, "files", q.args(ref), &r)
	return r.DataFiles, err
}

// Stream returns the rows, as texts, that a streaming reader of Paimon gets from a
// snapshot on; with overwrite those of snapshots that replace rows, too, which it passes
// over by default.
func (p JavaPeer) Stream(ctx context.Context, ref Ref, from int64, overwrite bool) ([]string, error) {
	a := ref.args()
	a["from"], a["overwrite"] = from, overwrite
	var r struct{ Rows []json.RawMessage }
	err := p.Call(ctx, "stream", a, &r)
	var rows []string
	for _, row := range r.Rows {
		rows = append(rows, string(row))
	}
	return rows, err
}
