package app

import (
	"bytes"
	"testing"

	"applier/merger"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

func TestTableOptions_TheUsersOwnComeFirst(t *testing.T) {
	require.Equal(t, map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}, tableOptions(nil))
	require.Equal(t, map[string]string{"bucket": "-1", "deletion-vectors.enabled": "false", "snapshot.time-retained": "2 h"},
		tableOptions(map[string]string{"deletion-vectors.enabled": "false", "snapshot.time-retained": "2 h"}))
}

func TestOpenTable_CreatesTablesOfEveryMode(t *testing.T) {
	for _, options := range []string{
		"deletion-vectors.enabled: false", `deletion-vectors.bitmap64: "true"`, "row-tracking.enabled: true",
		"row-tracking.enabled: true, deletion-vectors.enabled: false", "bucket: 4, bucket-key: id",
		`bucket: 4, bucket-key: "note,id", deletion-vectors.enabled: false`,
	} {
		w := newWorld(t, "    key: [id]\n    create:\n      types: { note: STRING, id: BIGINT }\n      options: { "+options+" }\n")
		table, err := openTable(testContext(t), w.catalog(), w.pipe(), w.kafka(), discard())
		require.NoError(t, err, options)
		for k, v := range w.pipe().Create.Options {
			require.Equal(t, v, table.Schema().Options[k])
		}
	}
	w := newWorld(t, "    key: [id]\n    create:\n      types: { id: BIGINT }\n      options: { bucket: 4, bucket-key: id, row-tracking.enabled: true }\n")
	_, err := openTable(testContext(t), w.catalog(), w.pipe(), w.kafka(), discard())
	require.ErrorContains(t, err, "row ids are for tables without buckets")
}

func TestOpenTable_CreatesWhatTheConfigurationNames(t *testing.T) {
	w := newWorld(t, "    key: [id, day]\n    apply: soft_delete\n    create:\n      partition_by: [day]\n      types: { note: STRING, day: STRING, id: BIGINT }\n")
	ctx := testContext(t)
	table, err := openTable(ctx, w.catalog(), w.pipe(), w.kafka(), discard())
	require.NoError(t, err)
	var names []string
	for _, f := range table.Schema().Fields {
		names = append(names, f.Name+" "+f.Type.String())
	}
	require.Equal(t, []string{"id BIGINT NOT NULL", "day STRING NOT NULL", "note STRING", merger.DeletedAt + " TIMESTAMP(3) WITH LOCAL TIME ZONE"}, names)
	require.Equal(t, []string{"day"}, table.Schema().PartitionKeys)
	again, err := openTable(ctx, w.catalog(), w.pipe(), w.kafka(), discard())
	require.NoError(t, err, "the second time it is there")
	require.Equal(t, table.Schema(), again.Schema())
}

func TestOpenTable_WithoutCreateSaysHow(t *testing.T) {
	w := newWorld(t, "    key: [id]\n")
	_, err := openTable(testContext(t), w.catalog(), w.pipe(), w.kafka(), discard())
	require.ErrorContains(t, err, "table shop.orders does not exist; create it, or let the pipeline do so by this line:\n  create: {}")
}

func TestNewSchema_TakesColumnsFromRecordsAndTypesFromTheConfiguration(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    create: { types: { id: INT } }\n")
	w.pipe().Source.Format.Type = "debezium-json"
	w.produce(0, `{"schema":{"type":"struct","fields":[{"field":"before","type":"struct","optional":true,"fields":[{"field":"id","type":"int64"},{"field":"n","type":"string"}]},{"field":"after","type":"struct","optional":true,"fields":[{"field":"id","type":"int64"},{"field":"n","type":"string"}]},{"field":"op","type":"string"}]},"payload":{"before":null,"after":{"id":1,"n":"x"},"op":"c"}}`)
	s, err := newSchema(testContext(t), w.pipe(), w.kafka())
	require.NoError(t, err)
	require.Equal(t, types.IntType().NonNull(), s.Fields[0].Type)
	require.Equal(t, types.StringType(), s.Fields[1].Type, "only the key is NOT NULL")

	w.pipe().Create.Types["id"] = "NUMBER"
	_, err = newSchema(testContext(t), w.pipe(), w.kafka())
	require.ErrorContains(t, err, "create.types.id")
}

func TestOpenTable_WaitsForRecordsThatHaveTheKey(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    create: { types: { lsn: BIGINT } }\n    columns: { add: { lsn: kafka.offset } }\n")
	_, err := openTable(testContext(t), w.catalog(), w.pipe(), w.kafka(), discard())
	require.ErrorContains(t, err, "holds no records yet, and create.types does not name the key column id")
	w.produce(0, `{"schema":{"type":"struct","fields":[{"field":"id","type":"int64"}]},"payload":{"id":1}}`)
	table, err := openTable(testContext(t), w.catalog(), w.pipe(), w.kafka(), discard())
	require.NoError(t, err)
	require.Len(t, table.Schema().Fields, 2)
}

func TestValidate_ReportsEveryPipelineAndChangesNothing(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    create: { types: { id: BIGINT } }\n")
	var out bytes.Buffer
	require.NoError(t, Validate(testContext(t), w.cfg, patience, discard(), &out))
	require.Equal(t, "pipeline p: table shop.orders and topics are fine\n", out.String())
	_, err := openTable(testContext(t), w.catalog(), pipeWithoutCreate(w), w.kafka(), discard())
	require.ErrorContains(t, err, "does not exist", "nothing was created")

	for _, c := range []struct{ name, pipeline, err string }{
		{"no table", "    key: [id]\n", "pipeline p: table shop.orders does not exist"},
		{"fixed buckets", "    key: [id]\n    create: { types: { id: BIGINT }, options: { bucket: '4' } }\n", "it has bucket=4 and no bucket-key"},
		{"no dead letter topic", "    key: [id]\n    create: { types: { id: BIGINT } }\n    on_error: dead_letter\n    dead_letter: { topic: dead }\n", "K-NO-TOPIC: topic dead"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.configure(c.pipeline)
			out.Reset()
			require.ErrorContains(t, Validate(testContext(t), w.cfg, patience, discard(), &out), c.err)
			require.Empty(t, out.String())
		})
	}
	w.create(orders(), nil)
	w.configure("    key: [nope]\n")
	require.ErrorContains(t, Validate(testContext(t), w.cfg, patience, discard(), &out), `no column "nope"`)
	w.configure("    key: [id]\n")
	w.cfg.Kafka.Brokers = []string{"127.0.0.1:1"}
	require.ErrorContains(t, Validate(testContext(t), w.cfg, patience, discard(), &out), "reading Kafka metadata")
}
