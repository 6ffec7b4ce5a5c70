package types

import (
	"bytes"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// edges128 are values at which carries and signs go wrong.
var edges128 = []Int128{
	{},
	{Lo: 1},
	{-1, math.MaxUint64},
	{0, math.MaxUint64},
	{1, 0},
	{-1, 0},
	{0, 1 << 63},
	{-1, 1 << 63},
	{math.MaxInt64, math.MaxUint64},
	{math.MinInt64, 0},
	{math.MinInt64, 1},
	pow10[18], pow10[19], pow10[38], pow10[38].Neg(),
	{0, math.MaxInt64},
	{-1, 1<<63 - 1},
}

var drawInt128 = rapid.Custom(func(t *rapid.T) Int128 {
	if rapid.Bool().Draw(t, "edge") {
		return rapid.SampledFrom(edges128).Draw(t, "value")
	}
	v := Int128{rapid.Int64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo")}
	if rapid.Bool().Draw(t, "small") {
		v.Hi = v.Hi >> 60
	}
	return v
})

// wrap is big arithmetic modulo 2^128, signed.
func wrap(b *big.Int) *big.Int {
	m := new(big.Int).Lsh(big.NewInt(1), 128)
	r := new(big.Int).Mod(b, m)
	if r.BitLen() == 128 {
		r.Sub(r, m)
	}
	return r
}

func TestInt128_RapidAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, w := drawInt128.Draw(t, "v"), drawInt128.Draw(t, "w")
		bv, bw := v.Big(), w.Big()
		back, ok := Int128FromBig(bv)
		require.True(t, ok)
		require.Equal(t, v, back)
		require.Equal(t, bv.Cmp(bw), v.Cmp(w))
		require.Equal(t, bv.Sign(), v.Sign())
		require.Equal(t, bv.IsInt64(), v.IsInt64())
		require.Equal(t, wrap(new(big.Int).Neg(bv)).String(), v.Neg().Big().String())
		hi, lo := v.Abs()
		abs := new(big.Int).SetUint64(hi)
		abs.Lsh(abs, 64).Add(abs, new(big.Int).SetUint64(lo))
		require.Equal(t, new(big.Int).Abs(bv).String(), abs.String())
		for _, p := range []int{0, 1, 18, 19, 37, 38} {
			limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(p)), nil)
			require.Equal(t, bv.CmpAbs(limit) < 0, v.FitsPrecision(p), "%s has %d digits", bv, p)
		}
		i := rapid.Int64().Draw(t, "i")
		require.Equal(t, big.NewInt(i).String(), Int128From(i).Big().String())
		require.True(t, Int128From(i).IsInt64())
	})
}

func TestInt128FromBig_Limits(t *testing.T) {
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	_, ok := Int128FromBig(limit)
	require.False(t, ok)
	v, ok := Int128FromBig(new(big.Int).Neg(limit))
	require.True(t, ok)
	require.Equal(t, Int128{Hi: math.MinInt64}, v)
	_, ok = Int128FromBig(new(big.Int).Sub(new(big.Int).Neg(limit), big.NewInt(1)))
	require.False(t, ok)
	_, ok = Int128FromBig(new(big.Int).Lsh(big.NewInt(1), 100_000))
	require.False(t, ok)
}

// minBytes is java.math.BigInteger.toByteArray.
func minBytes(b *big.Int) []byte {
	n := b.BitLen()/8 + 1
	if b.Sign() < 0 {
		n = new(big.Int).Not(b).BitLen()/8 + 1
	}
	m := new(big.Int).Lsh(big.NewInt(1), uint(8*n))
	out := make([]byte, n)
	return new(big.Int).Mod(b, m).FillBytes(out)
}

func TestInt128_RapidBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawInt128.Draw(t, "v")
		want := minBytes(v.Big())
		require.Equal(t, len(want), v.MinBytes(), "%s", v.Big())
		require.Equal(t, want, v.Bytes(nil, v.MinBytes()))
		require.Equal(t, append([]byte("x"), want...), v.Bytes([]byte("x"), len(want)))
		for _, n := range []int{len(want), 16, 17, 40} {
			fill := byte(0)
			if v.Hi < 0 {
				fill = 0xff
			}
			long := append(bytes.Repeat([]byte{fill}, max(0, n-len(want))), want...)
			before := string(long)
			got, ok := Int128FromBytes(long)
			require.True(t, ok, "% x", long)
			require.Equal(t, v, got)
			require.Equal(t, before, string(long))
		}
	})
}

