package expr

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"applier/storage/types"
)

func formatFunctions() []function {
	return []function{
		{"format_string printf", 1, unbounded, (*compiler).formatString},
		{"format_number", 2, 2, (*compiler).formatNumber},
		{"to_char to_varchar", 2, 2, (*compiler).toChar},
		{"to_number", 2, 2, func(c *compiler, k *call) *node { return c.toNumber(k, false) }},
		{"try_to_number", 2, 2, func(c *compiler, k *call) *node { return c.toNumber(k, true) }},
		scalar("bin", 1, tString, []Type{tLong}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return textDatum(strconv.FormatUint(uint64(a[0].I), 2)), nil
		}),
		scalar("conv", 3, tString, []Type{tString, tInt, tInt}, conv),
	}
}

// formatString is Java's Formatter for the conversions that values of SQL have.
func (c *compiler) formatString(k *call) *node {
	k.args[0] = c.want(k.args[0], tString, k.name, 0)
	typs := make([]Type, len(k.args))
	for i, a := range k.args {
		typs[i] = a.typ
	}
	return lenient(tString, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if a[0].Null {
			return types.Null, nil
		}
		out, err := javaFormat(string(a[0].B), typs[1:], a[1:])
		return types.BytesDatum(out), err
	})
}

// directive is a %… of a format.
type directive struct {
	flags       string
	width, prec int // -1 if not given
	index       int // from 1; 0 if not given
	conv        byte
}

// parseDirective reads what follows a % at s; n is its length.
func parseDirective(s string) (d directive, n int, ok bool) {
	d.width, d.prec = -1, -1
	number := func() int {
		from := n
		for n < len(s) && s[n] >= '0' && s[n] <= '9' && n-from < 9 {
			n++
		}
		if from == n {
			return -1
		}
		v, _ := strconv.Atoi(s[from:n])
		return v
	}
	if v := number(); v > 0 && n < len(s) && s[n] == '$' {
		d.index = v
		n++
	} else {
		n = 0
	}
	for n < len(s) && strings.IndexByte("-#+ 0,(", s[n]) >= 0 {
		d.flags += string(s[n])
		n++
	}
	d.width = number()
	if n < len(s) && s[n] == '.' {
		n++
		d.prec = number()
	}
	if n == len(s) {
		return d, n, false
	}
	d.conv = s[n]
	return d, n + 1, d.width <= maxText && d.prec <= 4096
}

func (d directive) has(flag string) bool { return strings.Contains(d.flags, flag) }

func javaFormat(format string, typs []Type, args []types.Datum) ([]byte, error) {
	var out []byte
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			out = append(out, format[i])
			continue
		}
		d, n, ok := parseDirective(format[i+1:])
		if !ok {
			return nil, fault("UnknownFormatConversionException", "%q is no format", format)
		}
		i += n
		switch d.conv {
		case '%':
			out = append(out, d.pad("%")...)
			continue
		case 'n':
			out = append(out, '\n')
			continue
		}
		arg := d.index - 1
		if arg < 0 {
			arg, next = next, next+1
		}
		if arg >= len(args) {
			return nil, fault("MissingFormatArgumentException", "the format %q has more directives than arguments", format)
		}
		text, err := d.format(typs[arg], args[arg])
		if err != nil {
			return nil, err
		}
		if out = append(out, text...); len(out) > maxText {
			return nil, tooLong("format_string")
		}
	}
	return out, nil
}

// pad fills a text to the directive's width.
func (d directive) pad(s string) string {
	n := d.width - len(utf16.Encode([]rune(s))) // Java counts UTF-16 units
	switch {
	case n <= 0:
		return s
	case d.has("-"):
		return s + strings.Repeat(" ", n)
	}
	return strings.Repeat(" ", n) + s
}

