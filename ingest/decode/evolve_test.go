package decode

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

func parseFields(t *testing.T, list ...string) (fields []types.Field) {
	t.Helper()
	for i := 0; i < len(list); i += 2 {
		typ, err := types.ParseType(list[i+1])
		require.NoError(t, err, list[i+1])
		fields = append(fields, types.Field{ID: i / 2, Name: list[i], Type: typ})
	}
	return fields
}

func TestEvolution_SaysWhatATableLacks(t *testing.T) {
	table := parseFields(t, "id", "INT NOT NULL", "n", "INT", "Name", "STRING", "s", "ROW<a INT, b STRING>",
		"list", "ARRAY<ROW<x INT>>", "m", "MAP<STRING, INT>", "stated", "INT")
	for _, c := range []struct {
		name   string
		record []types.Field
		add    []string
		widen  []string // beside those of add
	}{
		{"the same", table, nil, nil},
		{"fewer columns", parseFields(t, "id", "INT"), nil, nil},
		{"a new column", parseFields(t, "id", "INT", "new", "DECIMAL(5, 2) NOT NULL"), []string{"new DECIMAL(5, 2)"}, nil},
		{"a name that differs in case only", parseFields(t, "name", "INT"), nil, nil},
		{"a wider type", parseFields(t, "n", "BIGINT"), nil, []string{"n BIGINT"}},
		{"a narrower type", parseFields(t, "n", "TINYINT"), nil, nil},
		{"another type", parseFields(t, "n", "STRING"), nil, nil},
		{"the key's type", parseFields(t, "id", "BIGINT"), nil, nil},
		{"a stated type", parseFields(t, "stated", "BIGINT"), nil, nil},
		{"inside of a row", parseFields(t, "s", "ROW<a BIGINT, c DATE>"), []string{"s.c DATE"}, []string{"s.a BIGINT"}},
		{"inside of an array", parseFields(t, "list", "ARRAY<ROW<x BIGINT, y INT>>"), []string{"list.element.y INT"}, []string{"list.element.x BIGINT"}},
		{"the values of a map", parseFields(t, "m", "MAP<STRING, BIGINT>"), nil, []string{"m.value BIGINT"}},
		{"no name", parseFields(t, "", "INT"), nil, nil},
		{"names that are nobody's", parseFields(t, "a\nb", "INT", "\x1b[2J", "INT", "\xff", "INT", strings.Repeat("n", 256), "INT", "\u202eabc", "INT"), nil, nil},
		{"a name in another script", parseFields(t, "número 1", "INT"), []string{"número 1 INT"}, nil},
		{"one that was refused", parseFields(t, "odd", "INT"), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			texts := func(how Evolve) (texts []string) {
				for _, e := range (Evolution{How: how, Keep: []string{"id", "stated"}, Leave: []string{"odd"}}).Edits(table, c.record) {
					texts = append(texts, e.String())
				}
				return texts
			}
			require.Empty(t, texts(EvolveStrict))
			require.ElementsMatch(t, c.add, texts(EvolveAdd))
			require.ElementsMatch(t, append(c.add, c.widen...), texts(EvolveWiden))
		})
	}
}

const evolvingEnvelope = `{"schema":{"type":"struct","fields":[{"type":"struct","field":"after","fields":[` +
	`{"type":"int64","field":"id"},{"type":"string","field":"v"},{"type":"int64","field":"new"},{"type":"odd","field":"strange"}]}]},` +
	`"payload":{"op":"c","after":{"id":1,"v":"x","new":7,"strange":1}}}`

const evolvingRow = `{"schema":{"type":"struct","fields":[{"type":"int64","field":"id"},{"type":"string","field":"v"},{"type":"int64","field":"new"}]},` +
	`"payload":{"id":1,"v":"x","new":7}}`

func TestDecode_ARecordOfANewerSchemaAsksForTheChange(t *testing.T) {
	table := parseFields(t, "id", "BIGINT NOT NULL", "v", "STRING")
	for format, value := range map[string]string{"debezium-json": evolvingEnvelope, "json": evolvingRow} {
		t.Run(format, func(t *testing.T) {
			decoder := func(fields []types.Field, how Evolve) (Decoder, *change.Batch) {
				d, err := New(format, Options{Fields: fields, Key: []int{0}, Evolution: Evolution{How: how}})
				require.NoError(t, err)
				return d, change.NewBatch(fields, fields[:1])
			}
			d, out := decoder(table, EvolveStrict)
			res, err := d.Decode(&Record{Topic: "t", Value: []byte(value)}, out)
			require.NoError(t, err)
			require.Equal(t, 1, res.Rows)
			require.Equal(t, []string{"new"}, d.UnknownColumns()[:1])

			d, out = decoder(table, EvolveAdd)
			for range 2 { // as often as it comes
				_, err = d.Decode(&Record{Topic: "t", Value: []byte(value)}, out)
				var asked *SchemaChange
				require.True(t, errors.As(err, &asked), "%v", err)
				require.Equal(t, "the record's schema has what the table has not: new BIGINT", err.Error())
				require.Zero(t, out.Len())
			}
			_, err = d.Decode(&Record{Topic: "t", Value: []byte(`{"id":2,"v":"y"}`)}, out)
			var asked *SchemaChange
			require.False(t, errors.As(err, &asked), "the next record is judged by itself: %v", err)

			d, out = decoder(append(table, parseFields(t, "new", "BIGINT")...), EvolveAdd)
			res, err = d.Decode(&Record{Topic: "t", Value: []byte(value)}, out)
			require.NoError(t, err)
			require.Equal(t, 1, res.Rows)
		})
	}
}

// Whatever schemas come, a table gets a bounded number of printable columns.
func TestThreat_ColumnsOfRecords(t *testing.T) {
	table := parseFields(t, "id", "BIGINT NOT NULL")
	var record []types.Field
	for i := range 5000 {
		record = append(record, types.Field{Name: fmt.Sprintf("c%d", i), Type: types.IntType()}, types.Field{Name: fmt.Sprintf("C%d\n", i), Type: types.IntType()})
	}
	edits := Evolution{How: EvolveWiden}.Edits(table, record)
	require.Len(t, edits, maxColumns-len(table))
	for _, e := range edits {
		require.NotContains(t, e.Path[0], "\n")
	}
}
