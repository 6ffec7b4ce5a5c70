package expr

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

func jsonFunctions() []function {
	return []function{
		{"to_json", 1, 1, (*compiler).toJSON},
		{"from_json", 2, 2, (*compiler).fromJSON},
		scalar("get_json_object", 2, tString, []Type{tString, tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return jsonObject(a[0].B, string(a[1].B)), nil
		}),
		scalar("json_array_length", 1, tInt, []Type{tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			v, ok := readJSON(a[0].B)
			l, isList := v.([]any)
			return types.Datum{I: int64(len(l)), Null: !ok || !isList}, nil
		}),
		scalar("json_object_keys", 1, arrayOf(tString), []Type{tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			v, ok := readJSON(a[0].B)
			o, isObject := v.(jsonMap)
			if !ok || !isObject {
				return types.Null, nil
			}
			r := types.Datum{L: []types.Datum{}}
			for _, e := range o {
				r.L = append(r.L, textDatum(e.key))
			}
			return r, nil
		}),
	}
}

// jsonMap is an object with its members in order.
type jsonMap []jsonMember

type jsonMember struct {
	key   string
	value any
}

func (m jsonMap) get(key string) (any, bool) {
	for _, e := range m {
		if e.key == key {
			return e.value, true
		}
	}
	return nil, false
}

// maxJSONDepth bounds how deep values nest.
const maxJSONDepth = 200

// readJSON reads one value: nil, bool, json.Number, string, []any or jsonMap.
func readJSON(b []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, ok := decodeJSON(d, 0)
	if !ok {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}

func decodeJSON(d *json.Decoder, depth int) (any, bool) {
	t, err := d.Token()
	if err != nil || depth > maxJSONDepth {
		return nil, false
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, ok := decodeJSON(d, depth+1)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err == nil
	case json.Delim('{'):
		m := jsonMap{}
		for d.More() {
			key, err := d.Token()
			name, isText := key.(string)
			if err != nil || !isText {
				return nil, false
			}
			v, ok := decodeJSON(d, depth+1)
			if !ok {
				return nil, false
			}
			m = append(m, jsonMember{name, v})
		}
		_, err = d.Token()
		return m, err == nil
	}
	return t, true
}

// jsonObject follows a path such as $.a[0].b, $['a b'] or $.a[*].
func jsonObject(b []byte, path string) types.Datum {
	v, ok := readJSON(b)
	rest, rooted := strings.CutPrefix(path, "$")
	if !ok || !rooted {
		return types.Null
	}
	v, ok = follow(v, rest)
	if !ok || v == nil {
		return types.Null
	}
	if s, isText := v.(string); isText {
		return textDatum(s)
	}
	return types.BytesDatum(writeJSONValue(nil, v))
}

func follow(v any, path string) (any, bool) {
	if path == "" {
		return v, true
	}
	key, rest := "", ""
	switch {
	case strings.HasPrefix(path, "['"):
		end := strings.Index(path, "']")
		if end < 0 {
			return nil, false
		}
		key, rest = path[2:end], path[end+2:]
	case path[0] == '[':
		end := strings.IndexByte(path, ']')
		if end < 0 {
			return nil, false
		}
		return followIndex(v, strings.TrimSpace(path[1:end]), path[end+1:])
	case path[0] == '.':
		end := strings.IndexAny(path[1:], ".[")
		if end < 0 {
			end = len(path) - 1
		}
		key, rest = path[1:end+1], path[end+1:]
	}
	m, ok := v.(jsonMap)
	if !ok || key == "" {
		return nil, false
	}
	v, ok = m.get(key)
	if !ok {
		return nil, false
	}
	return follow(v, rest)
}

func followIndex(v any, index, rest string) (any, bool) {
	l, ok := v.([]any)
	if !ok {
		return nil, false
	}
	if index == "*" {
		found := []any{}
		for _, x := range l {
			if y, ok := follow(x, rest); ok && y != nil {
				found = append(found, y)
			}
		}
		switch len(found) {
		case 0:
			return nil, false
		case 1:
			return found[0], true
		}
		return found, true
	}
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(l) {
		return nil, false
	}
	return follow(l[i], rest)
}

// writeJSONValue writes what readJSON read; fractions as DOUBLE, as Jackson does.
func writeJSONValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return types.AppendJSONString(dst, []byte(v))
	case bool:
		return strconv.AppendBool(dst, v)
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return append(dst, javaFloat(f, 64)...)
		}
		return append(dst, v...)
	case []any:
		dst = append(dst, '[')
		for i, x := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = writeJSONValue(dst, x)
		}
		return append(dst, ']')
	case jsonMap:
		dst = append(dst, '{')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = types.AppendJSONString(dst, []byte(e.key))
			dst = writeJSONValue(append(dst, ':'), e.value)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// toJSON writes structs, maps and arrays.
