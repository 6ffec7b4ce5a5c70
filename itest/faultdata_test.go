//go:build itest

package itest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// The tests of this file are the faults F of the catalogue (reliability.md §2): what
// is wrong with the data. Each ends with the table being the model, for our own
// reader and for Java's.

// equals fails unless our reader and Java's read exactly the model's rows.
func (r *rig) equals(m *model) {
	r.t.Helper()
	harness.SameRows(r.t.Context(), r.t, m.texts(), r.ref(), harness.Query{}, cat(r.t), harness.Java(r.t))
}

// metric reads one value of a running daemon, by its name and further labels as printed.
func (r *rig) metric(name string, labels ...string) float64 {
	r.t.Helper()
	all, err := harness.Metrics(r.t.Context(), r.Public+"/metrics")
	require.NoError(r.t, err)
	total, found := 0.0, false
	for key, v := range all {
		if !strings.HasPrefix(key, name+"{") {
			continue
		}
		has := true
		for _, l := range labels {
			has = has && strings.Contains(key, l)
		}
		if has {
			total, found = total+v, true
		}
	}
	require.True(r.t, found, "no series of %s with %v", name, labels)
	return total
}

// metricIs waits until a metric has a value: it may be counted a moment after the
// snapshot is there.
func (r *rig) metricIs(want float64, name string, labels ...string) {
	r.t.Helper()
	var got float64
	defer func() {
		if got != want {
			r.t.Logf("%s %v is %v and not %v", name, labels, got, want)
		}
	}()
	harness.Until(r.t, 30*time.Second, fmt.Sprintf("%s %v to be %v", name, labels, want), func() (bool, error) {
		got = r.metric(name, labels...)
		return got == want, nil
	})
}

// feed produces records and lets the model follow those that can be applied.
func (r *rig) feed(m *model, recs ...*kgo.Record) {
	r.t.Helper()
	for _, rec := range recs {
		m.apply(rec)
	}
	r.kafka.Produce(r.t, recs...)
}

// once runs the daemon until everything is applied.
func (r *rig) once() *harness.Process {
	r.t.Helper()
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(r.t, p)
	return p
}

// position is where the first pipeline's record stands in a partition.
func (r *rig) position(partition int32) int64 {
	r.t.Helper()
	rec, err := lastRecord(r.ref(), r.pipes[0].ID)
	require.NoError(r.t, err)
	require.NotNil(r.t, rec)
	return rec.positions(r.pipes[0].Topic)[partition]
}

const idAndText = "create: { types: { id: BIGINT, v: STRING } }"

// TestFault_F3_PositionsMoveOnThroughPoisonAlone: commits without a row carry the
// positions, so that after a kill nothing is read a second time.
func TestFault_F3_PositionsMoveOnThroughPoisonAlone(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: idAndText + "\non_error: skip\nbatch: { rows: 500, interval: 100ms, idle_flush: 20ms }"})
	m := newModel([]string{"id", "v"}, []string{"id"})
	r.feed(m, put(topic, 0, row(1, "good")))
	p := r.start()
	r.waitApplied(p)
	files := dataFiles(t, r.ref())
	const rounds, each = 4, 300
	for range rounds {
		var poison []*kgo.Record
		for range each {
			poison = append(poison, put(topic, 0, `{"id":`))
		}
		r.kafka.Produce(t, poison...)
		r.waitApplied(p)
	}
	r.metricIs(float64(rounds*each), "applier_records_dropped_total", `reason="skipped_error"`)
	require.Equal(t, files, dataFiles(t, r.ref()), "poison writes no rows")
	p.Kill()
	require.EqualValues(t, 1+rounds*each, r.position(0))

	p = r.start()
	r.feed(m, put(topic, 0, row(2, "good")))
	r.waitApplied(p)
	require.Zero(t, r.metric("applier_records_dropped_total", `reason="skipped_error"`), "nothing is read again")
	harness.MustStop(t, p)
	r.equals(m)
}

func dataFiles(t *testing.T, ref harness.Ref) int {
	t.Helper()
	files, err := harness.Java(t).Files(t.Context(), ref, harness.Query{})
	require.NoError(t, err)
	return len(files)
}

