//go:build itestfull

package itest

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// realPipeline is PostgreSQL, Debezium in Kafka Connect, Kafka, and the daemon on S3.
type realPipeline struct {
	*rig
	pg      *harness.PostgresServer
	connect *harness.ConnectWorker
	daemon  *harness.Process
	load    *pgLoad
	marks   int
	within  time.Duration // of waits that grow with the tables
}

var pgNames = []string{"accounts", "docs", "lines", "events"}

// A key change of docs needs the old row, in order; a truncate of events has its place
// by order_by, whatever partition it is in.
var pgPartitions = map[string]int32{"accounts": 3, "docs": 1, "lines": 1, "events": 2}

// inOrder is what docs/formats.md recommends for tables with values that are not sent:
// what Connect sends again, after it was killed, is late and is dropped. An update of
// a row that is deleted by now would lack them.
const inOrder = "create: { types: { lsn: BIGINT } }\ncolumns: { add: { lsn: source.lsn } }\norder_by: { by: [lsn], remember_deletes: 7d }"

func newRealPipeline(t *testing.T, rows int) *realPipeline {
	t.Helper()
	pipes := []pipe{
		{Name: "accounts", Key: "[id]", More: "create: {}"},
		{Name: "docs", Key: "[id]", More: inOrder},
		{Name: "lines", Key: "[ord, line]", More: "create: {}"},
		{Name: "events", Key: "[id]", More: inOrder + "\non_truncate: apply"},
	}
	kafka := harness.Kafka(t, harness.KafkaOptions{}) // it is killed
	for i := range pipes {
		p := &pipes[i]
		p.Topic, p.Table, p.Format = "shop.public."+p.Name, "shop."+p.Name, "debezium-json"
		p.More += "\nbatch: { interval: 1s, idle_flush: 200ms }\nschema: { evolve: add_and_widen }"
		kafka.CreateTopic(t, harness.Topic{Name: p.Topic, Partitions: pgPartitions[p.Name]})
	}
	r := &realPipeline{rig: newRig(t, "", pipes...), pg: harness.Postgres(t), within: patience * time.Duration(1+rows/100_000)}
	r.kafka = kafka
	r.onS3(harness.S3(t, "lake"), "")
	r.pg.MustRun(t, pgTables+fmt.Sprintf(pgRows, rows))
	r.load = &pgLoad{pg: r.pg, rows: rows}
	return r
}

// startConnect starts the connector, which reads the tables as they are and then what
// happens to them.
func (r *realPipeline) startConnect() {
	r.t.Helper()
	r.connect = harness.Connect(r.t, r.kafka, "shop", map[string]string{
		"connector.class":    "io.debezium.connector.postgresql.PostgresConnector",
		"database.hostname":  "127.0.0.1",
		"database.port":      fmt.Sprint(r.pg.Port),
		"database.user":      "postgres",
		"database.password":  "none",
		"database.dbname":    "postgres",
		"plugin.name":        "pgoutput",
		"topic.prefix":       "shop",
		"table.include.list": "public.accounts,public.docs,public.lines,public.events",
		"skipped.operations": "none", // or it would not tell of TRUNCATE
		// PostgreSQL comes back at once.
		"retriable.restart.connector.wait.ms": "1000",
	})
}

// total is the number of records in a topic.
func (r *realPipeline) total(topic string) (n int64) {
	for _, end := range r.kafka.EndOffsets(r.t, topic) {
		n += end
	}
	return n
}

// flowing waits until the load, Debezium and the daemon have all done something
// since: what is killed next is in the middle of it.
func (r *realPipeline) flowing() {
	r.t.Helper()
	done, sent, id := r.load.done.Load(), r.total("shop.public.docs"), r.lastSnapshot("docs")
	harness.Until(r.t, r.within, "changes to flow", func() (bool, error) {
		for name, s := range r.pipelines() {
			if s.Halt != nil && s.Halt.Code != "K-UNAVAILABLE" { // it passes when the broker is back
				return false, fmt.Errorf("pipeline %s is halted: %s %s", name, s.Halt.Code, s.Halt.Message)
			}
		}
		return r.load.done.Load() > done && r.total("shop.public.docs") > sent && r.lastSnapshot("docs") > id, nil
	})
}

