package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/ingest/decode"
	"applier/merger"
	"applier/metrics"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// alter changes the table's schema as another engine does.
func (w *world) alter(change func(*paimon.SchemaEdit) error) {
	w.t.Helper()
	t := w.open()
	edit := t.Schema().Edit(true)
	require.NoError(w.t, change(edit))
	s, _, err := edit.Schema(1)
	require.NoError(w.t, err)
	require.NoError(w.t, paimon.AddSchema(testContext(w.t), t.Bucket(), t.Paths(), s))
}

// open returns the pipeline's table as it is now.
func (w *world) open() *paimon.Table {
	w.t.Helper()
	name, err := catalog.ParseName("shop.orders")
	require.NoError(w.t, err)
	t, err := w.catalog().Open(testContext(w.t), name, paimon.Write)
	require.NoError(w.t, err)
	return t
}

// columns returns "name TYPE" of the table's columns.
func (w *world) columns() (columns []string) {
	for _, f := range w.open().Schema().Fields {
		columns = append(columns, f.Name+" "+f.Type.String())
	}
	return columns
}

// texts returns the table's rows as sorted texts.
func (w *world) texts() (rows []string) {
	w.t.Helper()
	t, ctx := w.open(), testContext(w.t)
	id, err := paimon.LatestSnapshotID(ctx, t.Bucket(), t.Paths())
	require.NoError(w.t, err)
	if id == 0 {
		return nil
	}
	s, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), id)
	require.NoError(w.t, err)
	st, err := t.State(ctx, s)
	require.NoError(w.t, err)
	require.NoError(w.t, t.Scan(ctx, st, paimon.ScanOptions{}, func(b *types.Batch) error {
		for i := range b.Len() {
			var cells []string
			for c, v := range b.Row(i) {
				if v.Null {
					cells = append(cells, "NULL")
					continue
				}
				cells = append(cells, string(types.AppendText(nil, t.Schema().Fields[c].Type, v)))
			}
			rows = append(rows, strings.Join(cells, " "))
		}
		return nil
	}))
	slices.Sort(rows)
	return rows
}

// eventually waits for something that a test cannot be told of.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, patience, 20*time.Millisecond, what)
}

// await waits until the table holds rows.
func (w *world) await(rows ...string) {
	w.t.Helper()
	eventually(w.t, "the rows", func() bool { return slices.Equal(rows, w.texts()) })
}

func (r *running) pipeline() *pipeline { return r.app.pipelines["p"] }

func TestApp_ASchemaThatSomebodyElseChangedIsFollowed(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    batch: { idle_flush: 20ms }\n")
	w.create(orders(), nil)
	r := w.run()
	w.produce(0, `{"id":1,"note":"a","more":7}`)
	w.await("1 a")

	w.alter(func(e *paimon.SchemaEdit) error {
		return e.AddColumn([]string{"more"}, types.Field{Type: types.IntType()}, nil)
	})
	w.produce(0, `{"id":2,"note":"b","more":8}`)
	w.await("1 a NULL", "2 b 8")
	require.Empty(t, r.app.Ready())

	// A change that the pipeline cannot follow halts it; the change back ends that.
	w.alter(func(e *paimon.SchemaEdit) error { return e.RenameColumn([]string{"id"}, "ident") })
	w.produce(0, `{"id":3,"note":"c","more":9}`)
	eventually(t, "a halt", func() bool {
		h := r.pipeline().status().Halt
		return h != nil && h.Code == string(merger.CodeSchema) && strings.Contains(h.Message, `no column "id"`)
	})
	w.alter(func(e *paimon.SchemaEdit) error { return e.RenameColumn([]string{"ident"}, "id") })
	require.NoError(t, r.app.Resume(testContext(t), "p"))
	w.await("1 a NULL", "2 b 8", "3 c 9")
}

// A record that the table takes since somebody else changed its schema is applied: it
// is no error of the record, whatever on_error says.
func TestApp_ARecordThatOnlyTheNewSchemaTakesIsApplied(t *testing.T) {
	for _, policy := range []string{"pause", "skip"} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t, "    key: [id]\n    on_error: "+policy+"\n    batch: { idle_flush: 20ms }\n")
			w.create(orders(), nil)
			w.alter(func(e *paimon.SchemaEdit) error {
				return e.AddColumn([]string{"n"}, types.Field{Type: types.IntType()}, nil)
			})
			w.run()
			w.produce(0, `{"id":1,"n":1}`)
			w.await("1 NULL 1")
			w.alter(func(e *paimon.SchemaEdit) error { return e.SetType([]string{"n"}, types.BigIntType()) })
			w.produce(0, `{"id":2,"n":5000000000}`)
			w.await("1 NULL 1", "2 NULL 5000000000")
		})
	}
}

// An operator's pause outlives the change of a schema.
func TestApp_APausedPipelineStaysPausedWhenItsTableIsOpenedAnew(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    batch: { idle_flush: 20ms }\n")
	w.create(orders(), nil)
	r := w.run()
	w.produce(0, `{"id":1,"note":"a"}`)
	w.await("1 a")
	ctx := testContext(t)
	require.NoError(t, r.app.Pause(ctx, "p"))
	before := r.pipeline().applierNow()
	w.alter(func(e *paimon.SchemaEdit) error {
		return e.AddColumn([]string{"more"}, types.Field{Type: types.IntType()}, nil)
	})
	before.Post(merger.Tick{})
	eventually(t, "another loop, paused", func() bool {
		a := r.pipeline().applierNow()
		return a != before && a.Status().Paused && a.Status().Phase == merger.PhaseIdle
	})
	require.Equal(t, metrics.StatePaused, r.pipeline().status().State)
	w.produce(0, `{"id":2,"note":"b","more":8}`)
	require.Never(t, func() bool { return !slices.Equal(w.texts(), []string{"1 a NULL"}) }, 200*time.Millisecond, 20*time.Millisecond, "a commit of a paused pipeline")
	require.NoError(t, r.app.Resume(ctx, "p"))
	w.await("1 a NULL", "2 b 8")
}

