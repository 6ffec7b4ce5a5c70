package binrow

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

// reference builds a row as the format's description tells it, one part after
// the other and without regard to speed: a second opinion on the encoder.
type reference struct {
	fixed    []byte
	variable []byte
}

func (r *reference) slot(i, header int, b ...byte) {
	copy(r.fixed[header+8*i:], b)
}

// pointTo fills a slot with a length (or the nanoseconds) and the offset of what
// comes next in the variable part.
func (r *reference) pointTo(i, header int, low uint32) {
	off := uint32(len(r.fixed) + len(r.variable))
	r.slot(i, header, byte(low), byte(low>>8), byte(low>>16), byte(low>>24), byte(off), byte(off>>8), byte(off>>16), byte(off>>24))
}

func littleEndian(v uint64, n int) []byte {
	var b []byte
	for range n {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

// twosComplement is BigInteger.toByteArray.
func twosComplement(v *big.Int) []byte {
	for n := 1; ; n++ {
		limit := new(big.Int).Lsh(big.NewInt(1), uint(8*n-1))
		if v.Cmp(limit) >= 0 || v.Cmp(new(big.Int).Neg(limit)) < 0 {
			continue
		}
		u := new(big.Int).Set(v)
		if v.Sign() < 0 {
			u.Add(u, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
		}
		return u.FillBytes(make([]byte, n))
	}
}

func referenceRow(ts []types.Type, row []types.Datum) []byte {
	words := 1
	for words*64 < len(ts)+8 {
		words++
	}
	header := words * 8
	r := &reference{fixed: make([]byte, header+8*len(ts))}
	for i, t := range ts {
		if row[i].Null {
			r.fixed[(i+8)/8] |= byte(1) << ((i + 8) % 8)
		}
		r.field(i, header, t, row[i])
	}
	n := len(ts)
	out := []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return append(append(out, r.fixed...), r.variable...)
}

func (r *reference) field(i, header int, t types.Type, d types.Datum) {
	switch {
	case t.Kind == types.Decimal && t.Precision > 18:
		var b []byte
		if !d.Null {
			b = twosComplement(d.D.Big())
		}
		r.pointTo(i, header, uint32(len(b)))
		r.variable = append(append(r.variable, b...), make([]byte, 16-len(b))...)
		return
	case t.IsTimestamp() && t.Precision > 3:
		millis, nanos := int64(0), int64(0)
		if !d.Null {
			millis = int64(math.Floor(float64(d.I) / 1000))
			for millis*1000 > d.I { // where floating point was not exact
				millis--
			}
			for (millis+1)*1000 <= d.I {
				millis++
			}
			nanos = (d.I-millis*1000)*1000 + int64(d.N)
		}
		r.pointTo(i, header, uint32(nanos))
		r.variable = append(r.variable, littleEndian(uint64(millis), 8)...)
		return
	case d.Null:
		return
	}
	switch t.Kind {
	case types.Boolean, types.TinyInt:
		r.slot(i, header, byte(d.I))
	case types.SmallInt:
		r.slot(i, header, littleEndian(uint64(d.I), 2)...)
	case types.Int, types.Date, types.Time:
		r.slot(i, header, littleEndian(uint64(d.I), 4)...)
	case types.BigInt, types.Decimal:
		r.slot(i, header, littleEndian(uint64(d.I), 8)...)
	case types.Timestamp, types.TimestampLTZ:
		r.slot(i, header, littleEndian(uint64(d.I/1000), 8)...) // whole milliseconds
	case types.Float:
		r.slot(i, header, littleEndian(uint64(math.Float32bits(float32(d.F))), 4)...)
	case types.Double:
		r.slot(i, header, littleEndian(math.Float64bits(d.F), 8)...)
	default:
		if len(d.B) < 8 {
			r.slot(i, header, append(append([]byte{}, d.B...), make([]byte, 7-len(d.B))...)...)
			r.fixed[header+8*i+7] = 128 + byte(len(d.B))
			return
		}
		r.pointTo(i, header, uint32(len(d.B)))
		r.variable = append(r.variable, d.B...)
		for len(r.variable)%8 != 0 {
			r.variable = append(r.variable, 0)
		}
	}
}

func TestReference_WritesJavasBytes(t *testing.T) {
	java := javaRows(t)
	n := 0
	for _, rows := range []map[string]namedRow{scalarRows(), severalFieldRows()} {
		for name, r := range rows {
			require.Equal(t, hex.EncodeToString(java[name].row), hex.EncodeToString(referenceRow(r.ts, r.row)), name)
			n++
		}
	}
	require.Greater(t, n, 60)
}

func TestEncode_EqualsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ts := rapid.SliceOfN(typeGen(0), 0, 70).Draw(t, "types")
		row := make([]types.Datum, len(ts))
		for i, typ := range ts {
			row[i] = datumGen(typ).Draw(t, "value")
		}
		b, err := Encode(ts, row)
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(referenceRow(ts, row)), hex.EncodeToString(b))
		for i, typ := range ts {
			d, err := Field(typ, b, i)
			require.NoError(t, err)
			requireSame(t, typ, row[i], d)
		}
	})
}

