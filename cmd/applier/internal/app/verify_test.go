package app

import (
	"bytes"
	"fmt"
	"testing"

	"applier/cmd/applier/internal/verify"
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

// filled runs the pipeline over some rounds of changes, which touch keys again and
// again, and returns the records applied.
func (w *world) filled(rounds int) {
	w.t.Helper()
	r := w.run()
	for i := range rounds {
		for part := range int32(2) {
			var values []string
			for k := range 40 {
				id := 2*k + int(part)
				switch (i + k) % 5 {
				case 0:
					values = append(values, fmt.Sprintf(`{"id":%d}`, id))
				default:
					values = append(values, fmt.Sprintf(`{"id":%d,"note":"round %d of %d"}`, id, i, id))
				}
			}
			w.produce(part, values...)
		}
		r.records(w.t, 80)
	}
	r.stop()
}

const quick = "    batch: { interval: 1s, idle_flush: 20ms }\n"

func TestVerify_ATableOfEveryPresetIsProven(t *testing.T) {
	for _, preset := range []string{"mirror", "upsert", "insert_only", "append", "soft_delete", "upsert\n    order_by: [note]"} {
		t.Run(preset, func(t *testing.T) {
			key := "    key: [id]\n"
			if preset == "append" {
				key = ""
			}
			w := newWorld(t, key+quick+"    apply: "+preset+"\n")
			fields := orders()
			if preset == "soft_delete" {
				fields = append(fields, types.Field{Name: "deleted_at", Type: types.TimestampLTZType(3)})
			}
			w.create(fields, nil)
			w.filled(3)
			r, text := w.verified(false)
			require.Equal(t, verify.OK, r.Verdict, text)
			t.Log(text)
		})
	}
}

var _ = paimon.Read
