package datafile

import (
	"encoding/binary"
	"unsafe"
)

// rows names rows of a vector: those in sel, or [from, to) when sel is nil.
type rows struct {
	sel      []uint32
	from, to int
}

func (r rows) len() int {
	if r.sel != nil {
		return len(r.sel)
	}
	return r.to - r.from
}

// at returns the k-th row.
func (r rows) at(k int) int {
	if r.sel != nil {
		return int(r.sel[k])
	}
	return r.from + k
}

// littleEndian is the byte order that pages are copied in.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// asBytes views numbers as the bytes of their PLAIN encoding; see littleEndian.
func asBytes[T int32 | int64 | uint32 | uint64 | float32 | float64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// bits32 and bits64 view floats as the integers of the same bits.
func bits32(s []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

func bits64(s []float64) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