// The examples of the format's description, computed by Java at Paimon's head.
func TestEncode_DescribedExamples(t *testing.T) {
	i, s := types.IntType(), types.StringType()
	f := func(want string, ts []types.Type, row ...types.Datum) {
		t.Helper()
		b, err := Encode(ts, row)
		require.NoError(t, err)
		require.Equal(t, want, hex.EncodeToString(b))
	}
	one := func(want string, typ types.Type, d types.Datum) {
		t.Helper()
		f("00000001"+want, []types.Type{typ}, d)
	}
	f("000000000000000000000000", nil)
	f("00000002"+"0000000000000000"+"0800000018000000"+"0500000000000000"+"3230323630313031", []types.Type{s, i}, str("20260101"), types.IntDatum(5))
	f("00000005"+"0001000000000000"+"0000000000000000"+"6162630000000083"+"0300000030000000"+"40f5060040000000"+"0800000048000000"+
		"12d68700000000000000000000000000"+"7ba8da769b010000"+"3863686172732121",
		[]types.Type{i, s, types.DecimalType(20, 2), types.TimestampType(6), s},
		types.Null, str("abc"), dec38("12345.67", 2), types.IntDatum(1767225600123456), str("8chars!!"))
	f("00000005"+"0000000000000000"+"0100000000000000"+"ff00000000000000"+"0201000000000000"+"0000c03f00000000"+"00000000000004c0",
		[]types.Type{types.BooleanType(), types.TinyIntType(), types.SmallIntType(), types.FloatType(), types.DoubleType()},
		types.IntDatum(1), types.IntDatum(-1), types.IntDatum(258), types.FloatDatum(1.5), types.FloatDatum(-2.5))
	one("00000000000000006162630000000083", s, str("abc"))
	one("00000000000000006162636465666787", s, str("abcdefg"))
	one("00000000000000000b0000001000000068656c6c6f2d776f726c640000000000", s, str("hello-world"))
	one("00000000000000000000000000000080", s, str(""))
	one("00010000000000000000000000000000", s, types.Null)
	one("00000000000000000100000000000000", i, types.IntDatum(1))
	one("00000000000000000100000000000000", types.BigIntType(), types.IntDatum(1))
	one("0000000000000000f9ffffff00000000", i, types.IntDatum(-7))
	one("0000000000000000cb04fb711f010000", types.BigIntType(), types.IntDatum(1234567890123))
	one("0000000000000000e64f000000000000", types.DateType(), types.IntDatum(20454))
	one("000000000000000087d6120000000000", types.DecimalType(10, 2), dec10("12345.67"))
	one("00000000000000000300000010000000ed297900000000000000000000000000", types.DecimalType(20, 2), dec38("-12345.67", 2))
	one("0001000000000000000000001000000000000000000000000000000000000000", types.DecimalType(20, 2), types.Null)
	one("00000000000000007ba8da769b010000", types.TimestampType(3), types.IntDatum(1767225600123000))
	one("000000000000000040f50600100000007ba8da769b010000", types.TimestampType(6), types.IntDatum(1767225600123456))
	one("000100000000000000000000100000000000000000000000", types.TimestampType(6), types.Null)
	one("00000000000000001800000010000000"+"030000000200000001000000"+"0000000003000000"+"00000000", types.ArrayType(i), list(types.IntDatum(1), types.Null, types.IntDatum(3)))
	one("00000000000000002400000010000000"+"10000000"+"01000000000000006b31000000000082"+"01000000000000000a00000000000000"+"00000000",
		types.MapType(s, i), list(str("k1"), types.IntDatum(10)))
}

