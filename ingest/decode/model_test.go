package decode

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// modelColumn is a column whose values are drawn together with what they must
// become: the JSON of a producer and the text of the cell.
type modelColumn struct {
	name, typ, schema string
	draw              func(t *rapid.T) (json, text string)
}

func str(s string) string { return string(types.AppendJSONString(nil, []byte(s))) }

// modelColumns cover every layout of vectors.
var modelColumns = []modelColumn{
	{"id", "BIGINT", `{"type":"int64"`, func(t *rapid.T) (string, string) {
		s := strconv.FormatInt(rapid.Int64().Draw(t, "id"), 10)
		return s, s
	}},
	{"k", "STRING", `{"type":"string"`, func(t *rapid.T) (string, string) {
		s := rapid.StringN(1, 6, -1).Draw(t, "k")
		return str(s), s
	}},
	{"flag", "BOOLEAN", `{"type":"boolean"`, func(t *rapid.T) (string, string) {
		s := strconv.FormatBool(rapid.Bool().Draw(t, "flag"))
		return s, s
	}},
	{"small", "SMALLINT", `{"type":"int16"`, func(t *rapid.T) (string, string) {
		s := fmt.Sprint(rapid.Int16().Draw(t, "small"))
		return s, s
	}},
	{"d", "DOUBLE", `{"type":"double"`, func(t *rapid.T) (string, string) {
		f := rapid.Float64().Draw(t, "d")
		return strconv.FormatFloat(f, 'g', -1, 64), string(types.AppendText(nil, types.DoubleType(), types.FloatDatum(f)))
	}},
	{"dec", "DECIMAL(12, 2)", `{"type":"string"`, func(t *rapid.T) (string, string) {
		n := rapid.Int64Range(-999999999999, 999999999999).Draw(t, "dec")
		s := string(types.AppendDecimal(nil, types.Int128From(n), 2))
		return `"` + s + `"`, s
	}},
	{"big", "DECIMAL(30, 5)", `{"type":"string"`, func(t *rapid.T) (string, string) {
		s := rapid.StringMatching(`-?[1-9][0-9]{0,24}\.[0-9]{4}[1-9]`).Draw(t, "big")
		return `"` + s + `"`, s
	}},
	{"b", "BYTES", `{"type":"bytes"`, func(t *rapid.T) (string, string) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "b")
		return `"` + base64.StdEncoding.EncodeToString(b) + `"`, hex.EncodeToString(b)
	}},
	{"day", "DATE", `{"type":"int32","name":"io.debezium.time.Date"`, func(t *rapid.T) (string, string) {
		n := rapid.Int64Range(-800000, 3000000).Draw(t, "day")
		return fmt.Sprint(n), string(types.AppendDate(nil, n))
	}},
	{"ts", "TIMESTAMP(9)", `{"type":"int64","name":"io.debezium.time.NanoTimestamp"`, func(t *rapid.T) (string, string) {
		n := rapid.Int64Range(-9e18, 9e18).Draw(t, "ts")
		micros := types.FloorDiv(n, 1000)
		return fmt.Sprint(n), string(types.AppendTimestamp(nil, micros, int32(n-micros*1000), 9, 'T'))
	}},
}

// modelRow is a row as JSON members and as the cells they must become.
type modelRow struct {
	json, want []string // by column; "" in json: the member is absent
}

func drawRow(t *rapid.T, key int) modelRow {
	r := modelRow{make([]string, len(modelColumns)), make([]string, len(modelColumns))}
	for i, c := range modelColumns {
		state := rapid.IntRange(0, 9).Draw(t, "state")
		switch {
		case i < key || state > 2:
			r.json[i], r.want[i] = c.draw(t)
		case state == 0:
			r.want[i] = "absent"
		case state == 1:
			r.json[i], r.want[i] = "null", "NULL"
		default:
			r.json[i], r.want[i] = str(unavailable), "unavailable"
		}
	}
	return r
}

// object writes the members that chosen keeps, in any order, with any spacing
// and with members nobody asked for.
func (r modelRow) object(t *rapid.T, chosen func(i int) bool) string {
	gap := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "gap")
	var members []string
	for i, c := range modelColumns {
		if r.json[i] != "" && chosen(i) {
			members = append(members, str(c.name)+gap+":"+gap+r.json[i])
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "extras") {
		members = append(members, fmt.Sprintf(`"extra%d":{"id":[%d]}`, i, i))
	}
	if rapid.Bool().Draw(t, "shuffled") {
		members = rapid.Permutation(members).Draw(t, "order")
	}
	return "{" + gap + strings.Join(members, gap+","+gap) + gap + "}"
}