// streaming waits until the connector has kept a place after its snapshot. Killed before
// that it begins anew, and never tells of rows that were deleted in between.
func (r *realPipeline) streaming() {
	r.t.Helper()
	now := *r.pg.Query(r.t, "SELECT pg_current_wal_lsn()")[0][0]
	harness.Until(r.t, r.within, "the connector to keep a place", func() (bool, error) {
		rows, err := r.pg.TryQuery(r.t.Context(), "SELECT confirmed_flush_lsn > '"+now+"' FROM pg_replication_slots")
		return err == nil && len(rows) == 1 && *rows[0][0] == "t", err
	})
}

// pipelines is the daemon's status; none while it does not answer.
func (r *realPipeline) pipelines() map[string]pipelineStatus {
	all, _ := r.status()
	return all
}

func (r *realPipeline) lastSnapshot(table string) int64 {
	ids := snapshotIDs(harness.Ref{Warehouse: r.Warehouse, Table: "shop." + table})
	if len(ids) == 0 {
		return 0
	}
	return ids[len(ids)-1]
}

// mark makes a last change in every table and waits until all are in Kafka.
func (r *realPipeline) mark() {
	r.t.Helper()
	r.marks++
	mark := fmt.Sprintf("mark-%d-", r.marks)
	starts := map[string]map[int32]kgo.Offset{}
	for _, p := range r.pipes {
		starts[p.Topic] = map[int32]kgo.Offset{}
		for part, end := range r.kafka.EndOffsets(r.t, p.Topic) {
			starts[p.Topic][part] = kgo.NewOffset().At(end)
		}
	}
	r.pg.MustRun(r.t, fmt.Sprintf("UPDATE accounts SET owner = '%[1]s' WHERE id = 0; UPDATE docs SET title = '%[1]s' WHERE id = 0; UPDATE lines SET note = '%[1]s' WHERE ord = 0; UPDATE events SET body = '%[1]s' WHERE id = 0", mark))
	cl := r.kafka.Client(r.t, kgo.ConsumePartitions(starts))
	ctx, cancel := context.WithTimeout(r.t.Context(), r.within)
	defer cancel()
	for seen := map[string]bool{}; len(seen) < len(r.pipes); {
		fetches := cl.PollFetches(ctx)
		require.NoError(r.t, fetches.Err(), "waiting for %q in every topic, found in %v; connector: %v", mark, seen, r.connect.Running(r.t.Context()))
		fetches.EachRecord(func(rec *kgo.Record) {
			if bytes.Contains(rec.Value, []byte(mark)) {
				seen[rec.Topic] = true
			}
		})
	}
}

// same waits until all is applied and fails unless every judge reads in every table,
// from the files of the S3 server, what PostgreSQL has.
func (r *realPipeline) same() {
	r.t.Helper()
	r.mark()
	r.waitApplied(r.daemon)
	for _, name := range pgNames {
		var columns []string
		for _, c := range pgSchema[name] {
			columns = append(columns, c.name)
		}
		want := pgTexts(r.t, r.pg, name)
		r.t.Logf("%s: %d rows, %d records", name, len(want), r.total("shop.public."+name))
		ref := harness.Ref{Warehouse: r.Warehouse, Table: "shop." + name}
		harness.SameRows(r.t.Context(), r.t, want, ref, harness.Query{Columns: columns}, readers(r.t)...)
	}
}