// Whatever single byte is wrong: a row is refused or read as some row, never a
// panic, and what was read can be written.
func TestDecode_SurvivesEveryDamagedByte(t *testing.T) {
	ours := allRows()
	for name, j := range javaRows(t) {
		r := ours[name]
		for at := range j.row {
			for _, flip := range []byte{0x01, 0x80, 0xff} {
				b := append([]byte{}, j.row...)
				b[at] ^= flip
				row, err := Decode(r.ts, b)
				if err != nil {
					require.ErrorIs(t, err, ErrCorrupt)
					continue
				}
				_, err = Encode(r.ts, row)
				require.NoError(t, err, "%s, byte %d", name, at)
			}
		}
		for n := range len(j.row) {
			_, err := Decode(r.ts, j.row[:n])
			if n < 4+headerLen(len(r.ts))+8*len(r.ts) {
				require.ErrorIs(t, err, ErrCorrupt, "%s, cut at %d", name, n)
			}
		}
	}
}

func TestBucket_StaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ts := rapid.SliceOfN(typeGen(0), 1, 3).Draw(t, "types")
		row := make([]types.Datum, len(ts))
		for i, typ := range ts {
			row[i] = datumGen(typ).Draw(t, "value")
		}
		n := rapid.IntRange(1, 1000).Draw(t, "buckets")
		for _, f := range []BucketFunction{BucketDefault, BucketMod, BucketHive} {
			b, err := f.Bucket(ts, row, n)
			if err != nil {
				require.ErrorIs(t, err, ErrBucketFunction)
				continue
			}
			require.True(t, b >= 0 && b < n, "%d of %d", b, n)
		}
	})
}

// Hive's hash is that of the number, whatever zeros its scale adds.
func TestBucket_HiveIgnoresTrailingZeros(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(-1e15, 1e15).Draw(t, "v")
		scale := rapid.IntRange(0, 10).Draw(t, "scale")
		more := rapid.IntRange(0, 8).Draw(t, "more")
		wide, err := types.Int128From(v).Rescale(scale, scale+more, 38)
		require.NoError(t, err)
		narrow := types.IntDatum(v)
		a, err := BucketHive.Bucket([]types.Type{types.DecimalType(18, scale)}, []types.Datum{narrow}, 1<<20)
		require.NoError(t, err)
		b, err := BucketHive.Bucket([]types.Type{types.DecimalType(38, scale+more)}, []types.Datum{{D: wide}}, 1<<20)
		require.NoError(t, err)
		require.Equal(t, a, b)
	})
}

func TestErrors_SayWhereTheyAre(t *testing.T) {
	_, err := Encode([]types.Type{types.IntType(), types.TinyIntType()}, []types.Datum{types.IntDatum(1), types.IntDatum(1000)})
	require.ErrorContains(t, err, "field 2")
	require.ErrorContains(t, err, "TINYINT")
	_, err = Encode([]types.Type{types.ArrayType(types.TinyIntType())}, []types.Datum{list(types.IntDatum(1), types.IntDatum(1000))})
	require.ErrorContains(t, err, "field 1: element 2")
	_, err = Encode([]types.Type{types.MapType(types.TinyIntType(), types.TinyIntType())}, []types.Datum{list(types.IntDatum(1), types.IntDatum(1000))})
	require.ErrorContains(t, err, "values: element 1")
	_, err = Decode([]types.Type{types.IntType()}, Empty())
	require.ErrorContains(t, err, "0 fields instead of 1")
	for f, want := range map[BucketFunction]string{BucketMod: "INT or BIGINT", BucketHive: "TIMESTAMP"} {
		_, err = f.Bucket([]types.Type{types.TimestampType(3)}, []types.Datum{types.IntDatum(0)}, 2)
		require.ErrorContains(t, err, want, fmt.Sprint(f))
	}
}
