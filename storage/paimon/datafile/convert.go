package datafile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"applier/storage/types"
)

// conversion says how PLAIN values become items of a vector. The combinations
// are those that Paimon's Java reader accepts (paimon-format.md §8.2).
type conversion uint8

const (
	convNone conversion = iota
	convBool
	convInt32
	convInt32From64
	convInt64
	convInt64From32
	convFloat
	convFloatFromDouble
	convDouble
	convDoubleFromFloat
	convDecimal     // FIXED or BINARY, big-endian, to Int64 or Int128
	convDecimalFrom // INT32 or INT64 to Int128
	convBytes
	convFixedBytes
	convTimestamp // INT64 in unit to Int64 or Nano
	convTime      // INT64 in unit to Int32 milliseconds
	convInt96
)

// planLeaf finds the conversion from a file's column to t.
func planLeaf(t types.Type, at *fileNode, path string) (*leafPlan, error) {
	p := &leafPlan{t: t, chunk: at.leaf, path: path, phys: at.e.Type.V, maxDef: at.maxDef, maxRep: at.maxRep}
	switch p.phys {
	case format.Int32, format.Float:
		p.width = 4
	case format.Int64, format.Double:
		p.width = 8
	case format.Int96:
		p.width = 12
	case format.FixedLenByteArray:
		if p.width = int(at.e.TypeLength.V); p.width <= 0 || p.width > 1<<20 {
			return nil, fmt.Errorf("%w: column %s of %d bytes a value", ErrCorrupt, path, p.width)
		}
	case format.Boolean, format.ByteArray:
	default:
		return nil, fmt.Errorf("%w: column %s of physical type %d", ErrCorrupt, path, p.phys)
	}
	p.conv = p.choose(at.e)
	if it, ok := at.e.LogicalType.Value.(*format.IntType); ok && !it.IsSigned {
		p.conv = convNone
	}
	if p.conv == convNone || t.Kind == types.Decimal && !scaleFits(t, at.e) {
		what := p.phys.String()
		if at.e.LogicalType.Value != nil {
			what += " " + at.e.LogicalType.String()
		}
		return nil, notAs(path, what, t)
	}
	return p, nil
}

// choose returns convNone if the physical type does not fit.
func (p *leafPlan) choose(e *schemaElement) conversion {
	switch p.t.Kind {
	case types.Boolean:
		return p.pick(format.Boolean, convBool, format.Boolean, convBool)
	case types.TinyInt, types.SmallInt, types.Int:
		return p.pick(format.Int32, convInt32, format.Int64, convInt32From64)
	case types.BigInt:
		return p.pick(format.Int32, convInt64From32, format.Int64, convInt64)
	case types.Float:
		return p.pick(format.Float, convFloat, format.Double, convFloatFromDouble)
	case types.Double:
		return p.pick(format.Float, convDoubleFromFloat, format.Double, convDouble)
	case types.Date:
		return p.pick(format.Int32, convInt32, format.Int32, convInt32)
	case types.Time:
		if p.unit = unitOf(e); p.phys == format.Int64 && p.unit == 0 {
			return convNone
		}
		return p.pick(format.Int32, convInt32, format.Int64, convTime)
	case types.Timestamp, types.TimestampLTZ:
		if p.unit = unitOf(e); p.unit == 0 {
			p.unit = defaultUnit(p.t.Precision)
		}
		return p.pick(format.Int64, convTimestamp, format.Int96, convInt96)
	case types.Decimal:
		if p.phys == format.ByteArray || p.phys == format.FixedLenByteArray {
			return convDecimal
		}
		if types.LayoutOf(p.t) == types.LayoutInt64 {
			return p.pick(format.Int32, convInt64From32, format.Int64, convInt64)
		}
		return p.pick(format.Int32, convDecimalFrom, format.Int64, convDecimalFrom)
	}
	return p.pick(format.ByteArray, convBytes, format.FixedLenByteArray, convFixedBytes)
}

func (p *leafPlan) pick(a format.Type, ca conversion, b format.Type, cb conversion) conversion {
	switch p.phys {
	case a:
		return ca
	case b:
		return cb
	}
	return convNone
}

// scaleFits compares the scale of a DECIMAL with the annotation, if there is one.
func scaleFits(t types.Type, e *schemaElement) bool {
	if d, ok := e.LogicalType.Value.(*format.DecimalType); ok {
		return int(d.Scale) == t.Scale
	}
	if e.ConvertedType.Valid && e.ConvertedType.V == deprecated.Decimal {
		return int(e.Scale.V) == t.Scale
	}
	return true
}

// unitOf returns the nanoseconds of an annotated time unit, 0 without annotation.
func unitOf(e *schemaElement) int64 {
	var u format.TimeUnit
	switch l := e.LogicalType.Value.(type) {
	case *format.TimestampType:
		u = l.Unit
	case *format.TimeType:
		u = l.Unit
	}
	if u.Value != nil {
		return int64(u.Value.Duration())
	}
	if e.ConvertedType.Valid {
		switch e.ConvertedType.V {
		case deprecated.TimestampMillis, deprecated.TimeMillis:
			return 1_000_000
		case deprecated.TimestampMicros, deprecated.TimeMicros:
			return 1000
		}
	}
	return 0
}

func defaultUnit(precision int) int64 {
	switch {
	case precision <= 3:
		return 1_000_000
	case precision <= 6:
		return 1000
	}
	return 1
}

