package decode

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFault_F13_BombsAreErrorsThatCostNoMoreThanTheirBytes: records of any size
// that only want to be large or deep, in every place where a decoder looks. itest
// sends the small ones through a broker.
func TestFault_F13_BombsAreErrorsThatCostNoMoreThanTheirBytes(t *testing.T) {
	const deep, many = 10_000, 1_000_000
	nested := func(open, shut string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(shut, n) }
	var members strings.Builder
	for range many {
		members.WriteString(`,"x":1`)
	}
	distinct := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`,"m`)
			b.WriteString(strings.Repeat(string(rune('a'+i%26)), 1+i%97))
			b.WriteString(string(rune('0'+i%10)) + `":1`)
		}
		return b.String()
	}
	bombs := map[string]struct {
		key, value string
		fine       bool
	}{
		"lists":                      {"", `{"id":1,"v":` + nested("[", "]", deep) + `}`, false},
		"objects":                    {"", `{"id":1,"v":` + nested(`{"a":`, "}", deep) + `}`, false},
		"objects outside of a row":   {"", `{"id":1,"other":` + nested(`{"a":`, "}", deep) + `}`, false},
		"the key":                    {nested("[", "]", deep), `{"id":1}`, false},
		"one member a million times": {"", `{"id":1` + members.String() + `}`, false},
		"many members":               {"", `{"id":1` + distinct(5_000) + `}`, true},
		"a text of 64 MiB":           {"", `{"id":1,"v":"` + strings.Repeat("x", 64<<20) + `"}`, true},
		"a number of 1 MiB":          {"", `{"id":` + strings.Repeat("9", 1<<20) + `}`, false},
		"an exponent":                {"", `{"id":1e999999999}`, false},
		"a schema of lists":          {"", `{"schema":` + strings.Repeat(`{"type":"array","items":`, deep) + `{"type":"int32"}` + strings.Repeat("}", deep) + `,"payload":{"id":1}}`, false},
	}
	for name, b := range bombs {
		t.Run(name, func(t *testing.T) {
			o := options(t, "id INT NOT NULL; v STRING", "id")
			d, err := New("json", o)
			require.NoError(t, err)
			out := newBatch(o)
			rec := &Record{Value: []byte(b.value)}
			if b.key != "" {
				rec.Key = []byte(b.key)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = d.Decode(rec, out)
			runtime.ReadMemStats(&after)
			require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(4*len(b.value)+1<<20), "memory grows with the record and no faster")
			if b.fine {
				require.NoError(t, err)
				return
			}
			var row *RowError
			require.ErrorAs(t, err, &row)
			require.Less(t, len(row.Error()), 500, "it does not repeat the record")
			require.Zero(t, out.Len())
		})
	}
}
