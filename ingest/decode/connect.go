package decode

import (
	"math"
	"strconv"
	"strings"
)

// literal is the primitive of a Kafka Connect schema node.
type literal uint8

const (
	litUnknown literal = iota
	litBoolean
	litInteger
	litSingle // floating-point of 32 bits
	litFloating
	litString
	litBytes
	litArray
	litMap
	litStruct
)

// literals are the names JsonConverter writes, and those of Connect's own
// documentation (FLOAT32, FLOAT64).
var literals = map[string]literal{
	"boolean": litBoolean, "int8": litInteger, "int16": litInteger, "int32": litInteger, "int64": litInteger,
	"float": litSingle, "double": litFloating, "float32": litSingle, "float64": litFloating,
	"string": litString, "bytes": litBytes, "array": litArray, "map": litMap, "struct": litStruct,
}

// node is a Connect schema, as far as decoding needs it.
type node struct {
	literal literal
	name    string // semantic type
	field   string // name inside the struct
	scale   int    // parameters.scale of a Decimal, noScale if there is none
	bits    int    // parameters.length of Bits, 0 if unbounded
	fields  []*node
	items   *node // of an array
	keys    *node // of a map
	values  *node
}

const noScale = math.MinInt32

// member returns the struct field of that name, or nil.
func (n *node) member(name string) *node {
	if n == nil {
		return nil
	}
	for _, f := range n.fields {
		if f.field == name {
			return f
		}
	}
	return nil
}

// maxNodes bounds the memory a schema takes.
const maxNodes = 1 << 16

// schemaParser reads one schema.
type schemaParser struct {
	scanner
	nodes int
}

// node reads a schema in JSON: {"type":…,"name":…,"parameters":{…},"fields":[…]}.
// Members it has no use for are validated only.
func (s *schemaParser) node() (*node, bool) {
	n := &node{scale: noScale}
	if s.nodes++; s.nodes > maxNodes || !s.begin() {
		return nil, false
	}
	for first := true; s.more(first); first = false {
		name, _, ok := s.name()
		if !ok {
			return nil, false
		}
		switch string(name) {
		case "type":
			n.literal = literals[s.text()]
		case "name":
			n.name = s.text()
		case "field":
			n.field = s.text()
		case "parameters":
			ok = s.parameters(n)
		case "fields":
			ok = s.structFields(n)
		case "items":
			n.items, ok = s.child()
		case "keys":
			n.keys, ok = s.child()
		case "values":
			n.values, ok = s.child()
		default:
			ok = s.skip()
		}
		if !ok {
			return nil, false
		}
	}
	return n, s.bad == 0
}

// child reads the schema of an array's or a map's parts; what is none says nothing.
func (s *schemaParser) child() (*node, bool) {
	if s.peek() != '{' {
		return nil, s.skip()
	}
	return s.node()
}

// text reads a value and returns its content if it is a string.
func (s *scanner) text() string {
	var t token
	if !s.token(&t) || t.kind != kindString {
		return ""
	}
	return string(t.text)
}

func (s *schemaParser) structFields(n *node) bool {
	if s.peek() != '[' {
		return s.skip()
	}
	if s.depth >= maxDepth {
		return s.fail(s.p, badDepth)
	}
	s.p++
	s.depth++
	for first := true; ; first = false {
		switch c := s.peek(); {
		case c == ']':
			s.p++
			s.depth--
			return true
		case c == ',' && !first:
			s.p++
		case !first:
			return s.fail(s.p, badComma)
		}
		f, ok := s.node()
		if !ok {
			return false
		}
		n.fields = append(n.fields, f)
	}
}

func (s *schemaParser) parameters(n *node) bool {
	if s.peek() != '{' {
		return s.skip()
	}
	s.begin()
	for first := true; s.more(first); first = false {
		name, _, ok := s.name()
		if !ok {
			return false
		}
		what := string(name)
		number, err := strconv.Atoi(s.text())
		if err != nil {
			continue
		}
		switch {
		case what == "scale" && number > -1<<20 && number < 1<<20:
			n.scale = number
		case what == "length" && number > 0 && number < math.MaxInt32:
			n.bits = number
		}
	}
	return s.bad == 0
}

// semanticName strips what relocated class libraries put before a known name
// (shaded.org.apache.kafka… is org.apache.kafka…).
func semanticName(name string) string {
	for _, root := range [...]string{"org.apache.kafka.connect.data.", "io.debezium."} {
		if i := strings.Index(name, root); i > 0 {
			return name[i:]
		}
	}
	return name
}
