package datafile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// TestSchema_AllTypes spells out paimon-format.md §8.1 where no golden table does.
func TestSchema_AllTypes(t *testing.T) {
	str := types.StringType()
	for _, tc := range []struct {
		t    types.Type
		want []string
	}{
		{types.BooleanType().NonNull(), []string{"required boolean caa = 0"}},
		{types.TinyIntType(), []string{"optional int32 caa (INT(8,true)/~INT_8) = 0"}},
		{types.SmallIntType(), []string{"optional int32 caa (INT(16,true)/~INT_16) = 0"}},
		{types.IntType(), []string{"optional int32 caa = 0"}},
		{types.BigIntType(), []string{"optional int64 caa = 0"}},
		{types.FloatType(), []string{"optional float caa = 0"}},
		{types.DoubleType(), []string{"optional double caa = 0"}},
		{types.DecimalType(1, 0), []string{"optional int32 caa (DECIMAL(1,0)/~DECIMAL) = 0"}},
		{types.DecimalType(9, 9), []string{"optional int32 caa (DECIMAL(9,9)/~DECIMAL) = 0"}},
		{types.DecimalType(10, 0), []string{"optional int64 caa (DECIMAL(10,0)/~DECIMAL) = 0"}},
		{types.DecimalType(19, 2), []string{"optional fixed[9] caa (DECIMAL(19,2)/~DECIMAL) = 0"}},
		{types.DecimalType(21, 2), []string{"optional fixed[9] caa (DECIMAL(21,2)/~DECIMAL) = 0"}},
		{types.DecimalType(38, 38), []string{"optional fixed[16] caa (DECIMAL(38,38)/~DECIMAL) = 0"}},
		{types.CharType(3), []string{"optional binary caa (STRING/~UTF8) = 0"}},
		{types.VarCharType(3), []string{"optional binary caa (STRING/~UTF8) = 0"}},
		{types.BinaryType(3), []string{"optional binary caa = 0"}},
		{types.VarBinaryType(3), []string{"optional binary caa = 0"}},
		{types.DateType(), []string{"optional int32 caa (DATE/~DATE) = 0"}},
		{types.TimeType(0), []string{"optional int32 caa (TIME(MILLIS,true)/~TIME_MILLIS) = 0"}},
		{types.TimeType(9), []string{"optional int32 caa (TIME(MILLIS,true)/~TIME_MILLIS) = 0"}},
		{types.TimestampType(0), []string{"optional int64 caa (TIMESTAMP(MILLIS,false)/~TIMESTAMP_MILLIS) = 0"}},
		{types.TimestampType(3), []string{"optional int64 caa (TIMESTAMP(MILLIS,false)/~TIMESTAMP_MILLIS) = 0"}},
		{types.TimestampType(4), []string{"optional int64 caa (TIMESTAMP(MICROS,false)/~TIMESTAMP_MICROS) = 0"}},
		{types.TimestampType(7), []string{"optional int96 caa = 0"}},
		{types.TimestampLTZType(3), []string{"optional int64 caa (TIMESTAMP(MILLIS,true)/~TIMESTAMP_MILLIS) = 0"}},
		{types.TimestampLTZType(6), []string{"optional int64 caa (TIMESTAMP(MICROS,true)/~TIMESTAMP_MICROS) = 0"}},
		{types.TimestampLTZType(9), []string{"optional int96 caa = 0"}},
		{types.Type{Kind: types.Variant}, []string{
			"optional group caa = 0",
			"  required binary value = 0",
			"  required binary metadata = 1",
		}},
		{types.ArrayType(types.IntType().NonNull()).NonNull(), []string{
			"required group caa (LIST/~LIST) = 0",
			"  repeated group list",
			"    required int32 element = 536870912",
		}},
		{types.MapType(str, types.ArrayType(types.IntType())), []string{
			"optional group caa (MAP/~MAP) = 0",
			"  repeated group key_value (~MAP_KEY_VALUE)",
			"    required binary key (STRING/~UTF8) = 536870910", // nullable in the schema
			"    optional group value (LIST/~LIST) = 536870912",
			"      repeated group list",
			"        optional int32 element = 536870913",
		}},
		{types.MultisetType(types.ArrayType(str)), []string{
			"optional group caa (MAP/~MAP) = 0",
			"  repeated group key_value (~MAP_KEY_VALUE)",
			"    required group key (LIST/~LIST) = 536870910",
			"      repeated group list",
			"        optional binary element (STRING/~UTF8) = 536870913",
			"    required int32 value = 536870912",
		}},
		{types.ArrayType(types.RowType(types.Field{ID: 5, Name: "x", Type: types.ArrayType(types.Type{Kind: types.Variant})})), []string{
			"optional group caa (LIST/~LIST) = 0",
			"  repeated group list",
			"    optional group element = 536870912",
			"      optional group x (LIST/~LIST) = 5", // depth starts anew below a field
			"        repeated group list",
			"          optional group element = 536876032",
			"            required binary value = 0",
			"            required binary metadata = 1",
		}},
	} {
		s, err := newSchema(fieldsOf(tc.t))
		require.NoError(t, err)
		require.Equal(t, tc.want, schemaLines(s.elements), tc.t)
		require.Equal(t, "paimon_schema", s.elements[0].Name)
		require.False(t, s.elements[0].RepetitionType.Valid)
	}
}

// TestSchema_ContainerIDsOfTheFormatPage is the example of paimon-format.md §2.3.
func TestSchema_ContainerIDsOfTheFormatPage(t *testing.T) {
	s, err := newSchema([]types.Field{{ID: 8, Name: "am", Type: types.ArrayType(types.MapType(types.StringType(), types.BigIntType()))}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"optional group am (LIST/~LIST) = 8",
		"  repeated group list",
		"    optional group element (MAP/~MAP) = 536879104",
		"      repeated group key_value (~MAP_KEY_VALUE)",
		"        required binary key (STRING/~UTF8) = 536862717",
		"        optional int64 value = 536879105",
	}, schemaLines(s.elements))
}

func TestSchema_LeavesKnowTheirLevels(t *testing.T) {
	x := types.Field{ID: 1, Name: "x", Type: types.IntType()}
	y := types.Field{ID: 2, Name: "y", Type: types.ArrayType(types.IntType().NonNull()).NonNull()}
	s, err := newSchema(fieldsOf(types.IntType().NonNull(), types.RowType(x, y), types.MapType(types.IntType(), types.ArrayType(types.IntType()))))
	require.NoError(t, err)
	type lv struct {
		path     string
		def, rep uint8
		top      bool
	}
	var got []lv
	for _, l := range s.leaves {
		path := ""
		for _, p := range l.path {
			path += "/" + p
		}
		got = append(got, lv{path, l.maxDef, l.maxRep, l.topLevel})
	}
	require.Equal(t, []lv{
		{"/caa", 0, 0, true},
		{"/cab/x", 2, 0, false},
		{"/cab/y/list/element", 2, 1, false},
		{"/cac/key_value/key", 2, 1, false},
		{"/cac/key_value/value/list/element", 5, 2, false},
	}, got)
	// The reader sees the same levels in the same file.
	root, n, err := parseSchema(s.elements)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	i := 0
	var walk func(n *fileNode)
	walk = func(n *fileNode) {
		if !n.isGroup() {
			require.Equal(t, i, n.leaf)
			require.Equal(t, got[i].def, n.maxDef)
			require.Equal(t, got[i].rep, n.maxRep)
			i++
		}
		for _, k := range n.kids {
			walk(k)
		}
	}
	walk(root)
}
