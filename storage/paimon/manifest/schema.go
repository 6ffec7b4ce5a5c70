package manifest

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/avro"
)

// The writer schemas of Paimon 2.0.0, byte for byte as Java puts them into the
// header (source: Paimon AvroSchemaConverter over ManifestEntry, DataFileMeta,
// ManifestFileMeta, IndexManifestEntry). The -extended ones have the fields of
// 2.1 behind; they are the measure of what is known here and are written only
// when such a field has a value.
//
//go:embed avsc/*.avsc
var texts embed.FS

// maxCachedSchemas bounds the cache of writer schemas: a table sees a handful,
// one for each version of each engine that writes it.
const maxCachedSchemas = 64

// schemaCache holds the writer schemas of one kind of file. Parsing one costs
// more than reading a small manifest. It is safe for concurrent use.
type schemaCache struct {
	known *avro.SchemaNode
	mu    sync.Mutex
	byStr map[string]*writerSchema
}

// writerSchema is a schema found in a file.
type writerSchema struct {
	*avro.Schema
	// complete says that it has no fields that are not known here; otherwise each
	// record must be looked at for values in them.
	complete bool
}

// schemaText returns an embedded schema.
func schemaText(name string) (string, error) {
	b, err := texts.ReadFile("avsc/" + name + ".avsc")
	return string(b), err
}

// ownSchema is a schema that is written.
type ownSchema struct {
	*avro.Schema
	text string
}

// newSchemaCache returns the cache and fills own with the schemas of the given
// names, of which the last one holds every field that is known.
func newSchemaCache(own []ownSchema, names ...string) (*schemaCache, error) {
	parsed, err := parseOwn()
	if err != nil {
		return nil, err
	}
	c := &schemaCache{byStr: map[string]*writerSchema{}}
	for i, name := range names {
		o := parsed[name]
		own[i] = o.ownSchema
		c.byStr[o.text] = &writerSchema{o.Schema, true}
		c.known = o.root
	}
	return c, nil
}

// parsedSchema is an embedded schema, parsed.
type parsedSchema struct {
	ownSchema
	root *avro.SchemaNode
}

// parseOwn parses the embedded schemas, once for all tables: they are constants,
// and never changed by those who use them.
var parseOwn = sync.OnceValues(func() (map[string]parsedSchema, error) {
	out := map[string]parsedSchema{}
	for _, name := range []string{"manifest", "manifest-extended", "list", "list-extended", "index"} {
		text, err := schemaText(name)
		if err != nil {
			return nil, err
		}
		s, err := avro.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("parsing the schema %s: %w", name, err)
		}
		out[name] = parsedSchema{ownSchema{s, text}, s.Root()}
	}
	return out, nil
})

// get returns the schema of a text, parsed and compared with what is known.
func (c *schemaCache) get(text string) (*writerSchema, error) {
	c.mu.Lock()
	s := c.byStr[text]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	parsed, err := avro.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: parsing the writer's schema: %w", ErrCorrupt, err)
	}
	root := parsed.Root()
	m := matcher{named: map[string]*avro.SchemaNode{}, complete: true}
	m.collect(root, 0)
	if err := m.match("", c.known, root); err != nil {
		return nil, fmt.Errorf("%w: writer's schema: %w", ErrUnsupported, err)
	}
	s = &writerSchema{parsed, m.complete}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byStr) >= maxCachedSchemas {
		clear(c.byStr)
	}
	c.byStr[text] = s
	return s, nil
}

// matcher compares a writer's schema with the known one: record names, orders,
// unions, defaults and documentation do not matter, field names and types do.
type matcher struct {
	named    map[string]*avro.SchemaNode
	complete bool
}

const maxSchemaDepth = 32

// collect finds the named records, which may be referred to elsewhere.
func (m *matcher) collect(n *avro.SchemaNode, depth int) {
	if n == nil || depth > maxSchemaDepth {
		return
	}
	if n.Type == "record" {
		name := n.Name
		if n.Namespace != "" {
			name = n.Namespace + "." + n.Name
		}
		m.named[name] = n
	}
	for i := range n.Fields {
		m.collect(&n.Fields[i].Type, depth+1)
	}
	for i := range n.Branches {
		m.collect(&n.Branches[i], depth+1)
	}
	m.collect(n.Items, depth+1)
	m.collect(n.Values, depth+1)
}

// bare resolves references and takes a type out of its union with null.
func (m *matcher) bare(n *avro.SchemaNode) (_ *avro.SchemaNode, nullable bool) {
	if n.Type == "union" {
		var inner *avro.SchemaNode
		for i := range n.Branches {
			switch b := &n.Branches[i]; {
			case b.Type == "null":
				nullable = true
			case inner != nil:
				return n, nullable // a choice of types is none of ours
			default:
				inner = b
			}
		}
		if inner == nil {
			return n, nullable
		}
		n = inner
	}
	if r := m.named[n.Type]; r != nil {
		n = r
	}
	return n, nullable
}

// match fails if data of schema got cannot be read as known. It recurses over
// known, which is finite, whatever got refers to.
func (m *matcher) match(path string, known, got *avro.SchemaNode) error {
	known, _ = (&matcher{}).bare(known)
	got, _ = m.bare(got)
	switch known.Type {
	case "record":
		if got.Type == "record" {
			return m.matchFields(path, known, got)
		}
	case "array":
		if got.Type == "array" && got.Items != nil {
			return m.match(path+"[]", known.Items, got.Items)
		}
	case "int", "long":
		if got.Type == "int" || got.Type == "long" {
			return matchUnit(path, got.LogicalType)
		}
	default:
		if got.Type == known.Type && got.LogicalType == "" {
			return nil
		}
	}
	return fmt.Errorf("%s is %s instead of %s", path, got.Type, known.Type)
}

// matchUnit refuses numbers of another unit, of which only milliseconds occur.
func matchUnit(path, logical string) error {
	switch logical {
	case "", "timestamp-millis", "local-timestamp-millis":
		return nil
	}
	return fmt.Errorf("%s is a %s", path, logical)
}

func (m *matcher) matchFields(path string, known, got *avro.SchemaNode) error {
	byName := map[string]*avro.SchemaNode{}
	for i := range got.Fields {
		byName[got.Fields[i].Name] = &got.Fields[i].Type
	}
	for i := range known.Fields {
		f := &known.Fields[i]
		sub := path + "." + f.Name
		g := byName[f.Name]
		if g == nil {
			if _, nullable := m.bare(&f.Type); !nullable {
				return fmt.Errorf("%s is missing", sub)
			}
			continue // older writers: reads as null
		}
		delete(byName, f.Name)
		if err := m.match(sub, &f.Type, g); err != nil {
			return err
		}
	}
	if len(byName) > 0 {
		m.complete = false
	}
	return nil
}

// hasUnknown reports whether a record, decoded without a type, has a value in a
// field that is not known here.
func hasUnknown(known *avro.SchemaNode, v any) bool {
	known, _ = (&matcher{}).bare(known)
	switch v := v.(type) {
	case map[string]any:
		fields := 0
		for i := range known.Fields {
			x, ok := v[known.Fields[i].Name]
			if ok {
				fields++
			}
			if hasUnknown(&known.Fields[i].Type, x) {
				return true
			}
		}
		if fields < len(v) {
			for name, x := range v {
				if x != nil && !slices.ContainsFunc(known.Fields, func(f avro.SchemaField) bool { return f.Name == name }) {
					return true
				}
			}
		}
	case []any:
		for _, x := range v {
			if known.Items != nil && hasUnknown(known.Items, x) {
				return true
			}
		}
	}
	return false
}
