package datafile

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

// drawRuns draws values below 1<<width with runs in them.
func drawRuns(t *rapid.T, width int) []int32 {
	var out []int32
	for range rapid.IntRange(0, 8).Draw(t, "runs") {
		v := int32(rapid.Uint32Range(0, uint32(1<<width-1)).Draw(t, "value"))
		n := rapid.IntRange(1, 40).Draw(t, "length")
		for i := range n {
			if rapid.IntRange(0, 5).Draw(t, "noise") == 0 {
				out = append(out, int32(uint32(i*7919)%uint32(1<<width)))
			} else {
				out = append(out, v)
			}
		}
	}
	return out
}

func TestHybrid_ReadsWhatParquetGoWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(0, 20).Draw(t, "width")
		values := drawRuns(t, width)
		enc := rle.Encoding{BitWidth: width}
		b, err := enc.EncodeInt32(nil, values)
		require.NoError(t, err)
		h := newHybrid(b, width)
		for from := 0; from < len(values); {
			n := rapid.IntRange(1, len(values)-from).Draw(t, "part")
			part := values[from : from+n]
			if same := sameValue(part); same && rapid.Bool().Draw(t, "asConstant") && h.constant(n, uint32(part[0])) {
				from += n
				continue
			}
			got := make([]uint32, n)
			require.NoError(t, hybridRead(&h, got))
			for i, v := range part {
				require.Equal(t, uint32(v), got[i])
			}
			from += n
		}
	})
}

func sameValue(v []int32) bool {
	for _, x := range v {
		if x != v[0] {
			return false
		}
	}
	return true
}

func TestValidity_ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		valid := make([]byte, (n+7)/8)
		want := make([]uint8, n)
		nulls := 0
		for i := range want {
			if want[i] = uint8(rapid.IntRange(0, 1).Draw(t, "bit")); want[i] == 1 {
				valid[i>>3] |= 1 << (i & 7)
			} else {
				nulls++
			}
		}
		b := appendValidity(nil, n, nulls, valid)
		require.LessOrEqual(t, len(b), maxValidityBytes(n))
		h, rest, err := levelsV1(b, 1, format.RLE)
		require.NoError(t, err)
		require.Empty(t, rest)
		got := make([]uint8, n)
		require.NoError(t, hybridRead(&h, got))
		require.Equal(t, want, got)
		// parquet-go decodes the same.
		enc := rle.Encoding{BitWidth: 1}
		theirs, err := enc.DecodeLevels(nil, b[4:])
		require.NoError(t, err)
		require.Equal(t, want, theirs[:n])
	})
}

func TestAppendOnes(t *testing.T) {
	for from := range 20 {
		for n := range 40 {
			bits := make([]byte, (from+7)/8)
			bits = appendOnes(bits, from, n)
			require.Len(t, bits, (from+n+7)/8)
			for i := range from + n {
				require.Equal(t, i >= from, bits[i>>3]>>(i&7)&1 == 1, "%d+%d bit %d", from, n, i)
			}
			if k := (from + n) & 7; k != 0 {
				require.Zero(t, bits[len(bits)-1]>>k, "no bits behind the end")
			}
		}
	}
}

func TestLevelsV1_Refusals(t *testing.T) {
	_, _, err := levelsV1([]byte{1, 2}, 1, format.RLE)
	require.ErrorIs(t, err, ErrCorrupt)
	_, _, err = levelsV1([]byte{9, 0, 0, 0, 1}, 1, format.RLE)
	require.ErrorIs(t, err, ErrCorrupt)
	_, _, err = levelsV1([]byte{0, 0, 0, 0}, 1, format.BitPacked)
	require.ErrorIs(t, err, ErrUnsupported)
	h, rest, err := levelsV1([]byte{7}, 0, format.BitPacked)
	require.NoError(t, err)
	require.Equal(t, []byte{7}, rest)
	require.Error(t, hybridRead(&h, make([]uint8, 1)))
}

func TestDelta_ReadsWhatParquetGoWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-100, 100)), 0, 500).Draw(t, "values")
		want := asBytes(in)
		enc, err := new(delta.BinaryPackedEncoding).EncodeInt64(nil, in)
		require.NoError(t, err)
		out, err := toPlain(nil, enc, &leafPlan{phys: format.Int64, width: 8}, format.DeltaBinaryPacked, len(in), 1<<20)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, out))

		in32 := rapid.SliceOfN(rapid.OneOf(rapid.Int32(), rapid.SampledFrom([]int32{math.MinInt32, math.MaxInt32})), 0, 300).Draw(t, "values32")
		enc, err = new(delta.BinaryPackedEncoding).EncodeInt32(nil, in32)
		require.NoError(t, err)
		out, err = toPlain(nil, enc, &leafPlan{phys: format.Int32, width: 4}, format.DeltaBinaryPacked, len(in32), 1<<20)
		require.NoError(t, err)
		require.True(t, bytes.Equal(asBytes(in32), out))
	})
}

func TestDelta_ReadsByteArraysOfParquetGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.StringMatching(`(common prefix )?[a-c]{0,9}`), 0, 300).Draw(t, "values")
		var data, want []byte
		off := []uint32{0}
		for _, v := range values {
			data = append(data, v...)
			off = append(off, uint32(len(data)))
			want = append(binary.LittleEndian.AppendUint32(want, uint32(len(v))), v...)
		}
		p := &leafPlan{phys: format.ByteArray}
		enc, err := new(delta.LengthByteArrayEncoding).EncodeByteArray(nil, data, off)
		require.NoError(t, err)
		out, err := toPlain(nil, enc, p, format.DeltaLengthByteArray, len(values), 1<<20)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, out))

		enc, err = new(delta.ByteArrayEncoding).EncodeByteArray(nil, data, off)
		require.NoError(t, err)
		out, err = toPlain(nil, enc, p, format.DeltaByteArray, len(values), 1<<20)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, out))
		if len(values) > 1 {
			_, err = toPlain(nil, enc, p, format.DeltaByteArray, len(values)-1, 1<<20)
			require.ErrorIs(t, err, ErrCorrupt, "more values than the page says")
		}
	})
}

// TestDelta_PrefixesDoNotBlowUp: a short page of shared prefixes may claim much.
func TestDelta_PrefixesDoNotBlowUp(t *testing.T) {
	values := make([]byte, 0, 100_000)
	off := []uint32{0}
	for range 1000 {
		values = append(values, bytes.Repeat([]byte("x"), 1000)...)
		off = append(off, uint32(len(values)))
	}
	enc, err := new(delta.ByteArrayEncoding).EncodeByteArray(nil, values, off)
	require.NoError(t, err)
	require.Less(t, len(enc), 5000)
	_, err = toPlain(nil, enc, &leafPlan{phys: format.ByteArray}, format.DeltaByteArray, 1000, 100_000)
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestToPlain_EncodingsThatDoNotFitTheType(t *testing.T) {
	for phys, encs := range map[format.Type][]format.Encoding{
		format.ByteArray: {format.DeltaBinaryPacked, format.ByteStreamSplit, format.BitPacked},
		format.Double:    {format.DeltaBinaryPacked, format.DeltaByteArray, format.DeltaLengthByteArray},
	} {
		for _, e := range encs {
			p := &leafPlan{phys: phys}
			if phys == format.Double {
				p.width = 8
			}
			_, err := toPlain(nil, []byte{1, 2, 3}, p, e, 3, 100)
			require.ErrorIs(t, err, ErrUnsupported)
		}
	}
}

func TestCodec_RefusesPagesOfAnotherSize(t *testing.T) {
	d, err := newDecompressor()
	require.NoError(t, err)
	src := bytes.Repeat([]byte("some text "), 1000)
	for _, name := range []string{"zstd", "snappy", "gzip", "lz4_raw"} {
		c, err := newCompressor(name, 0, 1)
		require.NoError(t, err)
		packed, err := c.encode([]byte("kept"), src)
		require.NoError(t, err)
		require.Equal(t, "kept", string(packed[:4]))
		packed = packed[4:]
		out, err := d.decode(c.codec, nil, packed, len(src))
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(src, out))
		for _, size := range []int{0, len(src) - 1, len(src) + 1, len(src) / 2} {
			_, err := d.decode(c.codec, nil, packed, size)
			require.ErrorIs(t, err, ErrCorrupt, "%s %d", name, size)
		}
		_, err = d.decode(c.codec, nil, packed[:len(packed)/2], len(src))
		require.ErrorIs(t, err, ErrCorrupt, name)
		_, err = d.decode(c.codec, nil, nil, 5)
		require.ErrorIs(t, err, ErrCorrupt, name)
		empty, err := c.encode(nil, nil)
		require.NoError(t, err)
		out, err = d.decode(c.codec, nil, empty, 0)
		require.NoError(t, err, name)
		require.Empty(t, out)
	}
	_, err = d.decode(format.Brotli, nil, src, 5)
	require.ErrorIs(t, err, ErrUnsupported)
}