// TestDebezium_DecodesAnyRowAsWritten draws sequences of rows and checks that
// one decoder, which learns as it goes, makes of each what was put into it.
func TestDebezium_DecodesAnyRowAsWritten(t *testing.T) {
	var columns, before, after []string
	for _, c := range modelColumns {
		columns = append(columns, c.name+" "+c.typ)
		after = append(after, c.schema+`,"optional":true,"field":"`+c.name+`"}`)
	}
	before = after
	schema := `{"type":"struct","fields":[{"type":"struct","fields":[` + strings.Join(before, ",") + `],"field":"before"},{"type":"struct","fields":[` + strings.Join(after, ",") + `],"field":"after"}],"name":"E"}`
	keySchema := `{"type":"struct","fields":[` + after[0] + "," + after[1] + `],"name":"K"}`
	o := options(t, strings.Join(columns, "; "), "id", "k")
	rapid.Check(t, func(t *rapid.T) {
		withSchema := rapid.Bool().Draw(t, "schema")
		d, out := mustNew(t, "debezium-json", o), newBatch(o)
		var want []string
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			row := drawRow(t, 2)
			op := rapid.SampledFrom([]string{"c", "u", "r", "d"}).Draw(t, "op")
			key := row.object(t, func(i int) bool { return i < 2 })
			if keyless := rapid.Bool().Draw(t, "key in value only"); keyless {
				key = "null"
			} else if withSchema {
				key = `{"schema":` + keySchema + `,"payload":` + key + `}`
			}
			keyInValue := key == "null" || rapid.Bool().Draw(t, "key in value")
			image := row.object(t, func(i int) bool { return i >= 2 || keyInValue })
			value := `{"before":null,"after":` + image + `,"source":{"ts_ms":7},"op":"` + op + `"}`
			if op == "d" {
				value = `{"before":` + image + `,"after":null,"op":"d","ts_ms":7}`
			}
			if withSchema {
				value = `{"schema":` + schema + `,"payload":` + value + `}`
			}
			res, err := d.Decode(record(key, value), out)
			require.NoError(t, err, "%s %s", key, value)
			require.Equal(t, 1, res.Rows)
			want = append(want, expected(row, op))
		}
		for i, w := range want {
			require.Equal(t, w, actual(out, i))
		}
	})
}

func expected(row modelRow, op string) string {
	cells := append([]string{}, row.want...)
	if op == "d" {
		for i := 2; i < len(cells); i++ {
			cells[i] = "NULL"
		}
	}
	kind := map[string]change.Kind{"c": change.Insert, "u": change.Update, "r": change.Read, "d": change.Delete}[op]
	return kind.String() + " 7 " + strings.Join(cells, "|")
}

func actual(out *change.Batch, i int) string {
	var cells []string
	for c := range out.Cols {
		cells = append(cells, cellText(&out.Cols[c], i))
	}
	return fmt.Sprintf("%s %d %s", out.Kind[i], out.Time[i], strings.Join(cells, "|"))
}

// TestPlain_DecodesAnyRowAsWritten is the same for plain JSON, with types that
// it has.
func TestPlain_DecodesAnyRowAsWritten(t *testing.T) {
	var columns []string
	for _, c := range modelColumns[:8] {
		columns = append(columns, c.name+" "+c.typ)
	}
	o := options(t, strings.Join(columns, "; "), "id")
	rapid.Check(t, func(t *rapid.T) {
		d, out := mustNew(t, "json", o), newBatch(o)
		var want []string
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			row := drawRow(t, 1)
			inKey := rapid.Bool().Draw(t, "key in record key")
			key := "null"
			if inKey {
				key = rapid.SampledFrom([]string{row.json[0], `{"id":` + row.json[0] + `}`, " " + row.json[0] + "\n"}).Draw(t, "key")
			}
			value := row.object(t, func(i int) bool { return i < 8 && (i > 0 || !inKey) })
			_, err := d.Decode(record(key, value), out)
			require.NoError(t, err, "%s %s", key, value)
			want = append(want, strings.Join(row.want[:8], "|"))
		}
		for i, w := range want {
			require.Equal(t, "update 1700000000000 "+w, actual(out, i))
		}
	})
}
