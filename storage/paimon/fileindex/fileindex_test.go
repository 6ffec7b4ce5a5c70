package fileindex

import (
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// The expectations of this file were printed by Paimon's Java core 1.4.2: FastHash,
// BloomFilterFileIndex and FileIndexFormat.
func TestHasher_IsJavas(t *testing.T) {
	for _, c := range []struct {
		t    types.Type
		d    types.Datum
		want uint64
	}{
		{types.StringType(), types.StringDatum(""), 0xef46db3751d8e999},
		{types.StringType(), types.StringDatum("x"), 0x5c80c09683041123},
		{types.StringType(), types.StringDatum("grüße, a text of more than thirty-two bytes"), 0x3c3c00cf5a7978dd},
		{types.CharType(5), types.StringDatum("ab   "), 0xed2d8b43c527fdd2},
		{types.BytesType(), types.StringDatum("\x00\xff\x02"), 0xe1c6463c37da3511},
		{types.TinyIntType(), types.IntDatum(-128), 0xe547e8444a8fcdd1},
		{types.SmallIntType(), types.IntDatum(-2), 0xb7950d1eef2a1a33},
		{types.IntType(), types.IntDatum(math.MinInt32), 0x111ec0fd6aa8626c},
		{types.BigIntType(), types.IntDatum(1 << 53), 0xb08d6889d070937a},
		{types.FloatType(), types.Datum{F: 1.5}, 0xad39e1c6b4e29348},
		{types.FloatType(), types.Datum{F: math.Copysign(0, -1)}, 0x111ec0fd6aa8626c},
		{types.FloatType(), types.Datum{F: float64(math.Float32frombits(0xffc00001))}, 0x67c27c6d9936ae63},
		{types.DoubleType(), types.Datum{F: 1e300}, 0x8daae3232f63feb9},
		{types.DoubleType(), types.Datum{F: math.Float64frombits(0xfff8000000000001)}, 0x13d2d3f2cc0e846e},
		{types.DateType(), types.IntDatum(-719164), 0x655d3018c7003eb},
		{types.TimeType(3), types.IntDatum(3723004), 0xab72764955b02f8c},
		{types.TimestampType(3), types.IntDatum(-1000), 0x5bca868437950d03},
		{types.TimestampType(6), types.IntDatum(-1), 0x5bca868437950d03},
		{types.TimestampType(9), types.Datum{I: -877, N: 456}, 0x8f2699571e4d2010},
		{types.TimestampLTZType(0), types.IntDatum(86_399_000_000), 0xef85e2cfc30f66f0},
		{types.TimestampLTZType(6), types.IntDatum(1767225600123456), 0x10b0af48be2d936},
	} {
		v := types.NewVector(c.t)
		v.AppendDatum(c.d)
		hash, err := Hasher(c.t)
		require.NoError(t, err)
		require.Equal(t, c.want, hash(v, 0), "%s %v", c.t, c.d)
	}
}

func TestHasher_RefusesWhatJavaRefuses(t *testing.T) {
	for _, typ := range []types.Type{
		types.BooleanType(), types.DecimalType(10, 2), types.ArrayType(types.IntType()), types.RowType(types.Field{Name: "x", Type: types.IntType()}),
		types.MapType(types.StringType(), types.IntType()),
		{Kind: types.Variant},
	} {
		_, err := Hasher(typ)
		require.ErrorIs(t, err, ErrType, typ.String())
	}
}

// filter holds the values -7, -6, -3, 2 and 9.
func filter(t *testing.T, items int, fpp float64) *Bloom {
	t.Helper()
	b, err := NewBloom(items, fpp)
	require.NoError(t, err)
	for i := range int64(5) {
		b.Add(mix(i*i - 7))
	}
	return b
}

func TestBloom_IsJavas(t *testing.T) {
	for _, c := range []struct {
		items int
		fpp   float64
		want  string
	}{
		{1, 0.1, "00000006ff"},
		{10, 0.01, "0000000740b4231c818289a390618c40"},
		{100, 0.5, "0000000100001000000800000008000000000100000400"},
		{3, 0.001, "0000000bd9bff3ff8dc2"},
		{1000, 0.9, "0000000100000801100000000000000000000800000000000000000400000000"},
		{7, 0.03, "00000006cdcf0c2171b201"},
	} {
		b := filter(t, c.items, c.fpp)
		require.Equal(t, c.want, hex.EncodeToString(b.append(nil)), "items=%d fpp=%v", c.items, c.fpp)
		again, err := ParseBloom(b.append(nil))
		require.NoError(t, err)
		missing := 0
		for i := int64(-1000); i < 1000; i++ {
			if !again.Has(mix(i)) {
				missing++
			}
		}
		for i := range int64(5) {
			require.True(t, again.Has(mix(i*i-7)))
		}
		if c.fpp < 0.5 && c.items > 5 {
			require.Greater(t, missing, 1500, "it tells values apart")
		}
		b.Reset()
		require.False(t, b.Has(mix(2)))
	}
}

func TestNewBloom_RefusesSizesThatNobodyWants(t *testing.T) {
	for _, c := range []struct {
		items int
		fpp   float64
	}{{0, 0.1}, {-1, 0.1}, {1, 0}, {1, 1}, {1, math.NaN()}, {math.MaxInt32, 0.1}} {
		_, err := NewBloom(c.items, c.fpp)
		require.ErrorIs(t, err, ErrSize, "%v", c)
	}
}

func TestEncode_IsJavas(t *testing.T) {
	data, err := Encode([]Column{
		{"a\x00ü😀", &Bloom{hashes: 1, bits: []byte{5}}},
		{"b", &Bloom{hashes: 2, bits: []byte{6, 7}}},
	})
	require.NoError(t, err)
	require.Equal(t, "00054e4ed01a35ae000000010000005c00000002000b61c080c3bceda0bdedb88000000001000c626c6f6f6d2d66696c746572"+
		"0000005c0000000500016200000001000c626c6f6f6d2d66696c7465720000006100000006000000000000000105000000020607", hex.EncodeToString(data))
	got, err := Blooms(data)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, &Bloom{2, []byte{6, 7}}, got["b"])
}

// Damaged bytes are an error or other filters, never a panic.
func FuzzBlooms(f *testing.F) {
	data, err := Encode([]Column{{"a", &Bloom{hashes: 1, bits: []byte{5}}}, {"b", &Bloom{hashes: 2, bits: []byte{6, 7}}}})
	require.NoError(f, err)
	f.Add(data)
	f.Add(data[:30])
	f.Fuzz(func(_ *testing.T, data []byte) {
		blooms, err := Blooms(data)
		if err != nil {
			return
		}
		for _, b := range blooms {
			b.Has(mix(5))
		}
	})
}

func TestBlooms_RefusesWhatEndsEarly(t *testing.T) {
	data, err := Encode([]Column{{"a", &Bloom{hashes: 1, bits: []byte{5}}}})
	require.NoError(t, err)
	for n := range data {
		_, err := Blooms(data[:n])
		require.ErrorIs(t, err, ErrCorrupt, "%d bytes", n)
	}
}
