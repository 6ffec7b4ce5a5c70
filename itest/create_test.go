//go:build itest

package itest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// connectField is a column in a record's schema envelope.
type connectField struct{ name, schema string }

// orderFields are the columns of a Debezium topic with schema, of many types.
var orderFields = []connectField{
	{"id", `{"type":"int64","optional":false,"field":"id"}`},
	{"v", `{"type":"string","optional":true,"field":"v"}`},
	{"n", `{"type":"int32","optional":true,"field":"n"}`},
	{"price", `{"type":"string","optional":true,"field":"price"}`},
	{"amount", `{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"2","connect.decimal.precision":"10"},"field":"amount"}`},
	{"ok", `{"type":"boolean","optional":true,"field":"ok"}`},
	{"day", `{"type":"int32","optional":true,"name":"io.debezium.time.Date","version":1,"field":"day"}`},
	{"at", `{"type":"int64","optional":true,"name":"io.debezium.time.MicroTimestamp","version":1,"field":"at"}`},
	{"seen", `{"type":"string","optional":true,"name":"io.debezium.time.ZonedTimestamp","version":1,"field":"seen"}`},
}

// withSchema makes a Debezium value with its schema envelope.
func withSchema(fields []connectField, op, before, after string) string {
	var columns []string
	for _, f := range fields {
		columns = append(columns, f.schema)
	}
	row := func(name string) string {
		return fmt.Sprintf(`{"type":"struct","optional":true,"name":"shop.Value","field":%q,"fields":[%s]}`, name, strings.Join(columns, ","))
	}
	schema := fmt.Sprintf(`{"type":"struct","optional":false,"name":"shop.Envelope","fields":[%s,%s,{"type":"string","optional":false,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"}]}`, row("before"), row("after"))
	return fmt.Sprintf(`{"schema":%s,"payload":{"before":%s,"after":%s,"op":%q,"ts_ms":1700000000000,"source":{"ts_ms":1700000000000}}}`, schema, before, after, op)
}

// keyWithSchema makes its record key.
func keyWithSchema(f connectField, value string) string {
	return fmt.Sprintf(`{"schema":{"type":"struct","optional":false,"name":"shop.Key","fields":[%s]},"payload":{%q:%s}}`, f.schema, f.name, value)
}

// debezium makes a Debezium value without schema.
func debezium(op, before, after string) string {
	return fmt.Sprintf(`{"before":%s,"after":%s,"op":%q,"ts_ms":1700000000000,"source":{"ts_ms":1700000000000}}`, before, after, op)
}