func (p *pipeline) applierNow() *merger.Applier {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applier
}

// record is a row with Connect's schema.
func record(row string, columns ...string) string {
	var fields []string
	for i := 0; i < len(columns); i += 2 {
		fields = append(fields, fmt.Sprintf(`{"type":%q,"field":%q}`, columns[i+1], columns[i]))
	}
	return fmt.Sprintf(`{"schema":{"type":"struct","fields":[%s]},"payload":%s}`, strings.Join(fields, ","), row)
}

func TestApp_TheTableFollowsTheSchemaOfItsRecords(t *testing.T) {
	one := record(`{"id":1,"n":1}`, "id", "int64", "n", "int32")
	two := record(`{"id":2,"n":5000000000,"s":"x"}`, "id", "int64", "n", "int64", "s", "string")
	three := record(`{"id":3,"n":3}`, "id", "int64", "n", "int32") // of the older schema again
	for _, c := range []struct {
		evolve  string
		columns []string
		rows    []string
		add     float64
		widen   float64
	}{
		{"strict", []string{"id BIGINT NOT NULL", "n INT"}, []string{"1 1", "3 3"}, 0, 0},
		{"add", []string{"id BIGINT NOT NULL", "n INT", "s STRING"}, []string{"1 1 NULL", "3 3 NULL"}, 1, 0},
		{"add_and_widen", []string{"id BIGINT NOT NULL", "n BIGINT", "s STRING"}, []string{"1 1 NULL", "2 5000000000 x", "3 3 NULL"}, 1, 1},
	} {
		t.Run(c.evolve, func(t *testing.T) {
			w := newWorld(t, "    key: [id]\n    create: {}\n    schema: { evolve: "+c.evolve+" }\n    on_error: skip\n    batch: { idle_flush: 20ms }\n")
			r := w.run()
			w.produce(0, one)
			eventually(t, "the table", func() bool { return r.pipeline().status().Rows.Inserted == 1 })
			w.produce(0, two, three)
			w.await(c.rows...)
			require.Equal(t, c.columns, w.columns())
			m := r.app.metrics.Ingest.SchemaChanges
			require.Equal(t, c.add, testutil.ToFloat64(m.WithLabelValues("p", "shop.orders", "add")))
			require.Equal(t, c.widen, testutil.ToFloat64(m.WithLabelValues("p", "shop.orders", "widen")))
			// Read again from the start with the table as it is: nothing changes any more.
			schema := w.open().Schema().ID
			r.stop()
			again := w.run()
			w.produce(0, two)
			eventually(t, "the table as it was", func() bool { return again.pipeline().applierNow() != nil && slices.Equal(c.rows, w.texts()) })
			require.Equal(t, schema, w.open().Schema().ID)
		})
	}
}

// What the format refuses is left alone, said once, and stops nothing.
func TestApp_AColumnThatTheFormatRefusesIsLeftAlone(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    create: {}\n    schema: { evolve: add }\n    batch: { idle_flush: 20ms }\n")
	r := w.run()
	w.produce(0, record(`{"id":1}`, "id", "int64"))
	eventually(t, "the table", func() bool { return r.pipeline().status().Rows.Inserted == 1 })
	w.produce(0, record(`{"id":2,"_ROW_ID":5,"ok":6}`, "id", "int64", "_ROW_ID", "int64", "ok", "int64"))
	w.await("1 NULL", "2 6")
	require.Equal(t, []string{"_ROW_ID"}, r.pipeline().evolution.leave())
}

// Two instances see the same record: each gives the table what the other has not.
func TestApp_ASchemaThatSomebodyElseEvolvedFirstIsTaken(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    create: {}\n    schema: { evolve: add }\n    batch: { idle_flush: 20ms }\n")
	r := w.run()
	w.produce(0, record(`{"id":1}`, "id", "int64"))
	eventually(t, "the table", func() bool { return r.pipeline().status().Rows.Inserted == 1 })
	p := r.pipeline()
	table := w.open()
	w.alter(func(e *paimon.SchemaEdit) error {
		return e.AddColumn([]string{"a"}, types.Field{Type: types.BigIntType()}, nil)
	})
	w.produce(0, record(`{"id":2,"a":5,"b":6}`, "id", "int64", "a", "int64", "b", "int64"))
	w.await("1 NULL NULL", "2 5 6")
	require.Equal(t, []string{"id BIGINT NOT NULL", "a BIGINT", "b BIGINT"}, w.columns())
	// The same from a table opened before: the schema's name is taken.
	asked := &decode.SchemaChange{Columns: w.open().Schema().Fields}
	p.evolution.ask(evolution{change: asked})
	_, err := p.evolve(context.Background(), table)
	require.NoError(t, err)
	require.EqualValues(t, 2, w.open().Schema().ID)
	require.Nil(t, p.evolution.due())
}
