package dv

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// javaVector is one line of testdata/java-vectors.txt, written by
// JavaVectors.java beside it with Paimon's own classes.
type javaVector struct {
	name    string
	version Version
	length  int32
	blob    []byte
}

func javaVectors(t testing.TB) []javaVector {
	f, err := os.Open("testdata/java-vectors.txt")
	require.NoError(t, err)
	defer f.Close()
	var out []javaVector
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		p := strings.Fields(s.Text())
		require.Len(t, p, 4)
		n, err := strconv.Atoi(p[2])
		require.NoError(t, err)
		b, err := hex.DecodeString(p[3])
		require.NoError(t, err)
		v := Bits32
		if p[1] == "64" {
			v = Bits64
		}
		out = append(out, javaVector{p[0], v, int32(n), b})
	}
	require.NoError(t, s.Err())
	require.NotEmpty(t, out)
	return out
}

// javaPositions are the sets of JavaVectors.java.
func javaPositions(name string) *roaring.Bitmap {
	m := roaring.New()
	fill := func(max uint32, p func(i uint32) bool) {
		for i := range max + 1 {
			if p(i) {
				m.Add(i)
			}
		}
	}
	switch name {
	case "empty":
	case "one_three_five":
		m.AddMany([]uint32{1, 3, 5})
	case "run_0_9":
		m.AddRange(0, 10)
	case "runs":
		fill(3000, func(i uint32) bool { return i%100 < 40 })
	case "array":
		fill(20000, func(i uint32) bool { return i%7 == 3 })
	case "bitmap":
		fill(9999, func(i uint32) bool { return i%2 == 0 })
	case "full_and_more":
		m.AddRange(0, 65540)
		m.Add(65600)
	case "mixed":
		fill(200000, func(i uint32) bool {
			switch {
			case i < 70000:
				return i%3 == 0
			case i < 140000:
				return i%1000 == 0
			}
			return i%5000 < 2500
		})
	case "max_position":
		m.AddMany([]uint32{0, math.MaxInt32 - 1, math.MaxInt32})
	case "max_uint32":
		m.Add(math.MaxUint32)
	default:
		return nil
	}
	return m
}

func TestAppend_WritesJavasBytes(t *testing.T) {
	for _, j := range javaVectors(t) {
		m := javaPositions(j.name)
		if m == nil {
			continue
		}
		before := m.Clone()
		b, length, err := Append([]byte("prefix"), j.version, m)
		require.NoError(t, err, j.name)
		require.Equal(t, hex.EncodeToString(j.blob), hex.EncodeToString(b[6:]), j.name)
		require.Equal(t, j.length, length, j.name)
		require.True(t, before.Equals(m), "the caller's bitmap is left alone")
	}
}

func TestRead_ReadsJavasVectors(t *testing.T) {
	for _, j := range javaVectors(t) {
		m := javaPositions(j.name)
		file := append([]byte{1}, j.blob...)
		v, err := Read(bytes.NewReader(file), int64(len(file)), Range{1, j.length, -1})
		if m == nil {
			require.ErrorIs(t, err, ErrTooLarge, j.name)
			continue
		}
		require.NoError(t, err, j.name)
		require.Equal(t, j.version, v.Version)
		require.True(t, m.Equals(v.Positions), j.name)
	}
}

func TestBuilder_PlacesVectorsOneBehindTheOther(t *testing.T) {
	for _, version := range []Version{Bits32, Bits64} {
		b := NewBuilder(version)
		require.EqualValues(t, 1, b.Size())
		sets := map[string]*roaring.Bitmap{"a": roaring.BitmapOf(1, 3, 5), "b": roaring.New(), "c": javaPositions("mixed")}
		for _, f := range []string{"c", "a", "b"} {
			require.NoError(t, b.Add(f, sets[f]))
		}
		require.ErrorContains(t, b.Add("a", sets["a"]), "already")
		require.Equal(t, 3, b.Len())
		size := b.Size()
		data, files, ranges := b.Finish()
		require.EqualValues(t, len(data), size)
		require.Equal(t, []string{"c", "a", "b"}, files)
		require.EqualValues(t, 1, ranges[0].Offset)
		vs, err := ReadAll(data, ranges)
		require.NoError(t, err)
		for i, f := range files {
			require.True(t, sets[f].Equals(vs[i].Positions))
			require.EqualValues(t, sets[f].GetCardinality(), ranges[i].Cardinality)
		}
		b.Reset()
		require.NoError(t, b.Add("a", sets["a"]))
		again, _, _ := b.Finish()
		require.Equal(t, byte(1), again[0])
		require.Less(t, len(again), 100)
		require.Greater(t, len(data), 1000, "a finished file survives the next one")
	}
}

func TestAppend_RefusesPositionsBeyondJavas(t *testing.T) {
	_, _, err := Append(nil, Bits32, roaring.BitmapOf(math.MaxInt32+1))
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorIs(t, NewBuilder(Bits32).Add("f", roaring.BitmapOf(math.MaxUint32)), ErrTooLarge)
	_, _, err = Append(nil, Bits64, roaring.BitmapOf(math.MaxUint32))
	require.NoError(t, err)
}

