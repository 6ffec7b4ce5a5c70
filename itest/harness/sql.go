package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// SQLPeer is a judge that also runs statements. In Flink and paimon-rust the
// warehouse is the catalog p: SELECT … FROM p.db.t.
type SQLPeer struct{ Peer }

// SQL runs one statement and returns its rows.
func (p SQLPeer) SQL(ctx context.Context, warehouse, statement string) (*Rows, error) {
	var r Rows
	err := p.Call(ctx, "sql", Args{"warehouse": warehouse, "sql": statement}, &r)
	return &r, err
}

// RustPeer is paimon-rust.
type RustPeer struct{ Peer }

// SQL runs one statement on the warehouse as catalog p.
func (p RustPeer) SQL(ctx context.Context, warehouse, statement string) (*Rows, error) {
	return SQLPeer(p).SQL(ctx, warehouse, statement)
}

// MergeBench is one cell of the merge benchmark: a new table ref of TargetRows
// rows of MergeLoad, and Merges batches of BatchRows.
type MergeBench struct {
	Load            MergeLoad
	Merges          int
	DeletionVectors bool // the table's option; paimon-rust rewrites files all the same
}

// MergeResult is what a peer measured. Times are seconds; the medians leave the
// first, cold merge out.
type MergeResult struct {
	LoadS      float64      `json:"load_s"`
	Merges     [][2]float64 `json:"merges"` // wall, CPU
	MedianS    float64      `json:"median_s"`
	MedianCPUS float64      `json:"median_cpu_s"`
	FinalRows  int64        `json:"final_rows"`
	RSSMB      int64        `json:"rss_mb"`
}

// BenchMerge loads and merges. That the result is right is shown by the table's
// digest, which must equal Load.Expected(Merges).
func (p RustPeer) BenchMerge(ctx context.Context, ref Ref, b MergeBench) (*MergeResult, error) {
	a := ref.args()
	a["seed"], a["target_rows"], a["batch_rows"], a["merges"] = b.Load.Seed, b.Load.TargetRows, b.Load.BatchRows, b.Merges
	a["deletion_vectors"] = b.DeletionVectors
	var r MergeResult
	err := p.Call(ctx, "bench_merge", a, &r)
	return &r, err
}

// SparkPeer is Spark itself.
type SparkPeer struct{ Peer }

// SQL runs one query and returns its rows.
func (p SparkPeer) SQL(ctx context.Context, statement string) (*Rows, error) {
	return SQLPeer(p).SQL(ctx, "", statement)
}

// Run runs statements in order, those behind one that failed too.
func (p SparkPeer) Run(ctx context.Context, statements ...string) ([]SQLAnswer, error) {
	var r struct{ Answers []SQLAnswer }
	if err := p.Call(ctx, "run", Args{"statements": statements}, &r); err != nil {
		return nil, err
	}
	if len(r.Answers) != len(statements) {
		return nil, fmt.Errorf("spark gave %d answers to %d statements", len(r.Answers), len(statements))
	}
	return r.Answers, nil
}

// SQLAnswer is what a statement gave: the rows of a query, in the texts of
// Rows and in the order in which they came, or an error.
type SQLAnswer struct {
	Columns [][2]string       `json:"columns"` // name, Spark's type
	Rows    []json.RawMessage `json:"rows"`    // one array a row
	Error   *SQLError         `json:"error"`
}

// SQLError is why a statement failed; Class is Spark's error condition.
type SQLError struct {
	Class    string `json:"class"`
	Message  string `json:"message"`
	Fragment string `json:"fragment"` // of the statement, at fault; Spark's only
}

// ApplierSQL runs statements in one session of `applier sql` on a warehouse, those
// behind one that failed too.
func ApplierSQL(ctx context.Context, t testing.TB, warehouse string, statements ...string) ([]SQLAnswer, error) {
	t.Helper()
	cmd := exec.CommandContext(ctx, Build(t, "./cmd/applier"), "sql", "--warehouse", warehouse, "--format", "json", "--continue-on-error")
	cmd.Stdin = strings.NewReader(strings.Join(statements, ";\n") + ";\n")
	cmd.Env = append(os.Environ(), "TZ=UTC")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil // a statement failed
	}
	if err != nil {
		return nil, fmt.Errorf("applier sql: %w\n%s", err, stderr.String())
	}
	answers := make([]SQLAnswer, 0, len(statements))
	for d := json.NewDecoder(&stdout); d.More(); {
		var a SQLAnswer
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("reading the answers of applier sql: %w", err)
		}
		answers = append(answers, a)
	}
	if len(answers) != len(statements) {
		return nil, fmt.Errorf("applier sql gave %d answers to %d statements\n%s", len(answers), len(statements), stderr.String())
	}
	return answers, nil
}