// fit is a column type with JSON texts that it just holds and just does not.
type fit struct {
	ty        string
	good, bad []string
}

func fits() []fit {
	return []fit{
		{"TINYINT", []string{"127", "-128"}, []string{"128", "-129", "1.5"}},
		{"SMALLINT", []string{"32767", "-32768"}, []string{"32768", "-32769"}},
		{"INT", []string{"2147483647", "-2147483648"}, []string{"2147483648", "-2147483649", `"x"`, "true"}},
		{"BIGINT", []string{"9223372036854775807", "-9223372036854775808"}, []string{"9223372036854775808", "1e30"}},
		{"DOUBLE", []string{"1.5"}, []string{"1e400", `"one"`}},
		{"DECIMAL(4, 2)", []string{`"99.99"`, `"-99.99"`}, []string{`"100.00"`, `"1.234"`, `"1e9"`}},
		{"DECIMAL(38, 0)", []string{`"99999999999999999999999999999999999999"`}, []string{`"100000000000000000000000000000000000000"`}},
		{"DATE", []string{`"2024-02-29"`, `"9999-12-31"`}, []string{`"2023-02-29"`, `"2024-13-01"`, `"soon"`}},
		{"TIME(3)", []string{`"23:59:59.999"`}, []string{`"24:00:00"`, `"12:60:00"`}},
		{"TIMESTAMP(3)", []string{`"2024-02-29T23:59:59.999"`}, []string{`"2023-02-29T00:00:00"`, `"2024-01-01T25:00:00"`}},
		{"VARCHAR(3)", []string{`"abc"`, `"日本語"`}, []string{`"abcd"`}},
		{"BOOLEAN", []string{"true", "false"}, []string{`"maybe"`, "2"}},
	}
}

// TestFault_F4_AValueThatDoesNotFitIsNeverStored has every type's first value
// beyond its range: no wrapping, no cutting, no silent NULL.
func TestFault_F4_AValueThatDoesNotFitIsNeverStored(t *testing.T) {
	topic := newTopic(t, 1)
	more, columns := "on_error: skip\ncreate:\n  types:\n    id: BIGINT\n", []string{"id"}
	for c, f := range fits() {
		more += fmt.Sprintf("    c%d: %q\n", c, f.ty)
		columns = append(columns, fmt.Sprintf("c%d", c))
	}
	r := newRig(t, "", pipe{Topic: topic, More: more})
	m := newModel(columns, []string{"id"})
	id, bad := 0, 0
	for c, f := range fits() {
		for _, v := range f.good {
			id++
			r.feed(m, put(topic, 0, fmt.Sprintf(`{"id":%d,"c%d":%s}`, id, c, v)))
		}
		for _, v := range f.bad { // on the last good row, which must stay as it is
			r.kafka.Produce(t, put(topic, 0, fmt.Sprintf(`{"id":%d,"c%d":%s}`, id, c, v)))
			bad++
		}
	}
	p := r.start()
	r.waitApplied(p)
	r.metricIs(float64(bad), "applier_records_dropped_total", `reason="skipped_error"`)
	harness.MustStop(t, p)
	r.equals(m)
}

