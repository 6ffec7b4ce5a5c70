package app

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"applier/cmd/applier/internal/verify"
	"applier/merger"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

// expiring is a table whose oldest snapshots go at a moment of choice.
type expiring struct {
	objstore.Bucket
	calls  int
	at     int
	expire func()
}

func (e *expiring) tick() {
	if e.calls++; e.calls == e.at {
		e.expire()
	}
}

func (e *expiring) Get(ctx context.Context, key string) ([]byte, error) {
	e.tick()
	return e.Bucket.Get(ctx, key)
}

func (e *expiring) Open(ctx context.Context, key string, size int64) (objstore.Reader, error) {
	e.tick()
	return e.Bucket.Open(ctx, key, size)
}

// expireBelow removes all snapshots below an id, and every file that only they need.
func (c *copied) expireBelow(id int64) {
	ctx := testContext(c.t)
	c.open()
	needed := map[string]bool{}
	ids, err := paimon.ListSnapshotIDs(ctx, c.table.Bucket(), c.table.Paths())
	require.NoError(c.t, err)
	var gone []string
	for _, i := range ids {
		s, err := paimon.ReadSnapshot(ctx, c.table.Bucket(), c.table.Paths(), i)
		require.NoError(c.t, err)
		if i < id {
			gone = append(gone, c.table.Paths().Snapshot(i))
			continue
		}
		st, err := c.table.State(ctx, s)
		require.NoError(c.t, err)
		files, err := c.table.Files(ctx, st, nil)
		require.NoError(c.t, err)
		for _, name := range []string{s.BaseManifestList, s.DeltaManifestList} {
			needed["manifest/"+name] = true
		}
		if s.IndexManifest != nil {
			needed["manifest/"+*s.IndexManifest] = true
		}
		for _, m := range st.Manifests {
			needed["manifest/"+m.Name] = true
		}
		for i := range st.Index {
			needed["index/"+st.Index[i].Name] = true
		}
		for i := range files {
			key, err := c.table.Paths().Data(&files[i])
			require.NoError(c.t, err)
			needed[key] = true
		}
	}
	for _, dir := range []string{"manifest", "index", "bucket-0"} {
		require.NoError(c.t, c.table.Bucket().List(ctx, dir, func(i objstore.Info) error {
			if !needed[i.Key] {
				gone = append(gone, i.Key)
			}
			return nil
		}))
	}
	for _, key := range gone {
		require.NoError(c.t, os.Remove(c.path(key)))
	}
}

// Whatever expires while verify reads is left out, and is no damage; what has
// expired before only makes the beginning later.
func TestVerify_SnapshotsMayExpireMeanwhile(t *testing.T) {
	x := newHealthy(t)
	calls := 0
	for at := 1; ; at += 3 {
		c := x.copy(t)
		target, err := Audited(testContext(t), c.cfg, "p", nil, "left out")
		require.NoError(t, err)
		b := &expiring{Bucket: target.Table.Bucket(), at: at, expire: func() { c.expireBelow(4) }}
		target.Table, err = paimon.OpenTable(testContext(t), b, paimon.Read)
		require.NoError(t, err)
		r, err := verify.Run(testContext(t), target, verify.Options{Full: true})
		require.NoError(t, err)
		var text bytes.Buffer
		r.Print(&text)
		require.Equal(t, verify.OK, r.Verdict, "expired at call %d:\n%s", at, text.String())
		if b.calls < at {
			break // nothing expired before the end
		}
		calls++
	}
	require.Greater(t, calls, 10)

	c := x.copy(t)
	c.expireBelow(4)
	r, text := c.verified(false)
	require.Equal(t, verify.OK, r.Verdict, text)
	require.EqualValues(t, 4, r.Earliest)
	require.Positive(t, r.Count("records", "keys"), text)
}

func TestVerify_WorksBesideARunningProcess(t *testing.T) {
	w, _ := presetWorld(t, "mirror")
	h := &history{rng: rand.New(rand.NewPCG(1, 1)), exact: true}
	r := w.run()
	w.changes(h, 10)
	r.records(t, 20)
	for i := range 5 {
		w.changes(h, 10)
		report, text := w.verified(false)
		require.Equal(t, verify.OK, report.Verdict, "round %d:\n%s", i, text)
	}
	r.stop()
}

// appliedAfter counts the records of the commits behind the last one that has
// records of partition 0 before an offset: how rounds are cut into batches is up to
// the clock.
func (w *world) appliedAfter(offset int64) (n int64) {
	ctx := w.t.Context()
	name, err := catalog.ParseName("shop.orders")
	require.NoError(w.t, err)
	table, err := w.catalog().Open(ctx, name, paimon.Read)
	require.NoError(w.t, err)
	ids, err := paimon.ListSnapshotIDs(ctx, table.Bucket(), table.Paths())
	require.NoError(w.t, err)
	for _, id := range ids {
		s, err := paimon.ReadSnapshot(ctx, table.Bucket(), table.Paths(), id)
		require.NoError(w.t, err)
		r, _, err := merger.RecordIn(s.Properties, w.pipe().ID)
		require.NoError(w.t, err)
		n += r.In
		if of, some := r.Range[topic]["0"]; some && of[0] < offset {
			n = 0
		}
	}
	return n
}

// What Kafka has removed or compacted is left out, and the report says so.
func TestVerify_SaysWhatKafkaNoLongerHas(t *testing.T) {
	w, _ := presetWorld(t, "mirror")
	h := &history{rng: rand.New(rand.NewPCG(2, 2)), exact: true}
	r := w.run()
	for range 4 {
		w.changes(h, 10)
		r.records(t, 20)
	}
	r.stop()
	require.NoError(t, w.broker.DeleteRecords(topic, 0, 15))
	report, text := w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, text)
	require.Contains(t, text, "Kafka no longer has the records of shop.orders/0 before offset 15")
	require.EqualValues(t, w.appliedAfter(15), report.Count("hash chain", "records"), text)

	w.configure("    key: [id]\n    apply: upsert\n" + quick)
	w.cfg.Pipelines["p"].Source.Format.Type = "debezium-json"
	report, text = w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, text)
	require.Contains(t, text, "was written under other settings")

	require.NoError(t, w.broker.DeleteTopic(topic))
	require.NoError(t, w.broker.CreateTopic(topic, 2, nil))
	w.configure("    key: [id]\n" + quick)
	_, text = w.verified(false)
	require.True(t, strings.Contains(text, "was deleted and created again"), fmt.Sprint(text))
}