// TestPipeline_PostgresToPaimonOnS3: a snapshot and a load of transactions go from
// PostgreSQL through Debezium, Connect, Kafka and the daemon into tables on S3, while
// each of them is killed, columns are added and made wider, and a table is emptied. At
// the end every table is PostgreSQL's, value for value.
func TestPipeline_PostgresToPaimonOnS3(t *testing.T) {
	t.Parallel()
	rows := intVariable(t, "PIPELINE_ROWS", 20_000)
	r := newRealPipeline(t, rows)

	stop := r.load.run(t, 1) // while the snapshot is taken
	r.startConnect()
	r.daemon = r.start()
	r.flowing()
	r.daemon.Kill()
	r.pg.MustRun(t, "ALTER TABLE accounts ADD COLUMN remark text; ALTER TABLE docs ADD COLUMN more text; ALTER TABLE docs ALTER more SET STORAGE EXTERNAL; ALTER TABLE lines ADD COLUMN price real")
	r.daemon = r.start()
	r.flowing()
	stop()

	r.pg.MustRun(t, `UPDATE accounts SET remark = 'r' || id WHERE id % 50 = 0;
UPDATE docs SET more = repeat(md5(id::text), 70) WHERE id % 6 = 0;
UPDATE lines SET price = ord / 3.0 WHERE line = 1 AND ord % 7 = 0;`)
	stop = r.load.run(t, 2)
	r.streaming()
	r.load.truncates.Store(true)
	r.flowing()
	r.connect.Kill()
	r.pg.MustRun(t, `ALTER TABLE accounts ALTER branch TYPE bigint, ALTER flags TYPE int, ALTER balance TYPE numeric(18,4), ALTER rate TYPE double precision, ALTER seen TYPE timestamp(6);
ALTER TABLE docs ALTER version TYPE bigint; ALTER TABLE lines ALTER qty TYPE numeric(14,5), ALTER price TYPE double precision`)
	r.connect.Start(t)
	r.flowing()
	stop()

	r.pg.MustRun(t, `UPDATE accounts SET branch = 5000000000 + id, flags = flags + 1000000, balance = balance / 3 + 9999999999, rate = rate * 1e100, seen = seen + interval '1 microsecond' WHERE id % 41 = 0;
UPDATE docs SET version = 5000000000 + id WHERE id % 9 = 0; UPDATE lines SET qty = qty / 7 + 100000000, price = price / 3 WHERE line = 1`)
	stop = r.load.run(t, 3)
	r.flowing()
	r.pg.Kill()
	r.pg.Start(t)
	r.flowing()
	r.kafka.KillNode(0)
	require.NoError(t, r.kafka.StartNode(0))
	r.flowing()
	stop()

	r.same()
	r.seen()
	harness.MustStop(t, r.daemon)
	r.proven()
}

// seen fails unless the records hold what the test is about.
func (r *realPipeline) seen() {
	r.t.Helper()
	starts, left := map[string]map[int32]kgo.Offset{}, map[string]map[int32]int64{}
	for _, p := range r.pipes {
		starts[p.Topic] = map[int32]kgo.Offset{}
		left[p.Topic] = r.kafka.EndOffsets(r.t, p.Topic)
		for part := range left[p.Topic] {
			starts[p.Topic][part] = kgo.NewOffset().AtStart()
		}
	}
	found := map[string]int{}
	cl := r.kafka.Client(r.t, kgo.ConsumePartitions(starts))
	ctx, cancel := context.WithTimeout(r.t.Context(), r.within)
	defer cancel()
	open := 0
	for _, ends := range left {
		for _, end := range ends {
			open += int(min(end, 1)) // a partition may be empty
		}
	}
	for open > 0 {
		fetches := cl.PollFetches(ctx)
		require.NoError(r.t, fetches.Err())
		fetches.EachRecord(func(rec *kgo.Record) {
			for what, text := range map[string]string{
				"snapshot reads": `"op":"r"`, "inserts": `"op":"c"`, "updates": `"op":"u"`, "deletes": `"op":"d"`, "truncates": `"op":"t"`, "values that are not sent": `"__debezium_unavailable_value"`,
			} {
				if bytes.Contains(rec.Value, []byte(text)) {
					found[what]++
				}
			}
			for _, h := range rec.Headers {
				if h.Key == "__debezium.oldkey" {
					found["key changes"]++
					if bytes.Contains(rec.Value, []byte(`"__debezium_unavailable_value"`)) {
						found["key changes without all values"]++
					}
				}
			}
			if rec.Offset == left[rec.Topic][rec.Partition]-1 {
				open--
			}
		})
	}
	r.t.Logf("records: %v", found)
	require.Len(r.t, found, 8, "each kind of record is in the topics")
}