func TestInt128FromBytes_RefusesWhatDoesNotFit(t *testing.T) {
	v, ok := Int128FromBytes(nil)
	require.True(t, ok)
	require.Zero(t, v)
	for _, b := range [][]byte{
		append([]byte{1}, make([]byte, 16)...), append([]byte{0, 0x80}, make([]byte, 15)...), append([]byte{0xff, 0x7f}, make([]byte, 15)...),
		append([]byte{0x80}, make([]byte, 16)...), append([]byte{0xff, 0}, make([]byte, 16)...),
	} {
		_, ok := Int128FromBytes(b)
		require.False(t, ok, "% x", b)
	}
}

func TestInt128_Pow10(t *testing.T) {
	for n := range 39 {
		require.Equal(t, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil).String(), Pow10(n).Big().String())
	}
}

func TestInt128_RapidRescale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawInt128.Draw(t, "v")
		from, to := rapid.IntRange(-45, 45).Draw(t, "from"), rapid.IntRange(-45, 45).Draw(t, "to")
		precision := rapid.IntRange(1, 38).Draw(t, "precision")
		got, err := v.Rescale(from, to, precision)
		want := v.Big()
		factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(from-to, to-from))), nil)
		inexact := false
		if to > from {
			want.Mul(want, factor)
		} else {
			rest := new(big.Int)
			want.QuoRem(want, factor, rest)
			inexact = rest.Sign() != 0
		}
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
		switch {
		case inexact:
			require.ErrorIs(t, err, ErrInexact)
		case want.CmpAbs(limit) >= 0:
			require.ErrorIs(t, err, ErrOverflow)
		default:
			require.NoError(t, err)
			require.Equal(t, want.String(), got.Big().String())
		}
	})
}

func TestInt128_RescaleByAnyNumberEnds(t *testing.T) {
	for _, v := range edges128 {
		for _, s := range []int{math.MinInt32, math.MaxInt32} {
			up, err := v.Rescale(0, s, 38)
			down, err2 := v.Rescale(s, 0, 38)
			if v == (Int128{}) {
				require.NoError(t, err)
				require.NoError(t, err2)
				require.Zero(t, up)
				require.Zero(t, down)
				continue
			}
			require.Error(t, err)
			require.Error(t, err2)
		}
	}
}

func TestParseDecimal_Table(t *testing.T) {
	long := strings.Repeat("0", 100_000)
	for _, test := range []struct {
		text             string
		precision, scale int
		want             string // unscaled, or an error's name
	}{
		{"0", 1, 0, "0"},
		{"-0", 1, 0, "0"},
		{"+5", 1, 0, "5"},
		{"12.34", 4, 2, "1234"},
		{"12.3", 4, 2, "1230"},
		{"12", 4, 2, "1200"},
		{"-12.34", 4, 2, "-1234"},
		{".5", 2, 1, "5"},
		{"5.", 2, 1, "50"},
		{"00012", 2, 0, "12"},
		{"12.3400", 4, 2, "1234"},
		{"1e2", 3, 0, "100"},
		{"1E+2", 3, 0, "100"},
		{"1.5e1", 2, 0, "15"},
		{"150e-1", 2, 0, "15"},
		{"1.5e-1", 3, 2, "15"},
		{"0e99999", 1, 0, "0"},
		{"0.00e-5", 1, 0, "0"},
		{"99999999999999999999999999999999999999", 38, 0, "99999999999999999999999999999999999999"},
		{"-0.99999999999999999999999999999999999999", 38, 38, "-99999999999999999999999999999999999999"},
		{"100000000000000000000000000000000000000", 38, 0, "overflow"},
		{"340282366920938463463374607431768211456", 38, 0, "overflow"},
		{"170141183460469231731687303715884105728", 38, 0, "overflow"},
		{"100", 4, 2, "overflow"},
		{"99.99", 4, 2, "9999"},
		{"99.995", 4, 2, "inexact"},
		{"0.001", 4, 2, "inexact"},
		{"1e-3", 4, 2, "inexact"},
		{"1e999999999999", 38, 0, "overflow"},
		{"1e-999999999999", 38, 0, "inexact"},
		{"1" + long, 38, 0, "overflow"},
		{long + "1", 38, 0, "1"},
		{"0." + long + "1", 38, 38, "inexact"},
		{"1." + long, 38, 0, "1"},
		{"1" + long + "e-100000", 38, 0, "1"},
		{"0." + long + "1e100001", 38, 0, "1"},
		{"-1" + long + "e-99999", 38, 0, "-10"},
		{"", 1, 0, "syntax"},
		{"-", 1, 0, "syntax"},
		{".", 1, 0, "syntax"},
		{"+.e1", 1, 0, "syntax"},
		{"1.2.3", 5, 0, "syntax"},
		{"1e", 1, 0, "syntax"},
		{"1e+", 1, 0, "syntax"},
		{"1e1.5", 3, 0, "syntax"},
		{" 1", 1, 0, "syntax"},
		{"1 ", 1, 0, "syntax"},
		{"--1", 1, 0, "syntax"},
		{"1_0", 2, 0, "syntax"},
		{"0x1", 2, 0, "syntax"},
		{"NaN", 2, 0, "syntax"},
		{"Infinity", 2, 0, "syntax"},
		{"1,5", 2, 1, "syntax"},
		{"１", 1, 0, "syntax"},
		{"1f", 1, 0, "syntax"},
	} {
		name := test.text
		if len(name) > 50 {
			name = name[:20] + "…" + name[len(name)-20:]
		}
		got, err := ParseDecimal([]byte(test.text), test.precision, test.scale)
		switch test.want {
		case "overflow":
			require.ErrorIs(t, err, ErrOverflow, name)
		case "inexact":
			require.ErrorIs(t, err, ErrInexact, name)
		case "syntax":
			require.ErrorIs(t, err, ErrSyntax, name)
		default:
			require.NoError(t, err, name)
			require.Equal(t, test.want, got.Big().String(), name)
		}
	}
}

