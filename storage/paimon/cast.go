package paimon

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"applier/storage/types"
)

// ErrTypeChanged: a file holds a column of a type that cannot be read as the
// type that the table has now.
var ErrTypeChanged = errors.New("column type differs from the file's")

// caster appends rows [from, to) of src, values of an older type of a column, to
// dst as values of the newer one. A nil caster means that the older values are
// the newer ones as they are.
type caster func(dst, src *types.Vector, from, to int) error

// maxPadding bounds CHAR(n) and BINARY(n) that older values are filled up to:
// there every value of a few bytes takes n.
const maxPadding = 1024

// newCaster relates the types that a column had and has. What works is what
// loses nothing: integers that were widened, also to DECIMAL or to a floating
// point type that holds them all, FLOAT as DOUBLE, DECIMAL with more digits on
// both sides of the point, longer text and binary, finer timestamps and times, numbers, booleans and dates as STRING;
// and in nested types added, dropped, renamed and moved fields, and such changes
// of what they consist of. Paimon's Java core has more casts, which round, cut or
// make NULLs (paimon-format.md §2.6, CastExecutors.java); they are ErrTypeChanged.
func newCaster(to, from types.Type) (caster, error) {
	if to.EqualIgnoringNull(from) {
		return nil, nil
	}
	var c caster
	var err error
	ok := false
	switch {
	case to.Kind == types.Row && from.Kind == types.Row:
		return rowCaster(to, from)
	case to.Kind == types.Array && from.Kind == types.Array:
		return listCaster(to, from)
	case to.Kind == types.Map && from.Kind == types.Map:
		return mapCaster(to, from)
	case to.Kind == types.VarChar && to.Length == types.MaxLength && becomesText(from):
		c, ok = textCaster(from), true
	case from.IsInteger():
		c, ok = integerCaster(to, from)
	case from.Kind == types.Float:
		c, ok = floatToDouble, to.Kind == types.Double
	case from.Kind == types.Decimal && to.Kind == types.Decimal:
		c, ok = decimalCaster(to, from.Scale), to.Scale >= from.Scale && to.Precision-to.Scale >= from.Precision-from.Scale
	case from.IsText() || from.IsBinary():
		c, ok = bytesCaster(to, from)
	case from.IsTimestamp() && to.Kind == from.Kind:
		c, ok = timestampCaster(to, from), to.Precision >= from.Precision
	case from.Kind == types.Time && to.Kind == types.Time:
		ok = to.Precision >= from.Precision
	}
	if !ok {
		err = fmt.Errorf("%w: %s in the file, %s in the table", ErrTypeChanged, from.Nullable(), to.Nullable())
	}
	return c, err
}

// becomesText reports whether values of a type read as STRING: those whose text is
// the same in every engine.
func becomesText(t types.Type) bool {
	return t.Kind == types.Boolean || t.IsNumeric() || t.Kind == types.Date || t.IsTimestamp()
}

func textCaster(from types.Type) caster {
	return func(dst, src *types.Vector, a, b int) error {
		var buf []byte
		each(dst, src, a, b, func(i int) {
			buf = appendJavaText(buf[:0], from, src.Datum(i))
			dst.AppendBytes(buf)
		})
		return nil
	}
}

// appendJavaText writes a value as Java's casts to STRING do; instants in UTC.
func appendJavaText(dst []byte, t types.Type, d types.Datum) []byte {
	switch t.Kind {
	case types.Float:
		return append(dst, javaFloat(d.F, 32)...)
	case types.Double:
		return append(dst, javaFloat(d.F, 64)...)
	case types.Timestamp, types.TimestampLTZ:
		return append(dst, sqlTimestamp(d.I, d.N, t.Precision)...)
	}
	return types.AppendText(dst, t, d)
}

// each calls add for every row that is not NULL.
func each(dst, src *types.Vector, from, to int, add func(i int)) {
	for i := from; i < to; i++ {
		if src.IsNull(i) {
			dst.AppendNull()
		} else {
			add(i)
		}
	}
}

// decimalDigits is how many digits the integer types need.
var decimalDigits = [...]int{types.TinyInt: 3, types.SmallInt: 5, types.Int: 10, types.BigInt: 19}

func integerCaster(to, from types.Type) (caster, bool) {
	switch {
	case to.IsInteger() && to.Kind > from.Kind:
		if to.Kind < types.BigInt {
			return nil, true // all of them are kept in 32 bits
		}
		return func(dst, src *types.Vector, a, b int) error {
			each(dst, src, a, b, func(i int) { dst.AppendInt64(int64(src.I32[i])) })
			return nil
		}, true
	case to.Kind == types.Float && from.Kind < types.Int:
		return func(dst, src *types.Vector, a, b int) error {
			each(dst, src, a, b, func(i int) { dst.AppendFloat(float32(src.I32[i])) })
			return nil
		}, true
	case to.Kind == types.Double && from.Kind < types.BigInt:
		return func(dst, src *types.Vector, a, b int) error {
			each(dst, src, a, b, func(i int) { dst.AppendDouble(float64(src.I32[i])) })
			return nil
		}, true
	case to.Kind == types.Decimal && to.Precision-to.Scale >= decimalDigits[from.Kind]:
		return decimalCaster(to, 0), true
	}
	return nil, false
}

func floatToDouble(dst, src *types.Vector, from, to int) error {
	each(dst, src, from, to, func(i int) { dst.AppendDouble(float64(src.F32[i])) })
	return nil
}