func TestCreate_ColumnsComeFromDebeziumRecordsWithSchema(t *testing.T) {
	for _, partitioned := range []bool{false, true} {
		t.Run(fmt.Sprintf("partitioned=%v", partitioned), func(t *testing.T) {
			topic := newTopic(t, 2)
			by := ""
			if partitioned {
				by = "partition_by: [day, ok], "
			}
			r := newRig(t, "", pipe{Topic: topic, Format: "debezium-json", More: "create: { " + by + "types: { price: \"DECIMAL(12,3)\" }, options: { target-file-size: 32mb } }"})
			record := func(id int, op, before, after string) *kgo.Record {
				rec := &kgo.Record{Topic: topic, Partition: int32(id % 2), Key: []byte(keyWithSchema(orderFields[0], fmt.Sprint(id)))}
				if op != "" {
					rec.Value = []byte(withSchema(orderFields, op, before, after))
				}
				return rec
			}
			row := func(id int, v string, n int, day, at int64) string {
				return fmt.Sprintf(`{"id":%d,"v":%s,"n":%d,"price":"%d.5","amount":"AMo=","ok":%v,"day":%d,"at":%d,"seen":"2026-01-02T03:04:05.5+02:00"}`, id, v, n, n, id%2 == 0, day, at)
			}
			var recs []*kgo.Record
			for id := 1; id <= 20; id++ {
				recs = append(recs, record(id, "r", "null", row(id, `"a"`, id, int64(id%3), int64(id)*1_000_000)))
			}
			recs = append(recs,
				record(3, "u", row(3, `"a"`, 3, 0, 3_000_000), row(3, "null", -3, 1, -1)), // moves to another partition, before 1970
				record(4, "d", row(4, `"a"`, 4, 1, 4_000_000), "null"), record(4, "", "", ""),
				record(5, "d", row(5, `"a"`, 5, 2, 5_000_000), "null"), record(25, "c", "null", row(25, `"new key"`, 5, 2, 5_000_000))) // a key change
			r.kafka.Produce(t, recs...)
			p := r.start()
			r.waitApplied(p)
			harness.MustStop(t, p)

			want := func(id int, v string, n int, day, at string) string {
				return fmt.Sprintf(`{"id":%d,"v":%s,"n":%d,"price":"%d.500","amount":"2.02","ok":%v,"day":%q,"at":%q,"seen":"2026-01-02T01:04:05.500000Z"}`, id, v, n, n, id%2 == 0, day, at)
			}
			days := []string{"1970-01-01", "1970-01-02", "1970-01-03"}
			m := newModel([]string{"id", "v", "n", "price", "amount", "ok", "day", "at", "seen"}, []string{"id"})
			for id := 1; id <= 20; id++ {
				m.upsert(want(id, `"a"`, id, days[id%3], fmt.Sprintf("1970-01-01T00:00:%02d.000000", id)))
			}
			m.upsert(want(3, "null", -3, days[1], "1969-12-31T23:59:59.999999"))
			m.remove(`{"id":4}`, `{"id":5}`)
			m.upsert(want(25, `"new key"`, 5, days[2], "1970-01-01T00:00:05.000000"))
			r.holds(m)

			java := harness.Java(t)
			spec, err := java.Schema(t.Context(), r.ref())
			require.NoError(t, err)
			var got []string
			for _, c := range spec.Columns {
				got = append(got, c.Name+" "+c.Type)
			}
			require.Equal(t, []string{
				"id BIGINT NOT NULL", "v STRING", "n INT", "price DECIMAL(12, 3)", "amount DECIMAL(10, 2)", "ok BOOLEAN", "day DATE", "at TIMESTAMP(6)",
				"seen TIMESTAMP(6) WITH LOCAL TIME ZONE",
			}, got)
			require.Equal(t, map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true", "target-file-size": "32mb", "path": spec.Options["path"]}, withPath(spec.Options))
			files, err := java.Files(t.Context(), r.ref(), harness.Query{})
			require.NoError(t, err)
			for _, f := range files {
				require.Len(t, f.Partition, map[bool]int{false: 0, true: 2}[partitioned])
			}
		})
	}
}

// withPath gives options the table's path, which Java adds in memory.
func withPath(options map[string]string) map[string]string {
	if _, ok := options["path"]; !ok {
		options["path"] = ""
	}
	return options
}

func TestCreate_ColumnsComeFromTheConfigurationForRecordsWithoutSchema(t *testing.T) {
	for _, format := range []string{"debezium-json", "json"} {
		for _, by := range []string{"", "  partition_by: [region]\n"} {
			t.Run(fmt.Sprintf("%s partitioned=%v", format, by != ""), func(t *testing.T) {
				topic := newTopic(t, 1)
				r := newRig(t, "", pipe{
					Topic: topic, Format: format, Key: "[id, region]",
					More: "create:\n" + by + "  types:\n    region: VARCHAR(10)\n    amount: DECIMAL(10,2)\n    id: INT\n",
				})
				m := newModel([]string{"id", "region", "amount"}, []string{"id", "region"})
				change := func(op, row string) {
					v := row
					if format != "json" {
						v = debezium(op, "null", row)
					}
					r.kafka.Produce(t, put(topic, 0, v))
					m.upsert(row)
				}
				for i := range 30 {
					change("c", fmt.Sprintf(`{"id":%d,"region":"r%d","amount":"%d.10"}`, i, i%3, i))
				}
				change("u", `{"id":7,"region":"r1","amount":"-0.01"}`)
				change("c", `{"id":7,"region":"r2","amount":null}`) // the same id in another region is another row
				key := `{"id":9,"region":"r0"}`
				if format == "json" {
					r.kafka.Produce(t, del(topic, 0, key))
				} else {
					r.kafka.Produce(t, put(topic, 0, debezium("d", key, "null")))
				}
				m.remove(key)
				p := r.start()
				r.waitApplied(p)
				harness.MustStop(t, p)
				r.holds(m)
			})
		}
	}
}

func TestCreate_RefusesOptionsThatContradictTheTablesOfThisProgram(t *testing.T) {
	topic := newTopic(t, 1)
	for option, value := range map[string]string{"bucket": "4", "sequence.snapshot-ordering": "true", "file.format": "orc"} {
		r := newRig(t, "", pipe{Topic: topic, More: fmt.Sprintf("create: { types: { id: BIGINT }, options: { %s: %q } }", option, value)})
		code, out := r.command("validate", "--online")
		require.Equal(t, 2, code, out)
		require.Contains(t, out, option)
		tables, err := harness.Java(t).Tables(t.Context(), r.Warehouse)
		require.NoError(t, err)
		require.Empty(t, tables, "validate writes nothing")
	}
}

func TestCreate_AMissingTableIsRefusedWithTheLineThatCreatesIt(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, Format: "debezium-json"})
	r.kafka.Produce(t, put(topic, 0, withSchema(orderFields, "c", "null", `{"id":1}`)))
	code, out := r.command("validate", "--online")
	require.Equal(t, 2, code)
	_, line, ok := strings.Cut(out, "by this line:\n")
	require.True(t, ok, out)
	r.set(strings.TrimSpace(strings.Split(line, "\n")[0]))
	r.must("validate", "--online")
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	n, err := harness.Java(t).Count(t.Context(), r.ref(), harness.Query{})
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func TestCreate_WithoutSchemaOrTypesSaysWhatToDo(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: "create: {}"})
	r.kafka.Produce(t, put(topic, 0, `{"id":1}`))
	code, out := r.command("validate", "--online")
	require.Equal(t, 2, code)
	require.Contains(t, out, "create.types")
}
