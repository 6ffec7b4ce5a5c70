package paimon

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"applier/storage/objstore"
	"applier/storage/paimon/fileindex"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// Parts of the keys of file-index options.
const (
	fileIndexPrefix = "file-index."
	fileIndexSuffix = ".columns"
	indexExtension  = ".index" // of a data file's companion
)

// bloomColumn is a column that a table wants bloom filters of.
type bloomColumn struct {
	column int
	items  int
	fpp    float64
	hash   func(v *types.Vector, i int) uint64
}

// bloomColumns reads which columns have bloom filters, in the order of the schema
// (source: FileIndexOptions). The error says everything that is not written: other
// indexes, indexes within maps, and what Java refuses too.
func bloomColumns(s *Schema) ([]bloomColumn, error) {
	r := bloomReader{s: s, found: map[string]*bloomColumn{}}
	for _, key := range fileIndexKeys(s.Options) {
		r.columns(key, s.Options[key])
	}
	for key, value := range s.Options {
		r.setting(key, value)
	}
	var out []bloomColumn
	for _, c := range r.found {
		if _, err := fileindex.NewBloom(c.items, c.fpp); err != nil {
			r.fail("column %q: %w", s.Fields[c.column].Name, err)
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b bloomColumn) int { return a.column - b.column })
	slices.SortFunc(r.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return out, errors.Join(r.errs...)
}

// fileIndexKeys are the options that name indexed columns, sorted.
func fileIndexKeys(options map[string]string) (keys []string) {
	for key := range options {
		if strings.HasPrefix(key, fileIndexPrefix) && strings.HasSuffix(key, fileIndexSuffix) && len(key) > len(fileIndexPrefix)+len(fileIndexSuffix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

type bloomReader struct {
	s     *Schema
	found map[string]*bloomColumn
	errs  []error
}

func (r *bloomReader) fail(format string, a ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, a...))
}

// columns reads an option that lists the columns of one type of index.
func (r *bloomReader) columns(key, value string) {
	if key != fileIndexPrefix+fileindex.BloomType+fileIndexSuffix {
		r.fail("%s is set, and of file indexes only bloom filters are written", key)
		return
	}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		at := r.s.Column(name)
		switch {
		case strings.Contains(name, "[") && strings.HasSuffix(name, "]"):
			r.fail("%s names %q, and indexes of the values in maps are not written", key, name)
			continue
		case at < 0:
			r.fail("%s names %q, which is no column", key, name)
			continue
		}
		hash, err := fileindex.Hasher(r.s.Fields[at].Type)
		if err != nil {
			r.fail("%s names column %q: %w", key, name, err)
			continue
		}
		r.found[name] = &bloomColumn{column: at, items: fileindex.DefaultItems, fpp: fileindex.DefaultFPP, hash: hash}
	}
}

// setting reads an option of one column's index, file-index.TYPE.COLUMN.SETTING; Java
// passes over keys with another number of parts.
func (r *bloomReader) setting(key, value string) {
	rest, ok := strings.CutPrefix(key, fileIndexPrefix)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 || parts[0] != fileindex.BloomType || strings.HasSuffix(key, fileIndexSuffix) {
		return
	}
	c := r.found[parts[1]]
	if c == nil {
		r.fail("%s is set, and the column has no such index", key)
		return
	}
	var err error
	switch parts[2] {
	case "items":
		c.items, err = strconv.Atoi(value)
	case "fpp":
		c.fpp, err = strconv.ParseFloat(value, 64)
	}
	if err != nil {
		r.fail("%s is %q, which is no number", key, value)
	}
}

// indexWriter makes the file indexes of data files, one after the other. A nil one
// makes none.
type indexWriter struct {
	threshold int64
	columns   []bloomColumn
	fields    []types.Field
	blooms    []*fileindex.Bloom
}

func (t *Table) newIndexWriter() (*indexWriter, error) {
	if len(t.blooms) == 0 {
		return nil, nil
	}
	x := &indexWriter{threshold: t.options.FileIndexThreshold, columns: t.blooms, fields: t.schema.Fields}
	for _, c := range x.columns {
		b, err := fileindex.NewBloom(c.items, c.fpp)
		if err != nil {
			return nil, err
		}
		x.blooms = append(x.blooms, b)
	}
	return x, nil
}

// reset begins another file.
func (x *indexWriter) reset() {
	if x != nil {
		for _, b := range x.blooms {
			b.Reset()
		}
	}
}

// add notes the rows sel of a batch of the table's columns. copies: their CHAR values
// are stored as they are; else they are filled up with blanks, as the file has them.
func (x *indexWriter) add(b *types.Batch, sel []uint32, copies bool) {
	if x == nil {
		return
	}
	for i, c := range x.columns {
		v := b.Cols[c.column]
		if t := x.fields[c.column].Type; t.Kind == types.Char && !copies {
			v = paddedChars(v, sel, t)
			for j := range v.Len() {
				if !v.IsNull(j) {
					x.blooms[i].Add(c.hash(v, j))
				}
			}
			continue
		}
		for _, row := range sel {
			if !v.IsNull(int(row)) {
				x.blooms[i].Add(c.hash(v, int(row)))
			}
		}
	}
}

// paddedChars returns the rows sel of a vector of CHARs as they are stored.
func paddedChars(v *types.Vector, sel []uint32, t types.Type) *types.Vector {
	out := types.NewVector(t)
	for _, row := range sel {
		d := v.Datum(int(row))
		if !d.Null {
			d.B = padChar(d.B, t.Length)
		}
		out.AppendDatum(d)
	}
	return out
}

// finish puts the index of the file at hand into its entry, or beside it: then it
// returns the companion, to be stored before anything refers to the entry.
func (x *indexWriter) finish(e *manifest.Entry, key string) ([]objstore.Object, error) {
	if x == nil {
		return nil, nil
	}
	var columns []fileindex.Column
	for i, c := range x.columns {
		columns = append(columns, fileindex.Column{Name: x.fields[c.column].Name, Bloom: x.blooms[i]})
	}
	data, err := fileindex.Encode(columns)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) <= x.threshold {
		e.File.EmbeddedIndex = data
		return nil, nil
	}
	name := e.File.Name + indexExtension
	e.File.ExtraFiles = []string{name}
	return []objstore.Object{{Key: path.Dir(key) + "/" + name, Data: data}}, nil
}