// extend makes room for m more items and returns where they go.
func extend[T any](s *[]T, m int) []T {
	n := len(*s)
	*s = slices.Grow(*s, m)[:n+m]
	return (*s)[n:]
}

// appendFixed appends m values of p.width bytes each to v. b has exactly those bytes.
func (p *leafPlan) appendFixed(v *types.Vector, b []byte, m int) error {
	le := binary.LittleEndian
	var err error
	switch p.conv {
	case convInt32:
		copy(asBytes(extend(&v.I32, m)), b)
	case convInt64:
		copy(asBytes(extend(&v.I64, m)), b)
	case convFloat:
		copy(asBytes(extend(&v.F32, m)), b)
	case convDouble:
		copy(asBytes(extend(&v.F64, m)), b)
	case convInt32From64:
		for i, out := 0, extend(&v.I32, m); i < m; i++ {
			x := int64(le.Uint64(b[8*i:]))
			if out[i] = int32(x); int64(out[i]) != x {
				err = fmt.Errorf("%w: %d in %s", ErrRange, x, p.t)
			}
		}
	case convInt64From32:
		for i, out := 0, extend(&v.I64, m); i < m; i++ {
			out[i] = int64(int32(le.Uint32(b[4*i:])))
		}
	case convFloatFromDouble:
		for i, out := 0, extend(&v.F32, m); i < m; i++ {
			out[i] = float32(math.Float64frombits(le.Uint64(b[8*i:])))
		}
	case convDoubleFromFloat:
		for i, out := 0, extend(&v.F64, m); i < m; i++ {
			out[i] = float64(math.Float32frombits(le.Uint32(b[4*i:])))
		}
	case convTime:
		for i, out := 0, extend(&v.I32, m); i < m; i++ {
			out[i] = int32(types.FloorDiv(int64(le.Uint64(b[8*i:])), 1_000_000/p.unit))
		}
	case convDecimalFrom:
		for i, out := 0, extend(&v.I128, m); i < m; i++ {
			if p.width == 4 {
				out[i] = types.Int128From(int64(int32(le.Uint32(b[4*i:]))))
			} else {
				out[i] = types.Int128From(int64(le.Uint64(b[8*i:])))
			}
		}
	case convDecimal:
		for i := 0; i < m && err == nil; i++ {
			err = p.appendDecimal(v, b[i*p.width:(i+1)*p.width])
		}
		return err
	case convFixedBytes:
		v.Data = append(v.Data, b...)
		for i, out := 0, extend(&v.Off, m); i < m; i++ {
			out[i] = uint32(len(v.Data) - (m-1-i)*p.width)
		}
	case convTimestamp:
		err = p.appendTimestamps(v, b, m)
	case convInt96:
		err = p.appendInt96(v, b, m)
	}
	v.Grow(v.Len() + m)
	return err
}

// appendDecimal appends one big-endian unscaled value.
func (p *leafPlan) appendDecimal(v *types.Vector, b []byte) error {
	x, ok := types.Int128FromBytes(b)
	switch {
	case !ok || v.Layout == types.LayoutInt64 && !x.IsInt64():
		return fmt.Errorf("%w: a decimal of %d bytes in %s", ErrRange, len(b), p.t)
	case v.Layout == types.LayoutInt64:
		v.AppendInt64(int64(x.Lo))
	default:
		v.AppendInt128(x)
	}
	return nil
}

func (p *leafPlan) appendTimestamps(v *types.Vector, b []byte, m int) error {
	out := extend(&v.I64, m)
	var nanos []int32
	if v.Layout == types.LayoutNano {
		nanos = extend(&v.I32, m)
		clear(nanos)
	}
	copy(asBytes(out), b)
	switch p.unit {
	case 1:
		for i, x := range out {
			out[i] = types.FloorDiv(x, 1000)
			if nanos != nil {
				nanos[i] = int32(x - 1000*out[i])
			}
		}
	case 1_000_000:
		for i, x := range out {
			if x > math.MaxInt64/1000 || x < math.MinInt64/1000 {
				return fmt.Errorf("%w: %d milliseconds in %s", ErrRange, x, p.t)
			}
			out[i] = 1000 * x
		}
	}
	return nil
}

// appendInt96 reads nanoseconds of the day and Julian day. Java's form before
// 1970, with a day rounded towards 1970 and negative nanoseconds, adds up alike.
func (p *leafPlan) appendInt96(v *types.Vector, b []byte, m int) error {
	out := extend(&v.I64, m)
	var nanos []int32
	if v.Layout == types.LayoutNano {
		nanos = extend(&v.I32, m)
	}
	for i := range out {
		ns := int64(binary.LittleEndian.Uint64(b[12*i:]))
		day := int64(int32(binary.LittleEndian.Uint32(b[12*i+8:]))) - julianEpoch
		us := types.FloorDiv(ns, 1000)
		micros, ok := mulAdd(day, microsPerDay, us)
		if !ok {
			return fmt.Errorf("%w: day %d in %s", ErrRange, day, p.t)
		}
		out[i] = micros
		if nanos != nil {
			nanos[i] = int32(ns - 1000*us)
		}
	}
	return nil
}

// mulAdd returns a·b+c if it fits.
func mulAdd(a, b, c int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	h := int64(hi)
	if a < 0 {
		h -= b // b is positive
	}
	if h != int64(lo)>>63 {
		return 0, false
	}
	x := int64(lo)
	s := x + c
	return s, (s > x) == (c > 0)
}