// TestFault_F5_AKeyThatIsMissingOrOfAnotherTypeIsNoKey by upserts and deletes.
func TestFault_F5_AKeyThatIsMissingOrOfAnotherTypeIsNoKey(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, Key: "[a, b]", More: "create: { types: { a: INT, b: STRING, v: STRING } }\non_error: skip"})
	m := newModel([]string{"a", "b", "v"}, []string{"a", "b"})
	r.feed(m, put(topic, 0, `{"a":1,"b":"x","v":"one"}`), put(topic, 0, `{"a":2,"b":"x","v":"two"}`), put(topic, 0, `{"a":0,"b":"","v":"zero"}`))
	bad := []*kgo.Record{
		put(topic, 0, `{"b":"x","v":"no a"}`), put(topic, 0, `{"a":1,"v":"no b"}`), put(topic, 0, `{"a":null,"b":"x","v":"null a"}`),
		put(topic, 0, `{"a":1,"b":null,"v":"null b"}`), put(topic, 0, `{"a":"one","b":"x","v":"text"}`), put(topic, 0, `{"a":4294967297,"b":"x","v":"wraps to 1"}`),
		put(topic, 0, `{"a":1.5,"b":"x","v":"a part"}`), put(topic, 0, `{"a":{"n":1},"b":"x","v":"an object"}`),
		del(topic, 0, `{"a":1}`), del(topic, 0, `{"a":null,"b":"x"}`), del(topic, 0, `1`), del(topic, 0, `{"a":"one","b":"x"}`), del(topic, 0, `{`),
	}
	r.kafka.Produce(t, bad...)
	r.kafka.Produce(t, &kgo.Record{Topic: topic}) // neither key nor value: it says nothing at all
	r.feed(m, del(topic, 0, `{"a":2,"b":"x"}`))   // what came after is applied
	p := r.start()
	r.waitApplied(p)
	r.metricIs(float64(len(bad)), "applier_records_dropped_total", `reason="skipped_error"`)
	r.metricIs(float64(3), "applier_row_errors_total", `class="null_key"`)
	r.metricIs(float64(1), "applier_records_dropped_total", `reason="tombstone"`)
	harness.MustStop(t, p)
	r.equals(m)
}

const partitioned = "create: { partition_by: [p], types: { id: BIGINT, p: STRING, v: STRING } }\nbatch: { rows: 100, interval: 10s, idle_flush: 200ms }"

// TestFault_F6_ARowThatMovesToAnotherPartitionIsNeverInBoth reads every snapshot.
func TestFault_F6_ARowThatMovesToAnotherPartitionIsNeverInBoth(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: partitioned})
	m := newModel([]string{"id", "p", "v"}, []string{"id"})
	const keys = 20
	for round := range 4 {
		var recs []*kgo.Record
		for id := range keys {
			recs = append(recs, put(topic, 0, fmt.Sprintf(`{"id":%d,"p":"p%d","v":"round %d"}`, id, (id+round*(id%3))%4, round)))
		}
		r.feed(m, recs...)
		p := r.start()
		r.waitApplied(p)
		harness.MustStop(t, p)
		r.equals(m)
	}
	for _, id := range snapshotIDs(r.ref()) {
		all, err := harness.Java(t).Read(t.Context(), r.ref(), harness.Query{Snapshot: id, Columns: []string{"id"}})
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, text := range all.Texts() {
			require.False(t, seen[text], "snapshot %d has %s twice", id, text)
			seen[text] = true
		}
		require.Contains(t, []int{0, keys}, len(seen), "snapshot %d", id)
	}
}

// TestFault_F7_ADeleteFindsItsRowByTheKeyAlone, in whatever partition it is.
func TestFault_F7_ADeleteFindsItsRowByTheKeyAlone(t *testing.T) {
	for format, gone := range map[string]func(topic string, id int) *kgo.Record{
		"json": func(topic string, id int) *kgo.Record { return del(topic, 0, fmt.Sprintf(`{"id":%d}`, id)) },
		"debezium-json": func(topic string, id int) *kgo.Record {
			return &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, `{"id":%d}`, id), Value: []byte(`{"op":"d","before":null,"after":null}`)}
		},
	} {
		t.Run(format, func(t *testing.T) {
			topic := newTopic(t, 1)
			r := newRig(t, "", pipe{Topic: topic, Format: format, More: partitioned})
			m := newModel([]string{"id", "p", "v"}, []string{"id"})
			for id := range 12 {
				text := fmt.Sprintf(`{"id":%d,"p":"p%d","v":"x"}`, id, id%5)
				m.upsert(text)
				if format != "json" {
					text = `{"op":"c","after":` + text + `}`
				}
				r.kafka.Produce(t, put(topic, 0, text))
			}
			r.once()
			r.equals(m)
			for id := range 12 {
				if id%3 != 0 {
					r.kafka.Produce(t, gone(topic, id))
					m.remove(fmt.Sprintf(`{"id":%d}`, id))
				}
			}
			p := r.start()
			r.waitApplied(p)
			r.metricIs(float64(8), "applier_rows_applied_total", `action="deleted"`)
			harness.MustStop(t, p)
			r.equals(m)
		})
	}
}

