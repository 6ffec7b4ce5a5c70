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
	Class   string `json:"class"`
	Message string `json:"message"`
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
