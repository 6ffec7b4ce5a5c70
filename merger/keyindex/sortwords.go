package keyindex

import (
	"math/bits"
	"sort"
)

// lessEntry orders entries by (hash, low, loc), or (hash, loc).
func lessEntry(a, b []uint64) bool {
	if a[0] != b[0] {
		return a[0] < b[0]
	}
	if a[1] != b[1] {
		return a[1] < b[1]
	}
	return len(a) == 3 && a[2] < b[2]
}

// entrySorter sorts entries of one shard. It keeps its table of counters.
type entrySorter struct {
	counts []uint32
}

// sort writes the entries of src, in order, to dst, which is as long and does
// not overlap it. skip is the number of top bits that all hashes have in common.
// One pass by the next bits leaves buckets of about four entries.
func (r *entrySorter) sort(dst, src []uint64, w int, skip uint) {
	n := len(src) / w
	if n == 0 {
		return
	}
	radix := min(uint(bits.Len(uint(n))), 18)
	radix -= min(radix, 2)
	shift := 64 - radix
	if cap(r.counts) < 1<<radix+1 {
		r.counts = make([]uint32, 1<<18+1)
	}
	counts := r.counts[:1<<radix+1]
	clear(counts)
	for i := 0; i < len(src); i += w {
		counts[(src[i]<<skip)>>shift+1]++
	}
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
	for i := 0; i < len(src); i += w {
		b := (src[i] << skip) >> shift
		j := int(counts[b]) * w
		counts[b]++
		dst[j], dst[j+1], dst[j+w-1] = src[i], src[i+1], src[i+w-1]
	}
	from := 0
	for _, end := range counts[:1<<radix] {
		to := int(end) * w
		if to-from > w {
			sortBucket(dst[from:to], w)
		}
		from = to
	}
}

// sortBucket sorts a few entries by insertion, many (duplicate keys, or hashes
// that someone chose) by the library unless they are in order already.
func sortBucket(e []uint64, w int) {
	if len(e) > 32*w {
		if v := (entries{e, w}); !sort.IsSorted(v) {
			sort.Sort(v)
		}
		return
	}
	if w == 2 {
		insertionSort2(e)
	} else {
		insertionSort3(e)
	}
}

func insertionSort2(e []uint64) {
	for i := 2; i+1 < len(e); i += 2 {
		h, l, j := e[i], e[i+1], i
		for ; j >= 2 && (e[j-2] > h || e[j-2] == h && e[j-1] > l); j -= 2 {
			e[j], e[j+1] = e[j-2], e[j-1]
		}
		e[j], e[j+1] = h, l
	}
}

func insertionSort3(e []uint64) {
	for i := 3; i+2 < len(e); i += 3 {
		h, low, l, j := e[i], e[i+1], e[i+2], i
		for j >= 3 && (e[j-3] > h || e[j-3] == h && (e[j-2] > low || e[j-2] == low && e[j-1] > l)) {
			e[j], e[j+1], e[j+2] = e[j-3], e[j-2], e[j-1]
			j -= 3
		}
		e[j], e[j+1], e[j+2] = h, low, l
	}
}

// entries is a view of entries for package sort.
type entries struct {
	e []uint64
	w int
}

func (v entries) Len() int { return len(v.e) / v.w }

func (v entries) at(i int) []uint64 { return v.e[i*v.w : i*v.w+v.w] }

func (v entries) Less(i, j int) bool { return lessEntry(v.at(i), v.at(j)) }

func (v entries) Swap(i, j int) {
	a, b := v.at(i), v.at(j)
	for k := range a {
		a[k], b[k] = b[k], a[k]
	}
}
