package types

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// paimon-format.md §2.2: what Paimon writes, and what its parser accepts.
func TestParseType_Spellings(t *testing.T) {
	ltz := TimestampLTZType
	for _, test := range []struct {
		text string
		want Type
		out  string // how it is written; "" = as text
	}{
		{text: "BOOLEAN", want: BooleanType()},
		{text: "TINYINT", want: TinyIntType()},
		{text: "SMALLINT", want: SmallIntType()},
		{text: "INT", want: IntType()},
		{text: "BIGINT", want: BigIntType()},
		{text: "FLOAT", want: FloatType()},
		{text: "DOUBLE", want: DoubleType()},
		{text: "DATE", want: DateType()},
		{text: "STRING", want: StringType()},
		{text: "BYTES", want: BytesType()},
		{text: "VARIANT", want: Type{Kind: Variant}},
		{text: "BLOB", want: Type{Kind: Blob}},
		{text: "DECIMAL(10, 2)", want: DecimalType(10, 2)},
		{text: "DECIMAL(38, 38)", want: DecimalType(38, 38)},
		{text: "VARCHAR(20)", want: VarCharType(20)},
		{text: "CHAR(1)", want: CharType(1)},
		{text: "VARBINARY(20)", want: VarBinaryType(20)},
		{text: "BINARY(16)", want: BinaryType(16)},
		{text: "TIME(0)", want: TimeType(0)},
		{text: "TIME(9)", want: TimeType(9)},
		{text: "TIMESTAMP(6)", want: TimestampType(6)},
		{text: "TIMESTAMP(3) WITH LOCAL TIME ZONE", want: ltz(3)},
		{text: "TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL", want: ltz(3).NonNull()},
		{text: "INT NOT NULL", want: IntType().NonNull()},
		{text: "DECIMAL(10, 2) NOT NULL", want: DecimalType(10, 2).NonNull()},
		{text: "GEOMETRY(OGC:CRS84)", want: Type{Kind: Geometry, Text: "OGC:CRS84"}},
		{text: "GEOGRAPHY(OGC:CRS84, SPHERICAL)", want: Type{Kind: Geography, Text: "OGC:CRS84, SPHERICAL"}},
		{text: "GEOMETRY", want: Type{Kind: Geometry}},
		{text: "ARRAY<INT NOT NULL>", want: ArrayType(IntType().NonNull())},
		{text: "MAP<STRING NOT NULL, ARRAY<INT>> NOT NULL", want: MapType(StringType().NonNull(), ArrayType(IntType())).NonNull()},
		{text: "MULTISET<STRING>", want: MultisetType(StringType())},
		{text: "VECTOR<FLOAT, 4>", want: func() Type { v := ArrayType(FloatType()); v.Kind, v.Length = VectorOf, 4; return v }()},
		{text: "ROW<`a` INT, `b c` STRING NOT NULL>", want: RowType(Field{ID: 0, Name: "a", Type: IntType()},
			Field{ID: 1, Name: "b c", Type: StringType().NonNull()})},
		{text: "ROW<`a``b` INT>", want: RowType(Field{Name: "a`b", Type: IntType()})},
		{text: "ROW<>", want: RowType()},

		// Tolerances.
		{text: " int\tnot\n null ", want: IntType().NonNull(), out: "INT NOT NULL"},
		{text: "INT NULL", want: IntType(), out: "INT"},
		{text: "INTEGER", want: IntType(), out: "INT"},
		{text: "DEC(5)", want: DecimalType(5, 0), out: "DECIMAL(5, 0)"},
		{text: "NUMERIC", want: DecimalType(10, 0), out: "DECIMAL(10, 0)"},
		{text: "decimal( 5 , 2 )", want: DecimalType(5, 2), out: "DECIMAL(5, 2)"},
		{text: "double precision", want: DoubleType(), out: "DOUBLE"},
		{text: "CHAR", want: CharType(1), out: "CHAR(1)"},
		{text: "VARCHAR", want: VarCharType(1), out: "VARCHAR(1)"},
		{text: "BINARY", want: BinaryType(1), out: "BINARY(1)"},
		{text: "VARBINARY", want: VarBinaryType(1), out: "VARBINARY(1)"},
		{text: "VARCHAR(2147483647)", want: StringType(), out: "STRING"},
		{text: "VARBINARY(2147483647)", want: BytesType(), out: "BYTES"},
		{text: "CHAR(2147483647)", want: CharType(MaxLength)},
		{text: "TIME", want: TimeType(0), out: "TIME(0)"},
		{text: "TIME(3) WITHOUT TIME ZONE", want: TimeType(3), out: "TIME(3)"},
		{text: "TIMESTAMP", want: TimestampType(6), out: "TIMESTAMP(6)"},
		{text: "TIMESTAMP(9) WITHOUT TIME ZONE", want: TimestampType(9), out: "TIMESTAMP(9)"},
		{text: "TIMESTAMP WITH LOCAL TIME ZONE", want: ltz(6), out: "TIMESTAMP(6) WITH LOCAL TIME ZONE"},
		{text: "TIMESTAMP_LTZ(9)", want: ltz(9), out: "TIMESTAMP(9) WITH LOCAL TIME ZONE"},
		{text: "TIMESTAMP_LTZ", want: ltz(6), out: "TIMESTAMP(6) WITH LOCAL TIME ZONE"},
		{text: "TIMESTAMP_NTZ", want: TimestampType(6), out: "TIMESTAMP(6)"},
		{text: "INT NOT NULL ARRAY NOT NULL", want: ArrayType(IntType().NonNull()).NonNull(), out: "ARRAY<INT NOT NULL> NOT NULL"},
		{text: "INT MULTISET ARRAY", want: ArrayType(MultisetType(IntType())), out: "ARRAY<MULTISET<INT>>"},
		{text: "array<map<string,int>>", want: ArrayType(MapType(StringType(), IntType())), out: "ARRAY<MAP<STRING, INT>>"},
		{
			text: "STRUCT<a: INT, é: STRING>", want: RowType(Field{Name: "a", Type: IntType()}, Field{ID: 1, Name: "é", Type: StringType()}),
			out: "ROW<`a` INT, `é` STRING>",
		},
		{text: "BOOL", want: BooleanType(), out: "BOOLEAN"},
		{text: "LONG", want: BigIntType(), out: "BIGINT"},
	} {
		got, err := ParseType(test.text)
		require.NoError(t, err, test.text)
		require.True(t, test.want.Equal(got), "%s: %s", test.text, got)
		if test.out == "" {
			test.out = test.text
		}
		require.Equal(t, test.out, got.String())
	}
}

