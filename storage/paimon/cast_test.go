package paimon

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/paimon/binrow"
	"applier/storage/types"
)

// testdata/java/casts.txt has what Paimon's own casts make of values of an older
// type. Ours are the same where there are any, and tell all values apart.
func TestCaster_IsJavasAndLosesNothing(t *testing.T) {
	pairs, lines := map[string]bool{}, 0
	seen := map[string]string{}
	s := bufio.NewScanner(bytes.NewReader(javaFile(t, "casts.txt")))
	for ; s.Scan(); lines++ {
		part := strings.Split(s.Text(), "\t")
		from, err := types.ParseType(part[0])
		require.NoError(t, err)
		to, err := types.ParseType(part[1])
		require.NoError(t, err)
		c, err := newCaster(to, from)
		if err != nil {
			require.ErrorIs(t, err, ErrTypeChanged)
			continue
		}
		in := rowValue(t, from, part[2])
		got, err := castDatum(c, to, from, in)
		require.NoError(t, err)
		row, err := binrow.Encode([]types.Type{to}, []types.Datum{got})
		require.NoError(t, err)
		pairs[part[0]+" to "+part[1]] = true
		if part[3] != "NONE" { // TIME to TIME: Java has no such cast and fails
			require.Equal(t, part[3], hex.EncodeToString(row), s.Text())
		}
		key := part[0] + part[1] + hex.EncodeToString(row)
		require.Contains(t, []string{"", part[2]}, seen[key], "two values became one: %s", s.Text())
		seen[key] = part[2]
	}
	require.Greater(t, lines, 1000)
	for _, p := range []string{
		"TINYINT to SMALLINT", "SMALLINT to BIGINT", "INT to BIGINT", "SMALLINT to FLOAT", "INT to DOUBLE", "FLOAT to DOUBLE", "TINYINT to DECIMAL(3, 0)", "INT to DECIMAL(12, 2)", "BIGINT to DECIMAL(19, 0)",
		"DECIMAL(9, 2) to DECIMAL(10, 2)", "DECIMAL(10, 2) to DECIMAL(38, 18)", "CHAR(2) to CHAR(5)", "CHAR(2) to VARCHAR(5)", "VARCHAR(2) to STRING", "BINARY(2) to BINARY(5)", "BINARY(2) to BYTES", "VARBINARY(2) to VARBINARY(5)",
		"TIMESTAMP(0) to TIMESTAMP(3)", "TIMESTAMP(3) to TIMESTAMP(9)", "TIMESTAMP(6) WITH LOCAL TIME ZONE to TIMESTAMP(9) WITH LOCAL TIME ZONE", "TIME(0) to TIME(3)",
	} {
		require.True(t, pairs[p], p)
	}
	for _, p := range []string{
		"BIGINT to INT", "INT to FLOAT", "BIGINT to DOUBLE", "DOUBLE to FLOAT", "INT to DECIMAL(10, 2)", "DECIMAL(10, 2) to DECIMAL(9, 2)", "DECIMAL(38, 18) to DECIMAL(38, 0)", "DECIMAL(3, 0) to INT", "VARCHAR(5) to VARCHAR(2)",
		"VARCHAR(2) to CHAR(5)", "BYTES to BINARY(5)", "TIMESTAMP(6) to TIMESTAMP(3)", "TIMESTAMP(6) to TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIME(3) to TIME(0)",
	} {
		require.False(t, pairs[p], p)
	}
}

func rowValue(t *testing.T, typ types.Type, text string) types.Datum {
	b, err := hex.DecodeString(text)
	require.NoError(t, err)
	row, err := binrow.Decode([]types.Type{typ}, b)
	require.NoError(t, err)
	return row[0]
}

