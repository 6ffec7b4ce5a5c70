package binrow

import (
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

func TestEncode_WritesJavasBytes(t *testing.T) {
	java, ours := javaRows(t), allRows()
	require.Len(t, ours, len(java))
	for name, j := range java {
		t.Run(name, func(t *testing.T) {
			r, ok := ours[name]
			require.True(t, ok, "no such row here")
			b, err := Encode(r.ts, r.row)
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString(j.row), hex.EncodeToString(b))
		})
	}
}

func TestDecode_ReadsJavasBytes(t *testing.T) {
	ours := allRows()
	for name, j := range javaRows(t) {
		t.Run(name, func(t *testing.T) {
			r := ours[name]
			row, err := Decode(r.ts, j.row)
			require.NoError(t, err)
			require.Len(t, row, len(r.row))
			for i := range row {
				requireSame(t, r.ts[i], r.row[i], row[i])
				d, err := Field(r.ts[i], j.row, i)
				require.NoError(t, err)
				requireSame(t, r.ts[i], r.row[i], d)
			}
			for _, i := range []int{-1, len(row), 1000} {
				_, err = Field(types.IntType(), j.row, i)
				require.ErrorIs(t, err, ErrCorrupt)
			}
			n, err := Arity(j.row)
			require.NoError(t, err)
			require.Equal(t, len(r.ts), n)
		})
	}
}

// requireSame compares by value and, for floats, by sign of zero.
func requireSame(t require.TestingT, typ types.Type, want, got types.Datum) {
	require.Zero(t, types.CompareDatums(typ, want, got), "want %+v, got %+v", want, got)
	require.Equal(t, math.Signbit(want.F), math.Signbit(got.F))
	require.Equal(t, want.Null, got.Null)
}

func TestBucket_IsJavasForEveryFunction(t *testing.T) {
	ours := allRows()
	for name, j := range javaRows(t) {
		t.Run(name, func(t *testing.T) {
			r := ours[name]
			require.Equal(t, j.hash, strconv.Itoa(int(Hash(j.row))))
			for f, want := range map[BucketFunction]string{BucketDefault: j.def, BucketMod: j.modBucket, BucketHive: j.hiveOne} {
				got, err := f.Bucket(r.ts, r.row, 7)
				if want == "-" {
					require.ErrorIs(t, err, ErrBucketFunction)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, want, strconv.Itoa(got), "function %d", f)
			}
		})
	}
}

// The vectors of the format description, computed by Java with 4 buckets.
func TestBucket_KnownVectors(t *testing.T) {
	i, s := types.IntType(), types.StringType()
	for _, c := range []struct {
		ts     []types.Type
		row    []types.Datum
		hash   int32
		bucket int
	}{
		{[]types.Type{s, i}, []types.Datum{str("20260101"), types.IntDatum(5)}, -350026723, 3},
		{[]types.Type{s}, []types.Datum{str("abc")}, -101922419, 3},
		{[]types.Type{s}, []types.Datum{str("abcdefg")}, -1431907323, 3},
		{[]types.Type{s}, []types.Datum{str("hello-world")}, 76085436, 0},
		{[]types.Type{s}, []types.Datum{str("")}, 302122119, 3},
		{[]types.Type{s}, []types.Datum{types.Null}, -1748325344, 0},
		{[]types.Type{i}, []types.Datum{types.IntDatum(1)}, 1465514398, 2},
		{[]types.Type{types.BigIntType()}, []types.Datum{types.IntDatum(1)}, 1465514398, 2},
		{[]types.Type{i}, []types.Datum{types.IntDatum(-7)}, 1485184587, 3},
		{[]types.Type{types.BigIntType()}, []types.Datum{types.IntDatum(1234567890123)}, -1873221036, 0},
		{[]types.Type{i, s}, []types.Datum{types.IntDatum(42), str("hello-world")}, 1855647010, 2},
		{[]types.Type{types.DateType()}, []types.Datum{types.IntDatum(20454)}, -1582905029, 1},
	} {
		row, err := Encode(c.ts, c.row)
		require.NoError(t, err)
		require.Equal(t, c.hash, Hash(row))
		b, err := BucketDefault.Bucket(c.ts, c.row, 4)
		require.NoError(t, err)
		require.Equal(t, c.bucket, b)
	}
	require.Equal(t, int32(-1670924195), Hash(Empty()))
}

func TestBucket_RefusesWhatItCannotPlace(t *testing.T) {
	_, err := ParseBucketFunction("iceberg")
	require.ErrorIs(t, err, ErrBucketFunction)
	require.ErrorContains(t, err, "iceberg")
	for name, want := range map[string]BucketFunction{"": BucketDefault, "default": BucketDefault, "mod": BucketMod, "hive": BucketHive} {
		f, err := ParseBucketFunction(name)
		require.NoError(t, err)
		require.Equal(t, want, f)
	}
	_, err = BucketDefault.Bucket(nil, nil, 0)
	require.ErrorIs(t, err, ErrBucketFunction)
	_, err = BucketMod.Bucket([]types.Type{types.StringType()}, []types.Datum{str("1")}, 3)
	require.ErrorIs(t, err, ErrBucketFunction)
	_, err = BucketHive.Bucket([]types.Type{types.StringType()}, nil, 3)
	require.ErrorIs(t, err, ErrBucketFunction)
}

