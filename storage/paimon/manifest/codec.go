package manifest

import (
	"fmt"

	"github.com/twmb/avro"
)

// Options of a Codec.
type Options struct {
	// Compression is the value of manifest.compression, "" being zstd.
	Compression string
	// Level is the zstd level, 0 being Java's default 1.
	Level int
}

// Codec reads and writes the three kinds of files. It is safe for concurrent use
// and holds only caches and codec state, so one serves any number of tables that
// share the options.
type Codec struct {
	codec                   string
	comp                    *compression
	entries, metas, indexes *schemaCache
	// Each kind's own schemas: the usual one and, where there is one, the extended.
	entry, meta, index [2]ownSchema
}

// NewCodec returns a Codec; an unknown compression is ErrUnsupported.
func NewCodec(o Options) (*Codec, error) {
	codec, err := codecOf(o.Compression)
	if err != nil {
		return nil, err
	}
	if o.Level == 0 {
		o.Level = 1
	}
	c := &Codec{codec: codec}
	if c.comp, err = newCompression(o.Level); err != nil {
		return nil, err
	}
	if c.entries, err = newSchemaCache(c.entry[:], "manifest", "manifest-extended"); err != nil {
		return nil, err
	}
	if c.metas, err = newSchemaCache(c.meta[:], "list", "list-extended"); err != nil {
		return nil, err
	}
	c.indexes, err = newSchemaCache(c.index[:], "index")
	return c, err
}

// EncodeEntries returns the bytes of a data manifest.
func (c *Codec) EncodeEntries(entries []Entry) ([]byte, error) {
	return encode(c, c.entry, entries, extendedEntry, (*writer).entry)
}

// DecodeEntries reads a data manifest. If complete is false the file holds
// something that Entry does not, a newer version's field with a value, and its
// entries must not be written to a new manifest in its place. The entries share
// memory with each other and, in an uncompressed file, with b.
func (c *Codec) DecodeEntries(b []byte) (entries []Entry, complete bool, err error) {
	return decode(c, c.entries, b, (*reader).entry)
}

// EncodeList returns the bytes of a manifest list.
func (c *Codec) EncodeList(metas []Meta) ([]byte, error) {
	return encode(c, c.meta, metas, extendedMeta, (*writer).meta)
}

// DecodeList reads a manifest list; complete as for DecodeEntries.
func (c *Codec) DecodeList(b []byte) (metas []Meta, complete bool, err error) {
	return decode(c, c.metas, b, (*reader).meta)
}

// EncodeIndex returns the bytes of an index manifest.
func (c *Codec) EncodeIndex(entries []IndexEntry) ([]byte, error) {
	return encode(c, c.index, entries, func(*IndexEntry) bool { return false }, (*writer).index)
}

// DecodeIndex reads an index manifest; complete as for DecodeEntries.
func (c *Codec) DecodeIndex(b []byte) (entries []IndexEntry, complete bool, err error) {
	return decode(c, c.indexes, b, (*reader).index)
}

func encode[W, P any](c *Codec, own [2]ownSchema, records []P, extended func(*P) bool, fill func(*writer, *W, *P)) ([]byte, error) {
	schema := own[0]
	for i := range records {
		if extended(&records[i]) {
			schema = own[1]
			break
		}
	}
	out := newContainerWriter(c.comp, c.codec, schema.text)
	var s writer
	var w W
	for i := range records {
		fill(&s, &w, &records[i])
		var err error
		if out.raw, err = schema.AppendEncode(out.raw, &w); err != nil {
			return nil, fmt.Errorf("encoding record %d of a manifest: %w", i, err)
		}
		if err := out.end(); err != nil {
			return nil, err
		}
	}
	if err := out.flush(); err != nil {
		return nil, err
	}
	return out.out, nil
}

func decode[W, P any](c *Codec, cache *schemaCache, b []byte, read func(*reader, *W) (P, error)) (out []P, complete bool, err error) {
	file, err := openContainer(b)
	if err != nil {
		return nil, false, err
	}
	schema, err := cache.get(file.schema)
	if err != nil {
		return nil, false, err
	}
	var r reader
	var w W
	if n := file.expected(); n > 0 {
		out = make([]P, 0, n)
	}
	opts := []avro.Opt{avro.SkipUnknown(), avro.AliasInput()}
	for {
		n, raw, err := file.block(c.comp)
		if err != nil {
			return nil, false, err
		}
		if n == 0 {
			return out, !r.lossy, nil
		}
		for range n {
			record := raw
			if raw, err = schema.Decode(raw, &w, opts...); err != nil {
				return nil, false, fmt.Errorf("%w: record %d: %w", ErrCorrupt, len(out), err)
			}
			if !schema.complete && !r.lossy {
				var all any
				if _, err := schema.Decode(record, &all); err != nil {
					return nil, false, fmt.Errorf("%w: record %d: %w", ErrCorrupt, len(out), err)
				}
				r.lossy = hasUnknown(cache.known, all)
			}
			p, err := read(&r, &w)
			if err != nil {
				return nil, false, fmt.Errorf("record %d: %w", len(out), err)
			}
			out = append(out, p)
		}
		if len(raw) > 0 {
			return nil, false, fmt.Errorf("%w: %d bytes behind the last record of a block", ErrCorrupt, len(raw))
		}
	}
}
