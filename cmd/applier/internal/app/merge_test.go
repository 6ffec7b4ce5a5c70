package app

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"applier/cmd/applier/internal/verify"
	"applier/merger"
	"applier/metrics"
	"applier/metrics/admin"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// mergeExample are the clauses of the documentation.
const mergeExample = `    key: [id]
    batch: { idle_flush: 20ms }
    merge:
      when:
        - MATCHED AND s.__op = 'd' AND t.locked = true THEN UPDATE SET deleted_at = s.__ts
        - MATCHED AND s.__op = 'd' THEN DELETE
        - MATCHED AND s.status = 'cancelled' THEN UPDATE SET status = s.status, cancelled_at = s.__ts
        - MATCHED THEN UPDATE SET *
        - NOT MATCHED AND s.__op <> 'd' THEN INSERT *
      skip_unchanged: true
`

func mergeColumns() []types.Field {
	return []types.Field{
		{Name: "id", Type: types.BigIntType().NonNull()},
		{Name: "status", Type: types.StringType()},
		{Name: "locked", Type: types.BooleanType()},
		{Name: "cancelled_at", Type: types.TimestampLTZType(3)},
		{Name: "deleted_at", Type: types.TimestampLTZType(3)},
	}
}

func debezium(w *world, pipeline string) {
	w.configure(pipeline)
	w.pipe().Source.Format.Type = "debezium-json"
	w.pipe().Source.Format.UnavailableValue = "__debezium_unavailable_value"
}

func TestApp_ClausesDecideWhatChangesDo(t *testing.T) {
	w := newWorld(t, mergeExample)
	debezium(w, mergeExample)
	w.create(mergeColumns(), nil)
	r := w.run()
	// a change is read as Debezium writes it; ms is the source's clock.
	put := func(op, before, after, ms string) string {
		return `{"op":"` + op + `","before":` + before + `,"after":` + after + `,"source":{"ts_ms":` + ms + `}}`
	}
	w.produce(
		0,
		put("c", "null", `{"id":1,"status":"new","locked":false}`, "1000"),
		put("c", "null", `{"id":2,"status":"new","locked":true}`, "2000"),
		put("c", "null", `{"id":3,"status":"new","locked":false}`, "3000"),
		put("d", `{"id":4}`, "null", "4000"), // of no row
	)
	r.records(t, 4)
	w.await("1 new false NULL NULL", "2 new true NULL NULL", "3 new false NULL NULL")
	w.produce(
		0,
		put("d", `{"id":1,"status":"new","locked":false}`, "null", "5000"),
		put("d", `{"id":2,"status":"new","locked":true}`, "null", "6000"),
		put("u", "null", `{"id":3,"status":"cancelled","locked":true}`, "7000"),
	)
	r.records(t, 3)
	w.await("2 new true NULL 1970-01-01T00:00:06.000Z", "3 cancelled false 1970-01-01T00:00:07.000Z NULL")

	// Columns that no record carries stay; what is the same again is not written.
	before := r.pipeline().status().Rows
	w.produce(0, put("u", "null", `{"id":2,"status":"new","locked":true}`, "8000"), put("u", "null", `{"id":3,"status":"paid","locked":true}`, "9000"))
	r.records(t, 2)
	w.await("2 new true NULL 1970-01-01T00:00:06.000Z", "3 paid true 1970-01-01T00:00:07.000Z NULL")
	after := r.pipeline().status().Rows
	require.EqualValues(t, 1, after.Updated-before.Updated)
	require.EqualValues(t, 1, after.Unchanged-before.Unchanged)
	s, err := admin.NewClient(r.admin, "").Status(testContext(t))
	require.NoError(t, err)
	require.Equal(t, "merge", s.Pipelines[0].Apply)
	r.stop()
}

