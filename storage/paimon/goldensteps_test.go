package paimon

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// goldenStep is a statement that Spark ran, and what it answered.
type goldenStep struct {
	SQL     string
	Columns [][2]string
	Rows    [][]any
	Latest  map[string]int64 // newest snapshot of every table after the statement
}

func goldenSteps(t *testing.T, fixture string) []goldenStep {
	f, err := os.Open(filepath.Join("testdata/golden", fixture, "steps.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var steps []goldenStep
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s goldenStep
		dec := json.NewDecoder(strings.NewReader(lines.Text()))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&s))
		steps = append(steps, s)
	}
	require.NoError(t, lines.Err())
	return steps
}

// goldenQuery is a SELECT of the simple kind: expressions over one table.
type goldenQuery struct {
	items  []string
	table  string
	branch string
	as     string // VERSION AS OF
	where  [2]string
}

var (
	selectShape = regexp.MustCompile("^SELECT (.+) FROM `?(\\w+)(?:\\$branch_(\\w+))?`?(?: VERSION AS OF '?(\\w+)'?)?(?: WHERE (\\w+) = '?([^']+?)'?)?(?: ORDER BY .*)?$")
	itemAlias   = regexp.MustCompile(` AS \w+$| \w$`)
	callShape   = regexp.MustCompile(`^(\w+)\((\w+|\*)(?: AS STRING)?\)$`)
)

func parseGoldenQuery(sql string) (goldenQuery, bool) {
	m := selectShape.FindStringSubmatch(sql)
	if m == nil {
		return goldenQuery{}, false
	}
	q := goldenQuery{table: m[2], branch: m[3], as: m[4], where: [2]string{m[5], m[6]}}
	for _, item := range strings.Split(m[1], ", ") {
		if strings.Contains(item, ")") {
			item = itemAlias.ReplaceAllString(item, "")
		}
		q.items = append(q.items, item)
	}
	return q, true
}

// sparkValue evaluates an item on a row, or says that it is none of a row's.
func sparkValue(s *Schema, item string, row []types.Datum) (types.Type, types.Datum, bool) {
	column, f := item, ""
	if m := callShape.FindStringSubmatch(item); m != nil {
		f, column = strings.ToLower(m[1]), m[2]
	}
	at := s.Column(column)
	if at < 0 {
		return types.Type{}, types.Null, false
	}
	typ, d := s.Fields[at].Type, row[at]
	switch f {
	case "", "cast":
	case "hex":
		typ = types.StringType()
		if !d.Null {
			d = types.StringDatum(strings.ToUpper(hex.EncodeToString(d.B)))
		}
	case "length":
		typ = types.IntType()
		if !d.Null {
			d = types.IntDatum(int64(utf8.RuneCount(d.B)))
		}
	default:
		return types.Type{}, types.Null, false
	}
	return typ, d, true
}

// sameAsRecorded compares a value with a recording: JSON values, texts of casts,
// and objects of one member for what JSON cannot carry.
func sameAsRecorded(t *testing.T, typ types.Type, d types.Datum, v any) bool {
	if v == nil || d.Null {
		return v == nil && d.Null
	}
	if m, ok := v.(map[string]any); ok && len(m) == 1 {
		for _, v = range m {
		}
	}
	switch v := v.(type) {
	case bool:
		return typ.Kind == types.Boolean && v == (d.I != 0)
	case json.Number:
		if typ.Kind == types.Float || typ.Kind == types.Double {
			f, err := v.Float64()
			require.NoError(t, err)
			return f == d.F
		}
		return v.String() == strconv.FormatInt(d.I, 10)
	case string:
		if typ.IsText() {
			return v == string(d.B)
		}
		want, err := types.ParseDatum(typ, v)
		require.NoError(t, err)
		return types.CompareDatums(typ, want, d) == 0 && math.Signbit(want.F) == math.Signbit(d.F)
	case []any:
		return sameAsRecordedList(t, typ, d, v)
	}
	require.Fail(t, "unknown notation", "%T", v)
	return false
}

func sameAsRecordedList(t *testing.T, typ types.Type, d types.Datum, list []any) bool {
	n := len(list)
	if typ.Kind == types.Map {
		n *= 2
	}
	if len(d.L) != n {
		return false
	}
	for i, x := range list {
		ok := false
		switch typ.Kind {
		case types.Array:
			ok = sameAsRecorded(t, *typ.Elem, d.L[i], x)
		case types.Map:
			pair := x.([]any)
			ok = sameAsRecorded(t, *typ.Key, d.L[2*i], pair[0]) && sameAsRecorded(t, *typ.Elem, d.L[2*i+1], pair[1])
		case types.Row:
			pair := x.([]any)
			ok = typ.Fields[i].Name == pair[0] && sameAsRecorded(t, typ.Fields[i].Type, d.L[i], pair[1])
		}
		if !ok {
			return false
		}
	}
	return true
}