func TestCaster_RefusesByNameWhatIsNotTheSameKindOfThing(t *testing.T) {
	row := types.RowType(field(1, "x", types.IntType()))
	for _, c := range []struct{ to, from types.Type }{
		{types.StringType(), types.BytesType()},
		{types.VarCharType(5), types.IntType()},
		{types.BooleanType(), types.TinyIntType()},
		{types.DateType(), types.TimestampType(3)},
		{types.BytesType(), types.StringType()},
		{types.ArrayType(types.IntType()), types.IntType()},
		{types.ArrayType(types.IntType()), types.ArrayType(types.StringType())},
		{row, types.IntType()},
		{types.MapType(types.BigIntType(), types.IntType()), types.MapType(types.IntType(), types.IntType())},
		{types.MapType(types.IntType(), types.IntType()), types.MapType(types.IntType(), types.BigIntType())},
		{types.MultisetType(types.BigIntType()), types.MultisetType(types.IntType())},
		{types.RowType(field(1, "x", types.DateType())), row},
		{types.CharType(maxPadding + 1), types.CharType(1)},
		{types.BinaryType(maxPadding + 1), types.BinaryType(1)},
		{types.TimeType(0), types.DateType()},
	} {
		_, err := newCaster(c.to, c.from)
		require.ErrorIs(t, err, ErrTypeChanged)
		require.ErrorContains(t, err, "in the file, ")
	}
}

// The texts are those that Spark showed of recorded tables whose columns became STRING.
func TestCaster_MakesTextsOfScalars(t *testing.T) {
	for _, c := range []struct {
		from types.Type
		in   types.Datum
		want string
	}{
		{types.IntType(), types.IntDatum(-7), "-7"},
		{types.BooleanType(), types.BoolDatum(true), "true"},
		{types.DecimalType(9, 2), types.IntDatum(150), "1.50"},
		{types.DateType(), types.IntDatum(19782), "2024-02-29"},
		{types.DoubleType(), types.FloatDatum(1e10), "1.0E10"},
		{types.FloatType(), types.FloatDatum(0.5), "0.5"},
		{types.TimestampType(3), types.IntDatum(1_704_164_645_123_000), "2024-01-02 03:04:05.123"},
	} {
		cast, err := newCaster(types.StringType(), c.from)
		require.NoError(t, err)
		got, err := castDatum(cast, types.StringType(), c.from, c.in)
		require.NoError(t, err)
		require.Equal(t, c.want, string(got.B), c.from.String())
	}
}

// What may change inside of nested types.
func TestCaster_FollowsNestedFieldsByID(t *testing.T) {
	i := types.IntDatum
	l := func(d ...types.Datum) types.Datum { return types.Datum{L: append([]types.Datum{}, d...)} }
	from := types.RowType(field(1, "a", types.IntType().NonNull()), field(2, "gone", types.StringType()), field(3, "c", types.FloatType()),
		field(4, "list", types.ArrayType(types.RowType(field(5, "x", types.SmallIntType()), field(6, "y", types.StringType())))), field(7, "m", types.MapType(types.StringType().NonNull(), types.IntType())))
	to := types.RowType(field(3, "renamed", types.DoubleType()), field(8, "new", types.StringType()), field(1, "a", types.BigIntType()),
		field(4, "list", types.ArrayType(types.RowType(field(6, "y", types.StringType()), field(9, "z", types.DateType()), field(5, "x", types.IntType())))), field(7, "m", types.MapType(types.StringType(), types.BigIntType())))
	c, err := newCaster(to, from)
	require.NoError(t, err)
	s := types.StringDatum
	for _, v := range []struct{ in, want types.Datum }{
		{
			l(i(1), s("g"), types.FloatDatum(1.5), l(l(i(7), s("y")), types.Null, l(types.Null, s(""))), l(s("k"), i(5), s("n"), types.Null)),
			l(types.FloatDatum(1.5), types.Null, i(1), l(l(s("y"), types.Null, i(7)), types.Null, l(s(""), types.Null, types.Null)), l(s("k"), i(5), s("n"), types.Null)),
		},
		{l(i(2), types.Null, types.Null, types.Null, types.Null), l(types.Null, types.Null, i(2), types.Null, types.Null)},
		{l(i(3), types.Null, types.Null, l(), l()), l(types.Null, types.Null, i(3), l(), l())},
		{types.Null, types.Null},
	} {
		got, err := castDatum(c, to, from, v.in)
		require.NoError(t, err)
		require.Zero(t, types.CompareDatums(to, v.want, got), "%v", got)
	}
	// Names and inner NOT NULL are not types.
	c, err = newCaster(types.ArrayType(types.RowType(field(1, "b", types.IntType()))), types.ArrayType(types.RowType(field(1, "a", types.IntType().NonNull()))))
	require.NoError(t, err)
	require.Nil(t, c)
}