// TestFault_F8_ADeleteOfAnUnknownKeyIsCountedAndChangesNothing.
func TestFault_F8_ADeleteOfAnUnknownKeyIsCountedAndChangesNothing(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: idAndText})
	m := newModel([]string{"id", "v"}, []string{"id"})
	r.feed(m, put(topic, 0, row(1, "a")), put(topic, 0, row(2, "a")))
	p := r.start()
	r.waitApplied(p)
	for id := 10; id < 17; id++ {
		r.feed(m, del(topic, 0, fmt.Sprintf(`{"id":%d}`, id)))
	}
	r.waitApplied(p)
	r.metricIs(float64(7), "applier_rows_applied_total", `action="unchanged"`)
	require.Zero(t, r.metric("applier_rows_applied_total", `action="deleted"`))
	harness.MustStop(t, p)
	r.equals(m)
	require.EqualValues(t, 9, r.position(0))
}

// TestFault_F9_APlaceholderIsNeverStored: Debezium's stand-in for a value that the
// database did not send keeps what the table or the batch has, and where nothing is
// known the record is an error.
func TestFault_F9_APlaceholderIsNeverStored(t *testing.T) {
	const placeholder = `"__debezium_unavailable_value"`
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, Format: "debezium-json", More: "create: { types: { id: BIGINT, big: STRING, n: INT } }\non_error: skip\nbatch: { rows: 100, interval: 10s, idle_flush: 200ms }"})
	m := newModel([]string{"id", "big", "n"}, []string{"id"})
	change := func(op string, id int, big string, n int) *kgo.Record {
		return put(topic, 0, fmt.Sprintf(`{"op":%q,"before":null,"after":{"id":%d,"big":%s,"n":%d}}`, op, id, big, n))
	}
	large := `"` + strings.Repeat("toast ", 500) + `"`
	r.kafka.Produce(t, change("c", 1, large, 1), change("c", 2, `"two"`, 1))
	r.once()
	r.kafka.Produce(t,
		change("u", 1, placeholder, 2),                               // from the table
		change("c", 3, `"three"`, 1), change("u", 3, placeholder, 2), // from the batch
		change("u", 2, placeholder, 2), change("u", 2, `"new"`, 3), change("u", 2, placeholder, 4),
		change("u", 4, placeholder, 9), // nothing is known of it
	)
	for _, text := range []string{`{"id":1,"big":` + large + `,"n":2}`, `{"id":2,"big":"new","n":4}`, `{"id":3,"big":"three","n":2}`} {
		m.upsert(text)
	}
	p := r.start()
	r.waitApplied(p)
	r.metricIs(float64(1), "applier_records_dropped_total", `reason="skipped_error"`)
	harness.MustStop(t, p)
	r.equals(m)
}

// TestFault_F10_TheLastChangeOfAKeyWinsWhateverItsKind: inserts, deletes and
// inserts again of few keys, cut into batches at random places.
func TestFault_F10_TheLastChangeOfAKeyWinsWhateverItsKind(t *testing.T) {
	topic := newTopic(t, 2)
	rnd := rand.New(rand.NewPCG(10, 10))
	r := newRig(t, "", pipe{Topic: topic, More: idAndText + "\nbatch: { rows: 170, interval: 100ms, idle_flush: 20ms }"})
	m := newModel([]string{"id", "v"}, []string{"id"})
	var recs []*kgo.Record
	for i := range 3000 {
		id := rnd.IntN(25)
		rec := put(topic, int32(id%2), row(id, fmt.Sprint("change ", i)))
		if rnd.IntN(2) == 0 {
			rec = del(topic, int32(id%2), fmt.Sprintf(`{"id":%d}`, id))
		}
		recs = append(recs, rec)
	}
	// The ends that a rule "a delete beats an insert" or "the first one counts" gets wrong.
	for _, id := range []int{100, 101} {
		part := int32(id % 2)
		recs = append(recs, put(topic, part, row(id, "first")), del(topic, part, fmt.Sprintf(`{"id":%d}`, id)), put(topic, part, row(id, "last")))
	}
	recs = append(recs, put(topic, 0, row(102, "gone")), del(topic, 0, `{"id":102}`))
	r.feed(m, recs...)
	r.once()
	r.equals(m)
}

