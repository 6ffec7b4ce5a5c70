package decode

import (
	"fmt"
	"testing"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

const truncateRecord = `{"before":null,"after":null,"source":{"lsn":77,"ts_ms":5000,"db":"shop"},"op":"t","ts_ms":6000}`

// truncationOptions are those of a pipeline that orders by columns.
func truncationOptions(t *testing.T, by ...string) Options {
	o := options(t, "id INT NOT NULL; v STRING; lsn BIGINT; db STRING", "id")
	o.Columns = []MetaColumn{{2, "source.lsn"}, {3, "source.db"}}
	for _, c := range by {
		o.OrderBy = append(o.OrderBy, column(t, o.Fields, c))
	}
	o.Truncates = true
	return o
}

func TestDebezium_ATruncationHasItsPlaceInTheOrder(t *testing.T) {
	o := truncationOptions(t, "lsn", "db")
	d, out := mustNew(t, "debezium-json", o), newBatch(o)
	before := Record{Key: []byte(`{"id":1}`), Value: []byte(`{"before":null,"after":{"id":1,"v":"x"},"source":{"lsn":70,"db":"shop"},"op":"c"}`)}
	_, err := d.Decode(&before, out)
	require.NoError(t, err)
	value := []byte(truncateRecord)
	res, err := d.Decode(&Record{Part: 2, Offset: 9, Timestamp: 1, Value: value}, out)
	require.NoError(t, err)
	clear(value)
	want := &change.Truncation{Part: 2, Offset: 9, Time: 5000, Order: []types.Datum{types.IntDatum(77), types.StringDatum("shop")}}
	require.Equal(t, want, res.Truncation, "its bytes are its own")
	require.Equal(t, SkipTruncate, res.Skip)
	require.Zero(t, res.Rows)
	_, err = d.Decode(&before, out)
	require.NoError(t, err)
	require.Equal(t, 2, out.Len())
	for _, c := range out.Cols {
		require.Equal(t, 2, c.Len(), "no cell of it is left")
	}
}

func TestDebezium_ATruncationWithoutAPlaceIsAnErrorWhereItIsAppliedOnly(t *testing.T) {
	for value, by := range map[string]string{
		truncateRecord: "v", // a column of the row, which it has not
		`{"before":null,"after":null,"source":{"db":"shop"},"op":"t"}`: "lsn",
	} {
		o := truncationOptions(t, by)
		out := newBatch(o)
		_, err := mustNew(t, "debezium-json", o).Decode(&Record{Value: []byte(value)}, out)
		var row *RowError
		require.ErrorAs(t, err, &row)
		require.Equal(t, ClassKey, row.Class)
		require.Equal(t, by, row.Column)
		for _, c := range out.Cols {
			require.Zero(t, c.Len())
		}
		o.Truncates = false
		res, err := mustNew(t, "debezium-json", o).Decode(&Record{Value: []byte(value)}, newBatch(o))
		require.NoError(t, err, fmt.Sprint(by))
		require.NotNil(t, res.Truncation)
		require.Nil(t, res.Truncation.Order)
	}
}
