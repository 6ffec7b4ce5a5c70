package datafile

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// Limits of dictionaries. A dictionary over a column of many values costs five
// times the CPU and saves nothing (performance.md §1), so it must earn its
// place in a sample of the chunk's first values and stay small.
const (
	dictMaxEntries = 1 << 15
	dictMaxBytes   = 256 << 10
	dictProbe      = 512  // values after which a clearly unfit column is given up
	dictSample     = 4096 // values after which the decision falls
)

// dictionary numbers the different byte strings of a column chunk in the order
// of their first use.
type dictionary struct {
	seed  maphash.Seed
	table []uint64 // open addressing; high half hash, low half number+1, 0 is free
	off   []uint32 // value i is plain[off[i]+4:off[i+1]]
	plain []byte   // the dictionary page, PLAIN encoded
}

func newDictionary() *dictionary {
	return &dictionary{seed: maphash.MakeSeed(), table: make([]uint64, 1024), off: []uint32{0}}
}

func (d *dictionary) reset() {
	clear(d.table)
	d.off = d.off[:1]
	d.plain = d.plain[:0]
}

func (d *dictionary) len() int { return len(d.off) - 1 }

func (d *dictionary) value(i int) []byte { return d.plain[d.off[i]+4 : d.off[i+1]] }

// full reports that a new value might not fit anymore.
func (d *dictionary) full() bool { return d.len() >= dictMaxEntries || len(d.plain) >= dictMaxBytes }

// number returns the number of x and whether it is new.
func (d *dictionary) number(x []byte) (n int32, isNew bool) {
	h := maphash.Bytes(d.seed, x)
	mask := uint64(len(d.table) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		e := d.table[i]
		if e == 0 {
			break
		}
		if e>>32 == h>>32 {
			if k := int(uint32(e)) - 1; bytes.Equal(d.value(k), x) {
				return int32(k), false
			}
		}
	}
	n = int32(d.len())
	d.plain = binary.LittleEndian.AppendUint32(d.plain, uint32(len(x)))
	d.plain = append(d.plain, x...)
	d.off = append(d.off, uint32(len(d.plain)))
	if 2*d.len() > len(d.table) {
		d.rehash()
	} else {
		d.insert(h, n)
	}
	return n, true
}

func (d *dictionary) insert(h uint64, n int32) {
	mask := uint64(len(d.table) - 1)
	i := h & mask
	for d.table[i] != 0 {
		i = (i + 1) & mask
	}
	d.table[i] = h>>32<<32 | uint64(n+1)
}

func (d *dictionary) rehash() {
	d.table = make([]uint64, 2*len(d.table))
	for k := range d.len() {
		d.insert(maphash.Bytes(d.seed, d.value(k)), int32(k))
	}
}

// sample is what the first values of a chunk say about a dictionary.
type sample uint8

const (
	sampleMore sample = iota // look at more values
	sampleYes
	sampleNo
)

// judge decides from n values of which plain bytes were written, atEnd if no
// more come. A dictionary must make the column at least a quarter smaller
// before compression.
func (d *dictionary) judge(n, plain int, atEnd bool) sample {
	switch {
	case d.full():
		return sampleNo
	case n < dictProbe && !atEnd:
		return sampleMore
	case n < dictProbe/8:
		return sampleNo
	case n < dictSample && !atEnd:
		if 10*d.len() > 9*n {
			return sampleNo
		}
		return sampleMore
	}
	indexes := n * bitWidth(d.len()-1) / 8
	if len(d.plain)+indexes > plain/4*3 {
		return sampleNo
	}
	return sampleYes
}
