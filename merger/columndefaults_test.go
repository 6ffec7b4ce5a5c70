package merger

import (
	"testing"
	"time"

	"applier/batcher"
	"applier/merger/defaults"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// A NULL of Kafka becomes the default: that of a Spark-made text as Spark means it,
// and a function's value of the batch's time.
func TestDefaults_OfBatchesAreThoseOfStatements(t *testing.T) {
	text := "ARRAY('a', 'b')"
	fields := append(kv(),
		types.Field{ID: 2, Name: "at", Type: types.TimestampLTZType(6)},
		types.Field{ID: 3, Name: "l", Type: types.ArrayType(types.StringType()), Default: &text})
	r := newRig(t, rigOptions{apply: batcher.Mirror, key: []int{0}, fields: fields, options: map[string]string{defaults.OptDynamic + "2": "current_timestamp()"}})
	defer r.close()
	r.begin()
	for k := range 2 {
		r.now = r.now.Add(time.Hour)
		c := r.b.Changes()
		c.Cols[2].AppendNull()
		c.Cols[3].AppendNull()
		r.put(0, int64(k), "v")
		r.commit()
	}
	first := time.UnixMilli(1_800_000_000_000).UTC()
	require.ElementsMatch(t, []string{
		"k=0 v=v at=" + first.Add(time.Hour).Format("2006-01-02T15:04:05.000000Z") + ` l=["a","b"]`,
		"k=1 v=v at=" + first.Add(2*time.Hour).Format("2006-01-02T15:04:05.000000Z") + ` l=["a","b"]`,
	}, r.rows())
}
