package datafile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"applier/storage/types"
)

// bounds collects the smallest and largest value of a scalar column, in the
// order that readers prune by: numbers by value, text and binary by unsigned
// bytes. A NaN makes them unknown: engines disagree on where it sorts.
type bounds struct {
	layout  types.Layout
	has     bool
	unknown bool
	lo, hi  int64
	flo     float64
	fhi     float64
	dlo     types.Int128
	dhi     types.Int128
	blo     []byte
	bhi     []byte
	preLo   uint64 // first eight bytes of blo, bhi: most values differ there
	preHi   uint64
}

func (b *bounds) reset() {
	*b = bounds{layout: b.layout, blo: b.blo[:0], bhi: b.bhi[:0]}
}

// shrink gives back large buffers; b is reset next.
func (b *bounds) shrink() {
	if cap(b.blo)+cap(b.bhi) > keepEach {
		b.blo, b.bhi = nil, nil
	}
}

// add takes in the values of rs, none of them NULL.
func (b *bounds) add(v *types.Vector, rs rows) {
	if rs.len() == 0 {
		return
	}
	switch v.Layout {
	case types.LayoutBool:
		lo, hi := minMax(v.U8, rs)
		b.addInt(int64(lo), int64(hi))
	case types.LayoutInt32:
		lo, hi := minMax(v.I32, rs)
		b.addInt(int64(lo), int64(hi))
	case types.LayoutInt64:
		b.addInt(minMax(v.I64, rs))
	case types.LayoutFloat:
		lo, hi, nan := minMaxFloat(v.F32, rs)
		b.addFloat(float64(lo), float64(hi), nan)
	case types.LayoutDouble:
		b.addFloat(minMaxFloat(v.F64, rs))
	case types.LayoutInt128:
		for k := range rs.len() {
			x := v.I128[rs.at(k)]
			b.addDecimal(x, x)
		}
	case types.LayoutBytes:
		for k := range rs.len() {
			i := rs.at(k)
			b.addBytes(v.Data[v.Off[i]:v.Off[i+1]])
		}
	default:
		b.unknown = true // TIMESTAMP(7..9): see ColumnStats
	}
}

func (b *bounds) addInt(lo, hi int64) {
	if !b.has {
		b.lo, b.hi, b.has = lo, hi, true
		return
	}
	b.lo, b.hi = min(b.lo, lo), max(b.hi, hi)
}

func (b *bounds) addFloat(lo, hi float64, nan bool) {
	b.unknown = b.unknown || nan
	if !b.has {
		b.flo, b.fhi, b.has = lo, hi, true
		return
	}
	b.flo, b.fhi = min(b.flo, lo), max(b.fhi, hi)
}

func (b *bounds) addDecimal(lo, hi types.Int128) {
	if !b.has {
		b.dlo, b.dhi, b.has = lo, hi, true
		return
	}
	if lo.Cmp(b.dlo) < 0 {
		b.dlo = lo
	}
	if hi.Cmp(b.dhi) > 0 {
		b.dhi = hi
	}
}

func (b *bounds) addBytes(x []byte) {
	p := prefix64(x)
	if b.has && p > b.preLo && p < b.preHi {
		return
	}
	if !b.has || p <= b.preLo && bytes.Compare(x, b.blo) < 0 {
		b.blo, b.preLo = append(b.blo[:0], x...), p
	}
	if !b.has || p >= b.preHi && bytes.Compare(x, b.bhi) > 0 {
		b.bhi, b.preHi = append(b.bhi[:0], x...), p
	}
	b.has = true
}

// prefix64 orders like the first eight bytes of x, zeros behind its end.
func prefix64(x []byte) uint64 {
	if len(x) >= 8 {
		return binary.BigEndian.Uint64(x)
	}
	var p uint64
	for i, c := range x {
		p |= uint64(c) << (56 - 8*i)
	}
	return p
}

// merge takes in the values of o.
func (b *bounds) merge(o *bounds) {
	b.unknown = b.unknown || o.unknown
	if !o.has {
		return
	}
	switch b.layout {
	case types.LayoutFloat, types.LayoutDouble:
		b.addFloat(o.flo, o.fhi, o.unknown)
	case types.LayoutInt128:
		b.addDecimal(o.dlo, o.dhi)
	case types.LayoutBytes:
		b.addBytes(o.blo)
		b.addBytes(o.bhi)
	default:
		b.addInt(o.lo, o.hi)
	}
}

// known reports whether there are bounds.
func (b *bounds) known() bool { return b.has && !b.unknown }

// datums returns the bounds as values. Zeros of floats are widened to both
// signs: readers take -0.0 and 0.0 as equal or as different (paimon-format.md §5.5).
func (b *bounds) datums() (lo, hi types.Datum) {
	switch b.layout {
	case types.LayoutFloat, types.LayoutDouble:
		lo, hi = types.FloatDatum(b.flo), types.FloatDatum(b.fhi)
		widenZeros(&lo, &hi)
		return lo, hi
	case types.LayoutInt128:
		return types.Datum{D: b.dlo}, types.Datum{D: b.dhi}
	case types.LayoutBytes:
		return types.BytesDatum(append([]byte{}, b.blo...)), types.BytesDatum(append([]byte{}, b.bhi...))
	}
	return types.IntDatum(b.lo), types.IntDatum(b.hi)
}

func widenZeros(lo, hi *types.Datum) {
	if lo.F == 0 {
		lo.F = math.Copysign(0, -1)
	}
	if hi.F == 0 {
		hi.F = 0
	}
}

// check says whether every value fits t. It costs nothing per row.
func (b *bounds) check(t types.Type) error {
	if !b.has {
		return nil
	}
	var lo, hi int64
	switch t.Kind {
	case types.TinyInt:
		lo, hi = math.MinInt8, math.MaxInt8
	case types.SmallInt:
		lo, hi = math.MinInt16, math.MaxInt16
	case types.Time:
		lo, hi = 0, 86_400_000-1
	case types.Decimal:
		if b.layout == types.LayoutInt128 {
			if !b.dlo.FitsPrecision(t.Precision) || !b.dhi.FitsPrecision(t.Precision) {
				return fmt.Errorf("%w: unscaled decimals from %s to %s in %s", ErrRange,
					types.AppendDecimal(nil, b.dlo, 0), types.AppendDecimal(nil, b.dhi, 0), t)
			}
			return nil
		}
		hi = int64(types.Pow10(t.Precision).Lo) - 1
		lo = -hi
	default:
		return nil
	}
	if b.lo < lo || b.hi > hi {
		return fmt.Errorf("%w: values from %d to %d in %s", ErrRange, b.lo, b.hi, t)
	}
	return nil
}

func minMax[T cmp.Ordered](s []T, rs rows) (lo, hi T) {
	lo = s[rs.at(0)]
	hi = lo
	if rs.sel == nil {
		for _, x := range s[rs.from:rs.to] {
			lo, hi = min(lo, x), max(hi, x)
		}
		return lo, hi
	}
	for _, i := range rs.sel {
		x := s[i]
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// minMaxFloat is minMax over the values that are no NaN; with only NaN the
// result is meaningless, and nan says so.
func minMaxFloat[T float32 | float64](s []T, rs rows) (lo, hi T, nan bool) {
	first := true
	for k := range rs.len() {
		x := s[rs.at(k)]
		switch {
		case x != x:
			nan = true
		case first:
			lo, hi, first = x, x, false
		case x < lo:
			lo = x
		case x > hi:
			hi = x
		}
	}
	return lo, hi, nan
}
