package datafile

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"applier/storage/types"
)

// RowGroupStats is what a footer says about a row group.
type RowGroupStats struct {
	f       *File
	Ordinal int
	Start   int64 // position of its first row in the file
	Rows    int64
}

// RowGroup returns what the footer says about row group g, 0 ≤ g < RowGroups().
func (f *File) RowGroup(g int) RowGroupStats {
	s := RowGroupStats{f: f, Ordinal: g, Rows: f.meta.RowGroups[g].NumRows}
	for i := range g {
		s.Start += f.meta.RowGroups[i].NumRows
	}
	return s
}

// Column returns the statistics of wanted column i (an index of
// ReadOptions.Fields) in the row group. A column that the file does not have is
// NULL throughout. Bounds are given only where they can be trusted; they enclose
// all values that are not NULL, and their bytes alias the footer.
func (s RowGroupStats) Column(i int) ColumnStats {
	c := s.f.cols[i]
	if c.node == nil {
		return ColumnStats{NullCount: s.Rows}
	}
	out := ColumnStats{NullCount: -1}
	if c.nested() {
		return out
	}
	p := c.leaves[0]
	st := &s.f.meta.RowGroups[s.Ordinal].Columns[p.chunk].MetaData.Statistics
	if n, ok := st.NullCount.Get(); ok && n >= 0 && n <= s.Rows {
		out.NullCount = n
	}
	var lo, hi []byte
	if orders := s.f.meta.ColumnOrders; p.chunk < len(orders) && orders[p.chunk].Value != nil {
		lo, hi = st.MinValue, st.MaxValue
	}
	if lo == nil && hi == nil && p.signedOrder() {
		lo, hi = st.Min, st.Max
	}
	if lo == nil || hi == nil || !s.f.ordersRight(p) {
		return out
	}
	var ok1, ok2 bool
	out.Min, ok1 = p.statDatum(lo)
	out.Max, ok2 = p.statDatum(hi)
	if !ok1 || !ok2 {
		return ColumnStats{NullCount: out.NullCount}
	}
	if k := p.t.Kind; k == types.Float || k == types.Double {
		widenZeros(&out.Min, &out.Max)
	}
	out.HasBounds = types.CompareDatums(p.t, out.Min, out.Max) <= 0
	return out
}

// signedOrder reports that the deprecated min and max have the order of the type.
func (p *leafPlan) signedOrder() bool {
	switch p.phys {
	case format.Int32, format.Int64, format.Float, format.Double, format.Boolean:
		return true
	}
	return false
}

// ordersRight sorts out bounds in another order than the type's: INT96 has none,
// and parquet-go compares FIXED decimals without sign (ecosystem.md §9). For
// binary decimals writers differ. Bounds of floats leave out NaN, which is above
// all numbers here, unless the writer is one that then writes no bounds.
func (f *File) ordersRight(p *leafPlan) bool {
	if p.t.Kind == types.Float || p.t.Kind == types.Double {
		by := f.meta.CreatedBy
		return p.conv != convFloatFromDouble && (strings.HasPrefix(by, "applier ") || strings.HasPrefix(by, "parquet-mr "))
	}
	switch p.conv {
	case convInt96:
		return false
	case convDecimal:
		return p.phys == format.FixedLenByteArray && !strings.Contains(f.meta.CreatedBy, "parquet-go")
	case convFixedBytes:
		return false
	}
	return true
}

// statDatum decodes a bound; ok is false for a NaN or a wrong length.
func (p *leafPlan) statDatum(b []byte) (d types.Datum, ok bool) {
	if p.conv == convBytes {
		return types.BytesDatum(b), true
	}
	if p.conv == convBool {
		return types.BoolDatum(len(b) > 0 && b[0] != 0), len(b) == 1
	}
	if len(b) != p.width || p.width == 0 {
		return d, false
	}
	switch p.conv {
	case convFloat, convDoubleFromFloat:
		d.F = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		return d, d.F == d.F
	case convDouble:
		d.F = math.Float64frombits(binary.LittleEndian.Uint64(b))
		return d, d.F == d.F
	}
	v := types.NewVector(p.t)
	if err := p.appendFixed(v, b, 1); err != nil {
		return d, false
	}
	return v.Datum(0), true
}
