package app

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"applier/cmd/applier/internal/verify"
	"applier/merger/defaults"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// verified checks the table of pipeline p in full.
func (w *world) verified(offline bool) (*verify.Report, string) {
	w.t.Helper()
	kafka := w.kafka()
	k, reason := &kafka, ""
	if offline {
		k, reason = nil, "left out"
	}
	r, err := Verify(testContext(w.t), w.cfg, "p", k, reason, nil, true, discard())
	require.NoError(w.t, err)
	var text bytes.Buffer
	r.Print(&text)
	return r, text.String()
}

// envelope is a Debezium change; before and after are JSON, empty for null.
func envelope(op, before, after string) string {
	null := func(s string) string {
		if s == "" {
			return "null"
		}
		return s
	}
	return fmt.Sprintf(`{"op":%q,"before":%s,"after":%s,"ts_ms":%d}`, op, null(before), null(after), 1_700_000_000_000)
}

// history makes changes at random: few keys, so that they meet again and again,
// holes of both kinds, key changes, deletes.
type history struct {
	rng   *rand.Rand
	exact bool // no holes that a new row could not fill
}

func (h *history) image(id int) string {
	switch h.rng.IntN(6) {
	case 0:
		return fmt.Sprintf(`{"id":%d,"note":null,"n":%d}`, id, h.rng.IntN(100))
	case 1:
		if !h.exact {
			return fmt.Sprintf(`{"id":%d,"note":"__debezium_unavailable_value","n":%d}`, id, h.rng.IntN(100))
		}
	case 2:
		return fmt.Sprintf(`{"id":%d,"n":%d}`, id, h.rng.IntN(100)) // note is absent
	}
	return fmt.Sprintf(`{"id":%d,"note":"v%d","n":%d}`, id, h.rng.IntN(1000), h.rng.IntN(100))
}

func (h *history) change(part int) string {
	id := 2*h.rng.IntN(15) + part
	row := fmt.Sprintf(`{"id":%d}`, id)
	switch x := h.rng.IntN(10); {
	case x < 2:
		return envelope("d", row, "")
	case x < 4:
		return envelope("c", "", h.image(id))
	case x == 4: // the key changes
		return envelope("u", row, h.image(2*h.rng.IntN(15)+part))
	}
	return envelope("u", row, h.image(id))
}

// changes produces n changes to each partition.
func (w *world) changes(h *history, n int) {
	for part := range 2 {
		var values []string
		for range n {
			values = append(values, h.change(part))
		}
		w.produce(int32(part), values...)
	}
}

// columns of the table in these tests; soft deletes need one more.
func columns(preset string) []types.Field {
	fields := append(orders(), types.Field{Name: "n", Type: types.IntType()})
	if preset == "soft_delete" {
		fields = append(fields, types.Field{Name: "deleted_at", Type: types.TimestampLTZType(3)})
	}
	return fields
}

const quick = "    batch: { interval: 1s, idle_flush: 20ms }\n    on_error: skip\n"

var presets = []string{"mirror", "upsert", "insert_only", "append", "soft_delete", "upsert\n    order_by: [n]", "soft_delete\n    order_by: [n]"}

// presetWorld is a world with a table for a preset.
func presetWorld(t *testing.T, preset string) (*world, *peer) {
	w := presetPipeline(t, preset)
	name, _, _ := strings.Cut(preset, "\n")
	return w, w.peer(w.create(columns(name), nil))
}

// presetPipeline is a world without the table.
func presetPipeline(t *testing.T, preset string) *world {
	key := "    key: [id]\n"
	if preset == "append" {
		key = ""
	}
	w := newWorld(t, key+quick+"    apply: "+preset+"\n")
	w.cfg.Pipelines["p"].Source.Format.Type = "debezium-json"
	w.cfg.Pipelines["p"].Source.Format.UnavailableValue = "__debezium_unavailable_value"
	return w
}

func TestVerify_TablesOfEveryPresetAreProven(t *testing.T) {
	for _, preset := range presets {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s/%d", preset, seed), func(t *testing.T) {
				w, _ := presetWorld(t, preset)
				h := &history{rng: rand.New(rand.NewPCG(seed, 1))}
				r := w.run()
				for range 6 {
					w.changes(h, 25)
					r.records(t, 50)
				}
				r.stop()
				report, text := w.verified(false)
				require.Equal(t, verify.OK, report.Verdict, text)
				require.NotContains(t, text, "Kafka no longer")
				require.EqualValues(t, 300, report.Count("hash chain", "records"), text)
			})
		}
	}
}

func TestVerify_WhatOtherWritersDidInBetweenIsUnderstood(t *testing.T) {
	for _, preset := range presets {
		t.Run(preset, func(t *testing.T) {
			w, p := presetWorld(t, preset)
			h := &history{rng: rand.New(rand.NewPCG(7, 7))}
			extra := func(id int64, note string) []types.Datum {
				row := []types.Datum{types.IntDatum(id), types.StringDatum(note), types.IntDatum(1), types.Null}
				return row[:len(p.table.Schema().Fields)]
			}
			r := w.run()
			step := func() {
				w.changes(h, 25)
				r.records(t, 50)
			}
			step()
			p.insert(extra(1000, "theirs"), extra(3, "a key of ours"), extra(4, "another"))
			step()
			p.remove(func(row []types.Datum) bool { return row[0].I%4 == 1 })
			step()
			p.compact()
			step()
			p.insert(extra(7, "late"))
			step()
			r.stop()
			report, text := w.verified(false)
			t.Log(text)
			require.Equal(t, verify.OK, report.Verdict, text)
			if preset != "append" {
				require.EqualValues(t, 4, report.Count("records", "snapshots of other writers"), text)
			}
		})
	}
}

// Defaults are read as the pipeline reads them. Rows with the time of their batch, which
// no record carries, are not compared.
func TestVerify_DefaultsAreThoseOfThePipeline(t *testing.T) {
	for _, preset := range presets {
		t.Run(preset, func(t *testing.T) {
			w := presetPipeline(t, preset)
			name, _, _ := strings.Cut(preset, "\n")
			text := "'in quotes'"
			fields := append(columns(name), types.Field{Name: "mood", Type: types.StringType(), Default: &text}, types.Field{Name: "at", Type: types.TimestampLTZType(3)})
			w.create(fields, map[string]string{paimon.OptBucket: "-1", paimon.OptDeletionVectors: "true", fmt.Sprint(defaults.OptDynamic, len(fields)-1): "current_timestamp()"})
			r := w.run()
			w.produce(0, envelope("c", "", `{"id":1,"note":"a","n":1}`), envelope("c", "", `{"id":2,"note":"b","n":1,"at":"2026-11-30T08:00:00Z"}`))
			r.records(t, 2)
			w.produce(0, envelope("u", "", `{"id":2,"note":"c","n":2,"mood":"calm","at":"2026-11-30T09:00:00Z"}`), envelope("c", "", `{"id":3,"n":1,"mood":null,"at":"2026-11-30T09:00:00Z"}`))
			r.records(t, 2)
			r.stop()
			report, text := w.verified(false)
			require.Equal(t, verify.OK, report.Verdict, text)
		})
	}
}
