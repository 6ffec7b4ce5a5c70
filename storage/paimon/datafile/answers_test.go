package datafile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// goldenStep is one statement of steps.jsonl with Spark's answer.
type goldenStep struct {
	SQL     string         `json:"sql"`
	Columns [][]string     `json:"columns"`
	Rows    [][]any        `json:"rows"`
	Latest  map[string]int `json:"latest"`
}

func goldenSteps(t *testing.T, dir string) []goldenStep {
	f, err := os.Open(filepath.Join(dir, "steps.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var steps []goldenStep
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var s goldenStep
		d := json.NewDecoder(strings.NewReader(sc.Text()))
		d.UseNumber()
		require.NoError(t, d.Decode(&s))
		steps = append(steps, s)
	}
	require.NoError(t, sc.Err())
	return steps
}

// liveRows reads the latest files of a table without their deleted rows. ok is
// false if one is of an older schema or its deletions are only summed up.
func liveRows(t *testing.T, h goldenHead) (fs []types.Field, rows [][]types.Datum, ok bool) {
	for _, g := range h.Latest {
		deleted, isList := g.Deleted.([]any)
		if !inScope(g) || !isList || g.SchemaID != len(h.Schemas)-1 {
			return nil, nil, false
		}
		fs = h.Schemas[fmt.Sprint(g.SchemaID)].Fields
		for i, r := range readAll(t, openFile(t, g.read(t), ReadOptions{Fields: fs})) {
			if !slices.Contains(deleted, any(float64(i))) {
				rows = append(rows, r)
			}
		}
	}
	return fs, rows, len(h.Latest) > 0
}

var selectAll = regexp.MustCompile(`^SELECT \* FROM (\w+)( ORDER BY .*)?$`)

// TestGolden_LiveRowsAreSparksAnswers compares what we read of the latest files,
// minus the positions that the deletion vectors name, with SELECT * in Spark.
func TestGolden_LiveRowsAreSparksAnswers(t *testing.T) {
	compared := map[string]bool{}
	goldenTables(t, func(t *testing.T, name string, d goldenDump) {
		dir, table, _ := strings.Cut(name, "/")
		h := d.Heads["main"]
		var answer *goldenStep
		steps := goldenSteps(t, filepath.Join(goldenRoot, dir))
		for i := range steps {
			m := selectAll.FindStringSubmatch(steps[i].SQL)
			if m != nil && m[1] == table && h.Snapshots[fmt.Sprint(steps[i].Latest[table])] != nil &&
				h.Snapshots[fmt.Sprint(steps[i].Latest[table]+1)] == nil {
				answer = &steps[i]
			}
		}
		if answer == nil {
			return
		}
		fs, rows, ok := liveRows(t, h)
		if !ok {
			return
		}
		var want, got []string
		for _, r := range answer.Rows {
			line := ""
			for i := range fs {
				line += answerText(t, fs[i].Type, r[i]) + "|"
			}
			want = append(want, line)
		}
		for _, r := range rows {
			line := ""
			for i := range fs {
				line += string(types.AppendJSON(nil, fs[i].Type, r[i])) + "|"
			}
			got = append(got, line)
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
		compared[dir] = true
	})
	for _, dir := range []string{"nested_dv", "partitions_dv", "spec_dv", "spec_cow", "spec_defaults", "merge_clauses", "branches"} {
		require.True(t, compared[dir], dir)
	}
}

// answerText turns a recorded value into types.AppendJSON's form.
func answerText(t *testing.T, typ types.Type, v any) string {
	m, _ := v.(map[string]any)
	switch {
	case v == nil:
		return "null"
	case m["decimal"] != nil:
		return fmt.Sprintf("%q", m["decimal"])
	case m["date"] != nil:
		return fmt.Sprintf("%q", m["date"])
	case m["hex"] != nil:
		return fmt.Sprintf("%q", strings.ToLower(m["hex"].(string)))
	case m["ts"] != nil:
		at, err := time.Parse("2006-01-02T15:04:05.999999Z07:00", strings.Replace(m["ts"].(string), " ", "T", 1)+"Z")
		if err != nil {
			at, err = time.Parse(time.RFC3339Nano, m["ts"].(string))
		}
		require.NoError(t, err)
		return string(types.AppendJSON(nil, typ, types.IntDatum(at.UnixMicro())))
	case m["row"] != nil:
		var parts []string
		for i, kv := range m["row"].([]any) {
			f := typ.Fields[i]
			require.Equal(t, f.Name, kv.([]any)[0])
			parts = append(parts, fmt.Sprintf("%q:%s", f.Name, answerText(t, f.Type, kv.([]any)[1])))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case m["map"] != nil:
		var parts []string
		for _, kv := range m["map"].([]any) {
			k, v := answerText(t, *typ.Key, kv.([]any)[0]), answerText(t, *typ.Elem, kv.([]any)[1])
			if typ.Key.IsText() {
				parts = append(parts, k+":"+v)
			} else {
				parts = append(parts, "["+k+","+v+"]")
			}
		}
		if typ.Key.IsText() {
			return "{" + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	switch x := v.(type) {
	case []any:
		var parts []string
		for _, e := range x {
			parts = append(parts, answerText(t, *typ.Elem, e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return string(types.AppendJSONString(nil, []byte(x)))
	case json.Number:
		if typ.Kind == types.Float || typ.Kind == types.Double {
			f, err := x.Float64()
			require.NoError(t, err)
			return string(types.AppendJSON(nil, typ, types.FloatDatum(f)))
		}
	}
	return fmt.Sprint(v)
}

// TestGolden_TypesAtTheirEdges reads what Spark wrote as the INSERT of
// types_dv says it.
func TestGolden_TypesAtTheirEdges(t *testing.T) {
	var first *goldenFile
	goldenTables(t, func(t *testing.T, name string, d goldenDump) {
		if name == "types_dv/t" {
			for i := range d.Heads["main"].Latest {
				if g := &d.Heads["main"].Latest[i]; g.Rows == 5 {
					first = g
				}
			}
		}
	})
	require.NotNil(t, first)
	want := []string{
		`1|true|127|32767|2147483647|9223372036854775807|NaN|NaN|9999999.99|99999999999999.9999|99999999999999999999.999999999999999999|abcdefghij|héllo 😀|00ff|9999-12-31|2026-09-10T12:34:56.123456Z|2026-09-10T12:34:56.123456|`,
		// -719164: what Spark made of DATE '0001-01-01' (paimon-format.md §8.1).
		`2|false|-128|-32768|-2147483648|-9223372036854775808|-Infinity|Infinity|-9999999.99|-99999999999999.9999|-99999999999999999999.999999999999999999||||0000-12-30|1969-12-31T23:59:59.999999Z|1900-01-01T00:00:00.000001|`,
		`3|||||||||||||||||`,
		`4|true|0|0|0|0|-0|-0|0.00|0.0000|0.000000000000000001|x|x|61|1970-01-01|1970-01-01T00:00:00.000000Z|1970-01-01T00:00:00.000000|`,
		`5|true|1|1|1|1|1.5|1.5|1.00|1.0000|1.000000000000000000|zz|zz|7a|1582-10-15|1582-10-15T00:00:00.000000Z|1582-10-15T00:00:00.000000|`,
	}
	var got []string
	for _, r := range readAll(t, openFile(t, first.read(t), ReadOptions{Fields: first.fields})) {
		line := ""
		for i, f := range first.fields {
			line += string(types.AppendText(nil, f.Type, r[i])) + "|"
		}
		got = append(got, line)
	}
	require.Equal(t, want, got)
}

// TestGolden_FlinkTypes reads what Flink wrote and prints: TIME, timestamps of 0
// to 9 digits (INT96; Flink made TIME(3) a TIME(0), but kept the millis), BINARY, MULTISET, MAP of ROW, ARRAY of DECIMAL.
func TestGolden_FlinkTypes(t *testing.T) {
	var got []string
	goldenTables(t, func(t *testing.T, name string, d goldenDump) {
		if name != "flink_types/t" {
			return
		}
		for _, g := range d.Heads["main"].Latest {
			for _, r := range readAll(t, openFile(t, g.read(t), ReadOptions{Fields: g.fields})) {
				line := ""
				for i, f := range g.fields {
					line += string(types.AppendJSON(nil, f.Type, r[i])) + "|"
				}
				got = append(got, line)
			}
		}
	})
	slices.Sort(got)
	require.Equal(t, []string{
		`1|"01:02:03"|"23:59:59"|"2026-01-02T03:04:05"|"2026-01-02T03:04:05.123"|"2026-01-02T03:04:05.123456789"|"2023-11-14T22:13:20.123Z"|"1969-12-31T23:59:59.999999999Z"|"01020304"|"0102"|"a  "|"xy"|"12.3"|"123456789012345.12345"|{"a":1}|[[1,{"a":"2026-01-02T03:04:05.123","b":"ff"}]]|["1.25",null]|`,
		`2|"00:00:00"|null|"1900-01-01T00:00:00"|"1969-12-31T23:59:59.999"|"9999-12-31T23:59:59.999999999"|"1969-12-31T23:59:59.999Z"|null|"00000000"|""|"abc"|""|"-99.9"|"-0.00001"|{"q":1,"p":2}|null|null|`,
	}, got)
}