// TestFault_F11_KeysAreComparedByteForByte: texts that look alike are different
// keys, here and for Java. Of numbers, NaN equals NaN and -0.0 equals 0.0.
func TestFault_F11_KeysAreComparedByteForByte(t *testing.T) {
	texts := []string{`""`, `" "`, `"a"`, `"a "`, `" a"`, `"A"`, `"\u00e9"`, `"e\u0301"`, `"\u0001"`, `"0"`, `"null"`, `"ａ"`}
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, Key: "[k]", More: "create: { types: { k: STRING, v: STRING } }"})
	m := newModel([]string{"k", "v"}, []string{"k"})
	record := func(topic, k, v string) *kgo.Record { return put(topic, 0, fmt.Sprintf(`{"k":%s,"v":%q}`, k, v)) }
	decoded := map[string]string{`"\u00e9"`: `"é"`, `"e\u0301"`: "\"e\u0301\""}
	for round := range 2 {
		for i, k := range texts {
			rec := record(topic, k, fmt.Sprint(i, " of round ", round))
			r.kafka.Produce(t, rec)
			if d := decoded[k]; d != "" {
				k = d
			}
			m.upsert(fmt.Sprintf(`{"k":%s,"v":"%d of round %d"}`, k, i, round))
		}
		r.once()
		r.equals(m)
	}
	for _, k := range []string{"a", "e\u0301", "", " "} {
		n, err := harness.Java(t).Count(t.Context(), r.ref(), harness.Query{Where: []harness.Cond{{Column: "k", Op: "=", Value: k}}})
		require.NoError(t, err)
		require.EqualValues(t, 1, n, "%q", k)
	}
	r.feed(m, del(topic, 0, `{"k":"a "}`))
	r.once()
	r.equals(m)
}

// TestFault_F11_NaNAndZeroAsKeys: one row for all ways to write them.
func TestFault_F11_NaNAndZeroAsKeys(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, Key: "[k]", More: "create: { types: { k: DOUBLE, v: STRING } }"})
	record := func(k, v string) *kgo.Record { return put(topic, 0, fmt.Sprintf(`{"k":%s,"v":%q}`, k, v)) }
	for round := range 2 { // in one batch, and over two
		for _, k := range []string{"-0.0", "0.0", "0", `"NaN"`, `"NaN"`, "1e0", "1.0"} {
			r.kafka.Produce(t, record(k, fmt.Sprint("round ", round)))
		}
		r.once()
	}
	all, err := harness.Java(t).Read(t.Context(), r.ref(), harness.Query{})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{`{"k":0,"v":"round 1"}`, `{"k":"NaN","v":"round 1"}`, `{"k":1,"v":"round 1"}`}, all.Texts())
	harness.SameRows(t.Context(), t, all.Texts(), r.ref(), harness.Query{}, cat(t))
}

