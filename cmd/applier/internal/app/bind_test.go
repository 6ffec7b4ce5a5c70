package app

import (
	"testing"
	"time"

	"applier/batcher"
	"applier/config"
	"applier/ingest"
	"applier/ingest/decode"
	"applier/merger"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

func TestBind_ReportsAllMisfitsAtOnce(t *testing.T) {
	w := newWorld(t, "    key: [idd]\n    apply: upsert\n    order_by: { by: [zzzzzz] }\n    columns: { add: { nots: kafka.offset } }\n")
	table := w.create(orders(), nil)
	_, err := bind(w.pipe(), table)
	require.EqualError(t, err, `key: table shop.orders has no column "idd"; did you mean "id"?
order_by: table shop.orders has no column "zzzzzz"
columns.add: table shop.orders has no column "nots"; did you mean "note"?`)
}

func TestBind_SoftDeleteNeedsItsMarker(t *testing.T) {
	for _, c := range []struct {
		name   string
		marker []types.Field
		err    string
	}{
		{"none", nil, "apply: soft_delete needs a column deleted_at TIMESTAMP(3) WITH LOCAL TIME ZONE; table shop.orders has none"},
		{"another type", []types.Field{{Name: merger.DeletedAt, Type: types.BooleanType()}}, "it is BOOLEAN"},
		{"not null", []types.Field{{Name: merger.DeletedAt, Type: types.TimestampLTZType(3).NonNull()}}, "to be a nullable"},
		{"right", []types.Field{{Name: merger.DeletedAt, Type: types.TimestampLTZType(3)}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "    key: [id]\n    apply: soft_delete\n")
			b, err := bind(w.pipe(), w.create(append(orders(), c.marker...), nil))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, batcher.SoftDelete, b.apply)
			require.Equal(t, []decode.MetaColumn{{Column: 2, Source: decode.SourceNull}}, b.decode.Columns)
		})
	}
}

func TestBind_TurnsNamesIntoColumns(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    columns: { add: { note: kafka.topic } }\n    on_error: dead_letter\n    dead_letter: { topic: dead }\n")
	b, err := bind(w.pipe(), w.create(orders(), nil))
	require.NoError(t, err)
	require.Equal(t, []int{0}, b.key)
	require.Empty(t, b.order.By)
	require.True(t, b.decode.KeepRaw)
	require.Equal(t, []decode.MetaColumn{{Column: 1, Source: "kafka.topic"}}, b.decode.Columns)
}

func TestStart_FromTheConfiguration(t *testing.T) {
	at := time.Unix(7, 0)
	require.Equal(t, ingest.Start{Kind: "time", Time: at}, start(config.Start{Time: at}))
	require.Equal(t, ingest.Start{Kind: "offset", Offsets: map[int32]int64{1: 2}}, start(config.Start{Offset: map[int32]int64{1: 2}}))
	require.Equal(t, ingest.Start{Kind: "latest"}, start(config.Start{Position: "latest"}))
}

func TestEditDistance_CountsChanges(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"id", "id", 0}} {
		require.Equal(t, c.want, editDistance(c.a, c.b))
	}
}
