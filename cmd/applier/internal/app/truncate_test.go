package app

import (
	"fmt"
	"strings"
	"testing"

	"applier/cmd/applier/internal/verify"
	"applier/metrics/admin"
	"applier/storage/types"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

const aloneTopic = "shop.alone"

// truncateWorld reads a topic of one partition, unless topic is another.
func truncateWorld(t *testing.T, name, pipeline string, fields ...types.Field) *world {
	w := newWorld(t, "    key: [id]\n")
	require.NoError(t, w.broker.CreateTopic(aloneTopic, 1, nil))
	w.format = "debezium-json"
	w.configure("    key: [id]\n    batch: { interval: 1s, idle_flush: 20ms }\n" + pipeline)
	w.pipe().Source.Topic = name
	w.create(append(columns("mirror"), fields...), nil)
	return w
}

// notes are id and note of the table's rows.
func (w *world) notes() (out []string) {
	for _, r := range w.texts() {
		out = append(out, fmt.Sprint(strings.Fields(r)[:2]))
	}
	return out
}

// halted waits until the pipeline is halted.
func (r *running) halted(t *testing.T) (h *admin.Halt) {
	eventually(t, "a halt", func() bool {
		s, err := admin.NewClient(r.admin, "").Status(testContext(t))
		require.NoError(t, err)
		h = s.Pipelines[0].Halt
		return h != nil
	})
	return h
}

func row(id int, note string) string { return fmt.Sprintf(`{"id":%d,"note":%q,"n":0}`, id, note) }

func TestTruncate_AnAppliedOneIsProvenAndExplained(t *testing.T) {
	w := truncateWorld(t, aloneTopic, "    on_truncate: apply\n")
	r := w.run()
	w.produceTo(aloneTopic, 0, envelope("c", "", row(1, "a")), envelope("c", "", row(2, "a")))
	r.records(t, 2)
	w.produceTo(aloneTopic, 0, envelope("c", "", row(3, "a")), envelope("t", "", ""), envelope("c", "", row(2, "b")), envelope("t", "", ""), envelope("t", "", ""), envelope("c", "", row(4, "c")))
	r.records(t, 6)
	require.Equal(t, []string{"[4 c]"}, w.notes())
	label := []string{"p", "shop.orders"}
	require.EqualValues(t, 3, testutil.ToFloat64(r.app.metrics.Merger.Truncates.WithLabelValues(label...)))
	require.EqualValues(t, 3, testutil.ToFloat64(r.app.metrics.Ingest.Records.WithLabelValues("p", "shop.orders", "truncate")))
	require.Zero(t, testutil.ToFloat64(r.app.metrics.Ingest.Dropped.WithLabelValues("p", "shop.orders", "truncate")))
	w.produceTo(aloneTopic, 0, envelope("c", "", row(1, "again")))
	r.records(t, 1)
	r.stop()

	report, text := w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, text)
	require.Contains(t, text, "3 truncates", text)
	h, text := w.explained(2, false)
	require.Empty(t, h.Rows, text)
	require.Contains(t, h.Why, "id=2 has no row because the truncate at shop.alone/0 offset 5", text)
	h, text = w.explained(1, false)
	require.Contains(t, h.Why, "id=1 has its value because the insert at shop.alone/0 offset 8", text)
	require.Contains(t, text, "offset 3", text)
	h, text = w.explained(3, false)
	require.Contains(t, h.Why, "id=3 has no row because the truncate at shop.alone/0 offset 3", text)

	w.pipe().OnTruncate = "ignore"
	report, text = w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, "what was applied says the record, not today's setting\n%s", text)
}

func TestTruncate_AnIgnoredOneLeavesTheRows(t *testing.T) {
	w := truncateWorld(t, aloneTopic, "    on_truncate: ignore\n")
	r := w.run()
	w.produceTo(aloneTopic, 0, envelope("c", "", row(1, "a")), envelope("t", "", ""), envelope("c", "", row(2, "b")))
	r.records(t, 3)
	require.Equal(t, []string{"[1 a]", "[2 b]"}, w.notes())
	require.EqualValues(t, 1, testutil.ToFloat64(r.app.metrics.Ingest.Dropped.WithLabelValues("p", "shop.orders", "truncate")))
	r.stop()
	w.pipe().OnTruncate = "apply"
	report, text := w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, text)
}