func (d directive) format(t Type, v types.Datum) (string, error) {
	bad := fault("IllegalFormatConversionException", "%%%c does not go with %s", d.conv, t.sql())
	switch d.conv | 0x20 {
	case 's':
		s := "null"
		if !v.Null {
			s = string(appendRaw(nil, t, v))
		}
		if r := []rune(s); d.prec >= 0 && d.prec < len(r) {
			s = string(r[:d.prec])
		}
		return d.pad(d.caps(s)), nil
	case 'b':
		return d.pad(d.caps(strconv.FormatBool(!v.Null && (t.Kind != Boolean || v.I != 0)))), nil
	}
	if v.Null { // a text like others: Java cuts it to the precision
		s := "null"
		if d.prec >= 0 {
			s = s[:min(d.prec, len(s))]
		}
		return d.pad(d.caps(s)), nil
	}
	switch d.conv {
	case 'd':
		if !t.integral() {
			return "", bad
		}
		return d.sign(v.I < 0, d.group(strings.TrimPrefix(strconv.FormatInt(v.I, 10), "-"))), nil
	case 'x', 'X', 'o':
		if !t.integral() {
			return "", bad
		}
		u := uint64(v.I)
		if t.Kind != BigInt {
			u = uint64(uint32(v.I))
		}
		base := 16
		if d.conv == 'o' {
			base = 8
		}
		return d.sign(false, d.caps(strconv.FormatUint(u, base))), nil
	case 'f', 'e', 'E', 'g', 'G':
		return d.formatFloat(t, v, bad)
	case 'c', 'C':
		if !t.integral() {
			return "", bad
		}
		return d.pad(d.caps(string(rune(v.I)))), nil
	}
	return "", fault("UnknownFormatConversionException", "there is no conversion %%%c", d.conv)
}

// appendRaw writes a value as Spark holds it: dates and times as numbers. That is
// what its format_string shows for %s.
func appendRaw(dst []byte, t Type, d types.Datum) []byte {
	switch {
	case d.Null:
		return append(dst, "null"...)
	case t.datetime() || t.interval():
		return strconv.AppendInt(dst, d.I, 10)
	case t.Kind != Array && t.Kind != Struct:
		return appendCast(dst, t, d, time.UTC)
	}
	dst = append(dst, '[')
	for i, x := range d.L {
		if i > 0 {
			dst = append(dst, ',')
		}
		if len(dst) > maxText {
			return dst
		}
		dst = appendRaw(dst, t.item(i), x)
	}
	return append(dst, ']')
}

func (d directive) caps(s string) string {
	if d.conv >= 'A' && d.conv <= 'Z' {
		return strings.ToUpper(s)
	}
	return s
}

func (d directive) formatFloat(t Type, v types.Datum, bad error) (string, error) {
	prec := d.prec
	if prec < 0 {
		prec = 6
	}
	var s string
	var neg bool // of the value: what is rounded to zero keeps its sign
	switch {
	case t.Kind == Decimal && d.conv == 'f':
		neg = unscaled(t, v).Sign() < 0
		s = decimalText(rescale(unscaled(t, v), t.Scale, prec), prec)
	case t.floating() || t.Kind == Decimal:
		f := v.F
		if t.Kind == Decimal {
			f, _ = ratOf(t, v).Float64()
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return d.pad(javaFloat(f, 64)), nil
		}
		neg = math.Signbit(f)
		if d.conv == 'f' { // Java rounds the printed digits half up
			b, scale, _ := parseBig(strconv.FormatFloat(f, 'e', -1, 64))
			s = decimalText(rescale(b, scale, prec), prec)
		} else {
			s = strconv.FormatFloat(f, d.conv|0x20, prec, 64)
		}
	default:
		return "", bad
	}
	return d.sign(neg, d.caps(d.group(strings.TrimPrefix(s, "-")))), nil
}

// group puts commas between thousands if the directive asks for them.
func (d directive) group(s string) string {
	if !d.has(",") {
		return s
	}
	return groupThousands(s)
}

func groupThousands(s string) string {
	whole, frac, point := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + frac
	}
	return whole
}

