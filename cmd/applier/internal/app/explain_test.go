package app

import (
	"bytes"
	"testing"

	"applier/cmd/applier/internal/verify"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// explained tells the history of a key of pipeline p.
func (w *world) explained(id int64, offline bool) (*verify.History, string) {
	w.t.Helper()
	kafka := w.kafka()
	k, reason := &kafka, ""
	if offline {
		k, reason = nil, "left out"
	}
	target, err := Audited(testContext(w.t), w.cfg, "p", k, reason)
	require.NoError(w.t, err)
	h, err := verify.Explain(testContext(w.t), target, []types.Datum{types.IntDatum(id)})
	require.NoError(w.t, err)
	var text bytes.Buffer
	h.Print(&text)
	return h, text.String()
}

func TestExplain_TellsWhyAKeyHasItsValue(t *testing.T) {
	w, p := presetWorld(t, "mirror")
	r := w.run()
	step := func(values ...string) {
		w.produce(0, values...)
		r.records(t, int64(len(values)))
	}
	step(envelope("c", "", `{"id":1,"note":"first","n":1}`), envelope("c", "", `{"id":2,"note":"two","n":2}`))
	step(envelope("u", "", `{"id":1,"note":"a","n":1}`), envelope("u", "", `{"id":1,"note":"b","n":1}`), "poison")
	p.insert([]types.Datum{types.IntDatum(3), types.StringDatum("theirs"), types.IntDatum(0)})
	step(envelope("d", `{"id":2}`, ""), envelope("d", `{"id":77}`, ""))
	p.compact()
	r.stop()

	h, text := w.explained(1, false)
	require.Len(t, h.Rows, 1, text)
	require.Contains(t, h.Rows[0].Row, `"b"`)
	require.Equal(t, `id=1 has its value because the update at shop.orders/0 offset 3 (`, h.Why[:len(`id=1 has its value because the update at shop.orders/0 offset 3 (`)], text)
	require.Contains(t, h.Why, "was applied in snapshot 3; nothing has changed it since.")
	require.Contains(t, text, "offset 2, ", text)
	require.Contains(t, text, "collapsed: shop.orders/0 offset 3 of the same batch came later")
	require.Contains(t, text, "by another writer (spark)", "the compaction moved it")
	require.Contains(t, text, "applied shop.orders/0 [2, 5)")

	h, text = w.explained(2, false)
	require.Empty(t, h.Rows, text)
	require.Contains(t, h.Why, "id=2 has no row because the delete at shop.orders/0 offset 5", text)

	h, text = w.explained(3, false)
	require.Contains(t, h.Why, "because of snapshot 4, committed by another writer (spark)", text)

	h, text = w.explained(77, false)
	require.Contains(t, h.Why, "no retained snapshot", text)
	require.Contains(t, text, "no effect: the key has no row")

	h, text = w.explained(1, true)
	require.Contains(t, h.Why, "because of the records [shop.orders/0 [2, 5)] applied in snapshot 3; which of them it was is not known (left out)", text)

	h, _ = w.explained(4711, false)
	require.Empty(t, h.Events)
	require.Contains(t, h.Why, "holds a row of it")
}

func TestExplain_NamesLateAndIgnoredChanges(t *testing.T) {
	w, _ := presetWorld(t, "upsert\n    order_by: [n]")
	r := w.run()
	w.produce(0, envelope("c", "", `{"id":1,"note":"new","n":9}`))
	r.records(t, 1)
	w.produce(0, envelope("u", "", `{"id":1,"note":"old","n":3}`), envelope("d", `{"id":1}`, ""))
	r.records(t, 2)
	r.stop()
	h, text := w.explained(1, false)
	require.Contains(t, text, "offset 1, ")
	require.Contains(t, text, "late: the row is newer by order_by")
	require.Contains(t, h.Why, "the insert at shop.orders/0 offset 0", text)
}

func TestExplain_NeedsAKey(t *testing.T) {
	w, _ := presetWorld(t, "append")
	target, err := Audited(testContext(t), w.cfg, "p", nil, "")
	require.NoError(t, err)
	_, err = verify.Explain(testContext(t), target, nil)
	require.ErrorIs(t, err, verify.ErrNoKey)
}
