//go:build itest

package itest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// awkward are texts that make trouble as folder names.
var awkward = []string{
	"", " ", "  ", "%", "%25", "a=b", "a/b", "/", "..", ".", "a\\b", "a:b", "a\"b", "'", "#", "?", "*", "{x}", "[x]", "\t", "\n", "\x01", "\x7f",
	"__DEFAULT_PARTITION__", "null", "NULL", "ünï", "日本", "😀", "A", "a", " a", "a ", strings.Repeat("x", 60),
}

// partitionCase is a table partitioned by one column and the JSON texts of its values.
type partitionCase struct {
	ty     string
	values []string
}

func partitionCases() []partitionCase {
	var texts []string
	for _, s := range awkward {
		b, _ := json.Marshal(s)
		texts = append(texts, strings.ReplaceAll(string(b), "\\u007f", "\x7f"))
	}
	return []partitionCase{
		{"STRING", texts},
		{"INT", []string{"0", "-1", "2147483647", "-2147483648"}},
		{"BIGINT", []string{"0", "9223372036854775807", "-9223372036854775808"}},
		{"TINYINT", []string{"0", "-128", "127"}},
		{"DATE", []string{`"1970-01-01"`, `"1969-12-31"`, `"2026-02-28"`, `"0001-01-01"`, `"9999-12-31"`}},
		{"BOOLEAN", []string{"true", "false"}},
		{"DECIMAL(5, 2)", []string{`"0.00"`, `"-999.99"`, `"1.50"`}},
		{"CHAR(3)", []string{`"abc"`, `"a  "`, `"   "`}},
		{"TIMESTAMP(3)", []string{`"2026-01-02T03:04:05.000"`, `"1969-12-31T23:59:59.999"`, `"2026-01-02T03:04:05.120"`}},
		{"TIME(3)", []string{`"00:00:00.000"`, `"23:59:59.999"`}},
	}
}

// TestPartitions_OfEveryTypeAndAwkwardNames writes, moves and deletes rows in
// partitions whose names are hard, in tables with Paimon's old and new folder names.
func TestPartitions_OfEveryTypeAndAwkwardNames(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprintf("legacy-name=%v", legacy), func(t *testing.T) {
			cases := partitionCases()
			var pipes []pipe
			var recs []*kgo.Record
			var models []*model
			for i, c := range cases {
				topic := fmt.Sprintf("%s-%d", topicName(t.Name()), i)
				harness.SharedKafka(t).CreateTopic(t, harness.Topic{Name: topic})
				pipes = append(pipes, pipe{
					Name: fmt.Sprintf("p%d", i), Topic: topic, Table: fmt.Sprintf("db.t%d", i),
					More: fmt.Sprintf("create: { partition_by: [p], types: { id: INT, p: %q, v: STRING }, options: { partition.legacy-name: \"%v\" } }\nbatch: { rows: 20, bytes: 4MiB, interval: 10s, idle_flush: 300ms }", c.ty, legacy),
				})
				m := newModel([]string{"id", "p", "v"}, []string{"id"})
				own := partitionRecords(topic, c.values)
				for _, rec := range own {
					m.apply(rec)
				}
				recs, models = append(recs, own...), append(models, m)
			}
			r := newRig(t, "", pipes...)
			r.kafka.Produce(t, recs...)
			p := r.start()
			r.waitApplied(p)
			harness.MustStop(t, p)
			for i, c := range cases {
				ref := r.refOf(r.pipes[i])
				harness.SameRows(t.Context(), t, models[i].texts(), ref, harness.Query{}, readers(t)...)
				checkPartitions(t, ref, c, models[i])
			}
		})
	}
}

// partitionRecords fills every partition, and that of NULL, moves rows from each
// to the next, and deletes some.
func partitionRecords(topic string, values []string) []*kgo.Record {
	values = append([]string{"null"}, values...)
	row := func(id, value int, v string) *kgo.Record {
		return put(topic, 0, fmt.Sprintf(`{"id":%d,"p":%s,"v":%q}`, id, values[value%len(values)], v))
	}
	var out []*kgo.Record
	n := len(values)
	for id := range 3 * n {
		out = append(out, row(id, id, "a"))
	}
	for id := range n {
		out = append(out, row(id, id+1, "moved"))
	}
	for id := n; id < 3*n; id += 5 {
		out = append(out, del(topic, 0, fmt.Sprintf(`{"id":%d}`, id)))
	}
	return out
}

// checkPartitions has Java prune by every partition value, and looks at the folders.
func checkPartitions(t *testing.T, ref harness.Ref, c partitionCase, m *model) {
	t.Helper()
	java := harness.Java(t)
	all, err := java.Read(t.Context(), ref, harness.Query{})
	require.NoError(t, err)
	ask := func(cond harness.Cond, want func(cell string) bool) {
		t.Helper()
		n := 0
		for _, rows := range m.rows {
			n += count(want(rows[0]["p"]))
		}
		got, err := java.Read(t.Context(), ref, harness.Query{Where: []harness.Cond{cond}})
		require.NoError(t, err)
		require.Len(t, got.Rows, n, "%s p %s %v", c.ty, cond.Op, cond.Value)
		require.Less(t, got.Files, all.Files, "%s p %s %v: nothing was pruned", c.ty, cond.Op, cond.Value)
	}
	ask(harness.Cond{Column: "p", Op: "is null"}, func(cell string) bool { return cell == "null" })
	for _, v := range c.values {
		ask(harness.Cond{Column: "p", Op: "=", Value: rawJSON(v)}, func(cell string) bool { return cell == v })
	}
	require.NoError(t, filepath.WalkDir(tableDir(ref), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "p=") {
			require.Equal(t, tableDir(ref), filepath.Dir(path), "a value made a folder of its own")
		}
		return err
	}))
}

// TestPartitions_OfSeveralColumns has NULLs and escapes at every level.
func TestPartitions_OfSeveralColumns(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: "create: { partition_by: [s, d, b, i], types: { id: INT, s: STRING, d: DATE, b: BOOLEAN, i: INT } }\nbatch: { rows: 64, interval: 10s, idle_flush: 300ms }"})
	m := newModel([]string{"id", "s", "d", "b", "i"}, []string{"id"})
	var recs []*kgo.Record
	id := 0
	for _, s := range []string{"null", `""`, `"a/b=c%"`} {
		for _, d := range []string{"null", `"1969-12-31"`} {
			for _, b := range []string{"null", "true", "false"} {
				for _, i := range []string{"null", "-1"} {
					id++
					recs = append(recs, put(topic, 0, fmt.Sprintf(`{"id":%d,"s":%s,"d":%s,"b":%s,"i":%s}`, id, s, d, b, i)))
				}
			}
		}
	}
	for id := 1; id <= 36; id += 4 {
		recs = append(recs, put(topic, 0, fmt.Sprintf(`{"id":%d,"i":7}`, id))) // moves; the other cells stay
	}
	for _, rec := range recs {
		m.apply(rec)
	}
	r.kafka.Produce(t, recs...)
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	harness.SameRows(t.Context(), t, m.texts(), r.ref(), harness.Query{}, append(readers(t), harness.Rust(t))...)
}