func TestEncode_RefusesValuesThatDoNotFit(t *testing.T) {
	f := func(typ types.Type, d types.Datum) {
		t.Helper()
		_, err := Encode([]types.Type{typ}, []types.Datum{d})
		require.ErrorIs(t, err, ErrValue)
	}
	f(types.TinyIntType(), types.IntDatum(128))
	f(types.SmallIntType(), types.IntDatum(-32769))
	f(types.IntType(), types.IntDatum(math.MaxInt32+1))
	f(types.DateType(), types.IntDatum(math.MinInt32-1))
	f(types.Type{Kind: types.Blob}, types.BytesDatum(nil))
	f(types.ArrayType(types.TinyIntType()), list(types.IntDatum(200)))
	f(types.MapType(types.IntType(), types.IntType()), list(types.IntDatum(1)))
	f(types.MapType(types.TinyIntType(), types.IntType()), list(types.IntDatum(1000), types.IntDatum(1)))
	f(types.MapType(types.IntType(), types.TinyIntType()), list(types.IntDatum(1), types.IntDatum(1000)))
	f(types.RowType(types.Field{Type: types.IntType()}), list())
	f(types.Type{Kind: types.Variant}, list())
	_, err := Encode([]types.Type{types.IntType()}, nil)
	require.ErrorIs(t, err, ErrValue)
}

func TestDecode_RefusesBrokenRows(t *testing.T) {
	row := func(h string) []byte {
		b, err := hex.DecodeString(h)
		require.NoError(t, err)
		return b
	}
	f := func(why string, typ types.Type, b []byte) {
		t.Helper()
		_, err := Decode([]types.Type{typ}, b)
		require.ErrorIs(t, err, ErrCorrupt, why)
		if n, err := Arity(b); err != nil || n == 1 {
			_, err = Field(typ, b, 0)
			require.ErrorIs(t, err, ErrCorrupt, why)
		}
	}
	const one = "000000010000000000000000"
	f("no prefix", types.IntType(), nil)
	f("cut", types.IntType(), row(one+"000000"))
	f("arity", types.IntType(), row("00000002000000000000000001000000000000000100000000000000"))
	f("huge arity", types.IntType(), row("ffffffff0000000000000000"))
	f("offset outside", types.StringType(), row(one+"0800000011000000"+"3132333435363738"))
	f("inline length", types.StringType(), row(one+"0000000000000088"))
	f("decimal of 17 bytes", types.DecimalType(20, 0), row(one+"1100000010000000"+"00000000000000000000000000000000000000000000000000"))
	f("decimal of none", types.DecimalType(20, 0), row(one+"0000000010000000"+"0000000000000000"))
	f("nanos", types.TimestampType(6), row(one+"40420f0010000000"+"0000000000000000"))
	f("millis", types.TimestampType(3), row(one+"ffffffffffffff7f"))
	f("array length", types.ArrayType(types.IntType()), row(one+"0800000010000000"+"ffffff7f00000000"))
	f("array of 3 bytes", types.ArrayType(types.IntType()), row(one+"0300000010000000"+"0000000000000000"))
	f("map key length", types.MapType(types.IntType(), types.IntType()), row(one+"0800000010000000"+"ff00000000000000"))
	f("variant length", types.Type{Kind: types.Variant}, row(one+"0800000010000000"+"ff00000000000000"))
	f("blob", types.Type{Kind: types.Blob}, row(one+"0000000000000000"))
}

// Slots that share one body must not unfold into more values than the row has bytes.
func TestDecode_RefusesToUnfoldSharedBodies(t *testing.T) {
	typ := types.IntType()
	for range 8 {
		typ = types.ArrayType(typ)
	}
	// An array of 60 elements, each of which is the array itself.
	body := []byte{60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	size := byte((len(body) + 60*8 + 7) / 8)
	for range 60 {
		body = append(body, size<<3, size>>5, 0, 0, 0, 0, 0, 0)
	}
	for len(body)%8 != 0 {
		body = append(body, 0)
	}
	b := append([]byte{0, 0, 0, 1}, make([]byte, 8)...)
	b = append(b, byte(len(body)), byte(len(body)>>8), 0, 0, 16, 0, 0, 0)
	b = append(b, body...)
	_, err := Decode([]types.Type{typ}, b)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "more values than bytes")
}

