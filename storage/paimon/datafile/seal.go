package datafile

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/parquet-go/parquet-go/format"
)

// A seal is a hash over all bytes of a file, which stands in the footer's key-value
// metadata. Parquet's own checksums cover pages, but neither their headers nor the
// footer, whose statistics other engines leave rows out by. While a seal is
// computed, zeros stand in its place. Readers pass it over.

const sealKey = "applier.seal"

// openSeal is what stands in place of a seal until it is known: an XXH64 as
// hexadecimal digits.
var openSeal = strings.Repeat("0", 16)

// Errors of CheckSeal.
var (
	// ErrNoSeal: the file has none: another writer made it.
	ErrNoSeal = errors.New("the data file has no seal")
	// ErrSeal: the file is not the one that was written.
	ErrSeal = errors.New("the data file does not match its seal")
)

func sealMetadata() format.KeyValue { return format.KeyValue{Key: sealKey, Value: openSeal} }

// sealPlace finds the seal in the last bytes of a file. What stands before it in the
// footer are names of columns, which may look the same.
func sealPlace(tail []byte) []byte {
	i := bytes.LastIndex(tail, []byte(sealKey))
	if i < 0 {
		return nil
	}
	const header = 2 // type and length of a text in Thrift
	i += len(sealKey) + header
	if i+len(openSeal) > len(tail) {
		return nil
	}
	return tail[i : i+len(openSeal)]
}

// sealTail puts the seal into the last bytes of a file whose other bytes are in h.
func sealTail(h *xxhash.Digest, tail []byte) error {
	place := sealPlace(tail)
	if string(place) != openSeal {
		return errors.New("the footer has no place for a seal")
	}
	_, _ = h.Write(tail)
	copy(place, sealText(h))
	return nil
}

func sealText(h *xxhash.Digest) string { return hex.EncodeToString(h.Sum(nil)) }

// CheckSeal reads a whole file of size bytes and compares it with its seal: nil,
// ErrNoSeal, ErrSeal, or an error of reading. limit is the largest footer taken.
func CheckSeal(r io.ReaderAt, size, limit int64) error {
	m, _, end, err := readFooter(r, size, limit, footerTail)
	if err != nil {
		return err
	}
	sealed := false
	for _, kv := range m.KeyValueMetadata {
		sealed = sealed || kv.Key == sealKey
	}
	if !sealed {
		return ErrNoSeal
	}
	h := xxhash.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, end)); err != nil {
		return fmt.Errorf("reading the data file: %w", err)
	}
	tail := make([]byte, size-end)
	if err := readFull(r, tail, end); err != nil {
		return fmt.Errorf("reading the data file: %w", err)
	}
	place := sealPlace(tail)
	if place == nil {
		return ErrSeal
	}
	want := string(place)
	copy(place, openSeal)
	_, _ = h.Write(tail)
	if sealText(h) != want {
		return ErrSeal
	}
	return nil
}
