package paimon

import (
	"errors"
	"fmt"
	"strings"

	"applier/storage/types"
)

// Defaults of types with children, as Paimon's writers read them (source:
// StringToArrayCastRule, StringToMapCastRule, StringToRowCastRule). Two spellings
// each: [a, b] and ARRAY(a, b), {k -> v} and MAP(k, v), {a, b} and STRUCT(a, b).
// Quotes are no quotes there, but in maps: elsewhere they only keep a comma from
// separating and stay part of the text.

var (
	errDefaultForm   = errors.New("the text is none of the forms of this type")
	errDefaultKey    = errors.New("a map key is NULL")
	errDefaultNull   = errors.New("NULL for a NOT NULL element or field")
	errDefaultNested = errors.New("columns of this type have no defaults")
)

// defaultNested converts the default of an ARRAY, MAP or ROW; nil is NULL.
func defaultNested(t types.Type, s string) (*types.Datum, error) {
	s = javaTrim(s)
	switch t.Kind {
	case types.Array:
		content, _, ok := bracketed(s, "[", "]", "ARRAY")
		if !ok {
			return nil, errDefaultForm
		}
		return defaultElements(t, splitParts(content, false))
	case types.Row:
		content, _, ok := bracketed(s, "{", "}", "STRUCT")
		if !ok {
			return nil, errDefaultForm
		}
		return defaultRow(t, content)
	case types.Map:
		if strings.EqualFold(s, "NULL") {
			return nil, nil
		}
		content, call, ok := bracketed(s, "{", "}", "MAP")
		if !ok {
			return nil, errDefaultForm
		}
		return defaultMap(t, content, call)
	}
	return nil, errDefaultNested
}

// javaTrim is String.trim of Java: it cuts control characters, too.
func javaTrim(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// bracketed returns what stands between the brackets, or in the parentheses
// behind the function's name. Line ends are no part of it: the pattern's dot
// matches none.
func bracketed(s, left, right, function string) (content string, call, ok bool) {
	if strings.ContainsAny(s, "\n\r\u0085\u2028\u2029") {
		return "", false, false
	}
	if len(s) >= 2 && strings.HasPrefix(s, left) && strings.HasSuffix(s, right) {
		return javaTrim(s[1 : len(s)-1]), false, true
	}
	if len(s) < len(function) || !strings.EqualFold(s[:len(function)], function) {
		return "", true, false
	}
	rest := strings.TrimLeft(s[len(function):], " \t\v\f")
	if len(rest) < 2 || rest[0] != '(' || !strings.HasSuffix(rest, ")") {
		return "", true, false
	}
	return javaTrim(rest[1 : len(rest)-1]), true, true
}

// splitParts cuts at the commas outside of brackets and double quotes. Empty
// parts vanish. In maps, quotes and backslashes (with what follows them) vanish
// from the parts as well, and these are trimmed.
func splitParts(content string, inMap bool) []string {
	var parts []string
	var part strings.Builder
	end := func() {
		if part.Len() > 0 {
			parts = append(parts, part.String())
			part.Reset()
		}
	}
	depth, quoted, escaped := 0, false, false
	for _, c := range content {
		keep := !inMap
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
			keep = true
		case c == ',' && depth == 0:
			end()
			continue
		default:
			keep = true
			if c == '[' || c == '{' || c == '(' {
				depth++
			} else if depth > 0 && (c == ']' || c == '}' || c == ')') {
				depth--
			}
		}
		if keep {
			part.WriteRune(c)
		}
	}
	end()
	for i := range parts {
		parts[i] = javaTrim(parts[i])
	}
	return parts
}

// defaultPart converts an element, a field, a key or a value.
func defaultPart(t types.Type, s string) (types.Datum, error) {
	d := &types.Null
	if s != "null" {
		var err error
		if d, err = castDefaultText(t, s); err != nil {
			return types.Null, fmt.Errorf("%q: %w", s, err)
		}
	}
	if d == nil {
		d = &types.Null
	}
	if d.Null && t.NotNull {
		return types.Null, errDefaultNull
	}
	return *d, nil
}

func defaultElements(t types.Type, parts []string) (*types.Datum, error) {
	out := &types.Datum{L: []types.Datum{}}
	for _, p := range parts {
		d, err := defaultPart(*t.Elem, p)
		if err != nil {
			return nil, err
		}
		out.L = append(out.L, d)
	}
	return out, nil
}

// defaultRow takes fields by their place; without any, all are NULL.
func defaultRow(t types.Type, content string) (*types.Datum, error) {
	parts := splitParts(content, false)
	if content == "" {
		for range t.Fields {
			parts = append(parts, "null")
		}
	}
	if len(parts) != len(t.Fields) {
		return nil, fmt.Errorf("%d fields instead of %d", len(parts), len(t.Fields))
	}
	out := &types.Datum{L: make([]types.Datum, len(parts))}
	for i, p := range parts {
		var err error
		if out.L[i], err = defaultPart(t.Fields[i].Type, p); err != nil {
			return nil, fmt.Errorf("field %s: %w", t.Fields[i].Name, err)
		}
	}
	return out, nil
}

func defaultMap(t types.Type, content string, call bool) (*types.Datum, error) {
	parts := splitParts(content, true)
	if !call {
		var pairs []string
		for _, p := range parts {
			key, value, ok := splitEntry(p)
			if !ok {
				return nil, fmt.Errorf("entry %q: %w", p, errDefaultForm)
			}
			pairs = append(pairs, key, value)
		}
		parts = pairs
	}
	if len(parts)%2 != 0 {
		return nil, errors.New("a key without a value")
	}
	out := &types.Datum{L: []types.Datum{}}
	for i := 0; i < len(parts); i += 2 {
		key, err := defaultPart(*t.Key, parts[i])
		if err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		if key.Null {
			return nil, errDefaultKey
		}
		value, err := defaultPart(*t.Elem, parts[i+1])
		if err != nil {
			return nil, fmt.Errorf("value: %w", err)
		}
		putEntry(t, out, key, value)
	}
	return out, nil
}

// putEntry adds an entry; a key that is there already gets the new value.
func putEntry(t types.Type, m *types.Datum, key, value types.Datum) {
	for i := 0; i < len(m.L); i += 2 {
		if types.CompareDatums(*t.Key, m.L[i], key) == 0 {
			m.L[i+1] = value
			return
		}
	}
	m.L = append(m.L, key, value)
}

// splitEntry cuts "key -> value" at the first arrow that has something on both
// sides (the pattern is (.+?)\s*->\s*(.+)).
func splitEntry(s string) (key, value string, ok bool) {
	for at := 1; at < len(s); {
		i := strings.Index(s[at:], "->")
		if i < 0 {
			break
		}
		at += i
		if rest := s[at+2:]; rest != "" {
			return javaTrim(s[:at]), javaTrim(rest), true
		}
		at += 2
	}
	return "", "", false
}