func TestParseType_FieldIDsAreInPostOrderAndCommentsAreKept(t *testing.T) {
	got, err := ParseType("ROW<a ROW<b INT COMMENT 'it''s b'>, c ARRAY<ROW<d INT>>>")
	require.NoError(t, err)
	b := got.Fields[0].Type.Fields[0]
	require.Equal(t, 0, b.ID)
	require.Equal(t, "it's b", *b.Description)
	require.Equal(t, 1, got.Fields[0].ID)
	require.Equal(t, 2, got.Fields[1].Type.Elem.Fields[0].ID)
	require.Equal(t, 3, got.Fields[1].ID)
}

func TestParseType_RefusesWithTheReason(t *testing.T) {
	for text, want := range map[string]string{
		"": "a type name is expected", "  ": "a type name is expected", "FOO": `"FOO" is no type name`, "INT INT": `unexpected "INT"`,
		"INT NOT": `unexpected "NOT"`, "INT)": `unexpected ")"`, "DECIMAL(39, 0)": "precision of 1 to 38", "DECIMAL(0, 0)": "precision of 1 to 38",
		"DECIMAL(5, 6)": "scale of 0 to the precision", "DECIMAL(5, -1)": "a number is expected", "DECIMAL(5,": "a number is expected",
		"DECIMAL(5": `")" is expected`, "DECIMAL(5, 2, 1)": `")" is expected`, "CHAR(0)": "length of 1 or more", "CHAR()": "a number is expected",
		"VARCHAR(2147483648)": "length of 1 or more", "VARCHAR(99999999999999999999)": "a number is expected", "TIME(10)": "precision of 0 to 9",
		"TIMESTAMP(10)": "precision of 0 to 9", "TIMESTAMP WITH TIME ZONE": `unexpected "WITH TIME ZONE"`, "ARRAY": `"<" is expected`,
		"ARRAY<": "a type name is expected", "ARRAY<INT": `">" is expected`, "MAP<INT>": `"," is expected between`, "MAP<INT, >": "a type name is expected",
		"ROW<INT": "a type name is expected", "ROW<a INT, >": "a field name is expected", "ROW<a INT b INT>": `"," or ">" is expected`,
		"ROW<`a INT>": "closing ` is missing", "ROW<a INT COMMENT x>": "a quoted text is expected", "ROW<a INT COMMENT 'x>": "closing ' is missing",
		"VECTOR<FLOAT>": `"," is expected`, "VECTOR<FLOAT, x>": "vector's length", "VECTOR<FLOAT, 0>": "vector's length",
		"GEOMETRY(x": `")" is expected`, "INT\x00": "unexpected",
	} {
		_, err := ParseType(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestParseType_BoundsDepthAndMessages(t *testing.T) {
	for _, n := range []int{maxTypeDepth, maxTypeDepth + 1, 100_000} {
		brackets := strings.Repeat("ARRAY<", n) + "INT" + strings.Repeat(">", n)
		suffixes := "INT" + strings.Repeat(" ARRAY", n)
		rows := strings.Repeat("ROW<a ", n) + "INT" + strings.Repeat(">", n)
		both := strings.Repeat("ARRAY<", n/2) + "INT" + strings.Repeat(" ARRAY", n-n/2) + strings.Repeat(">", n/2)
		for _, text := range []string{brackets, suffixes, rows, both} {
			_, err := ParseType(text)
			if n <= maxTypeDepth {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "nested deeper than 64 levels")
			require.Less(t, len(err.Error()), 500, "a hostile text does not fill the log")
		}
	}
	_, err := ParseType("INT " + strings.Repeat("x", 1<<20))
	require.Less(t, len(err.Error()), 1000)
}

func TestType_RapidTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := 0
		want := drawType(t, 3, &id)
		got, err := ParseType(want.String())
		require.NoError(t, err)
		require.True(t, want.Equal(got), "%s: %s", want, got)
		require.Equal(t, want.String(), got.String())
	})
}

