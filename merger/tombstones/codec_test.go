package tombstones

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var testHeader = header{Kind: objectDelta, ID: "abc", Parent: "def", Layout: "l", At: 1_800_000_000_000}

// decoded reads an object back as text.
func decoded(b []byte) (string, error) {
	var out strings.Builder
	err := decode(bytes.NewReader(b), int64(len(b)), func(h header) error {
		fmt.Fprintf(&out, "%+v\n", h)
		return nil
	}, func(key, order []byte, at int64, deleted bool) error {
		fmt.Fprintf(&out, "%q %q %d %t\n", key, order, at, deleted)
		return nil
	})
	return out.String(), err
}

func drawDelta(t *rapid.T) *Delta {
	d := &Delta{}
	text := rapid.SliceOfN(rapid.Byte(), 0, 40)
	for range rapid.IntRange(0, 50).Draw(t, "entries") {
		key := text.Draw(t, "key")
		if rapid.IntRange(0, 20).Draw(t, "long") == 0 {
			key = bytes.Repeat([]byte("long"), rapid.IntRange(1, 40_000).Draw(t, "times"))
		}
		if rapid.Bool().Draw(t, "deleted") {
			d.Put(key, text.Draw(t, "order"), rapid.Int64().Draw(t, "at"))
		} else {
			d.Remove(key)
		}
	}
	return d
}

func TestDecode_RapidReadsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDelta(t)
		b, err := encodeDelta(testHeader, d)
		require.NoError(t, err)
		var want strings.Builder
		fmt.Fprintf(&want, "%+v\n", testHeader)
		d.each(func(key, order []byte, at int64, deleted bool) {
			fmt.Fprintf(&want, "%q %q %d %t\n", key, order, at, deleted)
		})
		got, err := decoded(b)
		require.NoError(t, err)
		require.Equal(t, want.String(), got)
	})
}

func manyBlocks(t require.TestingT) []byte {
	d := &Delta{}
	for i := range 20_000 {
		d.Put(fmt.Append(nil, "key", i), []byte("order"), testHeader.At)
	}
	b, err := encodeDelta(testHeader, d)
	require.NoError(t, err)
	require.Greater(t, len(b), 3*blockBytes)
	return b
}

// Whatever happens to the bytes of an object, it is told: never is another set
// read than the one that was written.
func TestDecode_AnyDamageIsTold(t *testing.T) {
	whole := manyBlocks(t)
	small, err := encodeDelta(testHeader, func() *Delta { d := &Delta{}; d.Put([]byte("k"), []byte("o"), 3); d.Remove([]byte("q")); return d }())
	require.NoError(t, err)
	for i := range small {
		for bit := range 8 {
			bad := bytes.Clone(small)
			bad[i] ^= 1 << bit
			_, err := decoded(bad)
			require.ErrorIs(t, err, errCorrupt, "bit %d of byte %d", bit, i)
		}
		_, err := decoded(small[:i])
		require.ErrorIs(t, err, errCorrupt, "cut at %d", i)
	}
	_, err = decoded(append(bytes.Clone(small), 0))
	require.ErrorIs(t, err, errCorrupt, "something behind the end")

	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(whole)
		from := rapid.IntRange(0, len(bad)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(bad)).Draw(t, "to")
		switch rapid.IntRange(0, 2).Draw(t, "what") {
		case 0: // zeros, as after a power cut
			clear(bad[from:to])
		case 1: // a part is missing
			bad = append(bad[:from], bad[to:]...)
		case 2: // a part is there twice
			bad = append(bad[:to:to], whole[from:]...)
		}
		if bytes.Equal(bad, whole) {
			return
		}
		_, err := decoded(bad)
		require.ErrorIs(t, err, errCorrupt)
	})
}

// FuzzDecode: no input makes the reader fail in another way than with an error,
// or take more memory than the input has bytes. What it accepts says the same
// when it is written again.
func FuzzDecode(f *testing.F) {
	d := &Delta{}
	d.Put([]byte("key"), []byte("order"), testHeader.At+5)
	d.Remove([]byte("other"))
	b, err := encodeDelta(testHeader, d)
	require.NoError(f, err)
	f.Add(b)
	empty, err := encodeDelta(testHeader, &Delta{})
	require.NoError(f, err)
	f.Add(empty)
	f.Add([]byte(magic))
	f.Add([]byte(magic + "\xff\xff\xff\xff\x00\x00\x00\x00h{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h header
		d := &Delta{}
		err := decode(bytes.NewReader(b), int64(len(b)), func(got header) error { h = got; return nil }, func(key, order []byte, at int64, deleted bool) error {
			if deleted {
				d.Put(key, order, at)
			} else {
				d.Remove(key)
			}
			return nil
		})
		if err != nil {
			require.ErrorIs(t, err, errCorrupt)
			return
		}
		want, err := decoded(b)
		require.NoError(t, err)
		again, err := encodeDelta(h, d)
		require.NoError(t, err)
		got, err := decoded(again)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
