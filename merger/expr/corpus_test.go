package expr

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// recorded is an expression with what Spark 4.1.2 said.
type recorded struct {
	Kind     string          `json:"kind"`
	Expr     string          `json:"expr"`
	Type     string          `json:"type"`
	Value    json.RawMessage `json:"value"`
	AsString bool            `json:"as_string"`
	Error    string          `json:"error"`
	FailsAt  string          `json:"fails_at"`
}

func readRecorded(t testing.TB, file string) []recorded {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var list []recorded
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r recorded
		require.NoError(t, json.Unmarshal(s.Bytes(), &r))
		list = append(list, r)
	}
	require.NoError(t, s.Err())
	return list
}

// recordedEnv is the day on which the expressions were recorded.
func recordedEnv() *Env {
	return &Env{Now: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), User: "root", Catalog: "spark_catalog", Database: "default"}
}

// evaluate compiles and evaluates a text.
func evaluate(src string) (t Type, d types.Datum, err error) {
	ast, err := sqlparse.ParseExpr(src)
	if err != nil {
		return Type{}, types.Null, err
	}
	x, err := Compile(ast, &Scope{Env: recordedEnv()})
	if err != nil {
		return Type{}, types.Null, err
	}
	d, err = x.Eval(nil)
	return x.Type(), d, err
}

// classOf returns an error's class and whether compiling failed.
func classOf(err error) (class string, analysis bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Class, e.Analysis
	}
	var p *sqlparse.Error
	if errors.As(err, &p) {
		return p.Class, true
	}
	return "no class: " + err.Error(), false
}

// differs says how we and Spark differ over an expression, "" if we agree.
func (r recorded) differs() string {
	t, d, err := evaluate(r.Expr)
	if err != nil {
		class, analysis := classOf(err)
		if r.Error == "" {
			return fmt.Sprintf("%v, recorded %s %s", err, r.Type, r.Value)
		}
		if class != r.Error || analysis != (r.FailsAt == "analysis") {
			return fmt.Sprintf("%v, recorded %s at %s", err, r.Error, r.FailsAt)
		}
		return ""
	}
	got := string(appendRecorded(nil, t, d))
	if r.AsString && !d.Null {
		got = string(types.AppendJSONString(nil, appendCast(nil, t, d, time.UTC)))
	}
	switch {
	case r.Error != "":
		return fmt.Sprintf("%s %s, recorded %s at %s", t, got, r.Error, r.FailsAt)
	case t.String() != r.Type:
		return fmt.Sprintf("type %s, recorded %s", t, r.Type)
	case got != canonical(r.Value, t):
		return fmt.Sprintf("%s %s, recorded %s", t, got, canonical(r.Value, t))
	}
	return ""
}

// canonical spells a recorded value as appendRecorded does.
func canonical(raw json.RawMessage, t Type) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	return string(appendCanonical(nil, v, t))
}

func appendCanonical(dst []byte, v any, t Type) []byte {
	switch v := v.(type) {
	case json.Number:
		if t.floating() {
			f, _ := v.Float64()
			return append(dst, javaFloat(f, 64)...)
		}
		return append(dst, v.String()...)
	case string:
		return types.AppendJSONString(dst, []byte(v))
	case []any:
		elem := t
		if t.Kind == Array {
			elem = *t.Elem
		}
		dst = append(dst, '[')
		for i, x := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, x, elem)
		}
		return append(dst, ']')
	case map[string]any:
		return appendMarked(dst, v, t)
	case bool:
		return fmt.Append(dst, v)
	}
	return append(dst, "null"...)
}

