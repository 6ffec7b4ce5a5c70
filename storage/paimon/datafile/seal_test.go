package datafile

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// sealedFile writes a file with a column whose name tries to look like a seal.
func sealedFile(t *testing.T, rows int) []byte {
	fields := []types.Field{{ID: 0, Name: "k", Type: types.IntType()}, {ID: 1, Name: sealKey + "\x18\x10" + openSeal, Type: types.StringType()}}
	var b bytes.Buffer
	w, err := NewWriter(&b, WriterOptions{Fields: fields, RowGroupRows: 100})
	require.NoError(t, err)
	batch := types.NewBatch(fields)
	for i := range rows {
		batch.AppendDatums([]types.Datum{types.IntDatum(int64(i)), types.StringDatum(fmt.Sprint("value ", i))})
	}
	require.NoError(t, w.Write(batch))
	_, err = w.Close()
	require.NoError(t, err)
	first := bytes.Clone(b.Bytes())
	b.Reset()
	w.Reset(&b)
	require.NoError(t, w.Write(batch))
	_, err = w.Close()
	require.NoError(t, err)
	require.Equal(t, first, b.Bytes(), "a writer that is used again begins a new seal")
	return first
}

func TestSeal_CoversEveryBit(t *testing.T) {
	for _, rows := range []int{0, 7, 250} {
		file := sealedFile(t, rows)
		check := func(b []byte) error { return CheckSeal(bytes.NewReader(b), int64(len(b)), 1<<20) }
		require.NoError(t, check(file))
		step := 1
		if rows > 100 {
			step = 7
		}
		for i := 0; i < 8*len(file); i += step {
			b := bytes.Clone(file)
			b[i/8] ^= 1 << (i % 8)
			require.Error(t, check(b), "bit %d of %d", i, 8*len(file))
		}
		require.Error(t, check(file[:len(file)-1]))
		require.Error(t, check(append(bytes.Clone(file), 0)))
	}
}

func TestSeal_FilesOfOthersHaveNone(t *testing.T) {
	file := sealedFile(t, 3)
	b := bytes.ReplaceAll(file, []byte(sealKey), []byte("applier.soul"))
	require.ErrorIs(t, CheckSeal(bytes.NewReader(b), int64(len(b)), 1<<20), ErrNoSeal)
}
