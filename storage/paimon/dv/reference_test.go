package dv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// referencePositions reads a vector's bytes as the format's description tells
// it, without the library: a second opinion on what was written.
func referencePositions(t require.TestingT, blob []byte) (bits int, positions []uint64) {
	size := int(binary.BigEndian.Uint32(blob))
	require.Len(t, blob, size+8)
	body := blob[4 : 4+size]
	require.Equal(t, referenceCRC(body), binary.BigEndian.Uint32(blob[4+size:]))
	switch {
	case bytes.HasPrefix(body, []byte{0x5e, 0x43, 0xf2, 0xd0}):
		rest, values := referenceBitmap(t, body[4:])
		require.Empty(t, rest)
		return 32, values
	case bytes.HasPrefix(body, []byte{0xd1, 0xd3, 0x39, 0x64}):
		n := binary.LittleEndian.Uint64(body[4:])
		rest := body[12:]
		for range n {
			high := uint64(binary.LittleEndian.Uint32(rest))
			var values []uint64
			rest, values = referenceBitmap(t, rest[4:])
			for _, v := range values {
				positions = append(positions, high<<32|v)
			}
		}
		require.Empty(t, rest)
		return 64, positions
	}
	require.Fail(t, "no magic number")
	return 0, nil
}

// referenceCRC is CRC-32 from its polynomial.
func referenceCRC(b []byte) uint32 {
	var table [256]uint32
	for i := range table {
		table[i] = uint32(i)
		for range 8 {
			table[i] = table[i]>>1 ^ 0xedb88320&-(table[i]&1)
		}
	}
	crc := ^uint32(0)
	for _, c := range b {
		crc = crc>>8 ^ table[byte(crc)^c]
	}
	return ^crc
}

// referenceBitmap reads one portable roaring bitmap.
func referenceBitmap(t require.TestingT, b []byte) (rest []byte, values []uint64) {
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(b[at:])) }
	cookie := binary.LittleEndian.Uint32(b)
	n, at := 0, 8
	isRun := func(int) bool { return false }
	offsets := true
	if cookie&0xffff == 12347 {
		n = int(cookie>>16) + 1
		flags := b[4 : 4+(n+7)/8]
		isRun = func(i int) bool { return flags[i/8]>>(i%8)&1 == 1 }
		at = 4 + len(flags)
		offsets = n >= 4
	} else {
		require.EqualValues(t, 12346, cookie)
		n = int(binary.LittleEndian.Uint32(b[4:]))
	}
	heads := at
	at += 4 * n
	offsetAt := at
	if offsets {
		at += 4 * n
	}
	for i := range n {
		key, card := uint64(u16(heads+4*i))<<16, u16(heads+4*i+2)+1
		if offsets {
			require.EqualValues(t, at, binary.LittleEndian.Uint32(b[offsetAt+4*i:]), "offset of container %d", i)
		}
		before := len(values)
		switch {
		case isRun(i):
			runs := u16(at)
			at += 2
			for range runs {
				for v := u16(at); v <= u16(at)+u16(at+2); v++ {
					values = append(values, key|uint64(v))
				}
				at += 4
			}
		case card <= 4096:
			for range card {
				values = append(values, key|uint64(u16(at)))
				at += 2
			}
		default:
			for bit := range 65536 {
				if b[at+bit/8]>>(bit%8)&1 == 1 {
					values = append(values, key|uint64(bit))
				}
			}
			at += 8192
		}
		require.Equal(t, card, len(values)-before)
	}
	return b[at:], values
}

func widen(m *roaring.Bitmap) []uint64 {
	var out []uint64
	for _, v := range m.ToArray() {
		out = append(out, uint64(v))
	}
	return out
}

func TestReference_ReadsJavasVectors(t *testing.T) {
	for _, j := range javaVectors(t) {
		bits, got := referencePositions(t, j.blob)
		require.Equal(t, map[Version]int{Bits32: 32, Bits64: 64}[j.version], bits)
		switch j.name {
		case "high_key_only":
			require.Equal(t, []uint64{1 << 32}, got)
		case "high_key":
			require.Equal(t, []uint64{7, 1 << 32}, got)
		default:
			require.Equal(t, widen(javaPositions(j.name)), got, j.name)
		}
	}
}

func TestAppend_WritesWhatTheReferenceReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := setGen().Draw(t, "set")
		version := rapid.SampledFrom([]Version{Bits32, Bits64}).Draw(t, "version")
		blob, length, err := Append(nil, version, m)
		require.NoError(t, err)
		bits, got := referencePositions(t, blob)
		require.True(t, slices.Equal(widen(m), got))
		if version == Bits32 {
			require.Equal(t, 32, bits)
			require.EqualValues(t, len(blob)-8, length)
		} else {
			require.Equal(t, 64, bits)
			require.EqualValues(t, len(blob), length)
		}
	})
}

// A set in memory through many commits: read, add, write, as the writer does it.
func TestVectors_GrowThroughCommits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := map[string]map[uint32]bool{}
		var file []byte
		var names []string
		var ranges []Range
		for range rapid.IntRange(1, 8).Draw(t, "commits") {
			live := map[string]*roaring.Bitmap{}
			if file != nil {
				vs, err := ReadAll(file, ranges)
				require.NoError(t, err)
				for i, v := range vs {
					live[names[i]] = v.Positions
				}
			}
			for range rapid.IntRange(1, 3).Draw(t, "files") {
				name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "file")
				more := rapid.SliceOfN(rapid.Uint32Range(0, 200_000), 1, 40).Draw(t, "positions")
				if live[name] == nil {
					live[name], model[name] = roaring.New(), map[uint32]bool{}
				}
				live[name].AddMany(more)
				for _, p := range more {
					model[name][p] = true
				}
			}
			b := NewBuilder(rapid.SampledFrom([]Version{Bits32, Bits64}).Draw(t, "version"))
			for name, m := range live {
				require.NoError(t, b.Add(name, m))
			}
			file, names, ranges = b.Finish()
		}
		vs, err := ReadAll(file, ranges)
		require.NoError(t, err)
		require.Len(t, vs, len(model))
		for i, v := range vs {
			require.EqualValues(t, len(model[names[i]]), v.Positions.GetCardinality())
			for p := range model[names[i]] {
				require.True(t, v.Positions.Contains(p))
			}
		}
	})
}

// No single damaged byte of any of Java's vectors goes unnoticed.
func TestRead_NoticesEveryDamagedByte(t *testing.T) {
	for _, j := range javaVectors(t) {
		if len(j.blob) > 300 || javaPositions(j.name) == nil {
			continue
		}
		file := append([]byte{1}, j.blob...)
		card := int64(javaPositions(j.name).GetCardinality())
		for i := 1; i < len(file); i++ {
			for _, flip := range []byte{0x01, 0x80, 0xff} {
				broken := bytes.Clone(file)
				broken[i] ^= flip
				_, err := Read(bytes.NewReader(broken), int64(len(broken)), Range{1, j.length, card})
				require.Error(t, err, "%s, byte %d", j.name, i)
			}
		}
	}
}

func TestBuilder_SizeIsWhatRollingLooksAt(t *testing.T) {
	const target = 2000
	b := NewBuilder(Bits32)
	var files [][]byte
	vectors := 0
	for i := range 200 {
		m := roaring.New()
		for k := range uint32(50) {
			m.Add(k * uint32(i+2))
		}
		require.NoError(t, b.Add(fmt.Sprint("data-", i), m))
		vectors++
		if b.Size() > target {
			data, _, _ := b.Finish()
			require.EqualValues(t, b.Size(), len(data))
			files = append(files, data)
			b.Reset()
			require.Zero(t, b.Len())
		}
	}
	require.Greater(t, len(files), 5)
	for _, f := range files {
		require.Greater(t, len(f), target)
		require.Less(t, len(f), target+200, "one vector above the target at most")
	}
	require.Equal(t, 200, vectors)
}
