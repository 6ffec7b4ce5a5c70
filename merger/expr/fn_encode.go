package expr

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"applier/storage/types"
)

// digest is a function from BINARY to a text; texts are taken as their bytes.
func digest(name string, f func(b []byte) string) function {
	return scalar(name, 1, tString, []Type{tBinary}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return textDatum(f(a[0].B)), nil
	})
}

func encodingFunctions() []function {
	return []function{
		{"hex", 1, 1, (*compiler).hex},
		scalar("unhex", 1, tBinary, []Type{tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			b, err := unhex(a[0].B)
			return types.Datum{B: b, Null: err != nil}, nil
		}),
		digest("base64", base64.StdEncoding.EncodeToString),
		scalar("unbase64", 1, tBinary, []Type{tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			b, err := unbase64(a[0].B)
			return types.BytesDatum(b), err
		}),
		digest("md5", func(b []byte) string { s := md5.Sum(b); return hex.EncodeToString(s[:]) }),
		digest("sha sha1", func(b []byte) string { s := sha1.Sum(b); return hex.EncodeToString(s[:]) }),
		scalar("sha2", 2, tString, []Type{tBinary, tInt}, sha2),
		scalar("crc32", 1, tLong, []Type{tBinary}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.IntDatum(int64(crc32.ChecksumIEEE(a[0].B))), nil
		}),
		scalar("encode", 2, tBinary, []Type{tString, tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return encodeCharset(a[0].B, string(a[1].B))
		}),
		{"to_binary", 1, 2, (*compiler).toBinary},
		{"try_to_binary", 1, 2, func(c *compiler, k *call) *node { return tryAll(c.toBinary(k)) }},
		text1("url_encode", func(b []byte) []byte {
			return []byte(strings.ReplaceAll(url.QueryEscape(string(b)), "%2A", "*"))
		}),
		scalar("parse_url", 2, tString, []Type{tString, tString, tString}, parseURL),
		{"url_decode", 1, 1, func(c *compiler, k *call) *node { return c.urlDecode(k, false) }},
		{"try_url_decode", 1, 1, func(c *compiler, k *call) *node { return c.urlDecode(k, true) }},
	}
}

// hex writes integers, texts and binaries in capitals.
func (c *compiler) hex(k *call) *node {
	x := k.args[0]
	switch {
	case x.typ.integral() || x.typ.fractional() || x.typ.Kind == Void:
		x = c.want(x, tLong, k.name, 0)
	default:
		x = c.textOrBytes(x, k.name, 0)
	}
	number := x.typ.integral()
	return strict(tString, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if number {
			return textDatum(strings.ToUpper(strconv.FormatUint(uint64(a[0].I), 16))), nil
		}
		return types.BytesDatum(bytes.ToUpper(hex.AppendEncode(nil, a[0].B))), nil
	})
}

func unhex(b []byte) ([]byte, error) {
	if len(b)%2 == 1 {
		b = append([]byte{'0'}, b...)
	}
	return hex.AppendDecode([]byte{}, b)
}

// unbase64 skips what is no digit, as MIME decoders do.
func unbase64(b []byte) ([]byte, error) {
	clean := bytes.Map(func(r rune) rune {
		if r == '+' || r == '/' || r < 128 && (isLetter(byte(r)) || r >= '0' && r <= '9') {
			return r
		}
		return -1
	}, b)
	if len(clean)%4 == 1 {
		return nil, fault("IllegalArgumentException", "%q ends in the middle of a byte", b)
	}
	out, _ := base64.RawStdEncoding.AppendDecode([]byte{}, clean)
	return out, nil
}

func sha2(_ *Env, a []types.Datum) (types.Datum, error) {
	b := a[0].B
	switch a[1].I {
	case 224:
		s := sha256.Sum224(b)
		return textDatum(hex.EncodeToString(s[:])), nil
	case 0, 256:
		s := sha256.Sum256(b)
		return textDatum(hex.EncodeToString(s[:])), nil
	case 384:
		s := sha512.Sum384(b)
		return textDatum(hex.EncodeToString(s[:])), nil
	case 512:
		s := sha512.Sum512(b)
		return textDatum(hex.EncodeToString(s[:])), nil
	}
	return types.Null, nil
}