func TestCheckRows(t *testing.T) {
	require.NoError(t, CheckRows(roaring.New(), 0))
	require.NoError(t, CheckRows(roaring.BitmapOf(9), 10))
	require.ErrorIs(t, CheckRows(roaring.BitmapOf(9, 10), 10), ErrCorrupt)
}

// blobOf frames a bitmap with a right checksum, so that only the bitmap is wrong.
func blobOf(version Version, bitmap []byte) ([]byte, int32) {
	body := []byte{0x5e, 0x43, 0xf2, 0xd0}
	if version == Bits64 {
		body = []byte{0xd1, 0xd3, 0x39, 0x64}
	}
	body = append(body, bitmap...)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(b, body...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(body))
	if version == Bits64 {
		return b, int32(len(b))
	}
	return b, int32(len(body))
}

func TestRead_RefusesMalformedBitmaps(t *testing.T) {
	f := func(why, h string) {
		t.Helper()
		bitmap, err := hex.DecodeString(strings.ReplaceAll(h, " ", ""))
		require.NoError(t, err)
		blob, n := blobOf(Bits32, bitmap)
		file := append([]byte{1}, blob...)
		_, err = Read(bytes.NewReader(file), int64(len(file)), Range{1, n, -1})
		require.ErrorIs(t, err, ErrCorrupt, why)
	}
	f("no cookie", "3a30")
	f("wrong cookie", "39300000 00000000")
	f("no count", "3a300000 0100")
	f("too many containers", "3a300000 01000100")
	f("no heads", "3a300000 01000000")
	f("values missing", "3a300000 01000000 0000 0200 10000000 0100 0300")
	f("a value too much", "3a300000 01000000 0000 0000 10000000 0100 0300")
	f("values not ascending", "3a300000 01000000 0000 0100 10000000 0300 0100")
	f("value twice", "3a300000 01000000 0000 0100 10000000 0300 0300")
	f("keys not ascending", "3a300000 02000000 0100 0000 0100 0000 18000000 1a000000 0000 0000")
	f("bitset count", "3a300000 01000000 0000 0010 10000000"+strings.Repeat("ff", 8192))
	f("runs missing", "3b300000 01 0000 0900")
	f("run count", "3b300000 01 0000 0800 0100 0000 0900")
	f("runs overlap", "3b300000 01 0000 0b00 0200 0000 0500 0500 0500")
	f("runs touch", "3b300000 01 0000 0900 0200 0000 0400 0500 0400")
	f("run beyond the container", "3b300000 01 0000 0100 0100 ffff 0100")
}

func TestRead_RefusesWhatTheManifestDoesNotDescribe(t *testing.T) {
	blob, n, err := Append(nil, Bits32, roaring.BitmapOf(1, 3, 5))
	require.NoError(t, err)
	file := append([]byte{1}, blob...)
	read := func(file []byte, at Range) error {
		_, err := Read(bytes.NewReader(file), int64(len(file)), at)
		return err
	}
	require.NoError(t, read(file, Range{1, n, 3}))
	for why, at := range map[string]Range{
		"length": {1, n + 1, 3}, "short": {1, n - 1, 3}, "offset": {2, n, 3}, "offset 0": {0, n, 3}, "negative": {-1, n, 3},
		"negative length": {1, -5, 3}, "cardinality": {1, n, 4}, "outside": {int32(len(file)), n, 3}, "no length": {1, 0, 3},
		"32-bit length for 64": {1, n + 8, 3},
	} {
		require.ErrorIs(t, read(file, at), ErrCorrupt, why)
	}
	for i := 1; i < len(file); i++ {
		broken := bytes.Clone(file)
		broken[i] ^= 0x10
		require.Error(t, read(broken, Range{1, n, 3}), "byte %d flipped", i)
	}
	for i := range len(file) - 1 {
		require.Error(t, read(file[:i], Range{1, n, 3}), "cut at %d", i)
	}
	_, err = ReadAll(append([]byte{2}, blob...), nil)
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = ReadAll(nil, nil)
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = ReadAll(file, []Range{{1, n, 3}, {2, n, 3}})
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestRead_RefusesMalformed64BitVectors(t *testing.T) {
	for why, bitmap := range map[string]string{
		"no count": "00", "no key": "0100000000000000", "half a key": "01000000000000000000", "no bitmap": "010000000000000000000000",
		"rest behind none": "0000000000000000 00",
	} {
		raw, err := hex.DecodeString(strings.ReplaceAll(bitmap, " ", ""))
		require.NoError(t, err)
		blob, n := blobOf(Bits64, raw)
		file := append([]byte{1}, blob...)
		_, err = Read(bytes.NewReader(file), int64(len(file)), Range{1, n, -1})
		require.ErrorIs(t, err, ErrCorrupt, why)
	}
	raw, err := hex.DecodeString("010000000000000001000000" + "3a30000001000000000000001000000000 00"[:32])
	require.NoError(t, err)
	blob, n := blobOf(Bits64, raw)
	file := append([]byte{1}, blob...)
	_, err = Read(bytes.NewReader(file), int64(len(file)), Range{1, n, -1})
	require.ErrorIs(t, err, ErrTooLarge, "high key 1")
}

type failingReader struct{ err error }

func (f failingReader) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestRead_PassesOnErrorsOfTheStore(t *testing.T) {
	boom := errors.New("boom")
	_, err := Read(failingReader{boom}, 100, Range{1, 20, -1})
	require.ErrorIs(t, err, boom)
	require.NotErrorIs(t, err, ErrCorrupt)
	_, err = Read(failingReader{io.EOF}, 100, Range{1, 20, -1})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// setGen draws sets that end up in every kind of container.
func setGen() *rapid.Generator[*roaring.Bitmap] {
	return rapid.Custom(func(t *rapid.T) *roaring.Bitmap {
		m := roaring.New()
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			at := rapid.Uint32Range(0, 400_000).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				m.AddMany(rapid.SliceOfN(rapid.Uint32Range(0, 1<<31-1), 0, 50).Draw(t, "points"))
			case 1:
				m.AddRange(uint64(at), uint64(at)+rapid.Uint64Range(0, 70_000).Draw(t, "length"))
			case 2:
				step := rapid.Uint32Range(2, 9).Draw(t, "step")
				for i := range uint32(6_000) {
					m.Add(at + i*step)
				}
			}
		}
		return m
	})
}

