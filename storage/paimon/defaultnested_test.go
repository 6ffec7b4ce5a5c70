package paimon

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// nestedText brings a value into the notation of nesteddefaults.txt.
func nestedText(t types.Type, d types.Datum) string {
	if d.Null {
		return "NULL"
	}
	var b strings.Builder
	switch t.Kind {
	case types.Array:
		for _, x := range d.L {
			b.WriteString(nestedText(*t.Elem, x) + ";")
		}
		return "[" + b.String() + "]"
	case types.Row:
		for i, x := range d.L {
			b.WriteString(nestedText(t.Fields[i].Type, x) + ";")
		}
		return "(" + b.String() + ")"
	case types.Map:
		var entries []string
		for i := 0; i < len(d.L); i += 2 {
			entries = append(entries, nestedText(*t.Key, d.L[i])+"="+nestedText(*t.Elem, d.L[i+1])+";")
		}
		slices.Sort(entries)
		return "{" + strings.Join(entries, "") + "}"
	case types.Char, types.VarChar:
		return "x" + hex.EncodeToString(d.B)
	case types.Boolean:
		return strconv.FormatBool(d.I != 0)
	}
	return strconv.FormatInt(d.I, 10)
}

// Paimon 1.4.2 refuses NULL values and repeated keys in MAP(…); 2.0 takes them,
// and so do we. NULL keys have no place in a Parquet file.
func TestDefaultValue_OfNestedTypesIsJavas(t *testing.T) {
	lines, values, later, refused := 0, 0, 0, 0
	for s := bufio.NewScanner(bytes.NewReader(javaFile(t, "nesteddefaults.txt"))); s.Scan(); lines++ {
		part := strings.Split(s.Text(), "\t")
		require.Len(t, part, 3)
		typ, err := types.ParseType(part[0])
		require.NoError(t, err)
		text, err := strconv.Unquote(part[1])
		require.NoError(t, err)
		d, err := DefaultValue(types.Field{Name: "c", Type: typ, Default: &text})
		switch {
		case err != nil:
			require.ErrorIs(t, err, ErrDefault)
			if part[2] != "ERR" {
				require.ErrorIs(t, err, errDefaultKey, s.Text())
				refused++
			}
		case d == nil:
			assert.Equal(t, "NULL", part[2], s.Text())
		case part[2] == "ERR":
			require.Contains(t, strings.ToUpper(text), "MAP", "ours takes %s", s.Text())
			require.True(t, laterMap(typ, *d, text), "ours takes %s as %s", s.Text(), nestedText(typ, *d))
			later++
		default:
			assert.Equal(t, part[2], nestedText(typ, *d), s.Text())
			values++
		}
	}
	require.Greater(t, lines, 4500)
	require.Greater(t, values, 1800)
	require.Greater(t, later, 20)
	require.Greater(t, refused, 3)
}

// laterMap reports whether a value has a map with a NULL value, or its text names
// more entries than it has.
func laterMap(t types.Type, d types.Datum, text string) bool {
	switch {
	case d.Null:
		return false
	case t.Kind == types.Map:
		for i := 1; i < len(d.L); i += 2 {
			if d.L[i].Null || laterMap(*t.Elem, d.L[i], text) {
				return true
			}
		}
		return strings.Count(text, ",") >= len(d.L)
	case t.Kind == types.Array:
		return slices.ContainsFunc(d.L, func(x types.Datum) bool { return laterMap(*t.Elem, x, text) })
	case t.Kind == types.Row:
		for i, x := range d.L {
			if laterMap(t.Fields[i].Type, x, text) {
				return true
			}
		}
	}
	return false
}

// What Paimon 2.0 made of these texts (row-level-default-matrix.md).
func TestDefaultValue_OfMapsIsThatOfPaimon2(t *testing.T) {
	for _, c := range []struct{ typ, text, want string }{
		{"MAP<INT, INT>", "MAP(1, null)", "{1=NULL;}"},
		{"MAP<INT, INT>", "MAP(1,1,1,2)", "{1=2;}"},
		{"MAP<INT, INT>", "null", "NULL"},
		{"MAP<STRING, STRING>", `MAP("a, b", "c")`, "{x612c2062=x63;}"},
		{"MAP<STRING, STRING>", `MAP("a\\b", "c")`, "{x6162=x63;}"},
		{"MAP<STRING, STRING>", "{a -> b -> c}", "{x61=x62202d3e2063;}"},
		{"MAP<STRING, ARRAY<STRING>>", `MAP("l", ARRAY("x", "y"))`, "{x6c=[x78;x79;];}"},
		{"MAP<STRING, ROW<f0 INT, f1 STRING>>", `MAP("k", STRUCT(1, "v"))`, "{x6b=(1;x76;);}"},
		{"ARRAY<MAP<STRING, STRING>>", `ARRAY(MAP("k", "v"))`, "[{x6b=x76;};]"},
	} {
		typ, err := types.ParseType(c.typ)
		require.NoError(t, err)
		d, err := DefaultValue(types.Field{Name: "c", Type: typ, Default: &c.text})
		require.NoError(t, err, c.text)
		if d == nil {
			d = &types.Null
		}
		require.Equal(t, c.want, nestedText(typ, *d), c.text)
	}
}

func TestDefaultValue_OfNestedTypesKeepsNotNull(t *testing.T) {
	for typ, text := range map[string]string{
		"ARRAY<INT NOT NULL>": "[1, null]", "MAP<STRING, INT NOT NULL>": "MAP(a, null)", "ROW<a INT NOT NULL>": "{null}",
		"MAP<STRING NOT NULL, INT>": "{null -> 1}", "VARIANT": "1", "MULTISET<STRING>": "{a -> 1}",
	} {
		parsed, err := types.ParseType(typ)
		require.NoError(t, err)
		_, err = DefaultValue(types.Field{Name: "c", Type: parsed, Default: &text})
		require.ErrorIs(t, err, ErrDefault, "%s DEFAULT %s", typ, text)
	}
}
