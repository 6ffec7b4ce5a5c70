package expr

import (
	"fmt"
	"math/big"
	"strings"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// numberFormat is a format of to_char and to_number: digits 0 and 9, a point, commas,
// a currency sign, and where the sign stands.
type numberFormat struct {
	whole, frac string // of 0, 9 and ','
	dollar      bool
	sign        string // "", S, MI or PR
	signFirst   bool
	point       bool
}

// parseNumberFormat reads a format such as S$999,990.00 or 9.9PR.
func parseNumberFormat(text string) (f numberFormat, err error) {
	s := strings.ToUpper(text)
	for _, mark := range [...]string{"PR", "MI", "S"} {
		if cut, ok := strings.CutSuffix(s, mark); ok {
			s, f.sign = cut, mark
			break
		}
		if cut, ok := strings.CutPrefix(s, mark); ok && mark != "PR" {
			s, f.sign, f.signFirst = cut, mark, true
			break
		}
	}
	if cut, ok := strings.CutPrefix(s, "$"); ok {
		s, f.dollar = cut, true
	}
	s = strings.NewReplacer("D", ".", "G", ",").Replace(s)
	f.whole, f.frac, f.point = strings.Cut(s, ".")
	if strings.Count(s, "0")+strings.Count(s, "9") == 0 {
		return f, fault("INVALID_FORMAT.WRONG_NUM_DIGIT", "the number format %q has no digit 0 or 9", text)
	}
	if strings.Trim(f.whole, "09,") != "" || strings.Trim(f.frac, "09") != "" {
		return f, fault("INVALID_FORMAT.UNEXPECTED_TOKEN", "%q is no number format: it has 0, 9, a point, commas, $, S, MI and PR", text)
	}
	if f.digits()+len(f.frac) > types.MaxPrecision {
		return f, fault("INVALID_FORMAT.UNEXPECTED_TOKEN", "the number format %q has more than 38 digits", text)
	}
	return f, nil
}

func (f numberFormat) digits() int { return len(f.whole) - strings.Count(f.whole, ",") }

// typ is the type of what to_number reads.
func (f numberFormat) typ() Type { return decimalOf(f.digits()+len(f.frac), len(f.frac)) }

// write prints a value; what has too many digits becomes ###.
func (f numberFormat) write(v *big.Int, scale int) string {
	neg := v.Sign() < 0
	overflow := false
	if scale > len(f.frac) {
		by := bigPow10(scale - len(f.frac))
		overflow = new(big.Int).Rem(v, by).Sign() != 0
		v = divRound(v, by, toZero)
	} else {
		v = rescale(v, scale, len(f.frac))
	}
	whole, frac, _ := strings.Cut(strings.TrimPrefix(decimalText(v, len(f.frac)), "-"), ".")
	if whole == "0" {
		whole = ""
	}
	overflow = overflow || len(whole) > f.digits()
	out := f.integral(whole, overflow)
	if f.point {
		if n := len(out) - 1; n >= 0 && out[n] == ' ' {
			out[n] = '0'
		}
		if overflow {
			frac = strings.Repeat("#", len(f.frac))
		}
		out = append(append(out, '.'), frac...)
	}
	return f.decorate(string(out), neg)
}

// integral writes the digits before the point. Between commas, a group that begins with
// 0 has all its digits; in others blanks stand for digits that the number does not have.
func (f numberFormat) integral(whole string, overflow bool) []byte {
	var out []byte
	at := len(whole) - f.digits()
	for i, group := range strings.Split(f.whole, ",") {
		switch n := len(out); {
		case i == 0:
		case n > 0 && out[n-1] >= '0' && out[n-1] <= '9':
			out = append(out, ',')
		default:
			out = append(out, ' ')
		}
		for range len(group) {
			switch {
			case overflow:
				out = append(out, '#')
			case at >= 0:
				out = append(out, whole[at])
			case group[0] == '0':
				out = append(out, '0')
			default:
				out = append(out, ' ')
			}
			at++
		}
	}
	return out
}

// decorate adds the currency sign and the sign, next to the first digit.
func (f numberFormat) decorate(s string, neg bool) string {
	digits := strings.TrimLeft(s, " ")
	blanks := s[:len(s)-len(digits)]
	if f.dollar {
		digits = "$" + digits
	}
	sign := ""
	switch f.sign {
	case "S":
		sign = "+"
		if neg {
			sign = "-"
		}
	case "MI":
		sign = " "
		if neg {
			sign = "-"
		}
	case "PR":
		if neg {
			return blanks + "<" + digits + ">"
		}
		return blanks + digits + "  "
	}
	if f.signFirst {
		return blanks + sign + digits
	}
	return blanks + digits + sign
}

// read parses a text written in the format.
func (f numberFormat) read(text string) (*big.Int, error) {
	s := strings.TrimSpace(text)
	bad := fault("INVALID_FORMAT.MISMATCH_INPUT", "%q does not have the number format", text)
	neg := false
	switch {
	case f.sign == "PR" && strings.HasPrefix(s, "<") && strings.HasSuffix(s, ">"):
		neg, s = true, s[1:len(s)-1]
	case f.sign == "S" || f.sign == "MI":
		cut, ok := strings.CutPrefix, strings.TrimSuffix
		for _, mark := range [...]string{"-", "+"} {
			if f.signFirst {
				if r, has := cut(s, mark); has {
					neg, s = mark == "-", r
				}
			} else if strings.HasSuffix(s, mark) {
				neg, s = mark == "-", ok(s, mark)
			}
		}
	}
	if f.dollar {
		var ok bool
		if s, ok = strings.CutPrefix(s, "$"); !ok {
			return nil, bad
		}
	}
	whole, frac, _ := strings.Cut(s, ".")
	if !f.matches(whole) || whole+frac == "" || len(frac) > len(f.frac) || strings.Trim(frac, "0123456789") != "" {
		return nil, bad
	}
	v, ok := new(big.Int).SetString("0"+strings.ReplaceAll(whole, ",", "")+frac+strings.Repeat("0", len(f.frac)-len(frac)), 10)
	if !ok {
		return nil, bad
	}
	if neg {
		v.Neg(v)
	}
	return v, nil
}

// matches reports whether the integral digits have their commas where the format
// has them, counted from the point, and not too many digits.
func (f numberFormat) matches(whole string) bool {
	if len(whole) > len(f.whole) || whole == "" && f.frac == "" {
		return false
	}
	tail := f.whole[len(f.whole)-len(whole):]
	for i := range len(whole) {
		if comma := whole[i] == ','; comma != (tail[i] == ',') || !comma && (whole[i] < '0' || whole[i] > '9') {
			return false
		}
	}
	return !strings.Contains(f.whole[:len(f.whole)-len(whole)], "0")
}

// toChar formats numbers, dates and binaries.
func (c *compiler) toChar(k *call) *node {
	switch t := k.args[0].typ; {
	case t.datetime():
		return c.apply(k.pos, "date_format", k.args)
	case t.Kind == Binary:
		return c.binaryToText(k)
	}
	text, ok := c.constText(k, 1)
	if c.err != nil || !ok {
		return newConst(k.pos, tString, types.Null)
	}
	f, err := parseNumberFormat(text)
	if err != nil {
		return c.failAt(k.pos, err)
	}
	x := c.numberOperand(k.args[0])
	if !x.typ.numeric() {
		return c.mismatch(k.pos, k.name, 0, "a number, a date or a binary", x.typ)
	}
	t := decimalFor(x.typ)
	return strict(tString, k.pos, []*node{c.castTo(x, t)}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return textDatum(f.write(unscaled(t, a[0]), t.Scale)), nil
	})
}

// toNumber reads a DECIMAL of the format's size.
func (c *compiler) toNumber(k *call, try bool) *node {
	text, ok := c.constText(k, 1)
	if c.err != nil || !ok {
		return newConst(k.pos, decimalOf(38, 0), types.Null)
	}
	f, err := parseNumberFormat(text)
	if err != nil {
		return c.failAt(k.pos, err)
	}
	t := f.typ()
	return strict(t, k.pos, []*node{c.want(k.args[0], tString, k.name, 0)}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		v, err := f.read(string(a[0].B))
		if err != nil {
			if try {
				return types.Null, nil
			}
			return types.Null, err
		}
		return decimalDatum(t, v), nil
	})
}

// failAt makes an error of compiling of one that has no place.
func (c *compiler) failAt(pos sqlparse.Pos, err error) *node {
	if r, ok := err.(*runError); ok {
		return c.fail(pos, r.class, "%s", r.message)
	}
	return c.fail(pos, "INTERNAL_ERROR", "%v", fmt.Sprint(err))
}
