package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"applier/merger/sql"
	"applier/merger/sqlparse"
	"applier/storage/catalog"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func sqlCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sql",
		Short: "Run SQL statements on the tables of a warehouse",
		Long: `Runs statements in Spark's dialect: SELECT, INSERT, UPDATE, DELETE, MERGE INTO, CREATE,
ALTER, DROP, SHOW, DESCRIBE, EXPLAIN; docs/sql.md lists all with examples. A statement
that changes a table makes one snapshot of it, or none if it fails. Without -e and -f
it is a prompt, or runs what comes on standard input.

--format json prints one JSON object a statement. The exit code is 1 if one failed.`,
		Example: "  applier sql --warehouse /data/warehouse\n  applier sql -c applier.yml -e \"DELETE FROM sales.orders WHERE price < 0\"\n  applier sql --warehouse /data/warehouse -f changes.sql --format json",
		Args:    cobra.NoArgs,
	}
	flags := addWarehouseFlags(c)
	text := c.Flags().StringP("execute", "e", "", "statements to run, parted by semicolons")
	file := c.Flags().StringP("file", "f", "", "file with statements to run; - is standard input")
	format := c.Flags().String("format", "table", "table, json or csv")
	goOn := c.Flags().Bool("continue-on-error", false, "go on after a statement that failed")
	database := c.Flags().String("database", catalog.DefaultDatabase, "current database at the beginning")
	c.RunE = func(c *cobra.Command, _ []string) error {
		warehouse, err := flags.open()
		if err != nil {
			return err
		}
		progress := newProgressLine(os.Stderr)
		session, err := newSQLSession(c.Context(), warehouse, *database, progress)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(c.OutOrStdout())
		p, err := newResultPrinter(out, c.ErrOrStderr(), *format)
		if err != nil {
			return err
		}
		r := &sqlRunner{session: session, out: out, printer: p, goOn: *goOn, progress: progress}
		switch {
		case *text != "" && *file != "":
			return usageError("give one of -e and -f")
		case *text != "":
			return r.script(c.Context(), *text)
		case *file != "" && *file != "-":
			b, err := os.ReadFile(*file)
			if err != nil {
				return usageError("-f: %v", err)
			}
			return r.script(c.Context(), string(b))
		case *file == "" && term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())):
			return r.prompt(context.WithoutCancel(c.Context()))
		}
		b, err := io.ReadAll(c.InOrStdin())
		if err != nil {
			return err
		}
		return r.script(c.Context(), string(b))
	}
	return c
}

// newSQLSession begins a session on a warehouse; a new one gets the database default.
func newSQLSession(ctx context.Context, c *catalog.FileSystem, database string, progress *progressLine) (*sql.Session, error) {
	if list, err := c.Databases(ctx); err != nil {
		return nil, err
	} else if len(list) == 0 {
		if err := c.CreateDatabase(ctx, catalog.DefaultDatabase); err != nil && !errors.Is(err, catalog.ErrDatabaseExists) {
			return nil, err
		}
	}
	name := "applier-sql"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	s := sql.New(sql.Options{
		Catalog: c, User: name + "-" + uuid.NewString(), Now: time.Now, NewUUID: uuid.NewString,
		Progress: progress.report,
		Warn:     func(text string) { fmt.Fprintln(os.Stderr, "warning: "+text) },
	})
	if database != catalog.DefaultDatabase {
		stmt := &sqlparse.Use{Name: sqlparse.Name{Parts: []sqlparse.Ident{{Name: database}}}}
		if _, err := s.Execute(context.Background(), stmt); err != nil {
			return nil, usageError("--database: %s", sql.Describe(err).Message)
		}
	}
	return s, nil
}

// progressEvery is how often long statements say how far they are.
const progressEvery = 2 * time.Second

// progressLine shows how far a statement is, on one line of a terminal that is gone when
// the statement ends. The first report is held back, for short statements need none.
type progressLine struct {
	w     io.Writer // nil shows nothing
	now   func() time.Time
	last  time.Time
	shown bool
}

// newProgressLine shows progress on a terminal only.
func newProgressLine(f *os.File) *progressLine {
	p := &progressLine{now: time.Now}
	if term.IsTerminal(int(f.Fd())) {
		p.w = f
	}
	return p
}

// begin tells that a statement begins.
func (p *progressLine) begin() { p.last = p.now() }

// report shows a text, unless another one was shown a moment ago.
func (p *progressLine) report(text string) {
	if now := p.now(); p.w != nil && now.Sub(p.last) >= progressEvery {
		p.last, p.shown = now, true
		fmt.Fprint(p.w, "\r\x1b[K… "+text)
	}
}

// end takes the line away.
func (p *progressLine) end() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// sqlRunner runs statements and prints what they give.
type sqlRunner struct {
	session *sql.Session
	out     *bufio.Writer
	printer resultPrinter
	goOn    bool
	// progress is that of the session's statements.
	progress *progressLine
}

// errStatement: a statement failed, and said so already.
var errStatement = errors.New("a statement failed")

// script runs statements up to the first that fails, or all.
func (r *sqlRunner) script(ctx context.Context, text string) error {
	failed := false
	for _, p := range sqlparse.Split(text) {
		if err := r.statement(ctx, text, p); err != nil {
			failed = true
			if !r.goOn || ctx.Err() != nil {
				break
			}
		}
	}
	if err := r.out.Flush(); err != nil {
		return err
	}
	if failed {
		return exitError{exitFailed, errStatement}
	}
	return nil
}

// statement runs one statement of a text and prints its result or its error.
func (r *sqlRunner) statement(ctx context.Context, text string, p sqlparse.Piece) error {
	var res *sql.Result
	stmt, err := p.Parse()
	if err == nil {
		r.progress.begin()
		res, err = r.session.Execute(ctx, stmt)
		r.progress.end()
	}
	r.printer.print(p.Text(), text, res, err)
	if e := r.out.Flush(); e != nil {
		return e
	}
	return err
}