// TestFault_F12_HostileTextsStayInsideTheTable: NUL, control characters and path
// parts as values, as partition values and as names; invalid UTF-8 is refused.
func TestFault_F12_HostileTextsStayInsideTheTable(t *testing.T) {
	noFolder := []string{`"\u0000"`, `"a\u0000b"`, `"` + strings.Repeat("/", 90) + `"`, `"` + strings.Repeat("y", 5000) + `"`}
	hostile := []string{`"../../../escape"`, `".."`, `"/etc/passwd"`, `"%2e%2e%2f"`, `"\u0001\u001f"`, `"a\nb"`, `"` + strings.Repeat("x", 200) + `"`}
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: partitioned + "\non_error: skip"})
	m := newModel([]string{"id", "p", "v"}, []string{"id"})
	r.feed(m, put(topic, 0, `{"id":1,"p":"fine"}`))
	r.once() // makes the table
	before := outside(t, r)
	bad := []string{"{\"id\":90,\"v\":\"\xff\"}", "{\"id\":91,\"p\":\"\xc3\x28\"}", `{"id":92,"v":"\ud800"}`, "{\"id\":93,\"\xfe\":1}"}
	for i, text := range noFolder {
		r.feed(m, put(topic, 0, fmt.Sprintf(`{"id":%d,"p":"fine","v":%s}`, 10+i, text)))
		bad = append(bad, fmt.Sprintf(`{"id":%d,"p":%s}`, 10+i, text))
	}
	for i, text := range hostile {
		r.feed(m, put(topic, 0, fmt.Sprintf(`{"id":%d,"p":%s,"v":%s}`, 20+i, text, text)))
	}
	for _, text := range bad {
		r.kafka.Produce(t, put(topic, 0, text))
	}
	r.kafka.Produce(t, put(topic, 0, `{"id":1,"\u0000":1,"../x":2,"a.b":3}`)) // names of columns there are not
	p := r.start()
	r.waitApplied(p)
	r.metricIs(float64(len(bad)), "applier_records_dropped_total", `reason="skipped_error"`)
	harness.MustStop(t, p)
	r.equals(m)
	require.Equal(t, before, outside(t, r), "nothing is written beside the table")
}

// outside lists what lies beside the table, in the warehouse and in its parent.
func outside(t *testing.T, r *rig) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Dir(r.Warehouse), func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == tableDir(r.ref()) || path == r.State {
			return filepath.SkipDir
		}
		paths = append(paths, path)
		return nil
	}))
	return paths
}

// TestFault_F13_RecordsThatOnlyWantToBeLargeAreErrorsOfTheRow on the whole way
// through a broker; ingest/decode has the sizes that no broker takes.
func TestFault_F13_RecordsThatOnlyWantToBeLargeAreErrorsOfTheRow(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: idAndText + "\non_error: skip\nmax_record_bytes: 512KiB"})
	m := newModel([]string{"id", "v"}, []string{"id"})
	var members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, `,"member%d":%d`, i, i)
	}
	r.feed(m, put(topic, 0, row(1, "good")))
	bad := []string{
		`{"id":2,"x":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
		`{"id":3,"x":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + `}`,
		`{"id":4,"v":"` + strings.Repeat("x", 700<<10) + `"}`,
		`{"id":` + strings.Repeat("9", 100_000) + `}`,
	}
	for _, text := range bad {
		r.kafka.Produce(t, put(topic, 0, text))
	}
	r.feed(m, put(topic, 0, row(5, "good")))
	r.kafka.Produce(t, put(topic, 0, `{"id":6,"v":"many"`+members.String()+`}`)) // more members than columns are no error
	m.upsert(row(6, "many"))
	p := r.start()
	r.waitApplied(p)
	r.metricIs(float64(len(bad)), "applier_records_dropped_total", `reason="skipped_error"`)
	harness.MustStop(t, p)
	r.equals(m)
}

// TestFault_F14_ASchemaThatChangesIncompatiblyHaltsNamingTheColumn: what fits the
// table goes on by itself, what does not stops before its record, and goes on when
// the table was altered.
func TestFault_F14_ASchemaThatChangesIncompatiblyHaltsNamingTheColumn(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, Format: "debezium-json", More: "create: { types: { id: BIGINT, n: INT } }"})
	m := newModel([]string{"id", "n"}, []string{"id"})
	change := func(id int, ty, extra string, n string) *kgo.Record {
		return put(topic, 0, fmt.Sprintf(`{"schema":{"type":"struct","fields":[{"field":"after","type":"struct","fields":[{"field":"id","type":"int64"},{"field":"n","type":%q,"optional":true}%s]},{"field":"op","type":"string"}]},"payload":{"op":"c","after":{"id":%d,"n":%s%s}}}`,
			ty, map[bool]string{true: `,{"field":"more","type":"string"}`}[extra != ""], id, n, extra))
	}
	r.kafka.Produce(t, change(1, "int32", "", "1"))
	r.kafka.Produce(t, change(2, "int64", "", "2"))               // wider, and still fits
	r.kafka.Produce(t, change(3, "int16", `,"more":"what"`, "3")) // a column that the table does not have
	m.upsert(`{"id":1,"n":1}`, `{"id":2,"n":2}`, `{"id":3,"n":3}`)
	p := r.start()
	r.waitApplied(p)
	r.kafka.Produce(t, change(4, "int64", "", "5000000000"))
	s := r.waitHalt(p, "D-ROW")
	require.Contains(t, s.Halt.Message, "column n")
	require.Contains(t, s.Halt.Message, topic+"/0 offset 3")
	require.EqualValues(t, 3, r.position(0), "what came before is applied, and nothing of what came after")
	harness.Until(t, patience, "the daemon's end", func() (bool, error) { _ = p.Signal(15); return p.Exited(), nil })
	r.equals(m)
	require.NoError(t, harness.Java(t).Alter(t.Context(), r.ref(), harness.Args{"op": "update_type", "name": "n", "type": "BIGINT"}))
	m.upsert(`{"id":4,"n":5000000000}`)
	r.once()
	r.equals(m)
}

