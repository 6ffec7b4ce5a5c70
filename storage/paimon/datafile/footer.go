package datafile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The footer model. It mirrors parquet-go's format package where that loses
// what we need: field id 0 (not written there), a null count that is absent
// (read as 0 there), exactness of bounds. Everything a row group needs is kept,
// so that one can be copied verbatim into another file by shifting its offsets.
// Source: parquet.thrift of parquet-format 2.12.

const (
	magic      = "PAR1"
	footerTail = 8 // length and magic behind the footer
)

type fileMetaData struct {
	Version             int32                            `thrift:"1,required"`
	Schema              thrift.Slice[schemaElement]      `thrift:"2,required"`
	NumRows             int64                            `thrift:"3,required"`
	RowGroups           thrift.Slice[rowGroup]           `thrift:"4,required"`
	KeyValueMetadata    thrift.Slice[format.KeyValue]    `thrift:"5,optional"`
	CreatedBy           string                           `thrift:"6,optional"`
	ColumnOrders        thrift.Slice[format.ColumnOrder] `thrift:"7,optional"`
	EncryptionAlgorithm format.EncryptionAlgorithm       `thrift:"8,optional"`
	FooterSigningKey    []byte                           `thrift:"9,optional"`
}

type schemaElement struct {
	Type           thrift.Null[format.Type]                `thrift:"1,optional"`
	TypeLength     thrift.Null[int32]                      `thrift:"2,optional"`
	RepetitionType thrift.Null[format.FieldRepetitionType] `thrift:"3,optional"`
	Name           string                                  `thrift:"4,required"`
	NumChildren    thrift.Null[int32]                      `thrift:"5,optional"`
	ConvertedType  thrift.Null[deprecated.ConvertedType]   `thrift:"6,optional"`
	Scale          thrift.Null[int32]                      `thrift:"7,optional"`
	Precision      thrift.Null[int32]                      `thrift:"8,optional"`
	FieldID        thrift.Null[int32]                      `thrift:"9,optional"`
	LogicalType    format.LogicalType                      `thrift:"10,optional"`
}

type rowGroup struct {
	Columns             thrift.Slice[columnChunk]          `thrift:"1,required"`
	TotalByteSize       int64                              `thrift:"2,required"`
	NumRows             int64                              `thrift:"3,required"`
	SortingColumns      thrift.Slice[format.SortingColumn] `thrift:"4,optional"`
	FileOffset          thrift.Null[int64]                 `thrift:"5,optional"`
	TotalCompressedSize thrift.Null[int64]                 `thrift:"6,optional"`
	Ordinal             thrift.Null[int16]                 `thrift:"7,optional"`
}

type columnChunk struct {
	FilePath          string                      `thrift:"1,optional"`
	FileOffset        int64                       `thrift:"2,required"`
	MetaData          columnMetaData              `thrift:"3,optional"`
	OffsetIndexOffset int64                       `thrift:"4,optional"`
	OffsetIndexLength int32                       `thrift:"5,optional"`
	ColumnIndexOffset int64                       `thrift:"6,optional"`
	ColumnIndexLength int32                       `thrift:"7,optional"`
	CryptoMetadata    format.ColumnCryptoMetaData `thrift:"8,optional"`
	EncryptedMetadata []byte                      `thrift:"9,optional"`
}

type columnMetaData struct {
	Type                  format.Type                            `thrift:"1,required"`
	Encoding              thrift.Slice[format.Encoding]          `thrift:"2,required"`
	PathInSchema          thrift.Slice[string]                   `thrift:"3,required"`
	Codec                 format.CompressionCodec                `thrift:"4,required"`
	NumValues             int64                                  `thrift:"5,required"`
	TotalUncompressedSize int64                                  `thrift:"6,required"`
	TotalCompressedSize   int64                                  `thrift:"7,required"`
	KeyValueMetadata      thrift.Slice[format.KeyValue]          `thrift:"8,optional"`
	DataPageOffset        int64                                  `thrift:"9,required"`
	IndexPageOffset       int64                                  `thrift:"10,optional"`
	DictionaryPageOffset  int64                                  `thrift:"11,optional"`
	Statistics            statistics                             `thrift:"12,optional"`
	EncodingStats         thrift.Slice[format.PageEncodingStats] `thrift:"13,optional"`
	BloomFilterOffset     int64                                  `thrift:"14,optional"`
	BloomFilterLength     int32                                  `thrift:"15,optional"`
	SizeStatistics        format.SizeStatistics                  `thrift:"16,optional"`
}

