package sqlparse

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireRoundTrip prints a tree, parses the print and compares the trees but
// for positions.
func requireRoundTrip(t testing.TB, s Statement) {
	text := Format(s)
	again, err := Parse(text)
	require.NoError(t, err, "printed: %s", text)
	requireSameTree(t, s, again, text)
	require.Equal(t, text, Format(again), "printing is stable")
}

func requireSameTree(t testing.TB, want, got any, text string) {
	if path := treeDiff(reflect.ValueOf(want), reflect.ValueOf(got)); path != "" {
		t.Fatalf("the tree of the print differs at %s\nprint: %s", path, text)
	}
}

// treeDiff returns the path of the first difference that is not a position.
func treeDiff(a, b reflect.Value) string {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return "(type)"
	}
	if !a.IsValid() || a.Type() == reflect.TypeFor[Pos]() {
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() != b.IsNil() {
			return "(nil)"
		}
		return treeDiff(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return "(length)"
		}
		for i := range a.Len() {
			if d := treeDiff(a.Index(i), b.Index(i)); d != "" {
				return "[]" + d
			}
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if d := treeDiff(a.Field(i), b.Field(i)); d != "" {
				return "." + a.Type().Field(i).Name + d
			}
		}
	default:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			return "(value)"
		}
	}
	return ""
}