func (c *compiler) toJSON(k *call) *node {
	x := k.args[0]
	if !x.typ.nested() {
		return c.fail(k.pos, "DATATYPE_MISMATCH.INVALID_JSON_SCHEMA", "to_json takes a struct, a map or an array, not %s", x.typ.sql())
	}
	return strict(tString, k.pos, k.args, func(env *Env, a []types.Datum) (types.Datum, error) {
		b := appendJSON(nil, x.typ, a[0], env.zone())
		if len(b) > maxText {
			return types.Null, tooLong(k.name)
		}
		return types.BytesDatum(b), nil
	})
}

// appendJSON writes a value as Spark's to_json does: fields that are NULL are left
// out, elements and values of maps are null.
func appendJSON(dst []byte, t Type, d types.Datum, zone *time.Location) []byte {
	if d.Null {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case Boolean, TinyInt, SmallInt, Int, BigInt, Decimal:
		return appendCast(dst, t, d, zone)
	case Float, Double:
		if math.IsNaN(d.F) || math.IsInf(d.F, 0) {
			return append(append(append(dst, '"'), appendCast(nil, t, d, zone)...), '"')
		}
		return appendCast(dst, t, d, zone)
	case Binary:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), d.B), '"')
	case Timestamp, TimestampNTZ:
		return append(append(append(dst, '"'), jsonStamp(t, d.I, zone)...), '"')
	case Array:
		dst = append(dst, '[')
		for i, x := range d.L {
			if i > 0 {
				dst = append(dst, ',')
			}
			if len(dst) > maxText { // to_json refuses it
				return dst
			}
			dst = appendJSON(dst, *t.Elem, x, zone)
		}
		return append(dst, ']')
	case Map, Struct:
		return appendJSONObject(dst, t, d, zone)
	}
	return types.AppendJSONString(dst, appendCast(nil, t, d, zone))
}

func jsonStamp(t Type, v int64, zone *time.Location) string {
	suffix := ""
	if t.Kind == TimestampNTZ {
		zone = time.UTC
	} else {
		suffix = "XXX"
	}
	fields, _ := parsePattern("yyyy-MM-dd'T'HH:mm:ss.SSS"+suffix, false)
	return formatPattern(fields, momentOf(v, zone))
}

func appendJSONObject(dst []byte, t Type, d types.Datum, zone *time.Location) []byte {
	dst = append(dst, '{')
	first := true
	member := func(key []byte, vt Type, v types.Datum) {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(types.AppendJSONString(dst, key), ':')
		dst = appendJSON(dst, vt, v, zone)
	}
	if t.Kind == Map {
		for i := 0; i+1 < len(d.L); i += 2 {
			member(appendCast(nil, *t.Key, d.L[i], zone), *t.Elem, d.L[i+1])
		}
		return append(dst, '}')
	}
	for i, f := range t.Fields {
		if !d.L[i].Null {
			member([]byte(f.Name), f.Type, d.L[i])
		}
	}
	return append(dst, '}')
}