func TestTruncate_PauseStopsBeforeItAndResumeStepsOverIt(t *testing.T) {
	w := truncateWorld(t, aloneTopic, "") // the default
	r := w.run()
	w.produceTo(aloneTopic, 0, envelope("c", "", row(1, "a")), envelope("t", "", ""), envelope("c", "", row(2, "b")), envelope("t", "", ""), envelope("c", "", row(3, "c")))
	r.records(t, 1)
	halted := func(offset int) *admin.Halt {
		h := r.halted(t)
		require.Equal(t, "D-TRUNCATE", h.Code)
		require.Contains(t, h.Message, fmt.Sprintf("shop.alone/0 offset %d", offset))
		return h
	}
	require.Contains(t, halted(1).Remedy, "`applier resume PIPELINE`")
	require.Equal(t, []string{"[1 a]"}, w.notes())
	require.NoError(t, admin.NewClient(r.admin, "").Resume(testContext(t), "p"))
	r.records(t, 2)
	halted(3)
	require.Equal(t, []string{"[1 a]", "[2 b]"}, w.notes())
	r.stop()

	r = w.run() // what an operator said is not asked again; the next one is
	halted(3)
	require.NoError(t, admin.NewClient(r.admin, "").Resume(testContext(t), "p"))
	r.records(t, 2)
	require.Equal(t, []string{"[1 a]", "[2 b]", "[3 c]"}, w.notes())
	r.stop()
	report, text := w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, text)
}

func TestTruncate_OfSeveralPartitionsNeedsOrderBy(t *testing.T) {
	w := truncateWorld(t, topic, "    on_truncate: apply\n")
	r := w.run()
	w.produce(0, envelope("c", "", row(2, "a")), envelope("t", "", ""))
	r.records(t, 1)
	h := r.halted(t)
	require.Equal(t, "D-TRUNCATE", h.Code)
	require.Contains(t, h.Message, "it has no order_by")
	require.Equal(t, []string{"[2 a]"}, w.notes())
}

// at is a change, or a truncation, at a place in the log of the source.
func at(op string, lsn int, image string) string {
	before, after := "null", image
	switch op {
	case "d":
		before, after = image, "null"
	case "t":
		after = "null"
	}
	return fmt.Sprintf(`{"op":%q,"before":%s,"after":%s,"source":{"lsn":%d},"ts_ms":1}`, op, before, after, lsn)
}

func TestTruncate_UnderOrderByPartitionsMayComeInAnyOrder(t *testing.T) {
	w := truncateWorld(t, topic, "    on_truncate: apply\n    order_by: { by: [lsn], remember_deletes: 7d }\n    columns: { add: { lsn: source.lsn } }\n",
		types.Field{Name: "lsn", Type: types.BigIntType()})
	r := w.run()
	w.produce(0, at("c", 10, row(2, "old")), at("c", 31, row(4, "new")))
	w.produce(1, at("c", 11, row(1, "old")))
	r.records(t, 3)
	w.produce(1, at("t", 20, ""), at("c", 30, row(3, "new")), at("d", 32, row(3, "")))
	r.records(t, 3)
	require.Equal(t, []string{"[4 new]"}, w.notes(), "what came later in the other partition was there before")
	w.produce(0, at("c", 12, row(6, "old")), at("u", 13, `{"id":2,"note":"__debezium_unavailable_value","n":0}`), at("c", 33, row(8, "new")))
	r.records(t, 3)
	require.Equal(t, []string{"[4 new]", "[8 new]"}, w.notes(), "what was before it comes too late, and needs no value")
	r.stop()
	report, text := w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, text)
	h, text := w.explained(2, false)
	require.Contains(t, h.Why, "id=2 has no row because the truncate at shop.orders/1 offset 1", text)
}
