package decode

import (
	"strings"

	"applier/storage/types"
)

// The rules that turn a JSON value into a cell. One converter is chosen for
// each pair of source type and column, when a schema is compiled or, without
// schema, once; then it runs without looking at either again.
//
//   - Numbers are exact. An integer may be written 1.0 or 1e3; a decimal may
//     have more zeros than the column has digits; everything else that does not
//     fit is a range error. Only FLOAT and DOUBLE round, once, from the text.
//   - Numbers in text form are taken where the schema says text or there is no
//     schema. NaN and infinities are texts; only FLOAT and DOUBLE hold them.
//   - BOOLEAN takes 0 and 1, integer columns take true and false from Debezium
//     (MySQL's TINYINT(1) alternates between both).
//   - Text is counted in code points. Numbers, booleans and nested values go
//     into text columns as they are written; dates, times and decimals of a
//     schema in their usual text form.
//   - bytes are base64. Text for a binary column is decoded as Options.Binary says.
//   - Digits of a time that the column does not hold are cut, towards the past.
//     TIME holds milliseconds at any precision (as Paimon does) and 0:00 to 24:00
//     only. PostgreSQL's infinities become 9999-12-31T23:59:59.999999 and 0001-01-01.
//   - Wall-clock times go into TIMESTAMP. In a TIMESTAMP_LTZ column they are
//     taken as UTC if a schema says what they are, and refused otherwise. An
//     instant goes into TIMESTAMP only if its text ends in Z.
//   - Without schema, Debezium's numbers have the unit of its adaptive mode for
//     the column's precision: DATE days; TIME to 3 digits milliseconds, above
//     microseconds; TIMESTAMP to 3 digits milliseconds, to 6 microseconds, above
//     nanoseconds. Decimals in base64 need Options.UnscaledDecimals. Plain JSON
//     has ISO texts only.

// fault says why a value does not fit its column.
type fault struct {
	class Class
	msg   string
}

var (
	errForm        = &fault{ClassType, "a value of this form does not fit the column"}
	errNumberText  = &fault{ClassType, "the text is not a number"}
	errOverflow    = &fault{ClassRange, "the number is out of range"}
	errFraction    = &fault{ClassRange, "the number has more fraction digits than the column"}
	errNotFinite   = &fault{ClassRange, "NaN and infinities fit FLOAT and DOUBLE only"}
	errTooLong     = &fault{ClassLength, "the value is too long"}
	errBase64      = &fault{ClassType, "the text is not base64"}
	errHex         = &fault{ClassType, "the text is not hexadecimal"}
	errUnscaled    = &fault{ClassType, "the text is not a number; if the producer sends decimals as base64 without a schema, set source.decimals to unscaled or decimal.handling.mode=string at the producer"}
	errVariant     = &fault{ClassUnsupported, "values of VARIANT columns are not made from records"}
	errStructured  = &fault{ClassUnsupported, "structured values go into text columns only"}
	errTimeText    = &fault{ClassType, "the text is not an ISO date or time"}
	errTimeRange   = &fault{ClassRange, "the date or time is out of range"}
	errTimeUnit    = &fault{ClassType, "a number without a time unit does not fit the column"}
	errZoneMissing = &fault{ClassType, "the text has no zone, which TIMESTAMP_LTZ needs"}
	errZoneExtra   = &fault{ClassType, "the text has a zone other than Z, which only TIMESTAMP_LTZ can hold"}
	errClock       = &fault{ClassRange, "a time outside 00:00 to 24:00 (MySQL's durations fit a STRING column)"}
	errMidnight    = &fault{ClassRange, "a timestamp that is not midnight does not fit DATE"}
	errUTF8        = &fault{ClassType, "the text is not UTF-8"}
)

// conv converts the values of one source into one column.
type conv struct {
	fn    func(*conv, *token, *types.Vector) *fault
	src   source
	typ   types.Type
	scale int // srcDecimal
	bits  int // srcBits: length of the bit string, 0 if it varies
	env   *convEnv
	nest  *nested // types with children
}

// convEnv is what the converters of one decoder share.
type convEnv struct {
	unscaled bool
	binary   BinaryText
	buf      []byte // decoded bytes
	out      []byte // rendered text
	inner    scanner
	unknown  func(path string) // told of members that no field of a ROW takes; may be nil
}

// newConv chooses the converter. n is nil without a schema; without then says
// which format's rules hold. path names the value. The second result is false
// for an unknown type name.
func newConv(env *convEnv, t types.Type, n *node, without source, path string) (conv, bool) {
	c := conv{src: without, typ: t, env: env}
	known := true
	if n != nil {
		c.src, known = n.source()
		c.scale, c.bits = n.scale, n.bits
		if strings.HasPrefix(semanticName(n.name), structuredTimes) && !t.IsText() {
			c.fn = toStructured
			return c, true
		}
	}
	switch t.Kind {
	case types.Boolean:
		c.fn = toBoolean
	case types.TinyInt, types.SmallInt, types.Int:
		c.fn = toInteger
	case types.BigInt:
		c.fn = toBigInt
	case types.Float:
		c.fn = toFloat
	case types.Double:
		c.fn = toDouble
		if n != nil && n.literal == litSingle {
			c.fn = singleToDouble
		}
	case types.Decimal:
		c.fn = toDecimal
	case types.Char, types.VarChar:
		c.fn = toText
	case types.Binary, types.VarBinary:
		c.fn = toBinary
	case types.Date:
		c.fn = toDate
	case types.Time:
		c.fn = toTime
	case types.Timestamp, types.TimestampLTZ:
		c.fn = toTimestamp
		if t.Precision == 6 && c.unit() == srcMicroTimestamp {
			c.fn = toMicros
		}
	case types.Array, types.Map, types.Multiset, types.Row:
		newNested(&c, n, without, path)
	default:
		c.fn = toVariant
	}
	return c, known
}

// schemaless reports whether no schema said what the value is.
func (c *conv) schemaless() bool { return c.src <= srcPlain }

// textual reports whether a string may hold a number or time in text form.
func (c *conv) textual() bool { return c.schemaless() || c.src == srcString }

func toStructured(*conv, *token, *types.Vector) *fault { return errStructured }

func toVariant(*conv, *token, *types.Vector) *fault { return errVariant }

func toBoolean(c *conv, t *token, v *types.Vector) *fault {
	switch {
	case t.kind == kindTrue, t.kind == kindFalse:
		v.AppendBool(t.kind == kindTrue)
	case t.kind != kindNumber:
		return errForm
	default:
		n, f := c.integer(t)
		if f != nil {
			return f
		}
		if n != 0 && n != 1 {
			return errOverflow
		}
		v.AppendBool(n == 1)
	}
	return nil
}