func TestAppend_RoundTripsAnySet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBuilder(rapid.SampledFrom([]Version{Bits32, Bits64}).Draw(t, "version"))
		sets := rapid.SliceOfN(setGen(), 1, 3).Draw(t, "sets")
		for i, m := range sets {
			require.NoError(t, b.Add(strconv.Itoa(i), m))
		}
		data, _, ranges := b.Finish()
		vs, err := ReadAll(data, ranges)
		require.NoError(t, err)
		for i := range sets {
			require.True(t, sets[i].Equals(vs[i].Positions))
			require.Equal(t, b.version, vs[i].Version)
		}
	})
}

// The linear check must accept exactly what the library reads and validates;
// runs that touch each other are the one thing both refuse.
func FuzzCheckBitmap(f *testing.F) {
	for _, name := range []string{"empty", "runs", "array", "full_and_more", "max_position"} {
		m := javaPositions(name)
		m.RunOptimize()
		b, err := m.ToBytes()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		ours := checkBitmap(b)
		m := roaring.New()
		n, err := m.ReadFrom(bytes.NewReader(b))
		valid := err == nil && int(n) == len(b) && m.Validate() == nil
		if ours == nil {
			require.True(t, valid, "accepted what the library refuses")
			again, err := m.ToBytes()
			require.NoError(t, err)
			require.NoError(t, checkBitmap(again))
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, j := range javaVectors(f) {
		if len(j.blob) < 10_000 {
			f.Add(append([]byte{1}, j.blob...), int32(1), j.length)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, off, length int32) {
		v, err := Read(bytes.NewReader(file), int64(len(file)), Range{off, length, -1})
		if err != nil {
			return
		}
		b, n, err := Append(nil, v.Version, v.Positions)
		if errors.Is(err, ErrTooLarge) {
			return
		}
		require.NoError(t, err)
		back, err := Read(bytes.NewReader(append([]byte{1}, b...)), int64(len(b)+1), Range{1, n, int64(v.Positions.GetCardinality())})
		require.NoError(t, err)
		require.True(t, v.Positions.Equals(back.Positions))
	})
}

// randomSet deletes a share of the rows of a file.
func randomSet(rows, deleted int) *roaring.Bitmap {
	r := rand.New(rand.NewPCG(1, 2))
	m := roaring.New()
	for range deleted {
		m.Add(uint32(r.IntN(rows)))
	}
	return m
}

func BenchmarkAppend(b *testing.B) {
	for _, share := range []int{1000, 100, 10, 2} {
		m := randomSet(1_000_000, 1_000_000/share)
		b.Run("1M_rows_1_of_"+strconv.Itoa(share), func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, _, err = Append(buf[:0], Bits32, m); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}

// What one touched data file of a commit costs: read, add 10,000 positions, write.
func BenchmarkReadMergeWrite(b *testing.B) {
	for _, share := range []int{1000, 100, 10, 2} {
		blob, n, err := Append([]byte{1}, Bits32, randomSet(1_000_000, 1_000_000/share))
		require.NoError(b, err)
		more := randomSet(1_000_000, 10_000).ToArray()
		b.Run("1M_rows_1_of_"+strconv.Itoa(share), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v, err := Read(bytes.NewReader(blob), int64(len(blob)), Range{1, n, -1})
				if err != nil {
					b.Fatal(err)
				}
				v.Positions.AddMany(more)
				if _, _, err = Append(nil, Bits32, v.Positions); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
