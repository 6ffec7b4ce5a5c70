package paimon

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"applier/storage/objstore"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// DataFileWriter turns rows into data files, one partition and bucket at a time.
// It belongs to one goroutine and reuses its buffers.
type DataFileWriter struct {
	t *Table
	s WriterSettings
	// Encoders for rows that are new, for new versions of rows whose ids are kept,
	// and for copies of rows.
	fresh, versions, copies fileEncoder
	verbatim                int64 // see verbatimGroup
	index                   *indexWriter
}

// WriterSettings adjust a DataFileWriter.
type WriterSettings struct {
	KeyColumns  []int // pages of these columns are small, for reads by position
	TargetBytes int64 // 0: the table's target-file-size
	// Concurrency is how many goroutines encode columns during Write; 0 is 1.
	Concurrency int
	// CopyBytes is about how much memory a copy of rows (Rewrite, Join) may hold: the row
	// groups of new files and what is read ahead are kept that small. Pages and values
	// larger than that stay what they are. 0: row groups as the table's options say.
	CopyBytes int64
	// Held, if not nil, is told by a copy how much memory it holds, again and again.
	Held func(bytes int64)
	// Now gives the creation time of files; nil is time.Now.
	Now func() time.Time
	// NewUUID makes the names of files unique.
	NewUUID func() string
}

// fileEncoder is a Parquet writer with its columns.
type fileEncoder struct {
	*datafile.Writer
	fields []types.Field
}

