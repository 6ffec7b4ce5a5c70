package paimon

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"applier/storage/types"
)

// FormatDefault returns a text to be stored as the default of a column, of which
// Paimon's Java core, and so every engine, reads back exactly the value v
// (row-level.md §6.4). Of several such texts it is the one that Spark's parser takes
// for the same value, too, if there is one. A value that no text stands for is
// ErrDefault.
func FormatDefault(f types.Field, v types.Datum) (string, error) {
	if v.Null {
		return "", fmt.Errorf("%w: column %s: NULL is no default, leave the default out", ErrDefault, f.Name)
	}
	for _, text := range defaultTexts(f.Type, v) {
		f.Default = &text
		got, err := DefaultValue(f)
		if err == nil && got != nil && sameDatum(f.Type, *got, v) {
			return text, nil
		}
	}
	return "", fmt.Errorf("%w: column %s of type %s: no text stands for the value %s, so that all engines would read it: "+
		"leave the default out and give the value in the statement", ErrDefault, f.Name, f.Type, types.AppendText(nil, f.Type, v))
}

// sameDatum reports whether two values are the same to the last bit, NaNs aside.
func sameDatum(t types.Type, a, b types.Datum) bool {
	if a.Null || b.Null {
		return a.Null && b.Null
	}
	if len(a.L) != len(b.L) {
		return false
	}
	if t.Kind == types.Map {
		return sameMap(t, a, b)
	}
	for i := range a.L {
		if !sameDatum(childOf(t, i), a.L[i], b.L[i]) {
			return false
		}
	}
	floats := a.F == b.F && math.Signbit(a.F) == math.Signbit(b.F) || math.IsNaN(a.F) && math.IsNaN(b.F)
	return floats && a.I == b.I && a.N == b.N && a.D == b.D && bytes.Equal(a.B, b.B)
}

// sameMap compares maps without regard to the order of their entries.
func sameMap(t types.Type, a, b types.Datum) bool {
	for i := 0; i < len(a.L); i += 2 {
		found := false
		for j := 0; j < len(b.L); j += 2 {
			found = found || sameDatum(*t.Key, a.L[i], b.L[j]) && sameDatum(*t.Elem, a.L[i+1], b.L[j+1])
		}
		if !found {
			return false
		}
	}
	return true
}

// childOf is the type of item i of a nested value.
func childOf(t types.Type, i int) types.Type {
	switch {
	case t.Kind == types.Row:
		return t.Fields[i].Type
	case t.Kind == types.Map && i%2 == 0:
		return *t.Key
	}
	return *t.Elem
}

// defaultTexts are the candidates, the best first.
func defaultTexts(t types.Type, v types.Datum) []string {
	switch t.Kind {
	case types.Array:
		return listTexts(t, "ARRAY("+joinItems(t, v, bareItem)+")", "["+joinItems(t, v, bareItem)+"]")
	case types.Map:
		return mapTexts(t, v)
	case types.Row:
		return listTexts(t, "STRUCT("+joinItems(t, v, bareItem)+")", "{"+joinItems(t, v, bareItem)+"}")
	}
	text := bareItem(t, v)
	if quotedDefault(t) || math.IsNaN(v.F) || math.IsInf(v.F, 0) {
		return []string{"'" + text + "'"}
	}
	return []string{text}
}

// listTexts prefers the call, which Spark's parser knows, unless there are texts in
// it: without quotes they would be names of columns.
func listTexts(t types.Type, call, brackets string) []string {
	if quotedInside(t) {
		return []string{brackets, call}
	}
	return []string{call, brackets}
}

func quotedInside(t types.Type) bool {
	inside := func(p *types.Type) bool { return p != nil && quotedInside(*p) }
	return quotedDefault(t) || inside(t.Key) || inside(t.Elem) ||
		slices.ContainsFunc(t.Fields, func(f types.Field) bool { return quotedInside(f.Type) })
}

func quotedDefault(t types.Type) bool {
	switch t.Kind {
	case types.Char, types.VarChar, types.Binary, types.VarBinary, types.Date, types.Time, types.Timestamp, types.TimestampLTZ:
		return true
	}
	return false
}

// mapTexts put an entry with an empty key first only as a last resort: Java loses it
// there.
func mapTexts(t types.Type, v types.Datum) []string {
	var texts []string
	for first := 0; first < len(v.L); first += 2 {
		w := types.Datum{}
		w.L = append(w.L, v.L[first:]...)
		w.L = append(w.L, v.L[:first]...)
		if text := "MAP(" + joinItems(t, w, quotedItem) + ")"; first == 0 || len(v.L[0].B) == 0 {
			texts = append(texts, text)
		}
	}
	return append(texts, "MAP("+joinItems(t, v, quotedItem)+")", "MAP("+joinItems(t, v, bareItem)+")")
}

func joinItems(t types.Type, v types.Datum, item func(types.Type, types.Datum) string) string {
	parts := make([]string, len(v.L))
	for i, x := range v.L {
		parts[i] = item(childOf(t, i), x)
	}
	return strings.Join(parts, ", ")
}

// quotedItem is a part of a MAP, where double quotes protect texts.
func quotedItem(t types.Type, v types.Datum) string {
	if !v.Null && quotedDefault(t) {
		return `"` + bareItem(t, v) + `"`
	}
	return bareItem(t, v)
}

// bareItem is a value without quotes.
func bareItem(t types.Type, v types.Datum) string {
	if v.Null {
		return "null"
	}
	switch t.Kind {
	case types.Char, types.VarChar, types.Binary, types.VarBinary:
		if !utf8.Valid(v.B) {
			return ""
		}
		return string(v.B)
	case types.Timestamp, types.TimestampLTZ:
		text := string(types.AppendText(nil, types.TimestampType(t.Precision), v))
		return strings.TrimSuffix(strings.Replace(text, "T", " ", 1), "Z")
	case types.Array, types.Map, types.Row:
		return defaultTexts(t, v)[0]
	}
	return string(types.AppendText(nil, t, v))
}