// A record that the clauses cannot be evaluated for goes to the dead letters, whole.
func TestApp_WhatAClauseCannotStoreIsALetter(t *testing.T) {
	lines := `    key: [id]
    batch: { idle_flush: 20ms }
    on_error: dead_letter
    dead_letter: { topic: dead }
    merge:
      when:
        - MATCHED THEN UPDATE SET n = CAST(s.note AS INT), note = s.note
        - NOT MATCHED THEN INSERT (id, n, note) VALUES (s.id, CAST(s.note AS INT), s.note)
`
	w := newWorld(t, lines)
	require.NoError(t, w.broker.CreateTopic("dead", 1, nil))
	w.create([]types.Field{{Name: "id", Type: types.BigIntType().NonNull()}, {Name: "n", Type: types.IntType()}, {Name: "note", Type: types.StringType()}}, nil)
	r := w.run()
	w.produce(0, `{"id":1,"note":"7"}`, `{"id":1,"note":"not a number"}`, `{"id":2,"note":"3000000000"}`, `{"id":3,"note":"8"}`, `{"id":1,"note":"9"}`)
	r.records(t, 5)
	w.await("1 9 9", "3 8 8")
	letters := w.consume("dead", 2)
	require.Equal(t, `{"id":1,"note":"not a number"}`, string(letters[0].Value))
	require.Equal(t, `{"id":2,"note":"3000000000"}`, string(letters[1].Value))
	for _, l := range letters {
		var text []string
		for _, h := range l.Headers {
			text = append(text, h.Key+"="+string(h.Value))
		}
		require.Contains(t, strings.Join(text, "\n"), "cannot be evaluated: CAST_INVALID_INPUT")
		require.NotContains(t, strings.Join(text, "\n"), "not a number", "messages hold no values")
	}
	r.stop()
}

// Other clauses on the same positions would mean other rows.
func TestApp_OtherClausesAreAnotherConfiguration(t *testing.T) {
	const first = "    key: [id]\n    batch: { idle_flush: 20ms }\n    merge: { when: [NOT MATCHED THEN INSERT *] }\n"
	w := newWorld(t, first)
	w.create(orders(), nil)
	r := w.run()
	w.produce(0, `{"id":1,"note":"a"}`)
	r.records(t, 1)
	w.await("1 a")
	r.stop()

	w.configure("    key: [id]\n    merge: { when: [ 'not  matched then insert *' ], skip_unchanged: true }\n") // another spelling
	r = w.run()
	eventually(t, "a start", func() bool { return r.pipeline().status().State == metrics.StateRunning })
	r.stop()

	w.configure("    key: [id]\n    merge: { when: [MATCHED THEN UPDATE SET *, NOT MATCHED THEN INSERT *] }\n")
	r = w.run()
	eventually(t, "a halt", func() bool {
		h := r.pipeline().status().Halt
		return h != nil && h.Code == string(merger.CodeConfig) && strings.Contains(h.Message, "other settings: merge")
	})
	r.stop()
}

