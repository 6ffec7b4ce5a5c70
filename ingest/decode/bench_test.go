package decode

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"syscall"
	"testing"
	"time"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// The envelopes of the design's measurements: eight columns, 264 bytes with a
// tiny source block, and 1 KB with before image, full source and transaction.

var benchFields = []types.Field{
	{ID: 0, Name: "id", Type: types.BigIntType().NonNull()},
	{ID: 1, Name: "ref", Type: types.BigIntType()},
	{ID: 2, Name: "name", Type: types.StringType()},
	{ID: 3, Name: "city", Type: types.StringType()},
	{ID: 4, Name: "amt", Type: types.DoubleType()},
	{ID: 5, Name: "price", Type: types.DecimalType(18, 2)},
	{ID: 6, Name: "ts", Type: types.TimestampType(6)},
	{ID: 7, Name: "day", Type: types.DateType()},
}

const benchRowSchema = `{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},{"type":"int64","optional":true,"field":"ref"},` +
	`{"type":"string","optional":true,"field":"name"},{"type":"string","optional":true,"field":"city"},{"type":"double","optional":true,"field":"amt"},` +
	`{"type":"string","optional":true,"field":"price"},{"type":"int64","optional":true,"name":"io.debezium.time.MicroTimestamp","version":1,"field":"ts"},` +
	`{"type":"int32","optional":true,"name":"io.debezium.time.Date","version":1,"field":"day"}],"optional":true,"name":"shop.public.orders.Value","field":"%s"}`

const benchTailSchema = `{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},{"type":"string","optional":false,"field":"connector"},` +
	`{"type":"string","optional":false,"field":"name"},{"type":"int64","optional":false,"field":"ts_ms"},{"type":"string","optional":true,"name":"io.debezium.data.Enum",` +
	`"version":1,"parameters":{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"default":"false","field":"snapshot"},` +
	`{"type":"string","optional":false,"field":"db"},{"type":"string","optional":true,"field":"sequence"},{"type":"int64","optional":true,"field":"ts_us"},` +
	`{"type":"int64","optional":true,"field":"ts_ns"},{"type":"string","optional":false,"field":"schema"},{"type":"string","optional":false,"field":"table"},` +
	`{"type":"int64","optional":true,"field":"txId"},{"type":"int64","optional":true,"field":"lsn"},{"type":"int64","optional":true,"field":"xmin"}],"optional":false,` +
	`"name":"io.debezium.connector.postgresql.Source","version":1,"field":"source"},{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},` +
	`{"type":"int64","optional":false,"field":"total_order"},{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"name":"event.block",` +
	`"version":1,"field":"transaction"},{"type":"string","optional":false,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"}`

// benchRecords makes n records; kind is small, large or schema.
func benchRecords(kind string, n int) []Record {
	rg := rand.New(rand.NewSource(1))
	schema := `{"type":"struct","fields":[` + fmt.Sprintf(benchRowSchema, "before") + "," + fmt.Sprintf(benchRowSchema, "after") + "," + benchTailSchema +
		`],"optional":false,"name":"shop.public.orders.Envelope","version":2}`
	keySchema := `{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],"optional":false,"name":"shop.public.orders.Key"}`
	recs := make([]Record, n)
	for i := range recs {
		id := rg.Int63n(1 << 40)
		after := fmt.Sprintf(`{"id":%d,"ref":%d,"name":"cust-%d-%x","city":"city-%d","amt":%.2f,"price":"%d.%02d","ts":%d,"day":%d}`,
			id, rg.Intn(100000), i, rg.Int63n(1<<32), rg.Intn(1000), float64(rg.Intn(1e7))/100, rg.Intn(1e6), rg.Intn(100), 1780000000000000+int64(i)*1000, 20000+rg.Intn(100))
		key := fmt.Sprintf(`{"id":%d}`, id)
		value := fmt.Sprintf(`{"before":null,"after":%s,"source":{"lsn":%d,"table":"orders"},"op":"c","ts_ms":%d,"transaction":null}`, after, 1<<33+i, 1780000000000+i)
		if kind == "large" {
			value = fmt.Sprintf(`{"before":%s,"after":%s,"source":{"version":"3.1.0.Final","connector":"postgresql","name":"inventory","ts_ms":%d,"snapshot":"false","db":"inventory","sequence":"[\"%d\",\"%d\"]","ts_us":%d,"ts_ns":%d,"schema":"public","table":"orders","txId":%d,"lsn":%d,"xmin":null},"transaction":{"id":"%d:%d","total_order":%d,"data_collection_order":%d},"op":"u","ts_ms":%d,"ts_us":%d,"ts_ns":%d,"h1":"%016x","h2":"%016x"}`,
				after, after, 1780000000000+i, 1<<33+i, 1<<33+i+5, 1780000000000000+i, 1780000000000000000+i, 700+i, 1<<33+i, 700+i, 1<<33, i, i,
				1780000000000+i, 1780000000000000+i, 1780000000000000000+i, rg.Int63(), rg.Int63())
		}
		if kind == "schema" {
			key = `{"schema":` + keySchema + `,"payload":` + key + `}`
			value = `{"schema":` + schema + `,"payload":` + value + `}`
		}
		recs[i] = Record{Offset: int64(i), Key: []byte(key), Value: []byte(value)}
	}
	return recs
}

func BenchmarkDebezium(b *testing.B) {
	for _, kind := range []string{"small", "large", "schema"} {
		recs := benchRecords(kind, 4000)
		bytes := 0
		for _, r := range recs {
			bytes += len(r.Value)
		}
		b.Run(fmt.Sprintf("%s-%dB", kind, bytes/len(recs)), func(b *testing.B) {
			benchDecode(b, "debezium-json", recs)
		})
	}
}

func BenchmarkPlain(b *testing.B) {
	recs := benchRecords("small", 4000)
	for i := range recs {
		var v struct{ After json.RawMessage }
		require.NoError(b, json.Unmarshal(recs[i].Value, &v))
		recs[i].Value = v.After
	}
	o := Options{Fields: append([]types.Field{}, benchFields...), Key: []int{0}}
	o.Fields[6].Type, o.Fields[7].Type = types.BigIntType(), types.IntType()
	d, err := New("json", o)
	require.NoError(b, err)
	benchLoop(b, d, recs, o.Fields)
}

func benchDecode(b *testing.B, format string, recs []Record) {
	d, err := New(format, Options{Fields: benchFields, Key: []int{0}, Unavailable: "__debezium_unavailable_value"})
	require.NoError(b, err)
	benchLoop(b, d, recs, benchFields)
}

// benchLoop decodes a record an iteration into batches of 4,000 rows.
func benchLoop(b *testing.B, d Decoder, recs []Record, fields []types.Field) {
	out := change.NewBatch(fields, fields[:1])
	for i := range recs { // warm up: grow the vectors, learn the names
		_, err := d.Decode(&recs[i], out)
		require.NoError(b, err)
	}
	bytes := int64(0)
	for i := range recs {
		bytes += int64(len(recs[i].Value))
	}
	b.SetBytes(bytes / int64(len(recs)))
	b.ReportAllocs()
	b.ResetTimer()
	start := cpuTime()
	for i := range b.N {
		at := i % len(recs)
		if at == 0 {
			out.Reset()
		}
		if _, err := d.Decode(&recs[at], out); err != nil {
			b.Fatal(err)
		}
	}
	// CPU time, which a busy machine distorts less than the clock.
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
}

// cpuTime returns the process's CPU time.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
