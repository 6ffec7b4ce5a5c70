package types

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// jsonType is the object form of nested types in schema files
// (source: Paimon DataTypeJsonParser, ArrayType.serializeJson …).
type jsonType struct {
	Type    string      `json:"type"`
	Element *Type       `json:"element,omitempty"`
	Key     *Type       `json:"key,omitempty"`
	Value   *Type       `json:"value,omitempty"`
	Fields  []jsonField `json:"fields,omitempty"`
	Length  *int        `json:"length,omitempty"`
}

type jsonField struct {
	ID          int     `json:"id"`
	Name        string  `json:"name"`
	Type        Type    `json:"type"`
	Description *string `json:"description,omitempty"`
	Default     *string `json:"defaultValue,omitempty"`
}

// marshal is json.Marshal without its escapes for HTML, which Paimon does not write.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// MarshalJSON writes the form of Paimon's schema files.
func (t Type) MarshalJSON() ([]byte, error) {
	name := t.Kind.String()
	if t.NotNull {
		name += " NOT NULL"
	}
	switch t.Kind {
	case Array, Multiset:
		return marshal(jsonType{Type: name, Element: t.Elem})
	case VectorOf:
		return marshal(jsonType{Type: name, Element: t.Elem, Length: &t.Length})
	case Map:
		return marshal(jsonType{Type: name, Key: t.Key, Value: t.Elem})
	case Row:
		fields := make([]jsonField, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = jsonField(f)
		}
		return marshal(struct {
			Type   string      `json:"type"`
			Fields []jsonField `json:"fields"`
		}{name, fields})
	}
	return marshal(t.String())
}

var errTooDeep = fmt.Errorf("reading a data type: nested deeper than %d levels", maxTypeDepth)

// UnmarshalJSON reads the form of Paimon's schema files.
func (t *Type) UnmarshalJSON(b []byte) error {
	// Each level of nesting is read again by the next: the depth bounds the work.
	if tooDeep(b) {
		return errTooDeep
	}
	if len(b) > 0 && b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return fmt.Errorf("reading a data type: %w", err)
		}
		u, err := ParseType(text)
		*t = u
		return err
	}
	var j jsonType
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("reading a data type: %w", err)
	}
	u, err := j.toType()
	if err == nil && u.depth() > maxTypeDepth {
		u, err = Type{}, errTooDeep
	}
	*t = u
	return err
}

// jsonLevels is how many brackets one level of a type takes at most: ROW is an
// object with an array of field objects.
const jsonLevels = 3

// tooDeep reports whether JSON is nested deeper than types may be.
func tooDeep(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > jsonLevels*maxTypeDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

var nestedKinds = map[string]Kind{"ARRAY": Array, "MULTISET": Multiset, "VECTOR": VectorOf, "MAP": Map, "ROW": Row}

func (j jsonType) toType() (Type, error) {
	words := strings.Fields(strings.ToUpper(j.Type))
	if len(words) == 0 {
		return Type{}, fmt.Errorf("reading a data type: the object has no \"type\"")
	}
	t := Type{Kind: nestedKinds[words[0]]}
	switch rest := strings.Join(words[1:], " "); {
	case t.Kind == Invalid || rest != "" && rest != "NULL" && rest != "NOT NULL":
		return Type{}, fmt.Errorf("reading a data type: %q is no nested type known here", j.Type)
	default:
		t.NotNull = rest == "NOT NULL"
	}
	switch t.Kind {
	case Map:
		t.Key, t.Elem = j.Key, j.Value
	case Row:
		for _, f := range j.Fields {
			if f.Type.Kind == Invalid {
				return Type{}, fmt.Errorf("reading a data type: field %q has no type", f.Name)
			}
			t.Fields = append(t.Fields, Field(f))
		}
		return t, nil
	default:
		t.Elem = j.Element
	}
	if t.Elem == nil || t.Kind == Map && t.Key == nil {
		return Type{}, fmt.Errorf("reading a data type: %s lacks its element types", words[0])
	}
	if t.Kind == VectorOf {
		if j.Length == nil || *j.Length < 1 {
			return Type{}, fmt.Errorf("reading a data type: VECTOR lacks its length")
		}
		t.Length = *j.Length
	}
	return t, nil
}

// MarshalJSON writes a field as Paimon's schema files do.
func (f Field) MarshalJSON() ([]byte, error) { return marshal(jsonField(f)) }

// UnmarshalJSON reads a field of a Paimon schema file.
func (f *Field) UnmarshalJSON(b []byte) error {
	var j jsonField
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if j.Type.Kind == Invalid {
		return fmt.Errorf("reading a field: %q has no type", j.Name)
	}
	*f = Field(j)
	return nil
}