// TestFault_F15_WithoutItsDeadLettersABatchWaits: the dead letter topic takes only
// small records; nothing is committed past the record until it takes it.
func TestFault_F15_WithoutItsDeadLettersABatchWaits(t *testing.T) {
	topic := newTopic(t, 1)
	dlq := topic + ".dlq"
	r := newRig(t, "", pipe{Topic: topic, More: idAndText + "\non_error: dead_letter\ndead_letter: { topic: " + dlq + " }"})
	r.kafka.CreateTopic(t, harness.Topic{Name: dlq, Configs: map[string]string{"max.message.bytes": "300"}})
	m := newModel([]string{"id", "v"}, []string{"id"})
	r.feed(m, put(topic, 0, row(1, "good")))
	p := r.start()
	r.waitApplied(p)
	before := snapshotIDs(r.ref())
	r.kafka.Produce(t, put(topic, 0, `{"id":7,"v":`+strings.Repeat("x", 1000)), put(topic, 0, row(2, "waits")))
	s := r.waitStatus(p, "p", "the halt", func(s pipelineStatus) bool { return s.code() == "D-DLQ" })
	require.Contains(t, s.Halt.Message, dlq)
	require.Equal(t, before, snapshotIDs(r.ref()), "no commit that skips the record")
	r.equals(m)
	large := "1000000"
	_, err := r.kafka.Admin(t).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &large}}, dlq)
	require.NoError(t, err)
	m.upsert(row(2, "waits"))
	r.waitRecovered(p) // by itself
	harness.MustStop(t, p)
	r.equals(m)
	letters := consume(t, r.kafka, dlq, kgo.NewOffset().AtStart(), 1)
	require.Equal(t, topic+"/0/1", string(letters[0].Key))
}

// TestFault_F16_BatchesWithoutAnEffectMoveThePositions within the interval, under
// every preset that can have them.
func TestFault_F16_BatchesWithoutAnEffectMoveThePositions(t *testing.T) {
	for apply, noop := range map[string]func(topic string, i int) *kgo.Record{
		"mirror":      func(topic string, i int) *kgo.Record { return del(topic, 0, fmt.Sprintf(`{"id":%d}`, 1000+i)) },
		"insert_only": func(topic string, _ int) *kgo.Record { return put(topic, 0, row(1, "too late")) },
	} {
		t.Run(apply, func(t *testing.T) {
			topic := newTopic(t, 1)
			r := newRig(t, "", pipe{Topic: topic, More: "apply: " + apply + "\n" + idAndText})
			m := newModel([]string{"id", "v"}, []string{"id"})
			r.feed(m, put(topic, 0, row(1, "good")))
			p := r.start()
			r.waitApplied(p)
			files := dataFiles(t, r.ref())
			for i := range 30 {
				r.kafka.Produce(t, noop(topic, i))
			}
			r.waitApplied(p)
			require.Equal(t, files, dataFiles(t, r.ref()))
			p.Kill()
			require.EqualValues(t, 31, r.position(0))
			r.equals(m)
		})
	}
}
