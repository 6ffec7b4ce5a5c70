//go:build itest

package itest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// soakModel is what the table must hold: one statement after another, in the
// plainest way. It knows no snapshot, file or batch.
type soakModel struct {
	columns []soakColumn
	rows    map[int][]soakRow // by key; INSERTs of others may give a key several
	records []soakRecord      // all that were ever produced
	fields  int               // that were ever made
}

// soakColumn is a name for a field: cells belong to fields, so that a column that is
// dropped and added again is empty, and one that is renamed keeps its cells.
type soakColumn struct {
	field int
	name  string
}

// soakRow is the cells of a row by field, as JSON texts. Those that are not there are NULL.
type soakRow map[int]string

// soakRecord is a change of a key; one without cells deletes.
type soakRecord struct {
	key   int
	cells map[string]string // by column
}

// addColumn puts a column without values at a place.
func (m *soakModel) addColumn(at int, name string) {
	m.columns = slices.Insert(m.columns, at, soakColumn{m.fields, name})
	m.fields++
}

// assign gives a row cells by the names that columns have now; others are ignored.
func (m *soakModel) assign(row soakRow, cells map[string]string) soakRow {
	for _, c := range m.columns {
		if v, ok := cells[c.name]; ok {
			row[c.field] = v
		}
	}
	return row
}

func (m *soakModel) insert(key int, cells map[string]string) {
	m.rows[key] = append(m.rows[key], m.assign(soakRow{}, cells))
}

func (m *soakModel) update(key int, cells map[string]string) {
	for _, row := range m.rows[key] {
		m.assign(row, cells)
	}
}

func (m *soakModel) remove(key int) { delete(m.rows, key) }

// apply follows a record: it changes every row of its key, or makes one.
func (m *soakModel) apply(r soakRecord) {
	switch {
	case r.cells == nil:
		m.remove(r.key)
	case len(m.rows[r.key]) > 0:
		m.update(r.key, r.cells)
	default:
		m.insert(r.key, r.cells)
	}
}

// cloneRows copies rows, so that they stay what they were.
func cloneRows(rows map[int][]soakRow) map[int][]soakRow {
	out := map[int][]soakRow{}
	for key, of := range rows {
		for _, row := range of {
			out[key] = append(out[key], maps.Clone(row))
		}
	}
	return out
}

// textsOf are rows as judges print them.
func textsOf(columns []soakColumn, rows map[int][]soakRow) []string {
	out := []string{}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		for _, row := range rows[key] {
			cells := make([]string, len(columns))
			for i, c := range columns {
				cell, ok := row[c.field]
				if !ok {
					cell = "null"
				}
				cells[i] = fmt.Sprintf("%q:%s", c.name, cell)
			}
			out = append(out, "{"+strings.Join(cells, ",")+"}")
		}
	}
	return out
}
