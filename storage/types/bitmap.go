package types

import "math/bits"

// Bitmap is a set of row ordinals, one bit a row. Rows beyond its length are
// not in the set, so an empty Bitmap costs nothing. Not safe for concurrent writes.
type Bitmap []uint64

// Get reports whether row i is in the set.
func (b Bitmap) Get(i int) bool {
	w := uint(i) >> 6
	return w < uint(len(b)) && b[w]>>(uint(i)&63)&1 != 0
}

// Set adds row i.
func (b *Bitmap) Set(i int) {
	w := i >> 6
	for len(*b) <= w {
		*b = append(*b, 0)
	}
	(*b)[w] |= 1 << (uint(i) & 63)
}

// Clear removes row i.
func (b Bitmap) Clear(i int) {
	if w := i >> 6; w < len(b) {
		b[w] &^= 1 << (uint(i) & 63)
	}
}

// Truncate removes every row from n on.
func (b *Bitmap) Truncate(n int) {
	w := n >> 6
	if w >= len(*b) {
		return
	}
	if r := uint(n) & 63; r != 0 {
		(*b)[w] &= 1<<r - 1
		w++
	}
	*b = (*b)[:w]
}

// Reset empties the set and keeps its memory.
func (b *Bitmap) Reset() { *b = (*b)[:0] }

// Any reports whether the set is not empty.
func (b Bitmap) Any() bool {
	for _, w := range b {
		if w != 0 {
			return true
		}
	}
	return false
}

// Count returns the number of rows in the set.
func (b Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// CountRange returns the number of rows in [from, to).
func (b Bitmap) CountRange(from, to int) int {
	n := 0
	for i := from; i < to; {
		w := i >> 6
		if w >= len(b) {
			break
		}
		word := b[w] >> (uint(i) & 63)
		if left := to - i; left < 64 {
			word &= 1<<uint(left) - 1
		}
		n += bits.OnesCount64(word)
		i = (w + 1) << 6
	}
	return n
}
