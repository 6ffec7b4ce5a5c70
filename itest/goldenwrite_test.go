//go:build itest

package itest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// neverChanged are the golden tables that this program does not write, with the
// words that it refuses them by.
var neverChanged = map[string]string{
	"refused.evo": "data-evolution.enabled is true",
	"refused.orc": "its data files are orc",
	"refused.pk":  "it has a primary key",
}

// TestGolden_CopiesAreChangedByUsByJavaAndByUsAgain takes every golden table that
// this program writes: we delete a key and bring its row back, Java deletes and
// inserts and compacts, and we change it again. All readers see the model's rows
// after each step. Tables that it does not write are refused by name and stay as
// they are.
func TestGolden_CopiesAreChangedByUsByJavaAndByUsAgain(t *testing.T) {
	t.Parallel()
	changed, refused := 0, 0
	for _, fixture := range goldenFixtures(t) {
		for _, ref := range goldenTables(t, fixture) {
			if ref.Table == "rescaled.t" {
				continue // see TestGolden_ARescaledPartitionHaltsByName
			}
			t.Run(ref.Table, func(t *testing.T) {
				why := changeGolden(t, ref)
				if why == "" {
					changed++
					return
				}
				refused++
				require.NotEmpty(t, neverChanged[ref.Table], why)
				require.Contains(t, why, neverChanged[ref.Table])
			})
		}
	}
	require.Len(t, neverChanged, refused)
	t.Logf("%d golden tables were changed, %d are refused by name", changed, refused)
}

// TestGolden_ARescaledPartitionHaltsByName: a partition keeps the number of buckets
// it was written with; new rows would not be where readers look for them, as Java's
// writers say too.
func TestGolden_ARescaledPartitionHaltsByName(t *testing.T) {
	golden := goldenTables(t, "rescaled")
	warehouse := filepath.Join(t.TempDir(), "warehouse")
	ref := harness.Ref{Warehouse: warehouse, Table: "rescaled.t"}
	for _, g := range golden {
		if g.Table == ref.Table {
			require.NoError(t, os.CopyFS(tableDir(ref), os.DirFS(tableDir(g))))
		}
	}
	java := harness.Java(t)
	_, err := java.Do(t.Context(), ref, harness.InsertRows(`{"id":100,"k":0}`))
	require.ErrorContains(t, err, "bucket num")
	topic := newTopic(t, 1)
	r := newRig(t, warehouse, pipe{Topic: topic, Table: ref.Table})
	m := newModel([]string{"id", "k"}, []string{"id"})
	rows, err := java.Read(t.Context(), ref, harness.Query{})
	require.NoError(t, err)
	m.insert(rows.Texts()...)
	// Rows of the other partition come, rows of this one may go.
	for _, rec := range []*kgo.Record{put(topic, 0, `{"id":101,"k":1}`), del(topic, 0, `{"id":6}`)} {
		m.apply(rec)
		r.kafka.Produce(t, rec)
	}
	p := r.start()
	r.waitApplied(p)
	r.holds(m)
	r.kafka.Produce(t, put(topic, 0, `{"id":100,"k":0}`))
	s := r.waitHalt(p, "T-OPTIONS")
	require.Contains(t, s.Halt.Message, "a partition has 2 buckets, the option bucket says 4: bring it to the new number with INSERT OVERWRITE")
	r.holds(m)
	require.NoError(t, p.Signal(syscall.SIGTERM))
	code, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, code, "it ended halted")
}

// keyColumn is the first column that can serve as a merge key of a test.
var keyColumn = regexp.MustCompile(`^(TINYINT|SMALLINT|INT|BIGINT|STRING|VARCHAR\(\d+\))( NOT NULL)?$`)