// typeGen draws types that have a BinaryRow form.
func typeGen(depth int) *rapid.Generator[types.Type] {
	return rapid.Custom(func(t *rapid.T) types.Type {
		scalars := []types.Type{
			types.BooleanType(), types.TinyIntType(), types.SmallIntType(), types.IntType(), types.BigIntType(),
			types.FloatType(), types.DoubleType(), types.DecimalType(18, 3), types.DecimalType(38, 10), types.CharType(3), types.StringType(),
			types.BytesType(), types.DateType(), types.TimeType(3), types.TimestampType(3), types.TimestampType(6), types.TimestampLTZType(9),
		}
		if depth == 0 {
			return rapid.SampledFrom(scalars).Draw(t, "scalar")
		}
		switch rapid.IntRange(0, 6).Draw(t, "nested") {
		case 0:
			return types.ArrayType(typeGen(depth-1).Draw(t, "element"))
		case 1:
			return types.MapType(typeGen(0).Draw(t, "key"), typeGen(depth-1).Draw(t, "value"))
		case 2:
			return types.RowType(types.Field{ID: 1, Name: "a", Type: typeGen(depth-1).Draw(t, "a")}, types.Field{ID: 2, Name: "b", Type: typeGen(0).Draw(t, "b")})
		case 3:
			return types.MultisetType(typeGen(0).Draw(t, "element"))
		}
		return rapid.SampledFrom(scalars).Draw(t, "scalar")
	})
}

func datumGen(typ types.Type) *rapid.Generator[types.Datum] {
	return rapid.Custom(func(t *rapid.T) types.Datum {
		if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
			return types.Null
		}
		rng := func(low, high int64) types.Datum { return types.IntDatum(rapid.Int64Range(low, high).Draw(t, "i")) }
		switch typ.Kind {
		case types.Boolean:
			return rng(0, 1)
		case types.TinyInt:
			return rng(math.MinInt8, math.MaxInt8)
		case types.SmallInt:
			return rng(math.MinInt16, math.MaxInt16)
		case types.Int, types.Date:
			return rng(math.MinInt32, math.MaxInt32)
		case types.Time:
			return rng(0, 86_399_999)
		case types.Float:
			return types.FloatDatum(float64(rapid.Float32().Draw(t, "f")))
		case types.Double:
			return types.FloatDatum(rapid.Float64().Draw(t, "f"))
		case types.Decimal:
			if typ.Precision > 18 {
				return types.Datum{D: types.Int128{Hi: rapid.Int64().Draw(t, "hi") >> rapid.IntRange(1, 63).Draw(t, "shift"), Lo: rapid.Uint64().Draw(t, "lo")}}
			}
		case types.Timestamp, types.TimestampLTZ:
			switch d := rng(math.MinInt64/2, math.MaxInt64/2); {
			case typ.Precision <= 3:
				return types.IntDatum(types.FloorDiv(d.I, 1000) * 1000)
			case typ.Precision > 6:
				d.N = rapid.Int32Range(0, 999).Draw(t, "n")
				return d
			default:
				return d
			}
		case types.Char, types.VarChar, types.Binary, types.VarBinary:
			return types.BytesDatum(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "b"))
		case types.Array:
			return types.Datum{L: rapid.SliceOfN(datumGen(*typ.Elem), 0, 40).Draw(t, "l")}
		case types.Map, types.Multiset:
			key, value := mapTypes(typ)
			d := types.Datum{}
			for range rapid.IntRange(0, 5).Draw(t, "n") {
				d.L = append(d.L, datumGen(key).Draw(t, "k"), datumGen(value).Draw(t, "v"))
			}
			return d
		case types.Row:
			d := types.Datum{}
			for _, f := range typ.Fields {
				d.L = append(d.L, datumGen(f.Type).Draw(t, "f"))
			}
			return d
		}
		return rng(math.MinInt64, math.MaxInt64)
	})
}

func TestEncode_RoundTripsAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ts := rapid.SliceOfN(typeGen(2), 0, 12).Draw(t, "types")
		row := make([]types.Datum, len(ts))
		for i, typ := range ts {
			row[i] = datumGen(typ).Draw(t, "value")
		}
		b, err := Encode(ts, row)
		require.NoError(t, err)
		require.Zero(t, (len(b)-prefixLen)%8, "a row is whole words")
		got, err := Decode(ts, b)
		require.NoError(t, err)
		for i := range ts {
			requireSame(t, ts[i], row[i], got[i])
		}
		again, err := Append([]byte("xyz"), ts, got)
		require.NoError(t, err)
		require.Equal(t, b, again[3:], "a decoded row encodes to its own bytes, wherever it is appended")
	})
}

func FuzzDecode(f *testing.F) {
	ours, java := allRows(), javaRows(f)
	names := slices.Sorted(maps.Keys(java))
	for i, name := range names {
		f.Add(uint(i), java[name].row)
	}
	f.Fuzz(func(t *testing.T, which uint, b []byte) {
		r := ours[names[which%uint(len(names))]]
		row, err := Decode(r.ts, b)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		c, err := Encode(r.ts, row)
		require.NoError(t, err)
		back, err := Decode(r.ts, c)
		require.NoError(t, err)
		for i := range row {
			require.Zero(t, types.CompareDatums(r.ts[i], row[i], back[i]))
		}
		_ = Hash(b)
	})
}

func BenchmarkEncode(b *testing.B) {
	r := allRows()["mixed"]
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = Append(buf[:0], r.ts, r.row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	r, j := allRows()["mixed"], javaRows(b)["mixed"]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(r.ts, j.row); err != nil {
			b.Fatal(err)
		}
	}
}
