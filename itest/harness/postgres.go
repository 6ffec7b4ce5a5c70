package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// PostgresServer is a real PostgreSQL with logical decoding, on a folder and a port
// that stay the same when it is started again.
type PostgresServer struct {
	Port    int
	bin     string
	dir     string
	uid     int
	process *Process
}

// Postgres makes a new server and starts it; it ends with the test. PostgreSQL does
// not run as root: then it runs as Debian's user postgres.
func Postgres(t testing.TB) *PostgresServer {
	t.Helper()
	p, err := fetch("postgres")
	if err != nil {
		t.Fatal(err)
	}
	s := &PostgresServer{Port: FreePort(t), bin: p["bin"]}
	if os.Getuid() == 0 {
		if s.uid, err = userID("postgres"); err != nil {
			t.Fatal(err)
		}
	}
	// Not t.TempDir: only its owner gets into that.
	if s.dir, err = os.MkdirTemp("", "applier-postgres-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	if s.uid != 0 {
		if err := os.Chown(s.dir, s.uid, s.uid); err != nil {
			t.Fatal(err)
		}
	}
	s.initialize(t)
	s.Start(t)
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("last lines of PostgreSQL:\n%s", s.process.Output.Tail(20))
		}
	})
	return s
}

func userID(name string) (int, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("looking for the user of PostgreSQL: %w", err)
	}
	return strconv.Atoi(u.Uid)
}

func (s *PostgresServer) initialize(t testing.TB) {
	t.Helper()
	args := []string{"-D", filepath.Join(s.dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"}
	p, err := Start(Spec{Name: "initdb", Path: filepath.Join(s.bin, "initdb"), Args: args, Dir: s.dir, UID: s.uid})
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Wait(t.Context())
	if err != nil || code != 0 {
		t.Fatalf("initdb: code %d, %v\n%s", code, err, p.Output.String())
	}
}

// Start starts the server, again if need be, and waits until it takes queries.
func (s *PostgresServer) Start(t testing.TB) {
	t.Helper()
	Until(t, readyTimeout, "PostgreSQL to take queries", func() (bool, error) {
		if s.process == nil || s.process.Exited() {
			// The children of a server that was killed hold its memory for a moment more.
			if s.process != nil && !s.killed() && !strings.Contains(s.process.Output.String(), "still in use") {
				return false, fmt.Errorf("it ended:\n%s", s.process.Output.Tail(20))
			}
			return false, s.launch()
		}
		_, err := s.TryQuery(t.Context(), "SELECT 1")
		return err == nil, nil
	})
}

// killed tells whether the server's end was our doing.
func (s *PostgresServer) killed() bool {
	code, err := s.process.Wait(context.Background())
	return err == nil && code == -1
}

func (s *PostgresServer) launch() error {
	args := []string{"-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.Port), "-c", "unix_socket_directories="}
	for _, set := range []string{
		"listen_addresses=127.0.0.1", "wal_level=logical", "timezone=UTC", "max_wal_size=4GB",
		"fsync=off", // it is killed, the machine is not
	} {
		args = append(args, "-c", set)
	}
	var err error
	s.process, err = Start(Spec{Name: "PostgreSQL", Path: filepath.Join(s.bin, "postgres"), Args: args, Dir: s.dir, UID: s.uid})
	return err
}

// Program returns the path of one of PostgreSQL's programs, such as pgbench.
func (s *PostgresServer) Program(name string) string { return filepath.Join(s.bin, name) }

// Kill ends the server with SIGKILL; its sessions end with it.
func (s *PostgresServer) Kill() {
	if s.process != nil {
		s.process.Kill()
	}
}

func (s *PostgresServer) psql(ctx context.Context, args ...string) *exec.Cmd {
	all := []string{"-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-U", "postgres", "-d", "postgres", "-X", "-q", "-v", "ON_ERROR_STOP=1"}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "psql"), append(all, args...)...)
	cmd.Env = append(os.Environ(), "PGCONNECT_TIMEOUT=5", "PGCLIENTENCODING=UTF8", "PGTZ=UTC")
	cmd.SysProcAttr = childAttr(0)
	return cmd
}

// Run runs a script of SQL statements in one session, to its first error.
func (s *PostgresServer) Run(ctx context.Context, script string) error {
	cmd := s.psql(ctx, "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := spawn()(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("psql: %w\n%s", err, stderr.String())
	}
	return nil
}

// MustRun is Run, and fails the test on an error.
func (s *PostgresServer) MustRun(t testing.TB, script string) {
	t.Helper()
	if err := s.Run(t.Context(), script); err != nil {
		t.Fatal(err)
	}
}

// TryQuery returns the rows of a query. A nil cell is NULL.
func (s *PostgresServer) TryQuery(ctx context.Context, query string) ([][]*string, error) {
	var rows [][]*string
	err := s.each(ctx, query, func(row []*string) { rows = append(rows, row) })
	return rows, err
}

// Query is TryQuery, and fails the test on an error.
func (s *PostgresServer) Query(t testing.TB, query string) [][]*string {
	t.Helper()
	rows, err := s.TryQuery(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (s *PostgresServer) each(ctx context.Context, query string, f func([]*string)) error {
	cmd := s.psql(ctx, "-c", "COPY ("+query+") TO STDOUT")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = spawn()(cmd.Start)
	}
	if err != nil {
		return fmt.Errorf("psql: %w", err)
	}
	read := readCopy(out, f)
	if read != nil {
		_, _ = io.Copy(io.Discard, out) // or psql would wait for its reader
	}
	if err := errors.Join(cmd.Wait(), read); err != nil {
		return fmt.Errorf("psql: %w\n%s", err, stderr.String())
	}
	return nil
}

// readCopy reads COPY's text format: a line a row, tabs between cells, C's escapes.
func readCopy(in io.Reader, f func([]*string)) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading rows of COPY: %w", err)
		}
		var row []*string
		for _, cell := range strings.Split(line[:len(line)-1], "\t") {
			if cell == `\N` {
				row = append(row, nil)
				continue
			}
			text := copyEscapes.Replace(cell)
			row = append(row, &text)
		}
		f(row)
	}
}

var copyEscapes = strings.NewReplacer(`\\`, `\`, `\b`, "\b", `\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\v`, "\v")
