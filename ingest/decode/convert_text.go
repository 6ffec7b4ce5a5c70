package decode

import (
	"strconv"
	"unicode/utf8"

	"applier/storage/types"
)

func toText(c *conv, t *token, v *types.Vector) *fault {
	text := t.text
	if t.kind != kindString || c.src >= srcDecimal {
		var f *fault
		if text, f = c.text(t); f != nil {
			return f
		}
	}
	if len(text) > c.typ.Length && utf8.RuneCount(text) > c.typ.Length {
		return errTooLong
	}
	v.AppendBytes(text)
	return nil
}

// text renders what is not a plain text. The result is good until the next conversion.
func (c *conv) text(t *token) ([]byte, *fault) {
	switch t.kind {
	case kindString:
		switch c.src {
		case srcDecimal:
			return c.decimalText(t)
		case srcBits:
			return c.bitText(t)
		}
		return t.text, nil
	case kindNumber:
		switch c.src {
		case srcDate, srcMilliTime, srcMicroTime, srcNanoTime, srcMilliTimestamp, srcMicroTimestamp, srcNanoTimestamp:
			return c.timeText(t)
		}
	case kindObject:
		if c.src == srcVariable {
			return c.decimalText(t)
		}
	}
	return t.raw, nil
}

// timeText renders a number with a time unit in ISO form.
func (c *conv) timeText(t *token) ([]byte, *fault) {
	n, f := c.wholeNumber(t)
	if f != nil {
		return nil, f
	}
	out := c.env.out[:0]
	switch c.src {
	case srcDate:
		if text, ok := infinityText(dateInfinity(n)); ok {
			return text, nil
		}
		if n != int64(int32(n)) {
			return nil, errTimeRange
		}
		out = types.AppendDate(out, n)
	case srcMilliTime:
		out = appendDuration(out, n, 1000, 3)
	case srcMicroTime:
		out = appendDuration(out, n, 1_000_000, 6)
	case srcNanoTime:
		out = appendDuration(out, n, 1_000_000_000, 9)
	default:
		micros, nanos, inf, f := c.epoch(n)
		if f != nil {
			return nil, f
		}
		if text, ok := infinityText(inf); ok {
			return text, nil
		}
		digits := 3 * (1 + int(c.src-srcMilliTimestamp)) // the three sources stand in this order
		out = types.AppendTimestamp(out, micros, nanos, digits, 'T')
	}
	c.env.out = out
	return out, nil
}

func infinityText(sign int) ([]byte, bool) {
	switch sign {
	case 1:
		return []byte("infinity"), true
	case -1:
		return []byte("-infinity"), true
	}
	return nil, false
}

// appendDuration writes hours, minutes, seconds and a fraction; hours may
// exceed 23 and the whole be negative (MySQL's TIME).
func appendDuration(dst []byte, n, perSecond int64, digits int) []byte {
	if n < 0 {
		dst = append(dst, '-')
	}
	// The sign is taken off part by part: -n overflows for the smallest n.
	part := func(x int64) int64 { return max(x, -x) }
	seconds, fraction := part(n/perSecond), part(n%perSecond)
	dst = appendPadded(dst, seconds/3600, 2)
	dst = appendPadded(append(dst, ':'), seconds/60%60, 2)
	dst = appendPadded(append(dst, ':'), seconds%60, 2)
	return appendPadded(append(dst, '.'), fraction, digits)
}

// appendPadded writes a non-negative number with at least width digits.
func appendPadded(dst []byte, n int64, width int) []byte {
	for limit := int64(10); width > 1; width-- {
		if n < limit {
			dst = append(dst, '0')
		}
		limit *= 10
	}
	return strconv.AppendInt(dst, n, 10)
}

// bitText renders a bit string as 0s and 1s, the most significant first.
func (c *conv) bitText(t *token) ([]byte, *fault) {
	b, f := c.decodeBase64(t.text)
	if f != nil {
		return nil, f
	}
	n := c.bits
	if n == 0 {
		n = 8 * len(b)
	}
	if n > 8*len(b) && n > maxBits {
		return nil, errTooLong
	}
	out := c.env.out[:0]
	for i := n - 1; i >= 0; i-- {
		bit := byte('0')
		if i/8 < len(b) {
			bit += b[i/8] >> (i % 8) & 1
		}
		out = append(out, bit)
	}
	c.env.out = out
	return out, nil
}