func TestType_Equal(t *testing.T) {
	row := func(id int, name string, ft Type) Type { return RowType(Field{ID: id, Name: name, Type: ft}) }
	text := "x"
	types := []Type{
		IntType(), IntType().NonNull(), BigIntType(), DecimalType(10, 2), DecimalType(10, 3), DecimalType(11, 2), CharType(1), CharType(2),
		TimestampType(3), TimestampLTZType(3), TimestampType(6), ArrayType(IntType()), ArrayType(IntType().NonNull()), MultisetType(IntType()),
		MapType(IntType(), IntType()), MapType(IntType(), BigIntType()), MapType(BigIntType(), IntType()), RowType(),
		row(0, "a", IntType()), row(1, "a", IntType()), row(0, "b", IntType()), row(0, "a", BigIntType()),
		{Kind: Geometry},
		{Kind: Geometry, Text: "x"},
	}
	for i, a := range types {
		for j, b := range types {
			require.Equal(t, i == j, a.Equal(b), "%s = %s", a, b)
		}
		require.True(t, a.EqualIgnoringNull(a.NonNull()))
	}
	described := RowType(Field{Name: "a", Type: IntType(), Description: &text, Default: &text})
	require.True(t, row(0, "a", IntType()).Equal(described), "descriptions and defaults do not count")
}

func TestType_Predicates(t *testing.T) {
	vector := ArrayType(FloatType())
	vector.Kind = VectorOf
	for _, test := range []struct {
		t                                                            Type
		nested, text, binary, timestamp, integer, numeric, supported bool
	}{
		{t: BooleanType(), supported: true},
		{t: TinyIntType(), integer: true, numeric: true, supported: true},
		{t: BigIntType(), integer: true, numeric: true, supported: true},
		{t: FloatType(), numeric: true, supported: true},
		{t: DecimalType(5, 2), numeric: true, supported: true},
		{t: CharType(1), text: true, supported: true},
		{t: StringType(), text: true, supported: true},
		{t: BytesType(), binary: true, supported: true},
		{t: DateType(), supported: true},
		{t: TimeType(0), supported: true},
		{t: TimestampType(3), timestamp: true, supported: true},
		{t: TimestampLTZType(9), timestamp: true, supported: true},
		{t: ArrayType(IntType()), nested: true, supported: true},
		{t: ArrayType(Type{Kind: Blob}), nested: true},
		{t: MapType(IntType(), Type{Kind: Blob}), nested: true},
		{t: MapType(Type{Kind: Blob}, IntType()), nested: true},
		{t: MultisetType(vector), nested: true},
		{t: RowType(Field{Type: IntType()}), nested: true, supported: true},
		{t: RowType(Field{Type: Type{Kind: Geometry}}), nested: true},
		{t: Type{Kind: Variant}, supported: true},
		{t: Type{Kind: Blob}},
		{t: vector},
		{t: Type{Kind: Geometry}},
		{t: Type{}},
	} {
		require.Equal(t, test.nested, test.t.IsNested(), "%s", test.t)
		require.Equal(t, test.text, test.t.IsText(), "%s", test.t)
		require.Equal(t, test.binary, test.t.IsBinary(), "%s", test.t)
		require.Equal(t, test.timestamp, test.t.IsTimestamp(), "%s", test.t)
		require.Equal(t, test.integer, test.t.IsInteger(), "%s", test.t)
		require.Equal(t, test.numeric, test.t.IsNumeric(), "%s", test.t)
		require.Equal(t, test.supported, test.t.Supported(), "%s", test.t)
		if test.supported {
			require.NotEqual(t, LayoutNone, LayoutOf(test.t), "%s", test.t)
			require.Zero(t, NewVector(test.t).Len())
		}
	}
	require.Equal(t, "INVALID", Kind(200).String())
	require.Equal(t, "INVALID", Type{}.String())
	require.Panics(t, func() { NewVector(Type{Kind: Blob}) })
}

func FuzzParseType(f *testing.F) {
	for _, text := range []string{
		"INT", "DECIMAL(10, 2) NOT NULL", "ROW<`a` INT COMMENT 'x', b MAP<STRING, ARRAY<INT>>>", "INT NOT NULL ARRAY", "GEOMETRY(a, b)",
		"TIMESTAMP(3) WITH LOCAL TIME ZONE", "VECTOR<FLOAT, 4>", "STRUCT<a: INT>", "ARRAY<ARRAY<ARRAY<", "MULTISET<CHAR(2147483647)>",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := ParseType(text)
		if err != nil {
			require.Less(t, len(err.Error()), 3000)
			return
		}
		second, err := ParseType(first.String())
		require.NoError(t, err, "%q gave %q", text, first)
		require.True(t, first.Equal(second), "%q gave %q gave %q", text, first, second)
		if first.Supported() {
			NewVector(first)
		}
	})
}
