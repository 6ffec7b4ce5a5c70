//go:build itest

package itest

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// typeCell is a cell of the matrix.
type typeCell struct {
	writer, reader, typ, mode, step, group string
}

// typeException is something that an engine cannot do, or does wrongly. It is tried
// in every case: one that is no longer true fails the test.
type typeException struct {
	engine string
	writes bool   // as a writer; else as a reader
	reason string // as docs/compatibility.md says it
	says   string // a part of the error, or of what is wrong with a value
	// in tells whether a cell is affected; writers are asked once a table, with the
	// type left empty.
	in func(c typeCell) bool
	// perhaps tells cells in which it is met or not, as others have compacted.
	perhaps func(c typeCell) bool
}

// matrixResult counts the cells of a run.
type matrixResult struct {
	passed  map[typeCell]bool // false: an exception or a failure
	values  int               // compared and right
	refused map[typeCell]*typeException
	// tried says for every exception, by type and mode, whether it was met; one that
	// never was although it applied is to go.
	tried map[*typeException]map[string]bool
}

func newMatrixResult() *matrixResult {
	return &matrixResult{passed: map[typeCell]bool{}, refused: map[typeCell]*typeException{}, tried: map[*typeException]map[string]bool{}}
}

// met notes that an exception was tried, and whether it held.
func (r *matrixResult) met(e *typeException, where string, held bool) {
	if r.tried[e] == nil {
		r.tried[e] = map[string]bool{}
	}
	r.tried[e][where] = r.tried[e][where] || held
}

// cannotWrite returns the exception of a writer for a table.
func (r *matrixResult) cannotWrite(x *typeTable, writer string) *typeException {
	c := typeCell{writer: writer, mode: x.mode.name, step: x.step.name, group: x.group.name}
	for _, e := range typeExceptions {
		if e.writes && e.engine == writer && e.in(c) {
			return e
		}
	}
	return nil
}

// refusedWriter notes what came of a writer's try on a copy of the table.
func (r *matrixResult) refusedWriter(x *typeTable, writer string, phase int, e *typeException, err error) {
	held := err != nil && strings.Contains(err.Error(), e.says)
	if err != nil && !held {
		x.t.Errorf("%s: %s, phase %d: %v\nwhich is not the exception %q", x.typeCase, writer, phase, short(err), e.reason)
	}
	r.met(e, x.group.name+", "+x.mode.name, held)
	for _, c := range x.columns {
		for _, reader := range typeReaders {
			r.refused[typeCell{writer: writer, reader: reader, typ: c.label, mode: x.mode.name, step: x.step.name, group: x.group.name}] = e
		}
	}
}

// note notes what a reader made of the values of a cell: wrong is empty if they
// are right.
func (r *matrixResult) note(t *testing.T, x *typeTable, c typeCell, values int, wrong string) {
	t.Helper()
	var e *typeException
	for _, known := range typeExceptions {
		if !known.writes && known.engine == c.reader && known.in(c) && (wrong == "" || strings.Contains(wrong, known.says)) {
			e = known
			if wrong != "" || e.perhaps == nil || !e.perhaps(c) {
				r.met(e, c.typ+", "+c.mode, wrong != "")
			}
			break
		}
	}
	switch {
	case wrong == "":
		r.values += values
		if old, seen := r.passed[c]; !seen || old {
			r.passed[c] = r.refused[c] == nil
		}
		return
	case e != nil:
		r.refused[c] = e
	default:
		x.failed(c, wrong)
	}
	r.passed[c] = false
}

// leftOut notes what became of rows in which a writer left columns out that have a
// default.
func (r *matrixResult) leftOut(x *typeTable, e *typeException, err error) {
	held := err != nil && strings.Contains(err.Error(), e.says)
	r.met(e, x.group.name+", "+x.mode.name, held)
	for _, c := range x.columns {
		for _, reader := range typeReaders {
			if c.byDefault != "" {
				r.refused[typeCell{writer: e.engine, reader: reader, typ: c.label + ", left out", mode: x.mode.name, step: x.step.name, group: x.group.name}] = e
			}
		}
	}
}

// finish prints the counts, and fails when an exception is no longer true.
func (r *matrixResult) finish(t *testing.T, tables int) {
	for e, where := range r.tried {
		for w, held := range where {
			if !held {
				t.Errorf("%s can do it now (%s): drop the exception %q", e.engine, w, e.reason)
			}
		}
	}
	var b strings.Builder
	cells, pairs := 0, map[[2]string]int{}
	dims := map[string]map[string]int{"types": {}, "modes": {}, "steps": {}}
	for c, ok := range r.passed {
		if ok {
			cells++
			pairs[[2]string{c.writer, c.reader}]++
			dims["types"][c.typ]++
			dims["modes"][c.mode]++
			dims["steps"][c.step]++
		}
	}
	fmt.Fprintf(&b, "matrix of types: %d tables, %d types of columns, %d modes, %d steps: %d cells passed (%d values), %d cells are exceptions\n",
		tables, len(dims["types"]), len(dims["modes"]), len(dims["steps"]), cells, r.values, len(r.refused))
	fmt.Fprintf(&b, "%-14s", "writer \\ reader")
	for _, reader := range typeReaders {
		fmt.Fprintf(&b, "%12s", reader)
	}
	b.WriteByte('\n')
	for _, w := range typeWriters {
		fmt.Fprintf(&b, "%-14s", w)
		for _, reader := range typeReaders {
			fmt.Fprintf(&b, "%12d", pairs[[2]string{w, reader}])
		}
		b.WriteByte('\n')
	}
	reasons := map[string]int{}
	for _, e := range r.refused {
		reasons[e.engine+map[bool]string{true: " writes", false: " reads"}[e.writes]+": "+e.reason]++
	}
	for _, reason := range slices.SortedFunc(keysOf(reasons), func(a, b string) int { return cmp.Or(reasons[b]-reasons[a], cmp.Compare(a, b)) }) {
		fmt.Fprintf(&b, "exception, %7d cells, %s\n", reasons[reason], reason)
	}
	t.Log("\n" + b.String())
	if file := os.Getenv("MATRIX_COUNTS"); file != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}