// TestCodec_DeprecatedLZ4: Hadoop's framing, and the raw blocks of old Arrow files.
func TestCodec_DeprecatedLZ4(t *testing.T) {
	d, err := newDecompressor()
	require.NoError(t, err)
	c, err := newCompressor("lz4_raw", 0, 1)
	require.NoError(t, err)
	src := bytes.Repeat([]byte("some text "), 1000)
	var framed []byte
	for _, part := range [][]byte{src[:7000], src[7000:]} {
		block, err := c.encode(nil, part)
		require.NoError(t, err)
		framed = binary.BigEndian.AppendUint32(framed, uint32(len(part)))
		framed = binary.BigEndian.AppendUint32(framed, uint32(len(block)))
		framed = append(framed, block...)
	}
	out, err := d.decode(format.Lz4, nil, framed, len(src))
	require.NoError(t, err)
	require.True(t, bytes.Equal(src, out))
	raw, err := c.encode(nil, src)
	require.NoError(t, err)
	out, err = d.decode(format.Lz4, nil, raw, len(src))
	require.NoError(t, err)
	require.True(t, bytes.Equal(src, out))
	for n := range len(framed) {
		_, err = d.decode(format.Lz4, nil, framed[:n], len(src))
		require.ErrorIs(t, err, ErrCorrupt)
	}
}

// TestCodec_BombsStayInside: a frame that unpacks to far more than its page.
func TestCodec_BombsStayInside(t *testing.T) {
	d, err := newDecompressor()
	require.NoError(t, err)
	for _, name := range []string{"zstd", "gzip", "lz4_raw", "snappy"} {
		c, err := newCompressor(name, 0, 1)
		require.NoError(t, err)
		bomb, err := c.encode(nil, make([]byte, 16<<20))
		require.NoError(t, err)
		used := allocated(func() { _, err = d.decode(c.codec, nil, bomb, 1000) })
		require.ErrorIs(t, err, ErrCorrupt, name)
		require.Less(t, used, uint64(4<<20), name)
	}
}

func TestDecimalBytes_AsJavaComputesThem(t *testing.T) {
	want := []int{1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 9, 9, 10, 10, 11, 11, 11, 12, 12, 13, 13, 13, 14, 14, 15, 15, 16, 16, 16}
	for p := 1; p <= 38; p++ {
		require.Equal(t, want[p-1], decimalBytes(p), "precision %d", p)
		v := types.Pow10(p)
		v.Lo-- // 10^p-1
		back, ok := types.Int128FromBytes(v.Neg().Bytes(nil, decimalBytes(p)))
		require.True(t, ok)
		require.Equal(t, v.Neg(), back)
	}
}
