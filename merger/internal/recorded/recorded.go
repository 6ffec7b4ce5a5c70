// Package recorded compares values with those of statements that were recorded from
// Spark. It is for tests.
package recorded

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
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
	case expr.Array, expr.Struct, expr.Map:
		var parts []string
		for i, x := range d.L {
			item := t.Elem
			switch {
			case t.Kind == expr.Struct:
				item = &t.Fields[i].Type
			case t.Kind == expr.Map && i%2 == 0:
				item = t.Key
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
					parts = append(parts, SpellRecorded(*t.Key, e.([]any)[0]), SpellRecorded(*t.Elem, e.([]any)[1]))
				}
				return fmt.Sprint(parts)
			}
			if r, ok := new(big.Rat).SetString(fmt.Sprint(x)); mark == "decimal" && ok {
				return r.FloatString(t.Scale) // 0E-10 is 0.0000000000
			}
			return fmt.Sprint(x)
		}
	}
	return fmt.Sprint(v)
}
