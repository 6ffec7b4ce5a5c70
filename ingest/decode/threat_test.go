package decode

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// bombs are records that cost more than their size, if a decoder is careless.
func bombs() map[string]string {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	return map[string]string{
		"deep objects":         `{"id":1,"note":` + deep(10_000) + `}`,
		"deep arrays":          `{"id":1,"note":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`,
		"deep and never ended": strings.Repeat(`{"a":`, 100_000),
		"deep unknown member":  `{"id":1,"x":` + deep(100) + `}`,
		"huge number":          `{"id":` + strings.Repeat("9", 1<<20) + `}`,
		"huge exponent":        `{"id":1e999999999,"n":1e-999999999}`,
		"huge decimal":         `{"id":1,"d":"` + strings.Repeat("9", 1<<20) + `"}`,
		"decimal exponent":     `{"id":1,"d":"1e1000000000"}`,
		"many members":         `{` + strings.Repeat(`"x":1,`, 100_000) + `"id":1}`,
		"many names":           manyNames(50_000),
		"long name":            `{"` + strings.Repeat("n", 1<<20) + `":1,"id":1}`,
		"many escapes":         `{"id":1,"note":"` + strings.Repeat(`\ud83d\ude00`, 100_000) + `"}`,
		"invalid UTF-8":        "{\"id\":1,\"note\":\"\xff\xfe\"}",
		"lone surrogate":       `{"id":1,"note":"\ud800"}`,
		"NUL bytes":            "{\"id\":1,\"note\":\"\x00\"}",
		"truncated":            `{"id":1,"note":"`,
		"not JSON":             strings.Repeat("\x00", 1<<20),
	}
}

func manyNames(n int) string {
	var b strings.Builder
	b.WriteString(`{"id":1`)
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":%d`, i, i)
	}
	return b.String() + "}"
}

// A record may be refused or read, but never costs more memory than a few times its
// size, and never more than 64 levels.
func TestThreat_DecoderBombs(t *testing.T) {
	fields := []types.Field{
		{Name: "id", Type: types.BigIntType().NonNull()},
		{Name: "note", Type: types.StringType()},
		{Name: "n", Type: types.DoubleType()},
		{Name: "d", Type: types.DecimalType(38, 9)},
	}
	o := Options{Fields: fields, Key: []int{0}}
	wrap := map[string]func(string) string{
		"json":          func(v string) string { return v },
		"debezium-json": func(v string) string { return `{"op":"c","before":null,"after":` + v + `,"ts_ms":1}` },
	}
	for format, envelope := range wrap {
		for name, bomb := range bombs() {
			t.Run(format+"/"+name, func(t *testing.T) {
				dec, err := New(format, o)
				require.NoError(t, err)
				value := []byte(envelope(bomb))
				key := []byte(envelope(bomb))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for i, rec := range []*Record{{Topic: "t", Value: value}, {Topic: "t", Key: key, Value: value}, {Topic: "t", Key: key}} {
					out := change.NewBatch(fields, fields[:1])
					res, err := dec.Decode(rec, out)
					require.Equal(t, res.Rows, out.Len(), "record %d: %v", i, err)
					if err != nil {
						var row *RowError
						require.ErrorAs(t, err, &row)
						require.Less(t, len(row.Error()), 4096, "the error repeats the record")
					}
				}
				runtime.ReadMemStats(&after)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*len(value)+1<<20), "three records of %d bytes", len(value))
				require.LessOrEqual(t, len(dec.UnknownColumns()), 256)
			})
		}
	}
}
