//go:build itestfull

package itest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/types"
)

// The tables of the source. docs has values out of line and the default replica
// identity, so that Debezium sends its placeholder; lines has both and tells the
// whole row before; accounts is pgbench's, with the common types; events is emptied
// now and then. Row 0 of each is nobody's but the test's.
const pgTables = `
CREATE TABLE accounts (id bigint PRIMARY KEY, branch int, flags smallint, balance numeric(12,2), rate real, owner varchar(60), active boolean,
  since date, changed timestamptz, seen timestamp(3));
CREATE TABLE docs (id bigint PRIMARY KEY, title text, body text, data bytea, meta jsonb, tags text[], u uuid, score double precision, n numeric, version int);
ALTER TABLE docs ALTER body SET STORAGE EXTERNAL, ALTER data SET STORAGE EXTERNAL;
CREATE TABLE lines (ord bigint, line int, qty numeric(10,3), item char(8), note text, PRIMARY KEY (ord, line));
ALTER TABLE lines ALTER note SET STORAGE EXTERNAL;
ALTER TABLE lines REPLICA IDENTITY FULL;
CREATE TABLE events (id bigint PRIMARY KEY, kind int, body text);
ALTER TABLE events ALTER body SET STORAGE EXTERNAL;
INSERT INTO accounts (id) VALUES (0);
INSERT INTO events (id) VALUES (0);
INSERT INTO docs (id) VALUES (0);
INSERT INTO lines (ord, line) VALUES (0, 0);
-- Waits until the connector has told that it is done with most, or for a second: what
-- it is told nothing of (rewritten tables) it cannot be done with before the next change.
CREATE FUNCTION room() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  FOR i IN 1..20 LOOP
    EXIT WHEN (SELECT max(pg_current_wal_lsn() - confirmed_flush_lsn) < 700000 FROM pg_replication_slots);
    PERFORM pg_sleep(0.05);
  END LOOP;
END $$;
`

// pgRows fills the tables: so many accounts, a tenth of that docs and events, a fifth lines.
const pgRows = `
INSERT INTO accounts SELECT i, i %% 100, (i %% 65536 - 32768)::smallint, i * 37 %% 1000000000 / 100.0 - 1000000, ((i %% 1000) / 7.0)::real,
  CASE WHEN i %% 17 > 0 THEN E'o''wner "\\ \t\r\n é 漢 😀 ' || md5(i::text) END, i %% 3 = 0, date '1950-01-01' + (i %% 30000)::int,
  timestamptz '2024-03-31 00:59:59.123456+00' + i * interval '1.001001 seconds', timestamp '1969-12-31 23:50:00.001' + i * interval '0.777 seconds'
  FROM generate_series(1, %[1]d) i;
INSERT INTO docs SELECT i, 'title ' || i, CASE i %% 4 WHEN 0 THEN repeat(md5(i::text), 90) WHEN 1 THEN '' END, CASE i %% 3 WHEN 0 THEN decode(repeat(md5(i::text), 80), 'hex') WHEN 1 THEN '' END,
  jsonb_build_object('i', i, 'x', repeat('y', (i %% 50)::int)), CASE WHEN i %% 5 > 0 THEN ARRAY['a', i::text, NULL, 'b "c"'] END, md5(i::text)::uuid,
  sqrt(i), i / 8.0, 0 FROM generate_series(1, %[1]d / 10) i;
INSERT INTO lines SELECT i / 5, i %% 5, i * 1.125, 'i' || i %% 1000, CASE i %% 10 WHEN 0 THEN repeat(md5(i::text), 80) ELSE 'note' END FROM generate_series(5, %[1]d / 5) i;
INSERT INTO events SELECT i, i %% 7, CASE i %% 9 WHEN 0 THEN repeat(md5(i::text), 70) END FROM generate_series(1, %[1]d / 10) i;
`

// pgColumn is a column of a table and how the judges' text of a value is made of
// PostgreSQL's: as is, in quotes, as a JSON string, or as a floating-point number.
type pgColumn struct{ name, sql, how string }

