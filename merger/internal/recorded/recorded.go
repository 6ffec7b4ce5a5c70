// Package recorded compares values with those of statements that were recorded from
// Spark. It is for tests.
package recorded

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"applier/merger/expr"
	"applier/storage/types"
)

// Spell writes a value in the form that SpellRecorded has.
func Spell(t expr.Type, d types.Datum) string {
	if d.Null {
		return "null"
	}
	switch t.Kind {
	case expr.Float, expr.Double:
		return spellFloat(d.F)
	case expr.Binary:
		return hex.EncodeToString(d.B)
	case expr.Map:
		var entries []string
		for i := 0; i < len(d.L); i += 2 {
			entries = append(entries, Spell(*t.Key, d.L[i])+" "+Spell(*t.Elem, d.L[i+1]))
		}
		slices.Sort(entries)
		return fmt.Sprint(entries)
	case expr.Array, expr.Struct:
		var parts []string
		for i, x := range d.L {
			item := t.Elem
			if t.Kind == expr.Struct {
				item = &t.Fields[i].Type
			}
			parts = append(parts, Spell(*item, x))
		}
		return fmt.Sprint(parts)
	}
	return expr.Text(t, d, nil)
}

func spellFloat(f float64) string {
	if math.IsNaN(f) {
		return "nan"
	}
	return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
}

// SpellRecorded writes a recorded value in the form that Spell has.
func SpellRecorded(t expr.Type, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case json.Number:
		if t.Kind == expr.Float || t.Kind == expr.Double {
			f, _ := v.Float64()
			return spellFloat(f)
		}
		return v.String()
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, SpellRecorded(*t.Elem, x))
		}
		return fmt.Sprint(parts)
	case map[string]any:
		for mark, x := range v {
			switch mark {
			case "row":
				var parts []string
				for i, f := range x.([]any) {
					parts = append(parts, SpellRecorded(t.Fields[i].Type, f.([]any)[1]))
				}
				return fmt.Sprint(parts)
			case "map":
				var parts []string
				for _, e := range x.([]any) {
					parts = append(parts, SpellRecorded(*t.Key, e.([]any)[0])+" "+SpellRecorded(*t.Elem, e.([]any)[1]))
				}
				slices.Sort(parts)
				return fmt.Sprint(parts)
			}
			if r, ok := new(big.Rat).SetString(fmt.Sprint(x)); mark == "decimal" && ok {
				return r.FloatString(t.Scale) // 0E-10 is 0.0000000000
			}
			if mark == "ts" {
				return plainTime(fmt.Sprint(x))
			}
			return fmt.Sprint(x)
		}
	}
	return fmt.Sprint(v)
}

// plainTime has a blank for the T, and no zeros at the end of a fraction.
func plainTime(s string) string {
	s = strings.Replace(s, "T", " ", 1)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
