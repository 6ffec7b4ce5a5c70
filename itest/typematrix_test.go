//go:build itest

package itest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// The matrix of types: writer × reader × type × mode × evolution step. A table
// has one column of each type of a group and lives in one mode. Every writer
// inserts rows before the step and after it; then rows of all of them are changed
// and deleted by us (the daemon, `applier sql`) and by Java, so that readers see
// rows that were carried, copied and marked. Every value that a reader gives is
// compared with what was inserted. A cell of the matrix passes when all of its
// values did; what an engine cannot do is in typeExceptions, is tried all the
// same, and is counted apart.

const matrixTable = "db.t"

// The engines, by the names of the matrix. The first two are ours: the daemon
// (as a reader: `applier cat`) and SQL.
var (
	typeWriters = []string{"applier", "applier sql", "Java", "Flink", "pypaimon"}
	typeReaders = []string{"applier", "Java", "Flink", "pypaimon"}
)

// typeModes are the kinds of append tables.
var typeModes = []tableMode{
	{name: "copy-on-write", options: map[string]string{"bucket": "-1"}},
	{name: "vectors", options: map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}},
	{name: "64-bit vectors", options: map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"}},
	{name: "row tracking", options: map[string]string{"bucket": "-1", "row-tracking.enabled": "true"}},
	{name: "row tracking, vectors", options: map[string]string{"bucket": "-1", "row-tracking.enabled": "true", "deletion-vectors.enabled": "true"}},
	{name: "buckets, copy-on-write", options: map[string]string{"bucket": "3", "bucket-key": "id"}},
	{name: "buckets, vectors", options: map[string]string{"bucket": "3", "bucket-key": "id", "deletion-vectors.enabled": "true"}},
}

// typeCase names one table of the matrix.
type typeCase struct {
	group typeGroup
	mode  tableMode
	step  evolution
	java  bool // the step is Java's, else that of `applier sql`
}

func (c typeCase) String() string {
	by := "applier"
	if c.java {
		by = "Java"
	}
	return fmt.Sprintf("%s/%s/%s by %s", c.group.name, c.mode.name, c.step.name, by)
}

// typeCases are the tables of a run. The slice has every step, mode and group, each
// in some company; the full matrix has all of them in every company.
func typeCases() []typeCase {
	var out []typeCase
	groups, steps := typeGroups(), evolutions()
	for g, group := range groups {
		for m, mode := range typeModes {
			for s, step := range steps {
				c := typeCase{group, mode, step, (g+m+s)%2 == 0}
				if fullMatrix || sliced(g, m, s) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// sliced chooses a case for the short run: the scalars in every step, the modes in
// turn, and one table of each other group.
func sliced(group, mode, step int) bool {
	switch group {
	case 0:
		return mode == step%len(typeModes)
	default:
		return mode == (2*group-1)%len(typeModes) && step == []int{0, 2, 6, 1, 4}[group]
	}
}

// typeTable is a table of the matrix and its model.
type typeTable struct {
	*rig
	typeCase
	r       *matrixResult
	daemon  *harness.Process
	columns []typeColumn              // beside id and mark, in table order
	rows    map[int]map[string]string // by id: cells by column
	// leavesOut: pypaimon, which knows no defaults, leaves such columns out all the same.
	leavesOut bool
	wrong     map[string][]string // readers and what is wrong: writers and columns
}

// TestTypeMatrix_EveryWriterReaderTypeModeAndStep.
func TestTypeMatrix_EveryWriterReaderTypeModeAndStep(t *testing.T) {
	t.Parallel()
	r := newMatrixResult()
	cases := typeCases()
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) { runTypeCase(t, r, c) })
	}
	r.finish(t, len(cases))
}

// Row ids say who wrote a row and when; what becomes of it is its id modulo 7.
const (
	rowsPerPhase = 14
	idsPerPhase  = 20
	idsPerWriter = 2 * idsPerPhase
)

// What becomes of rows, by their ids modulo 7; those of class 6 stay untouched.
const (
	sqlUpdates = iota
	daemonUpdates
	daemonDeletes
	sqlDeletes
	javaUpdates
	javaDeletes
)

func writerOf(id int) string { return typeWriters[id/idsPerWriter] }

func runTypeCase(t *testing.T, result *matrixResult, c typeCase) {
	topic := newTopic(t, 1)
	table := &typeTable{typeCase: c, r: result, rows: map[int]map[string]string{}, wrong: map[string][]string{}}
	table.rig = newRig(t, "", pipe{Topic: topic, Table: matrixTable, Format: "{ type: json, binary: hex }"})
	table.columns = append(perType(c.group, "c"), c.step.columns(c.group)...)
	spec := harness.TableSpec{Columns: table.schema(), Options: map[string]string{"alter-column-null-to-not-null.disabled": "false"}}
	for k, v := range c.mode.options {
		spec.Options[k] = v
	}
	require.NoError(t, harness.Java(t).Create(t.Context(), table.ref(), spec))
	table.daemon = table.start()

	table.insert(0)
	table.evolve()
	table.insert(1)
	if c.step.name == "default" {
		table.leaveOut()
	}
	table.read(fullMatrix)
	table.changeByUs()
	table.read(false)
	table.changeByJava()
	table.read(true)
	harness.MustStop(t, table.daemon)
	if fullMatrix {
		code, output := harness.ApplierOutput(t.Context(), t, "compact", "--full", matrixTable, "--warehouse", table.Warehouse)
		require.Zero(t, code, output)
		table.read(true)
	}
	for what, where := range table.wrong {
		t.Errorf("%s: %d times, such as %s", what, len(where), strings.Join(where[:min(len(where), 4)], "; "))
	}
}

// failed notes a cell that is wrong and no exception.
func (x *typeTable) failed(c typeCell, what string) {
	key := c.reader + " of " + c.typ
	if !strings.HasPrefix(what, "reads ") {
		key = c.reader + ": " + what
	}
	x.wrong[key] = append(x.wrong[key], fmt.Sprintf("%s's %s: %s", c.writer, c.typ, what))
}

func (x *typeTable) column(name string) *typeColumn {
	i := slices.IndexFunc(x.columns, func(c typeColumn) bool { return c.name == name })
	if i < 0 {
		panic("no column " + name)
	}
	return &x.columns[i]
}

func (x *typeTable) schema() []harness.Column {
	out := []harness.Column{{Name: "id", Type: "BIGINT"}, {Name: "mark", Type: "INT"}}
	for _, c := range x.columns {
		out = append(out, harness.Column{Name: c.name, Type: c.typ})
	}
	return out
}