// The records are folded by the clauses a second time, holes, moved keys, refused
// records and the time included; other clauses would make other rows, and that shows.
func TestVerify_WhatClausesMakeOfRecordsIsProven(t *testing.T) {
	for name, clauses := range map[string][]string{
		"conditions": {
			"MATCHED AND s.__op = 'd' AND s.id % 2 = 0 THEN UPDATE SET note = 'gone'",
			"MATCHED AND s.__op = 'd' THEN DELETE",
			"MATCHED AND s.n > t.n THEN UPDATE SET *",
			"NOT MATCHED AND s.__op <> 'd' THEN INSERT *",
		},
		"values made of the row": {
			"MATCHED AND s.__op = 'd' AND t.n > 500 THEN DELETE",
			"MATCHED THEN UPDATE SET n = t.n + coalesce(s.n, 1), note = concat(coalesce(s.note, 'none'), s.__partition, '/', s.__offset, s.__op)",
			"NOT MATCHED THEN INSERT (id, note, n) VALUES (s.id, s.note, coalesce(s.n, 0))",
		},
		"nothing but a column": {
			"MATCHED AND s.__op = 'd' THEN DELETE",
			"MATCHED AND t.n % 3 = 0 THEN UPDATE SET note = s.note",
			"MATCHED THEN UPDATE SET n = s.n, note = s.note",
			"NOT MATCHED THEN INSERT (id, note) VALUES (s.id, s.note)",
		},
		"the time": {
			"MATCHED AND s.__op = 'd' THEN UPDATE SET at = current_timestamp()",
			"MATCHED AND t.n < 95 THEN UPDATE SET *",
			"MATCHED AND s.__ts < current_timestamp() THEN UPDATE SET n = 0",
			"NOT MATCHED AND s.__op <> 'd' THEN INSERT *",
		},
		"cannot always be evaluated": {
			"MATCHED AND 100 / (s.n - 7) > 3 THEN UPDATE SET n = CAST(substr(s.note, 2) AS INT), note = s.note",
			"MATCHED THEN UPDATE SET n = s.n",
			"NOT MATCHED AND s.__op <> 'd' THEN INSERT *",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := clausesWorld(t, clauses)
			h := &history{rng: rand.New(rand.NewPCG(1, 1))}
			r := w.run()
			for range 4 {
				w.changes(h, 25)
				r.records(t, 50)
			}
			r.stop()
			report, text := w.verified(false)
			require.Equal(t, verify.OK, report.Verdict, text)
			require.EqualValues(t, 200, report.Count("hash chain", "records"), text)
			require.Greater(t, report.Count("records", "keys"), int64(10), text)
			require.Equal(t, name == "the time", strings.Contains(text, "the time at which their batch was applied"), text)
			require.Equal(t, name == "the time", strings.Contains(text, "a condition on the time decided"), text)

			target, err := Audited(testContext(t), w.cfg, "p", new(w.kafka()), "")
			require.NoError(t, err)
			others, err := merger.ParseMerge([]string{"MATCHED AND s.__op = 'd' THEN DELETE", "MATCHED THEN UPDATE SET n = s.n", "NOT MATCHED THEN INSERT *"})
			require.NoError(t, err)
			target.Merge.Clauses = others
			report, err = verify.Run(testContext(t), target, verify.Options{})
			require.NoError(t, err)
			require.Equal(t, verify.Failed, report.Verdict)
		})
	}
}

// clausesWorld has a table for the changes of a history, with a column for times.
func clausesWorld(t *testing.T, clauses []string) *world {
	lines := "    key: [id]\n" + quick + "    merge:\n      when:\n"
	for _, c := range clauses {
		lines += fmt.Sprintf("        - %q\n", c)
	}
	w := newWorld(t, lines)
	debezium(w, lines)
	w.create(append(columns("merge"), types.Field{Name: "at", Type: types.TimestampLTZType(3)}), nil)
	return w
}

// What other writers do in between meets the clauses as the table's rows do.
func TestVerify_ClausesMeetTheRowsOfOtherWriters(t *testing.T) {
	w := clausesWorld(t, []string{
		"MATCHED AND s.__op = 'd' AND t.note = 'theirs' THEN UPDATE SET n = t.n + 1",
		"MATCHED AND s.__op = 'd' THEN DELETE",
		"MATCHED AND t.note = 'theirs' THEN UPDATE SET n = t.n + 100",
		"MATCHED THEN UPDATE SET *",
		"NOT MATCHED AND s.__op <> 'd' THEN INSERT *",
	})
	h := &history{rng: rand.New(rand.NewPCG(3, 3))}
	r := w.run()
	step := func() {
		w.changes(h, 25)
		r.records(t, 50)
	}
	step()
	p := w.peer(w.open())
	theirs := func(id int64) []types.Datum {
		return []types.Datum{types.IntDatum(id), types.StringDatum("theirs"), types.IntDatum(1), types.Null}
	}
	p.insert(theirs(3), theirs(4), theirs(5), theirs(1000))
	step()
	p.remove(func(row []types.Datum) bool { return row[0].I%4 == 1 })
	step()
	r.stop()
	report, text := w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, text)
	require.EqualValues(t, 2, report.Count("records", "snapshots of other writers"), text)
	_, story := w.explained(4, false)
	require.Contains(t, story, ": applied")
}
