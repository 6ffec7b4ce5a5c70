package decode

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeriveColumns_TakesTypesFromTheRecordsOwnSchema(t *testing.T) {
	rec := &Record{
		Key: []byte(`{"schema":{"type":"struct","fields":[{"type":"int64","field":"id"},{"type":"string","field":"__dbz__physicalTableIdentifier"}]},"payload":{"id":1}}`),
		Value: []byte(`{"schema":{"type":"struct","fields":[{"type":"struct","field":"before","fields":[]},{"type":"struct","field":"after","fields":[
			{"type":"int64","optional":false,"field":"id","default":0},
			{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2","connect.decimal.precision":"10"},"field":"price"},
			{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"4"},"field":"wide"},
			{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"-2"},"field":"odd"},
			{"type":"int64","name":"io.debezium.time.MicroTime","field":"tm"},
			{"type":"int64","name":"io.debezium.time.MicroTimestamp","field":"ts"},
			{"type":"string","name":"io.debezium.time.ZonedTimestamp","field":"tz"},
			{"type":"double","field":"d"},{"type":"float","field":"f"},{"type":"int16","field":"s"},{"type":"boolean","field":"b"},
			{"type":"array","items":{"type":"int32"},"field":"a"},{"type":"string","name":"io.debezium.data.Json","field":"j"},
			{"type":"array","field":"bare"},{"type":"map","keys":{"type":"string"},"values":{"type":"string"},"field":"m"},
			{"type":"struct","name":"shop.Address","fields":[{"type":"string","field":"zip"},{"type":"array","items":{"type":"int32","name":"io.debezium.time.Date"},"field":"seen"}],"field":"st"},
			{"type":"struct","name":"io.debezium.data.geometry.Point","fields":[{"type":"double","field":"x"}],"field":"pt"},
			{"type":"int32","name":"io.debezium.time.Brandnew","field":"n"}]}]},"payload":{}}`),
	}
	fields, key, err := DeriveColumns(rec)
	require.NoError(t, err)
	require.Equal(t, []string{"id"}, key)
	var got []string
	for _, f := range fields {
		require.Nil(t, f.Default)
		got = append(got, f.Name+" "+f.Type.String())
	}
	require.Equal(t, []string{
		"id BIGINT NOT NULL", "price DECIMAL(10, 2)", "wide DECIMAL(38, 4)", "odd STRING", "tm STRING", "ts TIMESTAMP(6)",
		"tz TIMESTAMP(6) WITH LOCAL TIME ZONE", "d DOUBLE", "f FLOAT", "s SMALLINT", "b BOOLEAN", "a ARRAY<INT>", "j STRING",
		"bare STRING", "m MAP<STRING NOT NULL, STRING>", "st ROW<`zip` STRING, `seen` ARRAY<DATE>>", "pt STRING", "n INT",
	}, got)
}

func TestDeriveColumns_SaysWhenThereIsNoSchema(t *testing.T) {
	for _, v := range []string{"", "1", `{"id":1}`, `{"schema":null,"payload":{}}`, `{"schema":{"type":"struct","fields":[]},"payload":{}}`, `{"schema":{"type":"int32"},"payload":1}`} {
		_, _, err := DeriveColumns(&Record{Value: []byte(v)})
		require.True(t, errors.Is(err, ErrNoSchema), "%s: %v", v, err)
	}
}
