//go:build itest

package itest

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// recordedTransactions folds a recording of the topic txn into a model.
func recordedTransactions(t *testing.T, name string) *model {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "kafka-txn", name+".jsonl.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	type record struct {
		Key       string
		Value     *string
		Timestamp int64
	}
	var recs []record
	for lines := bufio.NewScanner(z); lines.Scan(); {
		var rec record
		require.NoError(t, json.Unmarshal(lines.Bytes(), &rec))
		recs = append(recs, rec)
	}
	// The file lists one partition after the other; keys are in both.
	slices.SortStableFunc(recs, func(a, b record) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	m := newModel([]string{"id", "v", "seq"}, []string{"id"})
	for _, rec := range recs {
		if rec.Value == nil {
			m.remove(rec.Key)
		} else {
			m.upsert(*rec.Value)
		}
	}
	require.Greater(t, len(recs), 20)
	return m
}

// txnWriter writes the recorded topic again.
type txnWriter struct {
	t     *testing.T
	topic string
	seq   int
}

// put writes one change of a key; an empty text deletes it.
func (w *txnWriter) put(cl *kgo.Client, partition int32, id int, v string) {
	w.t.Helper()
	rec := put(w.topic, partition, "")
	rec.Key, rec.Value = fmt.Appendf(nil, `{"id": %d}`, id), nil
	if v != "" {
		w.seq++
		rec.Value = fmt.Appendf(nil, `{"id": %d, "v": %q, "seq": %d}`, id, v, w.seq)
	}
	require.NoError(w.t, cl.ProduceSync(w.t.Context(), rec).FirstErr())
}

func (w *txnWriter) begin(cl *kgo.Client) { require.NoError(w.t, cl.BeginTransaction()) }

func (w *txnWriter) end(cl *kgo.Client, how kgo.TransactionEndTry) {
	w.t.Helper()
	require.NoError(w.t, cl.EndTransaction(w.t.Context(), how))
}

// TestFault_E18_TransactionsAreSeenAsTheRecordingsSay: aborted records are never
// seen, what lies behind an open transaction waits, and positions pass the markers.
func TestFault_E18_TransactionsAreSeenAsTheRecordingsSay(t *testing.T) {
	k := harness.SharedKafka(t)
	topic := newTopic(t, 2)
	r := newRig(t, "", pipe{Topic: topic, More: "create: { types: { id: BIGINT, v: STRING, seq: BIGINT } }\nbatch: { rows: 100, interval: 300ms, idle_flush: 50ms }"})
	p := r.start()
	client := func(codec kgo.CompressionCodec, txn string) *kgo.Client {
		opts := []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec)}
		if txn != "" {
			opts = append(opts, kgo.TransactionalID(topic+txn))
		}
		return k.Client(t, opts...)
	}
	w := &txnWriter{t: t, topic: topic}
	a, b := client(kgo.ZstdCompression(), "a"), client(kgo.Lz4Compression(), "b")
	plain, idempotent := client(kgo.GzipCompression(), ""), client(kgo.SnappyCompression(), "")

	standsAt := func(at map[int32]int64) {
		t.Helper()
		harness.Until(t, patience, fmt.Sprint("the table at ", at), func() (bool, error) {
			rec, err := lastRecord(r.ref(), r.pipes[0].ID)
			return err == nil && rec != nil && reached(rec.positions(topic), at), err
		})
		rec, err := lastRecord(r.ref(), r.pipes[0].ID)
		require.NoError(t, err)
		require.Equal(t, at, rec.positions(topic))
	}
	w.put(plain, 0, 1, "plain")
	w.put(idempotent, 1, 2, "idempotent")
	w.begin(a)
	w.put(a, 0, 1, "committed later")
	w.begin(b)
	w.put(b, 0, 1, "ABORTED")
	w.put(b, 1, 2, "")
	w.put(plain, 0, 3, "between")
	w.put(a, 1, 4, "committed")
	w.end(b, kgo.TryAbort)
	w.put(a, 0, 3, "")
	w.end(a, kgo.TryCommit)
	w.begin(b)
	for i := range 20 {
		w.put(b, int32(i%2), 10+i, strings.Repeat("x", 50))
	}
	w.end(b, kgo.TryCommit)
	standsAt(map[int32]int64{0: 18, 1: 16}) // from here on keys come from another partition than before
	w.seq = 29
	w.begin(a)
	w.put(a, 0, 10, "ABORTED")
	w.put(a, 0, 99, "ABORTED")
	w.end(a, kgo.TryAbort)
	w.begin(a)
	w.put(a, 1, 11, "after abort")
	w.end(a, kgo.TryCommit)
	w.begin(b)
	w.put(b, 0, 12, "OPEN")
	w.put(plain, 0, 13, "behind the open transaction")
	w.put(plain, 1, 14, "end")

	standsAt(map[int32]int64{0: 21, 1: 19})
	require.EqualValues(t, 23, k.EndOffsets(t, topic)[0])
	r.holds(recordedTransactions(t, "committed-while-open"))
	w.end(b, kgo.TryCommit)
	standsAt(map[int32]int64{0: 24, 1: 19})
	harness.MustStop(t, p)
	r.holds(recordedTransactions(t, "committed"))
}