// sign puts the sign before a number and zeros between, as the flags say.
func (d directive) sign(neg bool, s string) string {
	prefix, suffix := "", ""
	switch {
	case neg && d.has("("):
		prefix, suffix = "(", ")"
	case neg:
		prefix = "-"
	case d.has("+"):
		prefix = "+"
	case d.has(" "):
		prefix = " "
	}
	if n := d.width - len(prefix) - len(s) - len(suffix); n > 0 && d.has("0") {
		s = strings.Repeat("0", n) + s
	}
	return d.pad(prefix + s + suffix)
}

// formatNumber is format_number(x, n): thousands parted, n digits behind the
// point, rounded half to even; or a pattern of # and 0.
func (c *compiler) formatNumber(k *call) *node {
	x := k.args[0]
	if x.typ.Kind == Void {
		x = c.castTo(x, tDouble)
	}
	if !x.typ.numeric() {
		return c.mismatch(k.pos, k.name, 0, "a number", x.typ)
	}
	second, t := tInt, x.typ
	if k.args[1].typ.Kind == String {
		second = tString
	}
	args := []*node{x, c.want(k.args[1], second, k.name, 1)}
	return strict(tString, k.pos, args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		lo, hi, group := int(a[1].I), int(a[1].I), true
		if second.Kind == String {
			pattern := string(a[1].B)
			_, frac, _ := strings.Cut(pattern, ".")
			lo, hi, group = strings.Count(frac, "0"), len(frac), strings.Contains(pattern, ",")
		}
		if hi < 0 || hi > 340 {
			return types.Null, nil
		}
		if t.floating() && (math.IsNaN(a[0].F) || math.IsInf(a[0].F, 0)) {
			return textDatum(strings.Replace(javaFloat(a[0].F, 64), "Infinity", "∞", 1)), nil
		}
		return textDatum(numberText(t, a[0], lo, hi, group)), nil
	})
}

func numberText(t Type, d types.Datum, lo, hi int, group bool) string {
	v, scale := big.NewInt(d.I), 0
	switch {
	case t.Kind == Decimal:
		v, scale = unscaled(t, d), t.Scale
	case t.floating():
		v, scale, _ = parseBig(strconv.FormatFloat(d.F, 'e', -1, 64))
	}
	neg := v.Sign() < 0 || t.floating() && math.Signbit(d.F)
	if scale > hi {
		v, scale = divRound(v, bigPow10(scale-hi), halfEven), hi
	}
	v = rescale(v, scale, hi)
	s := strings.TrimPrefix(decimalText(v, hi), "-")
	if cut := len(s) - (hi - lo); hi > lo {
		s = s[:cut] + strings.TrimRight(s[cut:], "0")
		s = strings.TrimSuffix(s, ".")
	}
	if group {
		s = groupThousands(s)
	}
	if neg {
		s = "-" + s
	}
	return s
}

// conv changes the base of a number's text, as MySQL does: what is no digit ends
// it; a negative target base means signed.
func conv(_ *Env, a []types.Datum) (types.Datum, error) {
	s := strings.ToLower(strings.Trim(string(a[0].B), " "))
	from, to := a[1].I, a[2].I
	abs := max(to, -to)
	if from < 2 || from > 36 || abs < 2 || abs > 36 || s == "" {
		return types.Null, nil
	}
	neg := s[0] == '-'
	if neg {
		s = s[1:]
	}
	v := new(big.Int)
	for i := range len(s) {
		d, err := strconv.ParseUint(s[i:i+1], int(from), 8)
		if err != nil {
			break
		}
		v.Add(v.Mul(v, big.NewInt(from)), new(big.Int).SetUint64(d))
		if v.BitLen() > 64 {
			return types.Null, fault(classOverflow, "%q does not fit 64 bits", a[0].B)
		}
	}
	u := v.Uint64()
	if neg && to > 0 {
		if int64(u) < 0 {
			u = math.MaxUint64
		} else {
			u = -u
		}
	}
	sign := ""
	if to < 0 {
		if neg || int64(u) < 0 {
			sign = "-"
			if int64(u) < 0 {
				u = -u
			}
		}
	}
	return textDatum(strings.ToUpper(sign + strconv.FormatUint(u, int(abs)))), nil
}
