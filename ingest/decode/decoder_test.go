package decode

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"applier/ingest/change"

	"github.com/stretchr/testify/require"
)

// outcome is everything a decoder did with one record, as text.
func outcome(res Result, err error, out *change.Batch, o Options) string {
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprintf("%+v\n%d\n%s", res, out.Bytes, dump(out, o.Fields))
}

// checker decodes each record with two decoders and checks what holds for
// every record: errors are row errors and leave no trace, the result fits the
// batch, the input stays as it is, equal histories give equal results.
type checker struct {
	o    Options
	d    [2]Decoder
	outs [2]*change.Batch
}

func newChecker(t testing.TB, format string, o Options) *checker {
	c := &checker{o: o}
	for i := range c.d {
		c.d[i], c.outs[i] = mustNew(t, format, o), newBatch(o)
	}
	return c
}

func (c *checker) decode(t testing.TB, rec *Record) error {
	key, value := bytes.Clone(rec.Key), bytes.Clone(rec.Value)
	var texts [2]string
	var result error
	for i, d := range c.d {
		out := c.outs[i]
		out.Reset()
		res, err := d.Decode(rec, out)
		if err != nil {
			var re *RowError
			if !errors.As(err, &re) || re.Class == "" || re.Msg == "" || res != (Result{}) || out.Bytes != 0 || len(out.Raw) > 0 {
				require.Fail(t, "not a clean row error", "%+v %v", res, err)
			}
		}
		if res.Rows != out.Len() || res.Rows > 0 && res.Skip != SkipNone {
			require.Fail(t, "the result does not fit the batch", "%+v", res)
		}
		for col := range out.Cols {
			if out.Cols[col].Len() != out.Len() {
				require.Fail(t, "columns of different length")
			}
			checkHoles(t, out, col, c.o.BeforeImages)
		}
		texts[i], result = outcome(res, err, out, c.o), err
	}
	if texts[0] != texts[1] {
		require.Equal(t, texts[0], texts[1])
	}
	if !bytes.Equal(key, rec.Key) || !bytes.Equal(value, rec.Value) {
		require.Fail(t, "the input was changed")
	}
	return result
}

// checkHoles checks that holes are NULL, never both kinds at once, and never
// in a delete by key that carries nothing else.
func checkHoles(t testing.TB, out *change.Batch, col int, befores bool) {
	c := &out.Cols[col]
	if c.Hole(out.Len()) {
		require.Fail(t, "a hole beyond the batch")
	}
	for row := range out.Len() {
		absent, unavailable := c.Absent.Get(row), c.Unavailable.Get(row)
		if !absent && !unavailable {
			continue
		}
		if absent == unavailable || !c.IsNull(row) || !out.Holes.Get(row) || absent && out.Kind[row] == change.Delete && !befores {
			require.Fail(t, "a wrong hole", "row %d column %d", row, col)
		}
	}
}

// everyType has a column of every scalar type, for fuzzing and damage.
const everyType = `id BIGINT NOT NULL; b BOOLEAN; i1 TINYINT; i2 SMALLINT; i4 INT; f FLOAT; d DOUBLE; n DECIMAL(12, 2); m DECIMAL(38, 10);
	c CHAR(5); v VARCHAR(20); s STRING; x BINARY(4); y VARBINARY(10); z BYTES; da DATE; ti TIME(3); t6 TIME(6); ts3 TIMESTAMP(3); ts TIMESTAMP(6);
	ts9 TIMESTAMP(9); tz TIMESTAMP(6) WITH LOCAL TIME ZONE; nn INT NOT NULL DEFAULT 1; arr ARRAY<INT>; op STRING; h STRING`

func everyOptions(t require.TestingT, kind int) (string, Options) {
	key := []string{"id"}
	switch kind % 4 {
	case 1:
		key = []string{"s", "id"}
	case 2:
		key = nil
	}
	o := options(t, strings.ReplaceAll(everyType, "\n\t", " "), key...)
	o.Columns = []MetaColumn{{column(t, o.Fields, "op"), "op"}, {column(t, o.Fields, "h"), "header.h"}}
	o.UnscaledDecimals = kind%3 == 1
	o.IgnoreDeletes = kind%5 == 1
	o.Binary = BinaryText(kind % 3)
	o.KeepRaw = kind%2 == 0
	o.BeforeImages = kind%7 == 3
	if kind%8 >= 4 {
		return "json", o
	}
	return "debezium-json", o
}

