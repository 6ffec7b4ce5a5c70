// Command stack runs what the tutorial mirrors from and to on this machine: PostgreSQL
// with a load on it, Debezium in Kafka Connect, Kafka, an S3 server, Prometheus. It is
// docker-compose.yml without Docker, from the same files. All of it ends with it.
//
//	go run ./itest/stack          # make stack
//
// It listens on a port of its own for what the tutorial breaks:
//
//	POST /PART/stop, POST /PART/start    kafka, connect, postgres, load or s3; stop kills
//	POST /topics/NAME                    the body is produced, a line a record
//	DELETE /topics/NAME
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"applier/itest/harness"
)

func main() {
	dir := flag.String("dir", filepath.Join("bin", "stack"), "folder for everything; it is removed first")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

// topic is where Debezium writes the changes of the table orders.
const topic = "shop.public.orders"

// stack is what runs.
type stack struct {
	dir     string
	kafka   *harness.Cluster
	pg      *harness.PostgresServer
	s3      *harness.S3Server
	connect *harness.ConnectWorker
	prom    *harness.PromServer
	load    *harness.Process
	address string // of the control server
	listen  string // that the applier of the tutorial is to have
	admin   string
	second  string // the admin port of a second one
}

func run(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the folder of an earlier run: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	t := &harness.Outside{Dir: dir, Ctx: ctx}
	defer t.End()
	s := &stack{dir: dir}
	if err := harness.Attempt(func() error { return s.start(t) }); err != nil {
		return err
	}
	server := &http.Server{Addr: s.address, Handler: s.control(t), ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	defer server.Close()
	if err := s.writeEnv(); err != nil {
		return err
	}
	fmt.Println("Everything runs. In another terminal, in this folder:  . bin/stack/env   (docs/tutorial.md goes on from here). Ctrl-C ends all.")
	select {
	case <-ctx.Done():
		fmt.Println("Ending.")
		return nil
	case err := <-failed:
		return err
	}
}

// start starts the parts, and says so.
func (s *stack) start(t *harness.Outside) error {
	port := func() string { return fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)) }
	s.address, s.listen, s.admin, s.second = port(), port(), port(), port()
	say := func(name, where string) { fmt.Printf("%-12s %s\n", name, where) }

	s.s3 = harness.S3(t, "lake")
	if err := os.Mkdir(filepath.Join(s.s3.Root, "lake", "warehouse"), 0o755); err != nil {
		return err
	}
	say("S3", s.s3.Endpoint+", its files are in "+filepath.Join(s.s3.Root, "lake"))
	s.pg = harness.Postgres(t)
	if err := s.fill(t); err != nil {
		return err
	}
	say("PostgreSQL", fmt.Sprintf("127.0.0.1:%d, with a load of 20 transactions a second on the table orders", s.pg.Port))
	s.kafka = harness.Kafka(t, harness.KafkaOptions{})
	s.kafka.CreateTopic(t, harness.Topic{Name: topic})
	say("Kafka", s.kafka.Addrs()[0])
	settings, err := s.connector()
	if err != nil {
		return err
	}
	s.connect = harness.Connect(t, s.kafka, "shop", settings)
	say("Connect", "with Debezium, on PostgreSQL's orders")
	consoles, err := console("metrics/dashboard.json", s.dir)
	if err != nil {
		return err
	}
	rules, err := filepath.Abs("metrics/alerts.yml")
	if err != nil {
		return err
	}
	s.prom = harness.Prometheus(t, []string{s.listen}, []string{rules}, "--web.console.templates="+consoles)
	say("Prometheus", s.prom.URL+"/consoles/applier.html is the dashboard, /alerts the alerts")
	return s.startLoad(t)
}

// fill makes the table of docker-compose.yml, with rows.
func (s *stack) fill(t *harness.Outside) error {
	sql, err := os.ReadFile("docs/compose/postgres.sql")
	if err != nil {
		return fmt.Errorf("reading the table (stack runs in the root of the tree): %w", err)
	}
	s.pg.MustRun(t, string(sql)+"INSERT INTO orders SELECT i, i % 500, i * 0.37, 'here from the start' FROM generate_series(1, 5000) i;")
	return nil
}

// startLoad starts the load of docker-compose.yml. It goes on when PostgreSQL comes back.
func (s *stack) startLoad(t *harness.Outside) error {
	script := fmt.Sprintf("while :; do %s -n -h 127.0.0.1 -p %d -U postgres -f docs/compose/load.sql -R 20 -T 86400 postgres; sleep 1; done", s.pg.Program("pgbench"), s.pg.Port)
	var err error
	s.load, err = harness.Start(harness.Spec{Name: "the load", Path: "/bin/sh", Args: []string{"-c", script}, Log: filepath.Join(s.dir, "load.log")})
	if err == nil {
		t.Cleanup(s.load.Kill)
	}
	return err
}

// connector is the connector of docker-compose.yml, at this machine's addresses.
func (s *stack) connector() (map[string]string, error) {
	text, err := os.ReadFile("docs/compose/connector.json")
	if err != nil {
		return nil, err
	}
	var settings map[string]string
	if err := json.Unmarshal(text, &settings); err != nil {
		return nil, fmt.Errorf("reading docs/compose/connector.json: %w", err)
	}
	for k, v := range map[string]string{
		"database.hostname": "127.0.0.1", "database.port": fmt.Sprint(s.pg.Port), "database.user": "postgres", "database.password": "none", "database.dbname": "postgres",
		"retriable.restart.connector.wait.ms": "1000",
	} {
		settings[k] = v
	}
	return settings, nil
}

// writeEnv writes what a shell needs to find the parts.
func (s *stack) writeEnv() error {
	var b strings.Builder
	for _, v := range [][2]string{
		{"STACK", "http://" + s.address},
		{"STACK_DIR", s.dir},
		{"KAFKA", s.kafka.Addrs()[0]},
		{"S3_ENDPOINT", s.s3.Endpoint},
		{"S3_ACCESS_KEY", harness.S3User},
		{"S3_SECRET_KEY", harness.S3Secret},
		{"S3_FILES", filepath.Join(s.s3.Root, "lake")},
		{"PROMETHEUS", s.prom.URL},
		{"APPLIER_LISTEN", s.listen},
		{"APPLIER_ADMIN", s.admin},
		{"APPLIER_ADMIN2", s.second},
		{"PGHOST", "127.0.0.1"},
		{"PGPORT", fmt.Sprint(s.pg.Port)},
		{"PGUSER", "postgres"},
		{"PGDATABASE", "postgres"},
	} {
		fmt.Fprintf(&b, "export %s='%s'\n", v[0], v[1])
	}
	b.WriteString("export PATH=\"" + filepath.Dir(s.dir) + ":$PATH\"\n")
	return os.WriteFile(filepath.Join(s.dir, "env"), []byte(b.String()), 0o600)
}