// changeGolden changes a copy of a table; it returns why if it is refused.
func changeGolden(t *testing.T, golden harness.Ref) (why string) {
	warehouse := filepath.Join(t.TempDir(), "warehouse")
	ref := harness.Ref{Warehouse: warehouse, Table: golden.Table}
	require.NoError(t, os.CopyFS(tableDir(ref), os.DirFS(tableDir(golden))))
	java := harness.Java(t)
	spec, err := java.Schema(t.Context(), ref)
	require.NoError(t, err)
	key := ""
	m := newModel(nil, nil)
	for _, c := range spec.Columns {
		m.columns = append(m.columns, c.Name)
		if key == "" && keyColumn.MatchString(strings.ToUpper(c.Type)) {
			key = c.Name
		}
	}
	require.NotEmpty(t, key, "columns %v", spec.Columns)
	m.key = []string{key}
	topic := newTopic(t, 1)
	r := newRig(t, warehouse, pipe{Topic: topic, Table: ref.Table, Key: `["` + key + `"]`, Format: "{ type: json, binary: hex }"})
	if spec.Options["deletion-vectors.bitmap64"] == "true" /* pypaimon reads 32-bit vectors only */ || cannotRead["pypaimon"][golden.Table] != "" {
		r.judges = []harness.Judge{cat(t), java}
	}
	if code, output := r.command("validate", "--online"); code != 0 {
		require.Regexp(t, `table refused: `, output)
		return output
	}
	rows, err := java.Read(t.Context(), ref, harness.Query{})
	require.NoError(t, err)
	m.insert(rows.Texts()...)
	g := &goldenChange{rig: r, m: m, key: key}
	if len(m.rows) == 0 {
		g.fill(spec.Columns)
	}
	g.ours(0)
	if text, k, ok := g.row(1); ok {
		do(t, java, ref, harness.DeleteKeys([]string{key}, []any{json.RawMessage(k)}))
		do(t, java, ref, harness.InsertRows(text))
		g.m.remove(`{"` + key + `":` + k + `}`)
		g.m.insert(text)
		g.rig.holds(g.m)
	}
	if spec.Options["clustering.incremental"] != "true" { // see clustering_test.go
		do(t, java, ref, harness.CompactFull())
		g.rig.holds(g.m)
	}
	g.ours(1)
	g.maintain()
	return ""
}

type goldenChange struct {
	*rig
	m   *model
	key string
}

// fill puts rows into a table that has none: keys, and in all other columns NULL, or
// what a column takes that has no NULL.
func (g *goldenChange) fill(columns []harness.Column) {
	for id := range 3 {
		row := map[string]any{}
		for _, c := range columns {
			row[c.Name] = nil
			if c.Name == g.key || strings.HasSuffix(c.Type, " NOT NULL") {
				row[c.Name] = id + 1
			}
		}
		text, err := json.Marshal(row)
		require.NoError(g.t, err)
		g.m.upsert(string(text))
		g.kafka.Produce(g.t, put(g.pipes[0].Topic, 0, string(text)))
	}
	p := g.start()
	g.waitApplied(p)
	harness.MustStop(g.t, p)
	g.rig.holds(g.m)
}

// maintain joins, purges, expires and looks for orphans with our commands; Java
// goes on from there.
func (g *goldenChange) maintain() {
	ctx, table := g.t.Context(), []string{g.ref().Table, "--warehouse", g.Warehouse}
	run := func(args ...string) {
		g.t.Helper()
		code, output := harness.ApplierOutput(ctx, g.t, append(args, table...)...)
		require.Zero(g.t, code, output)
		g.t.Log(strings.TrimSpace(output))
		g.rig.holds(g.m)
	}
	run("compact", "--full")
	run("expire", "--retain-min", "2", "--retain-max", "2", "--retain-time", "0s", "--min-age", "0s")
	run("orphans")
	if text, _, ok := g.row(0); ok {
		do(g.t, harness.Java(g.t), g.ref(), harness.InsertRows(text))
		g.m.insert(text)
		g.rig.holds(g.m)
	}
	snapshots, err := harness.Java(g.t).Snapshots(ctx, g.ref())
	require.NoError(g.t, err)
	for _, s := range snapshots { // what is left is whole
		_, err := harness.Java(g.t).Digest(ctx, g.ref(), harness.Query{Snapshot: s.ID})
		require.NoError(g.t, err, "snapshot %d", s.ID)
	}
}

// row is the n-th row that has a key, with the text of the key.
func (g *goldenChange) row(n int) (text, key string, ok bool) {
	for _, text := range g.m.texts() {
		k := parseRow(text)[g.key]
		if k == "null" {
			continue
		}
		if n == 0 {
			return text, k, true
		}
		n--
	}
	return "", "", false
}

// ours deletes the rows of a key, and brings one of them back in a later batch.
func (g *goldenChange) ours(n int) {
	text, k, ok := g.row(n)
	if !ok {
		return
	}
	topic := g.pipes[0].Topic
	for _, rec := range []*kgo.Record{del(topic, 0, `{"`+g.key+`":`+k+`}`), put(topic, 0, text)} {
		if rec.Value == nil {
			g.m.apply(rec)
		} else {
			g.m.upsert(text)
		}
		g.kafka.Produce(g.t, rec)
		p := g.start()
		g.waitApplied(p)
		harness.MustStop(g.t, p)
		g.rig.holds(g.m)
	}
}