// fromJSON reads a value of a type given as text: a type, or the fields of a struct.
func (c *compiler) fromJSON(k *call) *node {
	text, _ := c.constText(k, 1)
	if c.err != nil {
		return k.args[0]
	}
	x := k.args[0]
	if x.typ.Kind != String && x.typ.Kind != Void {
		return c.mismatch(x.pos, k.name, 0, tString.sql(), x.typ)
	}
	ast, err := sqlparse.ParseType(text)
	if err != nil {
		if ast, err = sqlparse.ParseType("STRUCT<" + text + ">"); err != nil {
			return c.fail(k.pos, sqlparse.ClassSyntax, "%q is no type: %v", text, err)
		}
	}
	t, err := TypeOf(ast)
	if err != nil {
		return c.fail(k.pos, sqlparse.ClassSyntax, "%q is no type: %v", text, err)
	}
	t = t.plainDeep()
	return strict(t, k.pos, []*node{c.castTo(x, tString)}, func(env *Env, a []types.Datum) (types.Datum, error) {
		if len(bytes.TrimSpace(a[0].B)) == 0 {
			return types.Null, nil
		}
		v, ok := readJSON(a[0].B)
		d := types.Null
		if ok {
			d, ok = fromJSONValue(t, v, env)
		}
		if !ok && t.Kind == Struct { // what does not read is NULL inside, not outside
			d = types.Datum{L: make([]types.Datum, len(t.Fields))}
			for i := range d.L {
				d.L[i] = types.Null
			}
		}
		return d, nil
	})
}

// plainDeep is plain for what is inside too.
func (t Type) plainDeep() Type {
	t = t.plain()
	if t.Elem != nil {
		e := t.Elem.plainDeep()
		t.Elem = &e
	}
	if t.Key != nil {
		e := t.Key.plainDeep()
		t.Key = &e
	}
	fields := make([]Field, len(t.Fields))
	for i, f := range t.Fields {
		fields[i] = Field{Name: f.Name, Type: f.Type.plainDeep()}
	}
	if t.Kind == Struct {
		t.Fields = fields
	}
	return t
}

// fromJSONValue turns a JSON value into one of a type; a part that does not go is
// NULL if it is a field, and makes ok false otherwise.
func fromJSONValue(t Type, v any, env *Env) (types.Datum, bool) {
	if v == nil {
		return types.Null, true
	}
	switch t.Kind {
	case Struct:
		m, ok := v.(jsonMap)
		if !ok {
			return types.Null, false
		}
		d := types.Datum{L: make([]types.Datum, len(t.Fields))}
		for i, f := range t.Fields {
			d.L[i] = types.Null
			if x, has := m.get(f.Name); has {
				if r, ok := fromJSONValue(f.Type, x, env); ok {
					d.L[i] = r
				}
			}
		}
		return d, true
	case Array:
		l, ok := v.([]any)
		d := types.Datum{L: make([]types.Datum, len(l))}
		for i, x := range l {
			if d.L[i], _ = fromJSONValue(*t.Elem, x, env); d.L[i].Null && x != nil {
				return types.Null, false
			}
		}
		return d, ok
	case Map:
		m, ok := v.(jsonMap)
		d := types.Datum{L: []types.Datum{}}
		for _, e := range m {
			key, ok1 := fromJSONValue(*t.Key, e.key, env)
			val, ok2 := fromJSONValue(*t.Elem, e.value, env)
			if !ok1 || !ok2 {
				return types.Null, false
			}
			d.L = append(d.L, key, val)
		}
		return d, ok
	}
	return fromJSONScalar(t, v, env)
}

func fromJSONScalar(t Type, v any, env *Env) (types.Datum, bool) {
	text := ""
	switch v := v.(type) {
	case string:
		text = v
		if t.numeric() && !(t.floating() && (v == "NaN" || strings.HasSuffix(v, "Infinity"))) || t.Kind == Boolean {
			return types.Null, false
		}
	case json.Number:
		text = v.String()
		if t.Kind == Boolean || t.Kind == Date {
			return types.Null, false
		}
	case bool:
		text = strconv.FormatBool(v)
		if t.Kind != Boolean && t.Kind != String {
			return types.Null, false
		}
	default:
		if t.Kind != String {
			return types.Null, false
		}
		return types.BytesDatum(writeJSONValue(nil, v)), true
	}
	d, err := caster(tString, t, false, env)(textDatum(text))
	return d, err == nil
}