type statistics struct {
	Max           []byte             `thrift:"1"`
	Min           []byte             `thrift:"2"`
	NullCount     thrift.Null[int64] `thrift:"3,optional"`
	DistinctCount thrift.Null[int64] `thrift:"4,optional"`
	MaxValue      []byte             `thrift:"5"`
	MinValue      []byte             `thrift:"6"`
	MaxExact      thrift.Null[bool]  `thrift:"7,optional"`
	MinExact      thrift.Null[bool]  `thrift:"8,optional"`
}

// appendFooter writes the footer with its length and the closing magic.
func appendFooter(dst []byte, m *fileMetaData) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	from := len(dst)
	if err := thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(buf)).Encode(m); err != nil {
		return dst, fmt.Errorf("encoding the parquet footer: %w", err)
	}
	dst = buf.Bytes()
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(dst)-from))
	return append(dst, magic...), nil
}

// readFooter reads and checks the footer of a file of size bytes, asking for
// ahead bytes at its end. tail keeps what was read; end is the offset behind the
// last byte that pages and indexes may use.
func readFooter(r io.ReaderAt, size, limit, ahead int64) (m *fileMetaData, tail *region, end int64, err error) {
	if size < int64(2*len(magic)+4) {
		return nil, nil, 0, fmt.Errorf("%w: %d bytes are too few", ErrCorrupt, size)
	}
	tail = &region{r: r, off: size - min(size, max(ahead, footerTail))}
	if err := tail.load(size); err != nil {
		return nil, nil, 0, fmt.Errorf("reading the parquet footer: %w", err)
	}
	last := tail.buf[len(tail.buf)-footerTail:]
	if got := string(last[4:]); got != magic {
		if got == "PARE" {
			return nil, nil, 0, fmt.Errorf("%w: encrypted footer", ErrUnsupported)
		}
		return nil, nil, 0, fmt.Errorf("%w: the file ends with %q, not with %q", ErrCorrupt, got, magic)
	}
	n := int64(binary.LittleEndian.Uint32(last))
	end = size - footerTail - n
	switch {
	case end < int64(len(magic)):
		return nil, nil, 0, fmt.Errorf("%w: a footer of %d bytes in a file of %d", ErrCorrupt, n, size)
	case n > limit:
		return nil, nil, 0, fmt.Errorf("%w: a footer of %d bytes, the limit is %d", ErrTooLarge, n, limit)
	}
	b := make([]byte, n)
	if err := readFull(tail, b, end); err != nil {
		return nil, nil, 0, fmt.Errorf("reading the parquet footer: %w", err)
	}
	m, err = decodeFooter(b)
	return m, tail, end, err
}

// decodeFooter decodes FileMetaData; the result aliases b.
func decodeFooter(b []byte) (m *fileMetaData, err error) {
	defer recoverCorrupt(&err)
	if err := checkFooter(b); err != nil {
		return nil, fmt.Errorf("%w: footer: %w", ErrCorrupt, err)
	}
	m = new(fileMetaData)
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReaderFromBytes(b)).Decode(m); err != nil {
		return nil, fmt.Errorf("%w: footer: %w", ErrCorrupt, err)
	}
	if m.EncryptionAlgorithm.Value != nil {
		return nil, fmt.Errorf("%w: encryption", ErrUnsupported)
	}
	return m, nil
}

// readFull is io.ReaderAt without its end-of-file cases.
func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// recoverCorrupt turns a panic over broken bytes into an error. Our own code
// checks what it reads; the net is for the libraries under it.
func recoverCorrupt(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrCorrupt, p)
	}
}
