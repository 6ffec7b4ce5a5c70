package app

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// moves produces a change of a key as Debezium tells it: a delete, its tombstone, and
// a create that knows of values it was not sent where they were.
func (w *world) moves(topic string, from, to int) (n int64) {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.broker.ListenAddrs()...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(w.t, err)
	defer cl.Close()
	key := func(id int) []byte { return fmt.Appendf(nil, `{"id":%d}`, id) }
	header := func(name string, id int) []kgo.RecordHeader {
		return []kgo.RecordHeader{{Key: "__debezium." + name, Value: key(id)}}
	}
	for _, r := range []*kgo.Record{
		{Key: key(from), Value: []byte(envelope("d", string(key(from)), "")), Headers: header("newkey", to)},
		{Key: key(from)},
		{Key: key(to), Value: []byte(envelope("c", "", fmt.Sprintf(`{"id":%d,"note":"__debezium_unavailable_value","n":1}`, to))), Headers: header("oldkey", from)},
	} {
		require.NoError(w.t, cl.ProduceSync(testContext(w.t), r).FirstErr())
	}
	return 3
}

// Both halves are one commit however batches are cut: the second one takes its
// values from the row that the first one deletes.
func TestKeyChange_IsNeverCutInTwo(t *testing.T) {
	w := truncateWorld(t, aloneTopic, "")
	w.pipe().Batch.Rows = 1
	w.produceTo(aloneTopic, 0, envelope("c", "", row(1, "a")), envelope("c", "", row(2, "b")))
	n := 2 + w.moves(aloneTopic, 1, 11) + w.moves(aloneTopic, 2, 12) + w.moves(aloneTopic, 11, 21)
	r := w.run()
	r.records(t, n)
	require.Equal(t, []string{"12 b 1", "21 a 1"}, w.texts())
	r.stop()
	report, text := w.verified(false)
	require.Equal(t, "ok", string(report.Verdict), text)
}
