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

func TestBind_ClausesFitTheTable(t *testing.T) {
	for _, c := range []struct{ name, clause, err string }{
		{"right", "MATCHED AND s.__op = 'd' THEN UPDATE SET note = NULL", ""},
		{"no such column", "MATCHED THEN UPDATE SET note = s.nots", "merge.when[0]: line 1, column 32: [UNRESOLVED_COLUMN.WITH_SUGGESTION] there is no column s.nots, did you mean note?"},
		{"no such target", "MATCHED THEN UPDATE SET nots = 'a'", "merge.when[0]: line 1, column 25: [UNRESOLVED_COLUMN.WITH_SUGGESTION] table t has no column nots, did you mean note?"},
		{"no condition", "MATCHED AND s.note THEN DELETE", "a condition must be BOOLEAN"},
		{"ambiguous", "MATCHED AND note = 'a' THEN DELETE", "AMBIGUOUS_REFERENCE"},
		{"another key", "MATCHED THEN UPDATE SET id = s.id + 1", "column id is a merge key: a clause can give it s.id only"},
		{"no key", "NOT MATCHED THEN INSERT (note) VALUES (s.note)", "INSERT must give merge key id the value s.id"},
		{"of the row that is not there", "NOT MATCHED AND t.note = 'a' THEN INSERT *", "there is no column t.note"},
		{"a query", "MATCHED AND s.id IN (SELECT 1) THEN DELETE", "sub-quer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "    key: [id]\n    merge: { when: [\""+c.clause+"\"] }\n")
			b, err := bind(w.pipe(), w.create(orders(), nil))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, batcher.Merge, b.apply)
			require.True(t, b.decode.BeforeImages)
		})
	}
}

func TestCheckClauses_FindsWhatNeedsNoTable(t *testing.T) {
	for _, c := range []struct{ clauses, err string }{
		{`"MATCHED THEN DELETE"`, ""},
		{`"when matched then delete"`, "pipelines.p: merge.when[0]: line 1, column 1: syntax error"},
		{`"MATCHED THEN DELETE", "NOT MATCHED THEN DELETE"`, "merge.when[1]: line 1, column 18: syntax error"},
		{`"MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"`, "merge.when[0]: 2 clauses in one line"},
		{`"MATCHED THEN DELETE", "MATCHED AND s.id > 1 THEN UPDATE SET *"`, "only the last MATCHED clause may go without a condition"},
		{`"NOT MATCHED BY SOURCE THEN DELETE"`, "NOT MATCHED BY SOURCE is not supported in a pipeline"},
	} {
		w := newWorld(t, "    key: [id]\n    merge: { when: ["+c.clauses+"] }\n")
		err := CheckClauses("applier.yml", w.cfg)
		if c.err == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.err)
		require.IsType(t, config.Problems{}, err)
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