// NewDataFileWriter returns a writer for the table's columns.
func (t *Table) NewDataFileWriter(s WriterSettings) (*DataFileWriter, error) {
	if s.TargetBytes == 0 {
		s.TargetBytes = t.options.TargetFileSize
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	index, err := t.newIndexWriter()
	if err != nil {
		return nil, err
	}
	w := &DataFileWriter{t: t, s: s, verbatim: verbatimGroup, index: index}
	if s.CopyBytes > 0 { // else row groups of its own size were never copied as they are
		w.verbatim = min(w.verbatim, w.copyGroup()/4)
	}
	return w, w.prepare(&w.fresh, t.schema.Fields, false)
}

// prepare makes e ready for files with the given columns; keepChars: their values
// are copies.
func (w *DataFileWriter) prepare(e *fileEncoder, fields []types.Field, keepChars bool) error {
	same := func(a, b types.Field) bool { return a.ID == b.ID && a.Type.NotNull == b.Type.NotNull }
	if e.Writer != nil && slices.EqualFunc(e.fields, fields, same) {
		return nil
	}
	o, group := &w.t.options, w.t.options.ParquetBlockSize
	if keepChars {
		group = w.copyGroup()
	}
	wr, err := datafile.NewWriter(nil, datafile.WriterOptions{
		Fields: fields, Compression: o.FileCompression, ZstdLevel: o.ZstdLevel, RowGroupBytes: group,
		KeyColumns: w.s.KeyColumns, Concurrency: w.s.Concurrency, KeepChars: keepChars,
	})
	if err != nil {
		return err
	}
	*e = fileEncoder{wr, fields}
	return nil
}

// Written is one new data file.
type Written struct {
	Entry  manifest.Entry
	Object objstore.Object
	// Companions are files that belong to it, stored as it is.
	Companions []objstore.Object
	Rows       []uint32 // the rows of the batch in file order
}

// Objects are all files to be stored.
func (w *Written) Objects() []objstore.Object {
	return append([]objstore.Object{w.Object}, w.Companions...)
}

// rollEvery is after how many rows the size of the open file is looked at
// (Java: 1000).
const rollEvery = 1000

// Write is WriteTo for a partition, given by its row bytes, of a table without
// buckets.
func (w *DataFileWriter) Write(partition []byte, b *types.Batch, sel []uint32) ([]Written, error) {
	return w.WriteTo(Target{Partition: partition}, b, sel)
}

// WriteTo encodes the rows sel of b, which belong there, into files, rolling at
// the target size. Files are built in memory: the caller bounds a batch.
func (w *DataFileWriter) WriteTo(to Target, b *types.Batch, sel []uint32) ([]Written, error) {
	return w.write(&w.fresh, to, b, sel)
}

// WriteVersions is WriteTo for new versions of rows that the table had before, in a
// table with row tracking: b is a VersionBatch, with the ids that the rows keep.
func (w *DataFileWriter) WriteVersions(to Target, b *types.Batch, sel []uint32) ([]Written, error) {
	if err := w.prepare(&w.versions, append(slices.Clip(w.t.schema.Fields), trackingFields()...), false); err != nil {
		return nil, err
	}
	return w.write(&w.versions, to, b, sel)
}

func (w *DataFileWriter) write(enc *fileEncoder, to Target, b *types.Batch, sel []uint32) ([]Written, error) {
	if len(sel) == 0 {
		return nil, nil
	}
	if err := w.t.checkFolder(to.Partition); err != nil {
		return nil, err
	}
	var out []Written
	uuid, sequence := w.s.NewUUID(), to.Sequence
	for len(sel) > 0 {
		var buf bytes.Buffer
		enc.Reset(&buf)
		w.index.reset()
		n := 0
		for n < len(sel) && (n == 0 || enc.Size() < w.s.TargetBytes) {
			step := min(len(sel)-n, w.step(enc, n))
			if err := enc.WriteSelected(b, sel[n:n+step]); err != nil {
				return nil, fmt.Errorf("encoding a data file: %w", err)
			}
			w.index.add(b, sel[n:n+step], false)
			n += step
		}
		info, err := enc.Close()
		if err != nil {
			return nil, fmt.Errorf("encoding a data file: %w", err)
		}
		f, err := w.entry(enc.fields, to, w.t.options.DataName(uuid, len(out)), info)
		if err != nil {
			return nil, err
		}
		if !w.t.options.RowTracking { // there the commit gives sequence numbers
			// One counter a writer (paimon-format.md §8.4).
			f.File.MinSequence, f.File.MaxSequence = sequence, sequence+info.Rows-1
			sequence += info.Rows
		}
		key, err := w.t.paths.Data(&f)
		if err != nil {
			return nil, err
		}
		companions, err := w.index.finish(&f, key)
		if err != nil {
			return nil, err
		}
		out = append(out, Written{f, objstore.Object{Key: key, Data: buf.Bytes()}, companions, sel[:n]})
		sel = sel[n:]
	}
	return out, nil
}

// step bounds a call by what the target can still hold, so that large batches
// are handed over in large pieces.
func (w *DataFileWriter) step(enc *fileEncoder, rows int) int {
	if rows == 0 {
		return rollEvery
	}
	perRow := max(1, enc.Size()/int64(rows))
	left := (w.s.TargetBytes - enc.Size()) / perRow
	return int(min(max(left/2, rollEvery), 1<<20))
}

// entry makes the manifest entry of a new file with the given columns.
func (w *DataFileWriter) entry(fields []types.Field, to Target, name string, info datafile.Info) (manifest.Entry, error) {
	t := w.t
	stats := make([]ColumnStats, len(fields))
	for i, f := range fields {
		stats[i] = t.options.StatsModeOf(i, f.Name).Apply(f.Type, info.Columns[i])
	}
	var columns []string
	if own := len(t.schema.Fields); len(fields) > own {
		for _, f := range fields {
			columns = append(columns, f.Name)
		}
		// pypaimon finds statistics by the names of the table's own columns only.
		for i := range stats[own:] {
			stats[own+i] = ColumnStats{None: true}
		}
	}
	values, names, err := EncodeStats(fields, stats, t.options.StatsDense)
	if err != nil {
		return manifest.Entry{}, fmt.Errorf("statistics of a data file: %w", err)
	}
	empty := binrow.Empty()
	created, zero, source := localMillis(w.s.Now()), int64(0), manifest.SourceAppend
	return manifest.Entry{
		Kind: manifest.Add, Partition: to.Partition, Bucket: to.Bucket, TotalBuckets: t.totalBuckets(),
		File: manifest.DataFile{
			Name: name, Size: info.Bytes, Rows: info.Rows, MinKey: empty, MaxKey: empty,
			KeyStats:   manifest.Stats{Min: empty, Max: empty, NullCounts: []int64{}},
			ValueStats: values, StatsColumns: names, SchemaID: t.schema.ID,
			ExtraFiles: []string{}, CreationTime: &created, DeleteRows: &zero, Source: &source, WriteColumns: columns,
		},
	}, nil
}

// localMillis is the local wall clock as if it were UTC: what Java stores
// (paimon-format.md §5.3, _CREATION_TIME).
func localMillis(t time.Time) int64 {
	_, offset := t.Zone()
	return t.UnixMilli() + int64(offset)*1000
}

// PartitionOf returns the partition row's bytes of row i of a batch of the
// table's columns.
func (t *Table) PartitionOf(b *types.Batch, i int) ([]byte, error) {
	return t.AppendPartition(nil, b, i)
}

// AppendPartition appends the partition row's bytes of row i of a batch of the
// table's columns to dst. They are a partition's identity, so a CHAR has all its
// blanks in it, whether the batch has them or not.
func (t *Table) AppendPartition(dst []byte, b *types.Batch, i int) ([]byte, error) {
	row := make([]types.Datum, len(t.partitionCols))
	for k, c := range t.partitionCols {
		row[k] = b.Cols[c].Datum(i)
		if typ := t.partitionTypes[k]; typ.Kind == types.Char && !row[k].Null {
			row[k].B = padChar(row[k].B, typ.Length)
		}
	}
	return binrow.Append(dst, t.partitionTypes, row)
}

// padChar fills a CHAR value up to n code points; what is longer than a name of
// a folder can be is left to the error about that.
func padChar(b []byte, n int) []byte {
	have, n := utf8.RuneCount(b), min(n, maxNameBytes+1)
	if have >= n {
		return b
	}
	return append(bytes.Clone(b), bytes.Repeat([]byte{' '}, n-have)...)
}
