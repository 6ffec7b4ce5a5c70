package decode

import (
	"encoding/base64"
	"slices"

	"applier/storage/types"
)

// maxBits bounds what a schema's bit length may make of a short value.
const maxBits = 1 << 13

func toBinary(c *conv, t *token, v *types.Vector) *fault {
	if t.kind != kindString {
		return errForm
	}
	b, f := c.bytes(t.text)
	if f != nil {
		return f
	}
	if len(b) > c.typ.Length {
		return errTooLong
	}
	v.Data = append(v.Data, b...)
	if c.typ.Kind == types.Binary {
		for n := len(b); n < c.typ.Length; n++ {
			v.Data = append(v.Data, 0) // as SQL pads BINARY(n)
		}
	}
	v.EndRow()
	return nil
}

// bytes decodes a string for a binary column into the shared buffer.
func (c *conv) bytes(text []byte) ([]byte, *fault) {
	switch c.src {
	case srcBytes:
		return c.decodeBase64(text)
	case srcBits:
		return c.bitBytes(text)
	case srcUUID:
		return c.uuid(text)
	case srcString, srcDebezium, srcPlain:
		switch c.env.binary {
		case BinaryHex:
			return c.hex(text)
		case BinaryBase64URL:
			return c.decodeBase64With(base64.URLEncoding, text)
		}
		return c.decodeBase64(text)
	}
	return nil, errForm
}

// decodeBase64 decodes padded standard base64 into the shared buffer. Unlike
// encoding/base64 it refuses line breaks.
func (c *conv) decodeBase64(text []byte) ([]byte, *fault) {
	return c.decodeBase64With(base64.StdEncoding, text)
}

func (c *conv) decodeBase64With(e *base64.Encoding, text []byte) ([]byte, *fault) {
	if len(text)%4 != 0 {
		return nil, errBase64
	}
	want := len(text) / 4 * 3
	for i := len(text) - 1; i >= 0 && i >= len(text)-2 && text[i] == '='; i-- {
		want--
	}
	buf := slices.Grow(c.env.buf[:0], len(text)/4*3)
	c.env.buf = buf
	buf = buf[:cap(buf)]
	n, err := e.Decode(buf, text)
	if err != nil || n != want {
		return nil, errBase64
	}
	return buf[:n], nil
}

// hex decodes hexadecimal text, with or without \x or 0x in front.
func (c *conv) hex(text []byte) ([]byte, *fault) {
	if len(text) >= 2 && text[1] == 'x' && (text[0] == '\\' || text[0] == '0') {
		text = text[2:]
	}
	if len(text)%2 != 0 {
		return nil, errHex
	}
	buf := c.env.buf[:0]
	for i := 0; i < len(text); i += 2 {
		hi, lo := hexDigit(text[i]), hexDigit(text[i+1])
		if hi < 0 || lo < 0 {
			return nil, errHex
		}
		buf = append(buf, byte(hi<<4|lo))
	}
	c.env.buf = buf
	return buf, nil
}

// uuid decodes the canonical text of a UUID into its 16 bytes.
func (c *conv) uuid(text []byte) ([]byte, *fault) {
	if len(text) != 36 {
		return nil, errHex
	}
	buf := c.env.buf[:0]
	for i := 0; i < 36; {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if text[i] != '-' {
				return nil, errHex
			}
			i++
			continue
		}
		hi, lo := hexDigit(text[i]), hexDigit(text[i+1])
		if hi < 0 || lo < 0 {
			return nil, errHex
		}
		buf = append(buf, byte(hi<<4|lo))
		i += 2
	}
	c.env.buf = buf
	return buf, nil
}

// bitBytes turns Debezium's bit string (least significant byte first, zero
// bytes cut) into bytes in the usual order, as many as its length needs.
func (c *conv) bitBytes(text []byte) ([]byte, *fault) {
	b, f := c.decodeBase64(text)
	if f != nil {
		return nil, f
	}
	want := (c.bits + 7) / 8
	if want > maxBits/8 {
		return nil, errTooLong
	}
	for len(b) < want {
		b = append(b, 0)
	}
	c.env.buf = b
	slices.Reverse(b)
	return b, nil
}