// goldenRecords are one record of each shape, for damage and as fuzz seeds.
func goldenRecords() []*Record {
	after := `{"id":1,"b":true,"i1":-1,"i2":2,"i4":3,"f":1.5,"d":-2.5e3,"n":"12.34","m":"1","c":"ab","v":"é","s":"\u00e9\ud83d\ude00","x":"AQI=","y":"","z":"AP8Q",` +
		`"da":20706,"ti":45296123,"t6":45296123456,"ts3":1789043696123,"ts":1789043696123456,"ts9":1789043696123456789,"tz":"2026-09-10T12:34:56Z","nn":5,"arr":null,"zz":[{"a":[1,null]}]}`
	schema := `{"type":"struct","fields":[{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"},"field":"n"},{"type":"int32","name":"io.debezium.time.Date","field":"da"}],"field":"after"},{"type":"string","field":"op"}],"name":"E"}`
	recs := []*Record{
		record(`{"id":1}`, `{"before":null,"after":`+after+`,"source":{"version":"3","ts_ms":5,"snapshot":"false"},"transaction":null,"op":"c","ts_ms":6}`),
		record(`{"id":1}`, `{"before":{"id":2,"s":"x"},"after":{"id":1,"s":"y","z":"`+unavailable+`"},"op":"u"}`),
		record(`{"id":1,"s":"x"}`, `{"before":{"id":1,"s":"x","nn":3},"after":null,"op":"d"}`),
		record(`{"id":1}`, "null"), record("null", "null"), record(`1`, "null"), record(`Struct{id=1}`, "null"),
		record("null", `{"op":"t","source":{}}`), record(`{"serverName":"x"}`, `{"ts_ms":1}`),
		record(`{"schema":{"type":"struct","fields":[{"type":"int64","field":"id"}]},"payload":{"id":1}}`, `{"schema":`+schema+`,"payload":{"op":"r","after":{"id":1,"n":"BNI=","da":-1}}}`),
		record(`1`, after), record(`{"id":1}`, after), record("null", `{"payload":{"id":3,"nn":1},"schema":null}`),
	}
	recs[1].Headers = []change.Header{{Key: oldKeyHeader, Value: []byte(`{"id":7}`)}, {Key: "h", Value: []byte("v")}}
	return recs
}

func TestDecoder_KeepsItsPromisesForEveryShapeAndOption(t *testing.T) {
	decoded := 0
	for kind := range 120 {
		format, o := everyOptions(t, kind)
		c := newChecker(t, format, o)
		for _, rec := range goldenRecords() {
			if c.decode(t, rec) == nil {
				decoded++
			}
		}
	}
	require.Greater(t, decoded, 600)
}

func TestDecoder_RefusesTruncatedRecords(t *testing.T) {
	for _, kind := range []int{0, 2, 5} {
		format, o := everyOptions(t, kind)
		c := newChecker(t, format, o)
		for _, rec := range goldenRecords() {
			for n := 1; n < len(rec.Value); n++ {
				cut := *rec
				cut.Value = rec.Value[:n]
				require.Error(t, c.decode(t, &cut), "%s", cut.Value)
			}
			for n := range len(rec.Key) {
				cut := *rec
				cut.Key = rec.Key[:n]
				_ = c.decode(t, &cut) // a value can do without its key
			}
		}
	}
}

func TestDecoder_SurvivesDamagedBytes(t *testing.T) {
	for _, kind := range []int{0, 4} {
		format, o := everyOptions(t, kind)
		c := newChecker(t, format, o)
		for _, rec := range goldenRecords() {
			bad := *rec
			for n := range rec.Value {
				bad.Value = bytes.Clone(rec.Value)
				for _, b := range []byte("\"}\\9\xff") {
					bad.Value[n] = b
					_ = c.decode(t, &bad)
				}
			}
		}
	}
}

func TestDecoder_LeavesEarlierRowsAloneOnErrors(t *testing.T) {
	o := options(t, "id BIGINT NOT NULL; a STRING; b DECIMAL(5, 2); c INT NOT NULL", "id")
	d, out := mustNew(t, "debezium-json", o), newBatch(o)
	good := record(`{"id":1}`, `{"op":"c","after":{"id":1,"a":"`+unavailable+`","b":1.5,"c":2}}`)
	good.Headers = []change.Header{{Key: oldKeyHeader, Value: []byte(`{"id":9}`)}}
	_, err := d.Decode(good, out)
	require.NoError(t, err)
	before, size := dump(out, o.Fields), out.Bytes
	for _, value := range []string{
		`{"op":"c","after":{"id":1,"a":"x","b":1.555,"c":2}}`, `{"op":"c","after":{"id":1,"a":"x","b":1.5,"c":null}}`, `{"op":"c","after":{"id":1,"a":"x","b":1.5}`,
		`{"op":"c","after":{"id":1,"a":"x","a":"y","b":1.5}}`, `{"op":"u","before":{"id":1},"after":{"id":2,"c":null}}`, `{"op":"q","after":{"id":1,"a":"x","b":1.5,"c":2}}`,
		`{"op":"c","after":{"id":1,"a":"` + unavailable + `","c":"x"}}`, `{"op":"d","before":{"id":null}}`,
	} {
		_, err := d.Decode(record("null", value), out)
		require.Error(t, err, value)
		require.Equal(t, before, dump(out, o.Fields), value)
		require.Equal(t, size, out.Bytes)
	}
	_, err = d.Decode(record(`{"id":2}`, `{"op":"c","after":{"id":2,"a":"x","b":1.5,"c":2}}`), out)
	require.NoError(t, err)
	require.Equal(t, before+"insert part=0 offset=7 time=1700000000000 id=2 a=x b=1.50 c=2\n", dump(out, o.Fields))
}

