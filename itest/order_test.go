//go:build itest

package itest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// TestOrder_RememberedDeletesSurviveKills: changes of few keys arrive in an order
// that has nothing to do with their place, on two partitions, while the daemon
// kills itself around the moments at which deletes are remembered and published.
// The table holds, for each key, the change of the highest place; or nothing, if
// that is a delete.
func TestOrder_RememberedDeletesSurviveKills(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, 2)
	r := newRig(t, "", pipe{Topic: topic, More: `create: { types: { id: INT, v: STRING, at: STRING } }
columns: { add: { at: header.at } }
order_by: { by: [at], remember_deletes: 1d }`})
	rnd := rand.New(rand.NewPCG(1, 2))
	const keys = 50
	newest := map[int]string{} // by key: the highest place
	values := map[int]string{} // and its row, "" for a delete
	places := rnd.Perm(2_000_000)
	produce := func(n int) {
		var recs []*kgo.Record
		for range n {
			key, at := rnd.IntN(keys), fmt.Sprintf("%07d", places[0])
			places = places[1:]
			value := fmt.Sprintf(`{"id":%d,"v":"x"}`, key)
			rec := put(topic, int32(rnd.IntN(2)), value)
			rec.Key = fmt.Appendf(nil, `{"id":%d}`, key)
			if rnd.IntN(2) == 0 {
				rec.Value, value = nil, ""
			}
			rec.Headers = []kgo.RecordHeader{{Key: "at", Value: []byte(at)}}
			if at > newest[key] {
				newest[key], values[key] = at, value
			}
			recs = append(recs, rec)
		}
		r.kafka.Produce(t, recs...)
	}
	kills := 0
	for _, point := range []string{
		"commit/deletes=kill", "commit/deletes=kill@3", "commit/stage=kill@2", "commit/publish=kill@2", "objstore/publish/linked=kill@6",
		"commit/after=kill@2", "commit/ack=kill@2", "commit/deletes=kill@2",
	} {
		p := r.start(harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=" + point}})
		harness.Until(t, patience, "the daemon to kill itself at "+point, func() (bool, error) {
			if !p.Exited() {
				produce(20)
			}
			return p.Exited(), nil
		})
		kills++
	}
	require.Equal(t, 8, kills)
	produce(50)
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	require.NotContains(t, p.Output.String(), "forgotten")
	objects, err := os.ReadDir(filepath.Join(r.State, r.pipes[0].ID+".deletes"))
	require.NoError(t, err)
	require.NotEmpty(t, objects)

	m := newModel([]string{"id", "v", "at"}, []string{"id"})
	for key, value := range values {
		if value != "" {
			m.apply(put(topic, 0, fmt.Sprintf(`{"id":%d,"v":"x","at":%q}`, key, newest[key])))
		}
	}
	require.NotEmpty(t, m.texts())
	r.holds(m)
}
