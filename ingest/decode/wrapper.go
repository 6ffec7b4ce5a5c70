package decode

import "bytes"

// connectSchema is a compiled schema and what its owner derived from it.
type connectSchema struct {
	text []byte
	root *node
	// row is the plan of the struct itself; before and after are those of the
	// row images if the struct is a Debezium envelope.
	row, before, after *plan
	scalar             *conv         // of a record key that is no struct
	change             *SchemaChange // what the table should have first; nil for nothing
}

// Limits of what a schemaCache keeps.
const (
	maxSchemas    = 8
	maxSchemaText = 1 << 20
)

// schemaCache recognises the schemas of earlier records by their bytes. The
// last one is compared first, so that a topic with one schema never parses it twice.
type schemaCache struct {
	known   []*connectSchema
	compile func(*connectSchema)
}

// hit looks for a known schema at the start of b.
func (c *schemaCache) hit(b []byte) *connectSchema {
	for i, k := range c.known {
		if bytes.HasPrefix(b, k.text) {
			if i > 0 {
				copy(c.known[1:i+1], c.known[:i])
				c.known[0] = k
			}
			return k
		}
	}
	return nil
}

// parse compiles the schema with this text; nil means that it is none.
func (c *schemaCache) parse(text []byte) *connectSchema {
	if k := c.hit(text); k != nil {
		return k
	}
	var s schemaParser
	s.reset(text)
	root, ok := s.node()
	if !ok || root.literal == litUnknown {
		return nil
	}
	k := &connectSchema{text: bytes.Clone(text), root: root}
	c.compile(k)
	if len(text) <= maxSchemaText {
		if len(c.known) < maxSchemas {
			c.known = append(c.known, nil)
		}
		copy(c.known[1:], c.known)
		c.known[0] = k
	}
	return k
}

// wrapper is what JsonConverter puts around a value when schemas are enabled.
type wrapper struct {
	on     bool
	schema *connectSchema // nil: no wrapper, or schema null
	end    int            // offset after the wrapper, 0: the payload comes last
}

var (
	schemaFirst = []byte(`{"schema":`)
	payloadNext = []byte(`,"payload":`)
)

// open looks whether the value at s is {"schema":…,"payload":…} and, if so,
// moves to the payload. A row that merely has columns of these names is none:
// its schema is no Connect schema or, if it is null, there is a third member. A
// third member beside a Connect schema is an error.
func (c *schemaCache) open(s *scanner) (w wrapper) {
	if s.peek() != '{' {
		return w
	}
	if rest := s.b[s.p:]; bytes.HasPrefix(rest, schemaFirst) {
		rest = rest[len(schemaFirst):]
		if k := c.hit(rest); k != nil && bytes.HasPrefix(rest[len(k.text):], payloadNext) {
			s.p += len(schemaFirst) + len(k.text) + len(payloadNext)
			s.depth++
			return wrapper{on: true, schema: k}
		}
	} else if q := rest[space(rest, 1):]; len(q) < 2 || q[1] != 's' && q[1] != 'p' {
		return w // the first name is neither
	} else if !bytes.HasPrefix(q, []byte(`"schema"`)) && !bytes.HasPrefix(q, []byte(`"payload"`)) {
		return w
	}
	return c.openSlowly(s)
}

// openSlowly reads the whole value once to find both members.
func (c *schemaCache) openSlowly(s *scanner) (w wrapper) {
	start := *s
	var schema []byte
	payload, count := -1, 0
	s.begin()
	for first := true; s.more(first); first = false {
		name, _, ok := s.name()
		if !ok {
			return w
		}
		s.peek()
		from := s.p
		count++
		switch is := string(name); {
		case !s.skip():
			return w
		case is == "schema":
			schema = s.b[from:s.p]
		case is == "payload":
			payload = from
		}
	}
	if s.bad != 0 {
		return w
	}
	end := s.p
	if schema != nil && payload >= 0 {
		w.schema = c.parse(schema)
		w.on = w.schema != nil || count == 2 && bytes.Equal(schema, literalNull)
	}
	buf := s.buf
	*s = start
	s.buf = buf
	if w.on {
		s.p, s.depth, w.end = payload, s.depth+1, end
		if count != 2 {
			s.fail(0, badWrapper)
		}
	}
	return w
}

// close checks the end of the wrapper after its payload was read.
func (w wrapper) close(s *scanner) bool {
	switch {
	case !w.on:
	case w.end > 0:
		s.p = w.end
		s.depth--
	case s.more(false):
		return s.fail(0, badWrapper)
	}
	return s.bad == 0
}