func TestAppendDecimal_RapidRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawInt128.Draw(t, "v")
		scale := rapid.IntRange(0, 38).Draw(t, "scale")
		text := string(AppendDecimal([]byte("x"), v, scale))[1:]
		want := new(big.Rat).SetFrac(v.Big(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
		require.Equal(t, want.FloatString(scale), text)
		if v.FitsPrecision(38) {
			got, err := ParseDecimal([]byte(text), 38, scale)
			require.NoError(t, err)
			require.Equal(t, v, got)
		}
	})
}

func TestAppendDecimal_KeepsItsScale(t *testing.T) {
	for want, v := range map[string]Int128{"0.00": {}, "0.05": {Lo: 5}, "-0.05": Int128From(-5), "1.00": {Lo: 100}, "-12.34": Int128From(-1234)} {
		require.Equal(t, want, string(AppendDecimal(nil, v, 2)))
	}
	require.Equal(t, "-170141183460469231731687303715884105728", string(AppendDecimal(nil, Int128{Hi: math.MinInt64}, 0)))
}

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"0", "-12.34", "1e5", "1E-5", ".5", "5.", "99999999999999999999999999999999999999", "1e99999999999", "0.0000e-1"} {
		f.Add(s, 10, 2)
		f.Add(s, 38, 38)
	}
	f.Fuzz(func(t *testing.T, text string, precision, scale int) {
		precision = 1 + int(uint(precision)%38)
		scale = int(uint(scale) % uint(precision+1))
		got, err := ParseDecimal([]byte(text), precision, scale)
		if i := strings.IndexAny(text, "eE"); i >= 0 && len(text)-i > 6 {
			return // the reference would compute the power
		}
		want, ok := new(big.Rat).SetString(text)
		if err == nil {
			require.True(t, ok, "%q", text)
			want.Mul(want, new(big.Rat).SetInt(Pow10(scale).Big()))
			require.True(t, want.IsInt(), "%q", text)
			require.Equal(t, want.Num().String(), got.Big().String(), "%q", text)
			require.True(t, got.FitsPrecision(precision))
			return
		}
		if ok && strings.Trim(text, "+-.0123456789eE") == "" {
			require.NotErrorIs(t, err, ErrSyntax, "%q", text)
			want.Mul(want, new(big.Rat).SetInt(Pow10(scale).Big()))
			require.False(t, want.IsInt() && want.Num().CmpAbs(Pow10(precision).Big()) < 0, "%q is fine: %v", text, err)
		}
	})
}