// A cast appends exactly the rows it is given, in parts or at once, NULLs kept.
func TestCaster_CastsAnyPartOfAnyVector(t *testing.T) {
	i, b := types.IntType(), types.BigIntType()
	pairs := []struct{ to, from types.Type }{
		{b, i},
		{types.DoubleType(), i},
		{types.DecimalType(12, 2), i},
		{types.DecimalType(38, 4), types.DecimalType(18, 2)},
		{types.CharType(4), types.CharType(2)},
		{types.TimestampType(9), types.TimestampType(6)},
		{types.ArrayType(b), types.ArrayType(i)},
		{types.MapType(i, b), types.MapType(i, i)},
		{types.ArrayType(types.ArrayType(b)), types.ArrayType(types.ArrayType(i))},
		{types.RowType(field(2, "n", i), field(1, "x", b)), types.RowType(field(1, "x", i))},
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(pairs).Draw(t, "types")
		c, err := newCaster(p.to, p.from)
		require.NoError(t, err)
		values := rapid.SliceOfN(nestedDatumGen(p.from), 1, 8).Draw(t, "values")
		src, dst := types.NewVector(p.from), types.NewVector(p.to)
		for _, v := range values {
			src.AppendDatum(v)
		}
		from := rapid.IntRange(0, len(values)).Draw(t, "from")
		middle := rapid.IntRange(from, len(values)).Draw(t, "middle")
		require.NoError(t, c(dst, src, from, middle))
		require.NoError(t, c(dst, src, middle, len(values)))
		require.Equal(t, len(values)-from, dst.Len())
		for k := range dst.Len() {
			want, err := castDatum(c, p.to, p.from, values[from+k])
			require.NoError(t, err)
			require.Equal(t, values[from+k].Null, dst.IsNull(k))
			require.Zero(t, types.CompareDatums(p.to, want, dst.Datum(k)))
		}
		again := types.NewVector(p.to)
		again.AppendRange(dst, 0, dst.Len()) // its parts fit together
		require.Equal(t, dst.Len(), again.Len())
	})
}

func nestedDatumGen(typ types.Type) *rapid.Generator[types.Datum] {
	if !typ.IsNested() {
		return datumGen(typ)
	}
	return rapid.Custom(func(t *rapid.T) types.Datum {
		if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
			return types.Null
		}
		d := types.Datum{L: []types.Datum{}}
		if typ.Kind == types.Row {
			for _, f := range typ.Fields {
				d.L = append(d.L, nestedDatumGen(f.Type).Draw(t, f.Name))
			}
			return d
		}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			if typ.Kind == types.Map {
				d.L = append(d.L, types.IntDatum(rapid.Int64Range(0, 5).Draw(t, "key")))
			}
			d.L = append(d.L, nestedDatumGen(*typ.Elem).Draw(t, "element"))
		}
		return d
	})
}

// A DECIMAL that is too large for its own type is an error, not another number.
func TestCaster_RefusesDecimalsBeyondTheirType(t *testing.T) {
	from, to := types.DecimalType(3, 0), types.DecimalType(6, 2)
	c, err := newCaster(to, from)
	require.NoError(t, err)
	_, err = castDatum(c, to, from, types.IntDatum(math.MaxInt64))
	require.ErrorIs(t, err, ErrCorrupt)
	list, err := newCaster(types.ArrayType(to), types.ArrayType(from))
	require.NoError(t, err)
	_, err = castDatum(list, types.ArrayType(to), types.ArrayType(from), types.Datum{L: []types.Datum{types.IntDatum(math.MaxInt64), types.IntDatum(1)}})
	require.ErrorIs(t, err, ErrCorrupt)
}
