package app

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"applier/cmd/applier/internal/verify"
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
	key := "    key: [id]\n"
	if preset == "append" {
		key = ""
	}
	w := newWorld(t, key+quick+"    apply: "+preset+"\n")
	w.cfg.Pipelines["p"].Source.Format.Type = "debezium-json"
	w.cfg.Pipelines["p"].Source.Format.UnavailableValue = "__debezium_unavailable_value"
	name, _, _ := strings.Cut(preset, "\n")
	return w, w.peer(w.create(columns(name), nil))
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