func TestDecoder_DoesNotAllocateOnceItKnowsTheNames(t *testing.T) {
	for _, kind := range []string{"small", "large", "schema"} {
		recs := benchRecords(kind, 50)
		d := mustNew(t, "debezium-json", Options{Fields: benchFields, Key: []int{0}, Unavailable: unavailable})
		out := change.NewBatch(benchFields, benchFields[:1])
		run := func() {
			out.Reset()
			for i := range recs {
				if _, err := d.Decode(&recs[i], out); err != nil {
					t.Fatal(err)
				}
			}
		}
		run()
		require.Zero(t, testing.AllocsPerRun(10, run), kind)
	}
}

func TestDecoder_ForgetsNoLimits(t *testing.T) {
	o := options(t, "id BIGINT NOT NULL; a STRING", "id")
	d := mustNew(t, "debezium-json", o)
	out := newBatch(o)
	for i := range 2000 {
		// A new column, a new schema, a new key member and a new source member each time.
		value := fmt.Sprintf(`{"schema":{"type":"struct","fields":[{"type":"struct","fields":[{"type":"int64","field":"id"},{"type":"string","name":"n%d","field":"a"}],"field":"after"}]},"payload":{"e%d":1,"source":{"s%d":1},"op":"c","after":{"id":1,"a":"x","c%d":1}}}`, i, i, i, i)
		_, err := d.Decode(record(fmt.Sprintf(`{"id":1,"k%d":2}`, i), value), out)
		require.NoError(t, err)
	}
	require.Equal(t, 2000, out.Len())
	require.Len(t, d.UnknownColumns(), maxUnknownColumns)
	z := d.(*debezium)
	require.LessOrEqual(t, len(z.values.known), maxSchemas)
	require.LessOrEqual(t, len(z.members.byName), maxExtraNames+len(envelopeMembers))
	require.LessOrEqual(t, len(z.sources.byName), maxExtraNames+1)
	require.LessOrEqual(t, len(z.key.bare.byName), maxExtraNames+2)
	require.LessOrEqual(t, len(z.notes), maxNotes)

	for part := range int32(10000) {
		rec := record(`{"id":1}`, `{"op":"d","before":null}`)
		rec.Part = part
		_, err := d.Decode(rec, out)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(z.deletes.parts), maxDeleteParts)
}

func TestDecoder_RefusesDeepAndHugeSchemas(t *testing.T) {
	o := options(t, "id BIGINT NOT NULL; a STRING", "id")
	d := mustNew(t, "debezium-json", o)
	deep := `{"op":"c","after":{"id":1,"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`
	_, err := d.Decode(record("null", deep), newBatch(o))
	require.ErrorContains(t, err, "nested too deep")

	nodes := `{"schema":{"type":"struct","fields":[` + strings.Repeat(`{},`, maxNodes) + `{}]},"payload":{"op":"c","after":{"id":1}}}`
	_, err = d.Decode(record("null", nodes), newBatch(o))
	require.ErrorContains(t, err, "not a Debezium change event", "too many nodes make no schema")
}

func FuzzDecoder(f *testing.F) {
	for kind := range 8 {
		for _, rec := range goldenRecords() {
			header := []byte(nil)
			if len(rec.Headers) > 0 {
				header = rec.Headers[0].Value
			}
			f.Add(byte(kind), rec.Key, rec.Value, header)
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, key, value, header []byte) {
		format, o := everyOptions(t, int(kind))
		rec := &Record{Topic: "t", Key: key, Value: value, Timestamp: 1}
		if header != nil {
			rec.Headers = []change.Header{{Key: oldKeyHeader, Value: header}, {Key: "h", Value: header}}
		}
		_ = newChecker(t, format, o).decode(t, rec)
	})
}