// decimalCaster makes DECIMALs of integers and of DECIMALs of another scale.
func decimalCaster(t types.Type, scale int) caster {
	return func(dst, src *types.Vector, from, to int) error {
		var err error
		each(dst, src, from, to, func(i int) {
			var v types.Int128
			switch src.Layout {
			case types.LayoutInt32:
				v = types.Int128From(int64(src.I32[i]))
			case types.LayoutInt64:
				v = types.Int128From(src.I64[i])
			default:
				v = src.I128[i]
			}
			scaled, e := v.Rescale(scale, t.Scale, t.Precision)
			if e != nil && err == nil { // only a value that was too large for its own type
				err = fmt.Errorf("%w: a value of %s: %w", ErrCorrupt, t, e)
			}
			if dst.Layout == types.LayoutInt64 {
				dst.AppendInt64(int64(scaled.Lo))
			} else {
				dst.AppendInt128(scaled)
			}
		})
		return err
	}
}

// bytesCaster lets text and binary become longer; CHAR and BINARY are filled up
// to their new length, as Java does (BinaryStringUtils).
func bytesCaster(to, from types.Type) (caster, bool) {
	if to.Length < from.Length || to.IsText() != from.IsText() || !to.IsText() && !to.IsBinary() {
		return nil, false
	}
	switch {
	case to.Kind == types.VarChar || to.Kind == types.VarBinary:
		return nil, true
	case to.Kind != from.Kind || to.Length > maxPadding:
		return nil, false
	}
	count, fill := utf8.RuneCount, byte(' ')
	if to.Kind == types.Binary {
		count, fill = func(b []byte) int { return len(b) }, 0
	}
	return func(dst, src *types.Vector, a, b int) error {
		each(dst, src, a, b, func(i int) {
			v := src.Bytes(i)
			dst.Data = append(dst.Data, v...)
			for n := count(v); n < to.Length; n++ {
				dst.Data = append(dst.Data, fill)
			}
			dst.EndRow()
		})
		return nil
	}, true
}

// timestampCaster is for microseconds that are kept with nanoseconds now.
func timestampCaster(to, from types.Type) caster {
	if types.LayoutOf(to) == types.LayoutOf(from) {
		return nil
	}
	return func(dst, src *types.Vector, a, b int) error {
		each(dst, src, a, b, func(i int) { dst.AppendNano(src.I64[i], 0) })
		return nil
	}
}

// copyOrCast appends rows with a caster that may be nil.
func copyOrCast(c caster, dst, src *types.Vector, from, to int) error {
	if c != nil {
		return c(dst, src, from, to)
	}
	dst.AppendRange(src, from, to)
	return nil
}

// rowCaster follows fields by their ids; a field that the file has not is NULL.
func rowCaster(to, from types.Type) (caster, error) {
	source, casts := make([]int, len(to.Fields)), make([]caster, len(to.Fields))
	same := len(to.Fields) == len(from.Fields)
	for i, f := range to.Fields {
		source[i] = -1
		for j, g := range from.Fields {
			if g.ID != f.ID {
				continue
			}
			source[i] = j
			var err error
			if casts[i], err = newCaster(f.Type, g.Type); err != nil {
				return nil, fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
		same = same && source[i] == i && casts[i] == nil
	}
	if same {
		return nil, nil
	}
	return func(dst, src *types.Vector, a, b int) error {
		for i, child := range dst.Child {
			if source[i] < 0 {
				for range b - a {
					child.AppendNull()
				}
			} else if err := copyOrCast(casts[i], child, src.Child[source[i]], a, b); err != nil {
				return err
			}
		}
		for i := a; i < b; i++ {
			if src.IsNull(i) {
				dst.Nulls.Set(dst.Len())
			}
			dst.EndRow()
		}
		return nil
	}, nil
}

func listCaster(to, from types.Type) (caster, error) {
	c, err := newCaster(*to.Elem, *from.Elem)
	if c == nil || err != nil {
		return nil, err
	}
	return func(dst, src *types.Vector, a, b int) error {
		var err error
		each(dst, src, a, b, func(i int) {
			if err == nil {
				err = c(dst.Child[0], src.Child[0], int(src.Off[i]), int(src.Off[i+1]))
			}
			dst.EndRow()
		})
		return err
	}, nil
}

// mapCaster changes values; keys keep their type, as in Java.
func mapCaster(to, from types.Type) (caster, error) {
	if !to.Key.EqualIgnoringNull(*from.Key) {
		return nil, fmt.Errorf("%w: map keys are %s in the file, %s in the table", ErrTypeChanged, from.Key, to.Key)
	}
	c, err := newCaster(*to.Elem, *from.Elem)
	if c == nil || err != nil {
		return nil, err
	}
	return func(dst, src *types.Vector, a, b int) error {
		var err error
		each(dst, src, a, b, func(i int) {
			from, to := int(src.Off[i]), int(src.Off[i+1])
			dst.Child[0].AppendRange(src.Child[0], from, to)
			if err == nil {
				err = c(dst.Child[1], src.Child[1], from, to)
			}
			dst.EndRow()
		})
		return err
	}, nil
}

// castDatum casts one value; NULL stays NULL.
func castDatum(c caster, to, from types.Type, d types.Datum) (types.Datum, error) {
	if c == nil || d.Null {
		return d, nil
	}
	src, dst := types.NewVector(from), types.NewVector(to)
	src.AppendDatum(d)
	if err := c(dst, src, 0, 1); err != nil {
		return types.Null, err
	}
	return dst.Datum(0), nil
}
