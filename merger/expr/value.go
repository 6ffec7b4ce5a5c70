package expr

import (
	"applier/storage/types"
)

// AppendJSON writes a value as the command-line tools show rows in JSON: integers
// as numbers, DECIMAL as text with its scale, dates and times as ISO texts,
// TIMESTAMP in UTC with a Z, binary as hex, NaN and infinities as texts, maps with
// text keys as objects and others as lists of pairs, intervals as their SQL text.
func AppendJSON(dst []byte, t Type, d types.Datum) []byte {
	if d.Null {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case YearMonth, DayTime, Calendar:
		return types.AppendJSONString(dst, appendCast(nil, t, d, (*Env)(nil).zone()))
	case Time:
		return append(appendClock(append(dst, '"'), d.I), '"')
	case Array:
		dst = append(dst, '[')
		for i, x := range d.L {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendJSON(dst, *t.Elem, x)
		}
		return append(dst, ']')
	case Struct:
		dst = append(dst, '{')
		for i, f := range t.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(types.AppendJSONString(dst, []byte(f.Name)), ':')
			dst = AppendJSON(dst, f.Type, d.L[i])
		}
		return append(dst, '}')
	case Map:
		return appendMapJSON(dst, t, d)
	}
	st, ok := t.ToStorage()
	if !ok {
		return append(dst, "null"...)
	}
	return types.AppendJSON(dst, st, d)
}

func appendMapJSON(dst []byte, t Type, d types.Datum) []byte {
	open, end, sep := byte('{'), byte('}'), byte(':')
	object := t.Key.Kind == String
	if !object {
		open, end, sep = '[', ']', ','
	}
	dst = append(dst, open)
	for i := 0; i+1 < len(d.L); i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !object {
			dst = append(dst, '[')
		}
		dst = append(AppendJSON(dst, *t.Key, d.L[i]), sep)
		dst = AppendJSON(dst, *t.Elem, d.L[i+1])
		if !object {
			dst = append(dst, ']')
		}
	}
	return append(dst, end)
}