func appendMarked(dst []byte, v map[string]any, t Type) []byte {
	for mark, x := range v {
		switch mark {
		case "row":
			dst = append(dst, "row("...)
			for i, f := range x.([]any) {
				p := f.([]any)
				dst = fmt.Append(dst, p[0], "=")
				dst = append(appendCanonical(dst, p[1], t.Fields[i].Type), ' ')
			}
			return append(dst, ')')
		case "map":
			var entries []string
			for _, e := range x.([]any) {
				p := e.([]any)
				entries = append(entries, string(appendCanonical(append(appendCanonical(nil, p[0], *t.Key), ':'), p[1], *t.Elem)))
			}
			slices.Sort(entries)
			return fmt.Append(dst, "map", entries)
		case "decimal":
			b, scale, err := parseBig(x.(string))
			if err != nil {
				return fmt.Append(dst, err)
			}
			return append(dst, "decimal "+decimalText(rescale(b, scale, t.Scale), t.Scale)...)
		default:
			return fmt.Append(dst, mark, " ", x)
		}
	}
	return dst
}

// appendRecorded spells a value as the recording does.
func appendRecorded(dst []byte, t Type, d types.Datum) []byte {
	if d.Null {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case Float, Double:
		switch {
		case math.IsNaN(d.F):
			return append(dst, "float nan"...)
		case math.IsInf(d.F, 1):
			return append(dst, "float inf"...)
		case math.IsInf(d.F, -1):
			return append(dst, "float -inf"...)
		}
		return append(dst, javaFloat(d.F, 64)...)
	case Decimal:
		return append(dst, "decimal "+decimalText(unscaled(t, d), t.Scale)...)
	case Date:
		return append(dst, "date "+string(appendDate(nil, d.I))...)
	case Timestamp, TimestampNTZ:
		s := strings.Replace(string(appendStamp(nil, d.I)), " ", "T", 1)
		if i := strings.IndexByte(s, '.'); i > 0 {
			s += strings.Repeat("0", 7-(len(s)-i))
		}
		return append(dst, "ts "+s...)
	case Binary:
		return append(dst, "hex "+hex.EncodeToString(d.B)...)
	case String:
		return types.AppendJSONString(dst, d.B)
	case Array:
		dst = append(dst, '[')
		for i, x := range d.L {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendRecorded(dst, *t.Elem, x)
		}
		return append(dst, ']')
	case Struct:
		dst = append(dst, "row("...)
		for i, f := range t.Fields {
			dst = append(dst, f.Name+"="...)
			dst = append(appendRecorded(dst, f.Type, d.L[i]), ' ')
		}
		return append(dst, ')')
	case Map:
		var entries []string
		for i := 0; i+1 < len(d.L); i += 2 {
			entries = append(entries, string(appendRecorded(append(appendRecorded(nil, *t.Key, d.L[i]), ':'), *t.Elem, d.L[i+1])))
		}
		slices.Sort(entries)
		return fmt.Append(dst, "map", entries)
	}
	return appendCast(dst, t, d, time.UTC)
}

// justified are recorded expressions over which we differ from Spark on purpose.
var justified = map[string]string{}

func TestCompile_AgreesWithEveryRecordedExpression(t *testing.T) {
	compareRecorded(t, readRecorded(t, "testdata/expressions.jsonl.gz"), 1776)
}

func compareRecorded(t *testing.T, list []recorded, count int) {
	require.Len(t, list, count)
	agree, excused := 0, 0
	bad := map[string]int{}
	for _, r := range list {
		diff := r.differs()
		why, listed := justified[r.Expr]
		switch {
		case diff == "" && listed:
			t.Errorf("%s agrees but is listed as a difference (%s)", r.Expr, why)
		case diff == "":
			agree++
		case listed:
			excused++
		default:
			bad[r.Kind]++
			t.Errorf("%s %s: %s", r.Kind, r.Expr, diff)
		}
	}
	t.Logf("%d expressions: %d agree, %d justified differences, %v others", len(list), agree, excused, bad)
}

// TestRecordedFile compares with a file of the same form outside of the tree:
// APPLIER_RECORDED=/path/to/file.jsonl.gz.
func TestRecordedFile(t *testing.T) {
	file := os.Getenv("APPLIER_RECORDED")
	if file == "" {
		t.Skip("APPLIER_RECORDED names no file")
	}
	list := readRecorded(t, file)
	compareRecorded(t, list, len(list))
}
