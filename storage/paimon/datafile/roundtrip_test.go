package datafile

import "testing"

func TestRoundTrip_EveryScalarTypeAtItsEdges(t *testing.T) {
	fs, rows := edgeTable()
	for _, codec := range []string{"zstd", "snappy", "gzip", "lz4_raw", "none"} {
		t.Run(codec, func(t *testing.T) {
			data, _ := writeFile(t, WriterOptions{Fields: fs, Compression: codec}, batchOf(fs, rows))
			sameRows(t, rows, readAll(t, openFile(t, data, ReadOptions{Fields: fs})))
		})
	}
}

func TestRoundTrip_NotNull(t *testing.T) {
	fs, rows := edgeTable()
	for i := range fs {
		fs[i].Type = fs[i].Type.NonNull()
	}
	rows = rows[1:]
	data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	sameRows(t, rows, readAll(t, openFile(t, data, ReadOptions{Fields: fs})))
}
