package app

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/metrics/admin"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// changeAt produces a change of an id at a place in the order, which stands in a
// header; note "-" is a delete.
func (w *world) changeAt(id int, at, note string) {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.broker.ListenAddrs()...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(w.t, err)
	defer cl.Close()
	r := &kgo.Record{Key: fmt.Appendf(nil, `{"id":%d}`, id), Headers: []kgo.RecordHeader{{Key: "at", Value: []byte(at)}}}
	if note != "-" {
		r.Value = fmt.Appendf(nil, `{"id":%d,"note":%q}`, id, note)
	}
	require.NoError(w.t, cl.ProduceSync(testContext(w.t), r).FirstErr())
}

// rows reads the pipeline's table.
func (w *world) rows() []string {
	name, err := catalog.ParseName("shop.orders")
	require.NoError(w.t, err)
	ctx := testContext(w.t)
	t, err := w.catalog().Open(ctx, name, paimon.Read)
	require.NoError(w.t, err)
	id, err := paimon.LatestSnapshotID(ctx, t.Bucket(), t.Paths())
	require.NoError(w.t, err)
	s, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), id)
	require.NoError(w.t, err)
	st, err := t.State(ctx, s)
	require.NoError(w.t, err)
	rows := []string{}
	require.NoError(w.t, t.Scan(ctx, st, paimon.ScanOptions{}, func(b *types.Batch) error {
		for i := range b.Len() {
			row := b.Row(i)
			rows = append(rows, fmt.Sprintf("%d %s %s", row[0].I, row[1].B, row[2].B))
		}
		return nil
	}))
	slices.Sort(rows)
	return rows
}

// consume reads the first n records of a topic.
func (w *world) consume(topic string, n int) (out []*kgo.Record) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.broker.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.DisableFetchSessions(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(w.t, err)
	defer cl.Close()
	for len(out) < n {
		fetches := cl.PollFetches(testContext(w.t))
		require.NoError(w.t, fetches.Err())
		out = append(out, fetches.Records()...)
	}
	return out
}

const rememberingPipeline = `    key: [id]
    order_by: { by: [at], late: dead_letter, remember_deletes: 7d }
    columns: { add: { at: header.at } }
    dead_letter: { topic: dlq }
    batch: { interval: 1s, idle_flush: 50ms }
`

func TestApp_ADeleteIsRememberedThroughRestartsAndItsLossIsTold(t *testing.T) {
	w := newWorld(t, rememberingPipeline)
	require.NoError(t, w.broker.CreateTopic("dlq", 1, nil))
	w.create(append(orders(), types.Field{Name: "at", Type: types.StringType()}), nil)
	w.changeAt(1, "05", "a")
	w.changeAt(2, "05", "b")
	r := w.run()
	r.records(t, 2)
	w.changeAt(1, "10", "-")
	r.records(t, 1)
	w.changeAt(1, "08", "late")
	r.records(t, 1)
	require.Equal(t, []string{"2 b 05"}, w.rows())
	require.EqualValues(t, 1, testutil.ToFloat64(r.app.metrics.Merger.LateChanges.WithLabelValues("p", "shop.orders", "dead_letter")))
	require.EqualValues(t, 1, testutil.ToFloat64(r.app.metrics.Ingest.DeadLetters.WithLabelValues("p", "shop.orders", "late")))
	require.Zero(t, testutil.ToFloat64(r.app.metrics.Ingest.RowErrors.WithLabelValues("p", "shop.orders", "late")))
	require.Zero(t, testutil.ToFloat64(r.app.metrics.Ingest.Dropped.WithLabelValues("p", "shop.orders", "late")))
	r.stop()

	letters := w.consume("dlq", 1)
	require.Equal(t, "shop.orders/0/3", string(letters[0].Key))
	require.JSONEq(t, `{"id":1,"note":"late"}`, string(letters[0].Value))
	require.Contains(t, fmt.Sprintf("%s", letters[0].Headers), "late")

	r = w.run() // a new process
	w.changeAt(1, "09", "late again")
	r.records(t, 1)
	require.Equal(t, []string{"2 b 05"}, w.rows())
	s, err := admin.NewClient(r.admin, "").Status(testContext(t))
	require.NoError(t, err)
	require.Equal(t, 1, s.Pipelines[0].Deletes.Remembered)
	require.Empty(t, s.Pipelines[0].Deletes.Forgotten())
	r.stop()

	info, err := os.Stat(filepath.Join(w.dir, "state", "p.deletes"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "it holds keys")
	before := time.Now()
	require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "state", "p.deletes")))
	r = w.run()
	w.changeAt(1, "07", "back")
	r.records(t, 1)
	require.Equal(t, []string{"1 back 07", "2 b 05"}, w.rows(), "what is forgotten cannot hold a row back")
	s, err = admin.NewClient(r.admin, "").Status(testContext(t))
	require.NoError(t, err)
	d := s.Pipelines[0].Deletes
	require.Contains(t, d.Forgotten(), "are forgotten")
	require.WithinDuration(t, before, d.ForgottenUntil, time.Minute)
	require.True(t, d.ForgottenSince.Before(before))
	pipe := r.app.pipelines["p"]
	pipe.gauges(pipe.applier.Status())
	require.EqualValues(t, d.ForgottenSince.UnixMilli(), 1000*testutil.ToFloat64(r.app.metrics.Merger.DeletesForgotten.WithLabelValues("p", "shop.orders")))
	page, err := http.Get("http://" + r.admin + "/")
	require.NoError(t, err)
	body, err := io.ReadAll(page.Body)
	require.NoError(t, err)
	require.NoError(t, page.Body.Close())
	require.True(t, strings.Contains(string(body), "are forgotten"), "the status page says so")
	r.stop()
}

// Another instance takes over: with the same state folder it knows what was
// deleted, with one of its own it says what it does not know.
func TestApp_ATakeoverKnowsWhatTheOtherInstanceDeleted(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared state_dir %t", shared), func(t *testing.T) {
			w := newWorld(t, strings.Replace(strings.Replace(rememberingPipeline, "late: dead_letter, ", "", 1), "    dead_letter: { topic: dlq }\n", "", 1))
			w.create(append(orders(), types.Field{Name: "at", Type: types.StringType()}), nil)
			w.changeAt(1, "05", "a")
			w.changeAt(2, "05", "b")
			first := w.run()
			first.records(t, 2)
			w.changeAt(1, "10", "-")
			first.records(t, 1)
			if !shared {
				other := *w.cfg
				other.StateDir = t.TempDir()
				w.cfg = &other
			}
			second := w.run()
			first.stop()
			w.changeAt(1, "08", "late")
			second.records(t, 1)
			s, err := admin.NewClient(second.admin, "").Status(testContext(t))
			require.NoError(t, err)
			if shared {
				require.Equal(t, []string{"2 b 05"}, w.rows())
				require.Empty(t, s.Pipelines[0].Deletes.Forgotten())
			} else {
				require.Equal(t, []string{"1 late 08", "2 b 05"}, w.rows())
				require.NotEmpty(t, s.Pipelines[0].Deletes.Forgotten())
			}
			second.stop()
		})
	}
}
