package expr

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// lit returns a literal.
func (c *compiler) lit(pos sqlparse.Pos, t Type, v types.Datum) *node {
	n := newConst(pos, t, v)
	n.literal = true
	return n
}

// number compiles a numeric literal; its type follows from suffix and look.
func (c *compiler) number(e *sqlparse.NumberLit) *node {
	switch e.Suffix {
	case "Y":
		return c.intLit(e, tByte, 8)
	case "S":
		return c.intLit(e, tShort, 16)
	case "L":
		return c.intLit(e, tLong, 64)
	case "F":
		return c.floatLit(e, tFloat, math.MaxFloat32)
	case "D":
		return c.floatLit(e, tDouble, math.MaxFloat64)
	case "BD":
		return c.decimalLit(e)
	}
	if strings.ContainsRune(e.Text, 'E') {
		return c.floatLit(e, tDouble, math.MaxFloat64)
	}
	if strings.ContainsRune(e.Text, '.') {
		return c.decimalLit(e)
	}
	if v, err := strconv.ParseInt(e.Text, 10, 32); err == nil {
		return c.lit(e.Pos, tInt, types.IntDatum(v))
	}
	if v, err := strconv.ParseInt(e.Text, 10, 64); err == nil {
		return c.lit(e.Pos, tLong, types.IntDatum(v))
	}
	return c.decimalLit(e)
}

func (c *compiler) intLit(e *sqlparse.NumberLit, t Type, bits int) *node {
	v, err := strconv.ParseInt(e.Text, 10, bits)
	if err != nil {
		return c.fail(e.Pos, "INVALID_NUMERIC_LITERAL_RANGE", "the number %s%s does not fit %s", e.Text, e.Suffix, strings.ToUpper(t.String()))
	}
	return c.lit(e.Pos, t, types.IntDatum(v))
}

// floatLit compiles FLOAT and DOUBLE literals. The bound is compared as decimal
// numbers, before rounding: 3.4028235E38F is a little more than the greatest FLOAT.
func (c *compiler) floatLit(e *sqlparse.NumberLit, t Type, limit float64) *node {
	v, err := strconv.ParseFloat(e.Text, 64)
	if t.Kind == Float {
		v, _ = strconv.ParseFloat(e.Text, 32)
	}
	exact, _, perr := big.ParseFloat(e.Text, 10, 2048, big.ToNearestEven)
	if perr != nil || (err != nil && math.IsInf(v, 0)) || exact.Abs(exact).Cmp(big.NewFloat(limit)) > 0 {
		return c.fail(e.Pos, "INVALID_NUMERIC_LITERAL_RANGE", "the number %s%s does not fit %s", e.Text, e.Suffix, strings.ToUpper(t.String()))
	}
	return c.lit(e.Pos, t, types.FloatDatum(v))
}

func (c *compiler) decimalLit(e *sqlparse.NumberLit) *node {
	v, scale, err := parseBig(e.Text)
	if err != nil {
		return c.fail(e.Pos, "INVALID_NUMERIC_LITERAL_RANGE", "%s is no number", e.Text)
	}
	if scale < 0 {
		v.Mul(v, bigPow10(-scale))
		scale = 0
	}
	p := max(digits(v), scale)
	if p > types.MaxPrecision {
		return c.fail(e.Pos, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", "the number %s has more than 38 digits", e.Text)
	}
	t := decimalOf(p, scale)
	return c.lit(e.Pos, t, decimalDatum(t, v))
}

// typedLit compiles DATE '…' and its like.
func (c *compiler) typedLit(e *sqlparse.TypedLit) *node {
	var d types.Datum
	var err error
	t := tStamp
	switch e.Type {
	case "DATE":
		t = tDate
		d, err = dateLiteral(e.Value, c.env)
	case "TIME":
		t = tTime
		d, err = parseTimeText([]byte(e.Value), 6)
	case "TIMESTAMP_NTZ":
		t = tNTZ
		d, err = parseStampText([]byte(e.Value), c.env, stampIgnoreZone)
	case "TIMESTAMP_LTZ":
		d, err = stampLiteral(e.Value, c.env)
	default:
		d, err = stampLiteral(e.Value, c.env)
	}
	if err != nil {
		return c.fail(e.Pos, "INVALID_TYPED_LITERAL", "%q is no %s", e.Value, e.Type)
	}
	return c.lit(e.Pos, t, d)
}
