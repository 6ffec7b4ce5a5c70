//go:build itest

package itest

import (
	"crypto/md5"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// recorded is a topic of a recorded connector and the pipeline that mirrors it.
type recorded struct {
	connector, table string
	format           string
	key              string
	more             string // lines of the pipeline
	columns          string // of the table that the judges read; it is made of them unless more creates it
	// other are the cells that the records cannot make what PostgreSQL held
	// (docs/formats.md).
	other map[string]map[string]string
	want  []string // in place of final-*.csv, where the records lack what leads there
}

const (
	fullID     = "a INT NOT NULL; b STRING NOT NULL; v DECIMAL(20, 5); big STRING"
	noKey      = "a INT NOT NULL; b STRING NOT NULL"
	truncates  = "on_truncate: apply\n"
	evolves    = "schema: { evolve: add_and_widen }\n"
	fromSchema = "create: {}\n"
)

// otherCells are those of pgOther but for some.
func otherCells(but map[string]map[string]string) map[string]map[string]string {
	out := pgOther(false)
	for row, cells := range but {
		maps.Copy(out[row], cells)
	}
	return out
}

// recordedTopics are all topics of the recorded connectors that a format of today
// reads; docs/formats.md says which are left and what mends them.
func recordedTopics() []recorded {
	text := strings.NewReplacer("TIMESTAMP(6);", "TIMESTAMP(3);", "TIME(6)", "TIME(3)", "n DECIMAL(38, 9)", "n STRING")
	double := strings.NewReplacer("n DECIMAL(38, 9)", "n DOUBLE", "n38 DECIMAL(38, 10)", "n38 DOUBLE", "iv BIGINT", "iv STRING")
	all := []recorded{
		{connector: "pgschema", table: "all_types", columns: pgColumns, other: pgOther(true)},
		{connector: "pgplain", table: "all_types", format: "{ type: debezium-json, decimals: unscaled }", columns: pgColumns, other: pgOther(false)},
		// decimals as texts, times as Connect types (milliseconds)
		{connector: "pgstring", table: "all_types", columns: text.Replace(pgColumns), other: otherCells(map[string]map[string]string{
			"1":  {"n": "12345678901234567890.123456789", "ts": "2026-09-10T12:34:56.123", "tm": "12:34:56.123", "na": `["1.25",null]`},
			"10": {"n": "NAN", "ts": "1969-12-31T23:59:59.999", "tm": "00:00:00.000"}, // DECIMAL has no NaN; -1 µs goes down
		})},
		// decimals as doubles, ISO times, bytes as hex text
		{connector: "pgiso", table: "all_types", format: "{ type: debezium-json, binary: hex }", columns: double.Replace(pgColumns), other: otherCells(map[string]map[string]string{
			"1":  {"n": "12345678901234567000", "n38": "1.2345678901234569e+27", "iv": "P1Y2M3DT4H5M6.7S", "na": "[1.25,null]"},
			"10": {"n": "NaN", "n38": "-1e-10", "iv": "P0Y0M0DT0H0M0S", "bits": "00"},
		})},
		// flattened, with schema, deletes as null values
		{connector: "pgunwrapt", table: "all_types", format: "json", columns: pgColumns, other: pgOther(true)},
		// A TRUNCATE, a column that comes and goes, a type that gets wider, key changes.
		{connector: "pgschema", table: "full_id", more: fromSchema + evolves + truncates, columns: fullID},
		{connector: "pgplain", table: "full_id", format: "{ type: debezium-json, decimals: unscaled }", more: truncates, columns: fullID},
		{connector: "pgstring", table: "full_id", more: truncates, columns: fullID}, // without schema, but the scale shows
		{connector: "pgiso", table: "full_id", more: fromSchema + evolves + truncates, columns: strings.Replace(fullID, "DECIMAL(20, 5)", "DOUBLE", 1)},
		// Flattening drops the truncate, so the rows that it took stay.
		{connector: "pgunwrapt", table: "full_id", format: "json", more: fromSchema + evolves, columns: fullID, want: untruncated()},
	}
	for _, connector := range []string{"pgschema", "pgplain", "pgstring", "pgiso"} {
		more := fromSchema
		if connector == "pgplain" || connector == "pgstring" { // which carry none
			more = ""
		}
		all = append(all, recorded{connector: connector, table: "nokey", key: "[a, b]", more: more, columns: noKey})
	}
	return all
}

// untruncated are the rows of full_id as they were without its TRUNCATE.
func untruncated() (rows []string) {
	big := ""
	for i := range 400 {
		big += fmt.Sprintf("%x", md5.Sum(fmt.Append(nil, i+1)))
	}
	for _, r := range []string{
		`"a":0,"b":"snap","v":"0.50000","big":null`, `"a":1,"b":"x2","v":"2.50000","big":"` + big + `"`, `"a":5,"b":"tx","v":"7.00000","big":null`,
		`"a":6,"b":"after","v":"1.00000","big":null`, `"a":7,"b":"wider","v":"123456.12345","big":null`, `"a":8,"b":"dropped","v":"1.00000","big":null`,
		`"a":9,"b":"end","v":"9.00000","big":null`,
	} {
		rows = append(rows, "{"+r+"}")
	}
	return rows
}

// pipe makes the pipeline and, unless it does so itself, the table.
func (c *recorded) pipe(t *testing.T) pipe {
	t.Helper()
	p := pipe{Name: c.connector + "_" + c.table, Format: c.format, Key: c.key, More: c.more + "batch: { interval: 200ms, idle_flush: 50ms, bytes: 1MiB }"}
	p.Table, p.Topic = "shop."+p.Name, "recorded."+p.Name
	harness.SharedKafka(t).CreateTopic(t, harness.Topic{Name: p.Topic, Partitions: 1})
	if p.Format == "" {
		p.Format = "debezium-json"
	}
	if p.Key == "" {
		p.Key = map[string]string{"all_types": "[id]", "full_id": "[a, b]"}[c.table]
	}
	return p
}

// TestReplay_EveryRecordedTopicEndsAsPostgresDid: what Debezium's connectors sent of
// three tables, in each of their settings, leads to what PostgreSQL held at the end.
func TestReplay_EveryRecordedTopicEndsAsPostgresDid(t *testing.T) {
	t.Parallel()
	cases := recordedTopics()
	var pipes []pipe
	for i := range cases {
		pipes = append(pipes, cases[i].pipe(t))
	}
	r := newRig(t, "", pipes...)
	for i := range cases {
		c := &cases[i]
		if !strings.Contains(c.more, "create:") {
			columns, _ := pgFields(t, c.columns)
			require.NoError(t, harness.Java(t).Create(t.Context(), r.refOf(r.pipes[i]), harness.TableSpec{Columns: columns, Options: vectorOptions}))
		}
		r.kafka.Produce(t, recording(t, c.connector, c.table, r.pipes[i].Topic)...)
	}
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	for i := range cases {
		c := &cases[i]
		t.Run(r.pipes[i].Name, func(t *testing.T) {
			columns, fields := pgFields(t, c.columns)
			want := c.want
			if want == nil {
				want = pgFinal(t, c.table, fields, c.other)
				require.Len(t, want, map[string]int{"all_types": 3, "full_id": 1, "nokey": 0}[c.table])
			}
			var names []string
			for _, col := range columns {
				names = append(names, col.Name)
			}
			harness.SameRows(t.Context(), t, want, r.refOf(r.pipes[i]), harness.Query{Columns: names}, readers(t)...)
		})
	}
	r.proven()
}