func unknownCharset(name string) error {
	return fault("INVALID_PARAMETER_VALUE.CHARSET", "there is no charset %q; there are US-ASCII, ISO-8859-1, UTF-8, UTF-16, UTF-16BE, UTF-16LE, UTF-32", name)
}

func malformed(what string) error {
	return fault("MALFORMED_CHARACTER_CODING", "%s does not go into the charset", what)
}

// encodeCharset writes a text in a charset.
func encodeCharset(b []byte, charset string) (types.Datum, error) {
	limit := rune(0)
	switch strings.ToUpper(charset) {
	case "UTF-8":
		return types.BytesDatum(b), nil
	case "US-ASCII":
		limit = 0x7f
	case "ISO-8859-1":
		limit = 0xff
	case "UTF-16":
		out := []byte{0xfe, 0xff}
		if len(b) == 0 {
			out = []byte{}
		}
		return types.BytesDatum(encodeUTF16(out, b, binary.BigEndian)), nil
	case "UTF-16BE":
		return types.BytesDatum(encodeUTF16([]byte{}, b, binary.BigEndian)), nil
	case "UTF-16LE":
		return types.BytesDatum(encodeUTF16([]byte{}, b, binary.LittleEndian)), nil
	case "UTF-32":
		out := []byte{}
		for _, r := range string(b) {
			out = binary.BigEndian.AppendUint32(out, uint32(r))
		}
		return types.BytesDatum(out), nil
	default:
		return types.Null, unknownCharset(charset)
	}
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if r > limit {
			return types.Null, malformed(strconv.Quote(string(r)))
		}
		out = append(out, byte(r))
	}
	return types.BytesDatum(out), nil
}

func encodeUTF16(out, b []byte, order binary.AppendByteOrder) []byte {
	for _, u := range utf16.Encode([]rune(string(b))) {
		out = order.AppendUint16(out, u)
	}
	return out
}

// decodeCharset reads a text of a charset.
func decodeCharset(b []byte, charset string) (types.Datum, error) {
	switch name := strings.ToUpper(charset); name {
	case "UTF-8":
		if !utf8.Valid(b) {
			return types.Null, malformed("the binary")
		}
		return types.BytesDatum(b), nil
	case "US-ASCII", "ISO-8859-1":
		out := make([]byte, 0, len(b))
		for _, x := range b {
			if x > 0x7f && name == "US-ASCII" {
				return types.Null, malformed("the binary")
			}
			out = utf8.AppendRune(out, rune(x))
		}
		return types.BytesDatum(out), nil
	case "UTF-16", "UTF-16BE", "UTF-16LE":
		return decodeUTF16(b, name)
	case "UTF-32":
		var out []byte
		for ; len(b) >= 4; b = b[4:] {
			out = utf8.AppendRune(out, rune(binary.BigEndian.Uint32(b)))
		}
		return types.BytesDatum(out), nil
	}
	return types.Null, unknownCharset(charset)
}

func decodeUTF16(b []byte, name string) (types.Datum, error) {
	var order binary.ByteOrder = binary.BigEndian
	switch {
	case name == "UTF-16LE":
		order = binary.LittleEndian
	case name == "UTF-16" && bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		order, b = binary.LittleEndian, b[2:]
	case name == "UTF-16" && bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		b = b[2:]
	}
	if len(b)%2 == 1 {
		return types.Null, malformed("the binary")
	}
	units := make([]uint16, 0, len(b)/2)
	for ; len(b) > 0; b = b[2:] {
		units = append(units, order.Uint16(b))
	}
	return textDatum(string(utf16.Decode(units))), nil
}

