package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// Options are the surroundings of a session.
type Options struct {
	Catalog *catalog.FileSystem
	// Name is what may stand before a database's name; empty is "paimon".
	Name string
	// User is the commit user of the session's snapshots.
	User    string
	Now     func() time.Time
	NewUUID func() string
	// Progress, if not nil, is told of long work.
	Progress func(string)
	// Warn, if not nil, is told what a person should know about a table that a
	// statement has changed, each thing once a session.
	Warn func(string)
}

// Session runs statements one after the other; it belongs to one goroutine. It
// knows the current database, temporary views and settings.
type Session struct {
	o        Options
	database string
	views    map[string]*view
	settings map[string]string
	zone     *time.Location
	warned   map[string]bool
}

// view is a temporary view, by its name in lower case.
type view struct {
	name  string
	query *sqlparse.Query
}

// New returns a session in the database default.
func New(o Options) *Session {
	if o.Name == "" {
		o.Name = "paimon"
	}
	return &Session{o: o, database: catalog.DefaultDatabase, views: map[string]*view{}, settings: map[string]string{}, zone: time.UTC, warned: map[string]bool{}}
}

// Database returns the current database.
func (s *Session) Database() string { return s.database }

// Result is what a statement gives.
type Result struct {
	// Columns and Rows are those of a query or of SHOW, DESCRIBE, EXPLAIN; without
	// columns the statement has none.
	Columns []query.Column
	Rows    []expr.Row
	// Snapshot is the newest snapshot of the table that the statement changed or
	// could have changed, by the table's name as seen from the current database.
	Snapshot map[string]int64
	// Note says to people what was done.
	Note string
}

// run is one statement in execution.
type run struct {
	*Session
	env *expr.Env
	// pinned are the tables that the statement has read: it sees one snapshot of each.
	pinned map[catalog.Name]*pinned
	reads  bool // some table was read by a query
}

// Execute runs a statement. Errors are *expr.Error,
// *sqlparse.Error or those of the storage: see Describe.
func (s *Session) Execute(ctx context.Context, stmt sqlparse.Statement) (*Result, error) {
	r := &run{Session: s, pinned: map[catalog.Name]*pinned{}}
	r.env = &expr.Env{Now: s.o.Now().Truncate(time.Microsecond), Zone: s.zone, User: s.o.User, Catalog: s.o.Name, Database: s.database}
	return r.execute(ctx, stmt)
}

func (r *run) execute(ctx context.Context, stmt sqlparse.Statement) (*Result, error) {
	switch n := stmt.(type) {
	case *sqlparse.QueryStmt:
		return r.query(ctx, n.Query)
	case *sqlparse.Insert, *sqlparse.Delete, *sqlparse.Update, *sqlparse.Merge, *sqlparse.TruncateTable:
		return r.change(ctx, stmt)
	case *sqlparse.Explain:
		return r.explain(ctx, n)
	case *sqlparse.CreateDatabase:
		return r.createDatabase(ctx, n)
	case *sqlparse.DropDatabase:
		return r.dropDatabase(ctx, n)
	case *sqlparse.CreateTable:
		return r.createTable(ctx, n)
	case *sqlparse.DropTable:
		return r.dropTable(ctx, n)
	case *sqlparse.AlterTable:
		return r.alterTable(ctx, n)
	case *sqlparse.CreateView:
		return r.createView(ctx, n)
	case *sqlparse.Show:
		return r.show(ctx, n)
	case *sqlparse.Describe:
		return r.describe(ctx, n)
	case *sqlparse.Use:
		return r.use(ctx, n)
	case *sqlparse.Set:
		return r.set(n)
	case *sqlparse.Reset:
		return r.reset(n)
	}
	return nil, fail(stmt.Position(), sqlparse.ClassUnsupported, "this statement is not supported here; tables are maintained with the commands compact, expire and orphans")
}

func (r *run) query(ctx context.Context, q *sqlparse.Query) (*Result, error) {
	for try := 0; ; try++ {
		p, err := query.Compile(ctx, q, r, r.env)
		if err != nil {
			return nil, err
		}
		rows, err := p.Rows(ctx)
		if errors.Is(err, objstore.ErrNotExist) && try < 3 {
			clear(r.pinned) // a snapshot expired while it was read
			continue
		}
		return &Result{Columns: p.Columns(), Rows: rows}, err
	}
}

// table resolves the name of a table: [[catalog.]database.]table.
func (s *Session) table(n sqlparse.Name) (catalog.Name, error) {
	parts := n.Strings()
	switch {
	case len(parts) == 1:
		return catalog.Name{Database: s.database, Table: parts[0]}, nil
	case len(parts) == 2:
		return catalog.Name{Database: parts[0], Table: parts[1]}, nil
	case len(parts) == 3 && strings.EqualFold(parts[0], s.o.Name):
		return catalog.Name{Database: parts[1], Table: parts[2]}, nil
	}
	return catalog.Name{}, fail(n.Position(), ClassNoTable, "there is no table %s: write DATABASE.TABLE", n)
}

// databaseName resolves the name of a database.
func (s *Session) databaseName(n sqlparse.Name) (string, error) {
	parts := n.Strings()
	if len(parts) == 2 && strings.EqualFold(parts[0], s.o.Name) {
		parts = parts[1:]
	}
	if len(parts) != 1 {
		return "", fail(n.Position(), ClassNoDatabase, "there is no database %s", n)
	}
	return parts[0], nil
}

// label is a table's name as seen from the current database.
func (s *Session) label(n catalog.Name) string {
	if n.Database == s.database {
		return n.Table
	}
	return n.String()
}

// open opens a table that a statement names.
func (r *run) open(ctx context.Context, n sqlparse.Name, a paimon.Access) (catalog.Name, *paimon.Table, error) {
	name, err := r.table(n)
	if err != nil {
		return name, nil, err
	}
	t, err := r.o.Catalog.Open(ctx, name, a)
	if err != nil {
		return name, nil, r.notFound(ctx, n, name, err)
	}
	return name, t, nil
}

// snapshot returns a result with the newest snapshot of a table.
func (r *run) snapshot(ctx context.Context, name catalog.Name, t *paimon.Table, note string) (*Result, error) {
	id, err := paimon.LatestSnapshotID(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return nil, err
	}
	res := &Result{Note: note}
	if id > 0 {
		res.Snapshot = map[string]int64{r.label(name): id}
	}
	return res, nil
}

func (r *run) progress(format string, args ...any) {
	if r.o.Progress != nil {
		r.o.Progress(fmt.Sprintf(format, args...))
	}
}
