package decode

import (
	"fmt"
	"slices"
	"strings"

	"applier/storage/types"
)

// plan says what becomes of each member of a row image: slot ids are column
// indexes, negative ones are members the table has no use for.
type plan struct {
	members
}

// Limits of what a decoder remembers for its owner.
const (
	maxUnknownColumns = 256
	maxNotes          = 64
)

// planner makes the plans of one decoder.
type planner struct {
	fields  []types.Field
	byName  map[string]int
	skip    []bool // columns that images do not fill: metadata
	env     convEnv
	without source // rule for values without schema
	unknown map[string]struct{}
	notes   map[string]struct{}
	note    string // not reported yet
}

func newPlanner(o *Options, without source) *planner {
	p := &planner{
		fields: o.Fields, byName: make(map[string]int, len(o.Fields)), skip: make([]bool, len(o.Fields)),
		env:     convEnv{unscaled: o.UnscaledDecimals, binary: o.Binary},
		without: without, unknown: make(map[string]struct{}), notes: make(map[string]struct{}),
	}
	for i, f := range o.Fields {
		p.byName[f.Name] = i
	}
	p.env.unknown = p.ignored
	for _, m := range o.Columns {
		p.skip[m.Column] = true
	}
	return p
}

// plan returns the plan of images with this struct schema; nil stands for
// images without schema. Columns the schema does not name are read without one.
// Members of a value's image that no column takes are remembered for UnknownColumns.
func (p *planner) plan(schema *node, value bool) *plan {
	pl := &plan{}
	if value {
		pl.unknown = p.ignored
	}
	if schema != nil {
		for _, f := range schema.fields {
			i, ok := p.byName[f.field]
			if !ok || p.skip[i] {
				if pl.extra < maxExtraNames && len(f.field) <= maxNameLength {
					pl.extra++
					pl.add(f.field, -1)
				}
				if value {
					p.ignored(f.field)
				}
				continue
			}
			pl.add(f.field, i).conv = p.conv(i, f)
		}
	}
	for i, f := range p.fields {
		if p.skip[i] {
			pl.add(f.Name, -1)
		} else if pl.byName[f.Name] == nil {
			pl.add(f.Name, i).conv = p.conv(i, nil)
		}
	}
	return pl
}

// conv chooses the converter of a column and notes what its reader should know.
func (p *planner) conv(column int, n *node) conv {
	f := p.fields[column]
	c, known := newConv(&p.env, f.Type, n, p.without, f.Name)
	switch {
	case !known:
		p.addNote(fmt.Sprintf("column %s: unknown schema type %.100q, read by its literal type", f.Name, n.name))
	case f.Type.Kind == types.TimestampLTZ && (c.src >= srcMilliTimestamp && c.src <= srcIsoTimestamp):
		p.addNote(fmt.Sprintf("column %s: wall-clock times are taken as UTC in a TIMESTAMP_LTZ column", f.Name))
	}
	return c
}

// addNote keeps a note for the next result, once.
func (p *planner) addNote(text string) {
	if _, ok := p.notes[text]; ok || len(p.notes) >= maxNotes {
		return
	}
	p.notes[text] = struct{}{}
	if p.note != "" {
		p.note += "; "
	}
	p.note += text
}

// takeNote returns what addNote collected since the last call.
func (p *planner) takeNote() string {
	n := p.note
	p.note = ""
	return n
}

func (p *planner) ignored(name string) {
	if _, column := p.byName[name]; !column && len(p.unknown) < maxUnknownColumns && len(name) <= maxNameLength {
		if _, known := p.unknown[name]; !known {
			p.unknown[strings.Clone(name)] = struct{}{}
			if plainName(name) {
				p.addNote(fmt.Sprintf("column %s: not in the table, its values are not kept", name))
			} else {
				p.addNote("columns whose names are no plain words: not in the table, their values are not kept")
			}
		}
	}
}

// plainName: letters, digits and underscores only. Other names could be anything that
// a producer wants to see in a log.
func plainName(name string) bool {
	return len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// UnknownColumns returns the names of members of row images that the target
// table has no column for, sorted; at most 256 are remembered.
func (p *planner) UnknownColumns() []string {
	names := make([]string, 0, len(p.unknown))
	for n := range p.unknown {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