// decodeCharset is decode with two arguments.
func (c *compiler) decodeCharset(k *call) *node {
	return strict(tString, k.pos, c.wantAll(k, tBinary, tString), func(_ *Env, a []types.Datum) (types.Datum, error) {
		return decodeCharset(a[0].B, string(a[1].B))
	})
}

// binaryToText is to_char of a binary.
func (c *compiler) binaryToText(k *call) *node {
	return strict(tString, k.pos, c.wantAll(k, tBinary, tString), func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch strings.ToLower(string(a[1].B)) {
		case "hex":
			return types.BytesDatum(bytes.ToUpper(hex.AppendEncode(nil, a[0].B))), nil
		case "base64":
			return textDatum(base64.StdEncoding.EncodeToString(a[0].B)), nil
		case "utf-8":
			return decodeCharset(a[0].B, "UTF-8")
		}
		return types.Null, fault("INVALID_PARAMETER_VALUE.BINARY_FORMAT", "there is no format %q; there are hex, base64 and utf-8", a[1].B)
	})
}

// toBinary reads hex (the default), base64 or UTF-8.
func (c *compiler) toBinary(k *call) *node {
	if len(k.args) == 1 {
		k.args = append(k.args, newConst(k.pos, tString, textDatum("hex")))
	}
	return strict(tBinary, k.pos, c.wantAll(k, tString, tString), func(_ *Env, a []types.Datum) (types.Datum, error) {
		var b []byte
		var err error
		switch strings.ToLower(string(a[1].B)) {
		case "hex":
			b, err = unhex(a[0].B)
		case "base64":
			b, err = base64.StdEncoding.AppendDecode([]byte{}, a[0].B)
		case "utf-8", "utf8":
			b = a[0].B
		default:
			return types.Null, fault("INVALID_PARAMETER_VALUE.BINARY_FORMAT", "there is no format %q; there are hex, base64 and utf-8", a[1].B)
		}
		if err != nil {
			return types.Null, fault("CONVERSION_INVALID_INPUT", "%q does not read as %s; try_to_binary gives NULL instead", a[0].B, a[1].B)
		}
		return types.BytesDatum(b), nil
	})
}

func (c *compiler) urlDecode(k *call, try bool) *node {
	return strict(tString, k.pos, c.wantAll(k, tString), func(_ *Env, a []types.Datum) (types.Datum, error) {
		s, err := url.QueryUnescape(string(a[0].B))
		switch {
		case err != nil && try:
			return types.Null, nil
		case err != nil:
			return types.Null, fault("CANNOT_DECODE_URL", "%q is no encoded URL", a[0].B)
		}
		return textDatum(s), nil
	})
}

// parseURL returns a part of a URL, NULL if it has none.
func parseURL(_ *Env, a []types.Datum) (types.Datum, error) {
	u, err := url.Parse(string(a[0].B))
	if err != nil {
		return types.Null, fault("INVALID_URL", "%q is no URL", a[0].B)
	}
	part := func(s string) (types.Datum, error) { return types.Datum{B: []byte(s), Null: s == ""}, nil }
	switch string(a[1].B) {
	case "HOST":
		return part(u.Hostname())
	case "PATH":
		return textDatum(u.EscapedPath()), nil
	case "QUERY":
		if len(a) < 3 {
			return part(u.RawQuery)
		}
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			if v, ok := strings.CutPrefix(pair, string(a[2].B)+"="); ok {
				return textDatum(v), nil
			}
		}
	case "REF":
		return part(u.EscapedFragment())
	case "PROTOCOL":
		return part(u.Scheme)
	case "FILE":
		s := u.EscapedPath()
		if u.RawQuery != "" {
			s += "?" + u.RawQuery
		}
		return textDatum(s), nil
	case "AUTHORITY":
		s := u.Host
		if u.User != nil {
			s = u.User.String() + "@" + s
		}
		return part(s)
	case "USERINFO":
		if u.User != nil {
			return part(u.User.String())
		}
	}
	return types.Null, nil
}