const (
	tsText  = `to_char(%s, 'YYYY-MM-DD"T"HH24:MI:SS.US')`
	ltzText = `to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
)

// pgSchema are the columns at the end, in the order of the Paimon tables.
var pgSchema = map[string][]pgColumn{
	"accounts": {
		{"id", "id", "raw"},
		{"branch", "branch", "raw"},
		{"flags", "flags", "raw"},
		{"balance", "balance", "quoted"},
		{"rate", "rate", "float"},
		{"owner", "owner", "text"},
		{"active", "active::text", "raw"},
		{"since", "since", "quoted"},
		{"changed", fmt.Sprintf(ltzText, "changed"), "quoted"},
		{"seen", fmt.Sprintf(tsText, "seen"), "quoted"},
		{"remark", "remark", "text"},
	},
	"docs": {
		{"id", "id", "raw"},
		{"title", "title", "text"},
		{"body", "body", "text"},
		{"data", "encode(data, 'hex')", "quoted"},
		{"meta", "meta", "text"},
		{"tags", "array_to_json(tags)", "raw"},
		{"u", "u", "quoted"},
		{"score", "score", "float"},
		{"n", "trim_scale(n)", "quoted"},
		{"version", "version", "raw"},
		{"more", "more", "text"},
	},
	"lines": {
		{"ord", "ord", "raw"}, {"line", "line", "raw"}, {"qty", "qty", "quoted"}, {"item", "rpad(item::text, 8)", "text"}, {"note", "note", "text"}, {"price", "price", "float"},
	},
	"events": {{"id", "id", "raw"}, {"kind", "kind", "raw"}, {"body", "body", "text"}},
}

// pgTexts are the rows of a table of PostgreSQL as judges print rows.
func pgTexts(t *testing.T, pg *harness.PostgresServer, table string) []string {
	t.Helper()
	columns := pgSchema[table]
	var list []string
	for _, c := range columns {
		list = append(list, c.sql)
	}
	var out []string
	for _, row := range pg.Query(t, "SELECT "+strings.Join(list, ", ")+" FROM "+table) {
		var b []byte
		for i, c := range columns {
			b = append(b, "{,"[min(i, 1)])
			b = append(types.AppendJSONString(b, []byte(c.name)), ':')
			b = appendPg(t, b, c.how, row[i])
		}
		out = append(out, string(append(b, '}')))
	}
	return out
}

func appendPg(t *testing.T, b []byte, how string, cell *string) []byte {
	t.Helper()
	switch {
	case cell == nil:
		return append(b, "null"...)
	case how == "raw":
		return append(b, *cell...)
	case how == "quoted":
		return append(append(append(b, '"'), *cell...), '"')
	case how == "float":
		f, err := strconv.ParseFloat(*cell, 64)
		require.NoError(t, err)
		return types.AppendJSON(b, types.DoubleType(), types.FloatDatum(f))
	default:
		return types.AppendJSONString(b, []byte(*cell))
	}
}

// pgLoad is a load of transactions in several sessions at once. Each session changes
// rows of its own (ids by remainder), and all of them a few common ones.
type pgLoad struct {
	pg   *harness.PostgresServer
	rows int
	done atomic.Int64 // transactions that went through
	next atomic.Int64 // ids for new rows
	// truncates lets tables be emptied. While a snapshot is taken that would wait for
	// it, and everybody for that.
	truncates atomic.Bool
}

const pgSessions = 3

// run starts a load that goes on until stop, as fast as Debezium follows. A session
// that loses its server goes on once it is back.
func (l *pgLoad) run(t *testing.T, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for s := range pgSessions {
		rnd := rand.New(rand.NewPCG(seed, uint64(s)))
		wg.Go(func() {
			for ctx.Err() == nil {
				err := l.script(ctx, rnd, s)
				if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "connection") {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// script does some transactions.
func (l *pgLoad) script(ctx context.Context, rnd *rand.Rand, session int) error {
	const each = 25
	var b strings.Builder
	b.WriteString("SELECT room();\n")
	for range each {
		l.transaction(&b, rnd, session)
	}
	// A script that was begun goes to its end.
	err := l.pg.Run(context.WithoutCancel(ctx), b.String())
	if err == nil {
		l.done.Add(each)
	}
	return err
}

// transaction writes one: some statements, of which a savepoint or all may be undone.
func (l *pgLoad) transaction(b *strings.Builder, rnd *rand.Rand, session int) {
	if rnd.IntN(4) == 0 { // a common row, in a transaction of its own: it never waits for two
		fmt.Fprintf(b, "UPDATE accounts SET balance = balance + 1.01, changed = clock_timestamp() WHERE id = %d;\n", 1+rnd.IntN(3))
		return
	}
	if l.truncates.Load() && rnd.IntN(60) == 0 { // at first, before it has what others wait for
		fmt.Fprintf(b, "BEGIN; TRUNCATE events; INSERT INTO events VALUES (0, 0, NULL), (%d, 1, repeat('%x', 250)); COMMIT;\n", l.of(rnd, l.rows/10, session), rnd.Uint64())
		return
	}
	b.WriteString("BEGIN;\n")
	for range 1 + rnd.IntN(5) {
		undo := rnd.IntN(12) == 0
		if undo {
			b.WriteString("SAVEPOINT s;\n")
		}
		b.WriteString(l.statement(rnd, session) + ";\n")
		if undo {
			b.WriteString("ROLLBACK TO s;\n")
		}
	}
	if rnd.IntN(15) == 0 {
		b.WriteString("ROLLBACK;\n")
		return
	}
	b.WriteString("COMMIT;\n")
}

// of returns an id below n that belongs to a session, above the common ones.
func (l *pgLoad) of(rnd *rand.Rand, n, session int) int {
	return 4 + rnd.IntN(max(1, n/pgSessions-2))*pgSessions + session
}

// fresh returns an id that no row ever had.
func (l *pgLoad) fresh() int64 { return 100_000_000 + l.next.Add(1) }

func (l *pgLoad) statement(rnd *rand.Rand, session int) string {
	account, doc, order := l.of(rnd, l.rows, session), l.of(rnd, l.rows/10, session), l.of(rnd, l.rows/25, session)
	word := fmt.Sprintf("%x", rnd.Uint64())
	switch rnd.IntN(19) {
	case 0, 1, 2:
		return fmt.Sprintf("UPDATE accounts SET balance = balance - %d.5, flags = flags / 2, changed = clock_timestamp() WHERE id = %d", rnd.IntN(1000), account)
	case 3:
		return fmt.Sprintf("DELETE FROM accounts WHERE id = %d", account)
	case 4:
		return fmt.Sprintf("INSERT INTO accounts (id, owner, balance, seen) VALUES (%d, '%s', %d, clock_timestamp()) ON CONFLICT (id) DO UPDATE SET owner = excluded.owner", account, word, rnd.IntN(1000))
	case 5:
		id := l.fresh()
		return fmt.Sprintf("UPDATE accounts SET id = %[1]d WHERE id = %[2]d;\nUPDATE accounts SET id = %[2]d, owner = 'back' WHERE id = %[1]d AND id %% 2 = 0", id, account)
	case 6, 7, 8: // what lies out of line does not change, and is not sent
		return fmt.Sprintf("UPDATE docs SET version = version + 1, title = '%s' WHERE id = %d", word, doc)
	case 9:
		return fmt.Sprintf("UPDATE docs SET body = repeat('%s', 200), tags = tags || ARRAY['é%s'] WHERE id = %d", word, word, doc)
	case 10: // a new key, the values out of line stay
		id := l.fresh()
		return fmt.Sprintf("UPDATE docs SET id = %[1]d WHERE id = %[2]d;\nUPDATE docs SET version = 3 WHERE id = %[1]d AND id %% 2 = 0;\nDELETE FROM docs WHERE id = %[1]d AND id %% 6 = 0", id, doc)
	case 11:
		return fmt.Sprintf("DELETE FROM docs WHERE id = %d", doc)
	case 12: // the key comes back, as another row, and changes at once
		return fmt.Sprintf("INSERT INTO docs (id, title, body, data, version) VALUES (%d, 'again', repeat('%s', 160), decode(repeat('%02x', 3000), 'hex'), 0) ON CONFLICT DO NOTHING;\nUPDATE docs SET version = 7, score = %d.25 WHERE id = %d",
			doc, word, rnd.IntN(256), rnd.IntN(100), doc)
	case 13:
		return fmt.Sprintf("UPDATE lines SET qty = qty * 0.5, item = '%.8s' WHERE ord = %d", word, order)
	case 14:
		return fmt.Sprintf("UPDATE lines SET ord = %d WHERE ord = %d AND line < 3", l.fresh(), order)
	case 15:
		return fmt.Sprintf("INSERT INTO events VALUES (%d, 2, repeat('%s', 160)) ON CONFLICT (id) DO UPDATE SET kind = events.kind + 1", doc, word)
	case 16: // what lies out of line is not sent
		return fmt.Sprintf("UPDATE events SET kind = kind + 1 WHERE id BETWEEN %[1]d AND %[1]d + 20 AND id %% %[2]d = %[3]d", doc, pgSessions, doc%pgSessions)
	case 17:
		return fmt.Sprintf("DELETE FROM events WHERE id = %d", doc)
	default:
		return fmt.Sprintf("DELETE FROM lines WHERE ord = %d AND line = %d;\nINSERT INTO lines VALUES (%d, %d, 1, 'new', repeat('%s', 200)) ON CONFLICT DO NOTHING", order, rnd.IntN(5), l.fresh(), rnd.IntN(9), word)
	}
}
