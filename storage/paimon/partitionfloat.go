package paimon

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"applier/storage/paimon/binrow"
	"applier/storage/types"
)

// Java 19 changed Double.toString and Float.toString: since then the text has the fewest
// digits that tell the value apart, before that it sometimes has more, or others. The
// text names a partition's folder, which every reader computes with the Java it runs on.
// So a value is written only if all agree.

// javaFloat is Float.toString or Double.toString of Java 19 and later.
func javaFloat(f float64, size int) string {
	if text, special := javaSpecial(f); special {
		return text
	}
	shortest := strconv.FormatFloat(math.Abs(f), 'e', -1, size)
	if !strings.Contains(shortest, ".") { // one digit: of those with two it is the nearest
		shortest = strings.Replace(strconv.FormatFloat(math.Abs(f), 'e', 1, size), ".0", "", 1)
	}
	mantissa, exp, _ := strings.Cut(shortest, "e")
	e, _ := strconv.Atoi(exp)
	return javaLayout(f < 0, strings.Replace(mantissa, ".", "", 1), e+1)
}

// oldJavaFloat is Float.toString or Double.toString before Java 19.
func oldJavaFloat(f float64, size int) string {
	if text, special := javaSpecial(f); special {
		return text
	}
	digits, exp := oldDigits(f, size)
	return javaLayout(f < 0, digits, exp)
}

// sameFolder says whether a value of a FLOAT or DOUBLE partition column has one folder
// in all versions of Java.
func sameFolder(t types.Type, d types.Datum) error {
	size := 64
	if t.Kind == types.Float {
		size = 32
	}
	if !d.Null && oldJavaFloat(d.F, size) != javaFloat(d.F, size) {
		return fmt.Errorf("%w: Java before 19 and since name the folder of this %s differently", ErrPartitionValue, t)
	}
	return nil
}

// checkFolder refuses a partition, given by its row's bytes, that readers would look
// for in different folders.
func (t *Table) checkFolder(partition []byte) error {
	if !slices.ContainsFunc(t.partitionTypes, isFloating) {
		return nil
	}
	values, err := binrow.Decode(t.partitionTypes, partition)
	if err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	for i, typ := range t.partitionTypes {
		if !isFloating(typ) {
			continue
		}
		if err := sameFolder(typ, values[i]); err != nil {
			return fmt.Errorf("partition column %q: %w", t.schema.PartitionKeys[i], err)
		}
	}
	return nil
}

func isFloating(t types.Type) bool { return t.Kind == types.Float || t.Kind == types.Double }

func javaSpecial(f float64) (text string, special bool) {
	switch {
	case f != f:
		return "NaN", true
	case math.IsInf(f, 1):
		return "Infinity", true
	case math.IsInf(f, -1):
		return "-Infinity", true
	case f == 0 && math.Signbit(f):
		return "-0.0", true
	}
	return "0.0", f == 0
}

// javaLayout writes 0.DIGITS times ten to the power of exp.
func javaLayout(negative bool, digits string, exp int) string {
	text := ""
	switch n := len(digits); {
	case exp > 0 && exp < 8:
		if n <= exp {
			text = digits + strings.Repeat("0", exp-n) + ".0"
		} else {
			text = digits[:exp] + "." + digits[exp:]
		}
	case exp <= 0 && exp > -3:
		text = "0." + strings.Repeat("0", -exp) + digits
	default:
		rest := digits[1:]
		if rest == "" {
			rest = "0"
		}
		text = digits[:1] + "." + rest + "E" + strconv.Itoa(exp-1)
	}
	if negative {
		return "-" + text
	}
	return text
}

const (
	mantissaBits = 52 // of a double, without the hidden one
	smallExpMin  = -21
	smallExpMax  = 62
	fivePowers   = 27 // how many powers of five Java has as a long
)

// oldDigits returns the digits and the decimal exponent that Java had for a finite value
// other than zero before 19 (source: FloatingDecimal.BinaryToASCIIBuffer.dtoa). The
// mantissa of a float is worked on in the place of a double's.
func oldDigits(f float64, size int) (digits string, exp int) {
	fract, binExp, significant := splitDouble(f)
	if size == 32 {
		fract, binExp, significant = splitFloat(float32(f))
	}
	tail := bits.TrailingZeros64(fract)
	width := mantissaBits + 1 - tail
	tiny := max(0, width-binExp-1)
	if binExp >= smallExpMin && binExp <= smallExpMax && tiny == 0 && width < 64 {
		return oldWholeDigits(fract, binExp, significant)
	}
	return oldFractionDigits(fract>>tail, fract, binExp, significant, width, tiny)
}

func splitDouble(f float64) (fract uint64, binExp, significant int) {
	b := math.Float64bits(f)
	fract, binExp = b&(1<<mantissaBits-1), int(b>>mantissaBits&0x7ff)
	if binExp == 0 {
		shift := bits.LeadingZeros64(fract) - (63 - mantissaBits)
		return fract << shift, 1 - shift - 1023, 64 - bits.LeadingZeros64(fract)
	}
	return fract | 1<<mantissaBits, binExp - 1023, mantissaBits + 1
}

func splitFloat(f float32) (fract uint64, binExp, significant int) {
	b := math.Float32bits(f)
	m := b & (1<<23 - 1)
	binExp = int(b >> 23 & 0xff)
	if binExp == 0 {
		shift := bits.LeadingZeros32(m) - (31 - 23)
		return uint64(m<<shift) << (mantissaBits - 23), 1 - shift - 127, 32 - bits.LeadingZeros32(m)
	}
	return uint64(m|1<<23) << (mantissaBits - 23), binExp - 127, 24
}

// oldWholeDigits are those of a whole number below 2^63: all that are significant.
func oldWholeDigits(fract uint64, binExp, significant int) (digits string, exp int) {
	if binExp >= mantissaBits {
		fract <<= binExp - mantissaBits
	} else {
		fract >>= mantissaBits - binExp
	}
	if p := binExp - significant - 1; binExp > significant && p > 1 {
		exp = p * 30103 / 100000 // digits that say nothing
		pow := uint64(1)
		for range exp {
			pow *= 10
		}
		rest := fract % pow
		if fract /= pow; rest >= pow/2 && exp > 0 {
			fract++
		}
	}
	text := strconv.FormatUint(fract, 10)
	return strings.TrimRight(text, "0"), exp + len(text)
}

// oldFractionDigits develops digits until they tell the value from its neighbours, by a
// measure that is sometimes too strict. n is the mantissa without the zeros at its end.
func oldFractionDigits(n, fract uint64, binExp, significant, width, tiny int) (string, int) {
	decExp := oldDecExp(fract, binExp)
	b5, s5 := max(0, -decExp), max(0, decExp)
	b2, s2 := b5+tiny+binExp, s5+tiny
	m2 := b2 - significant
	b2 -= width - 1
	common := min(b2, s2)
	b2, s2, m2 = b2-common, s2-common, m2-common
	if width == 1 { // a power of two: the next smaller number is nearer
		m2--
	}
	if m2 < 0 {
		b2, s2, m2 = b2-m2, s2-m2, 0
	}
	d := digitMaker{b: timesPowers(n, b5, b2), s: timesPowers(1, s5, s2), m: timesPowers(1, b5, m2)}
	switch most := max(width+b2+fiveBits(b5), s2+1+fiveBits(s5+1)); {
	case most < 32:
		d.word = 32
	case most < 64:
		d.word = 64
	}
	d.tens = new(big.Int).Mul(d.s, big.NewInt(10))
	q := d.next()
	var digits []byte
	low, high := d.ends()
	if q == 0 && !high {
		decExp--
	} else {
		digits = append(digits, '0'+q)
	}
	if decExp < -3 || decExp >= 8 { // there is a digit behind the point at least
		low, high = false, false
	}
	for !low && !high {
		q = d.next()
		low, high = d.ends()
		digits = append(digits, '0'+q)
	}
	if high && (!low || d.up(digits[len(digits)-1])) {
		var carried bool
		if digits, carried = roundUp(digits); carried {
			decExp++
		}
	}
	return string(digits), decExp + 1
}

// digitMaker divides b by s, a digit at a time; m is half the distance to the
// neighbours in the same scale. Java does so in words of 32 or 64 bits, whose sums may
// overflow, if b and s fit, else in big numbers, which it compares otherwise.
type digitMaker struct {
	b, s, m, tens *big.Int
	word          uint // 0: big numbers
	begun         bool
}

func (d *digitMaker) next() byte {
	ten := big.NewInt(10)
	q, r := new(big.Int).QuoRem(d.b, d.s, new(big.Int))
	d.b = r.Mul(r, ten)
	d.m = d.wrap(d.m.Mul(d.m, ten))
	return byte(q.Int64())
}

// wrap is x as a word.
func (d *digitMaker) wrap(x *big.Int) *big.Int {
	if d.word == 0 {
		return x
	}
	one := big.NewInt(1)
	x.And(x, new(big.Int).Sub(new(big.Int).Lsh(one, d.word), one))
	if x.Bit(int(d.word)-1) == 1 {
		x.Sub(x, new(big.Int).Lsh(one, d.word))
	}
	return x
}

// ends says whether the digits so far tell the value from the next smaller and from
// the next larger one.
func (d *digitMaker) ends() (low, high bool) {
	if d.begun && d.word > 0 && d.m.Sign() <= 0 {
		return true, true
	}
	sum := d.wrap(new(big.Int).Add(d.b, d.m)).Cmp(d.tens)
	d.begun = true
	return d.b.Cmp(d.m) < 0, sum > 0 || sum == 0 && d.word == 0
}

// up says whether the last digit is rounded up where both neighbours are too near.
func (d *digitMaker) up(last byte) bool {
	c := new(big.Int).Lsh(d.b, 1).Cmp(d.tens)
	return c > 0 || c == 0 && last&1 != 0
}

func roundUp(digits []byte) (out []byte, carried bool) {
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i] != '9' {
			digits[i]++
			return digits, false
		}
		digits[i] = '0'
	}
	digits[0] = '1'
	return digits, true
}

// oldDecExp estimates the decimal exponent.
func oldDecExp(fract uint64, binExp int) int {
	m := math.Float64frombits(1023<<mantissaBits | fract&(1<<mantissaBits-1))
	a := float64((m - 1.5) * 0.289529654)
	b := float64(a + 0.176091259)
	return int(math.Floor(b + float64(float64(binExp)*0.301029995663981)))
}

// fiveBits is how many bits Java allows for a power of five.
func fiveBits(n int) int {
	switch {
	case n == 0:
		return 0
	case n >= fivePowers:
		return 3 * n
	}
	return new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(n)), nil).BitLen()
}

// timesPowers is n·5^five·2^two.
func timesPowers(n uint64, five, two int) *big.Int {
	x := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(five)), nil)
	return x.Mul(x, new(big.Int).SetUint64(n)).Lsh(x, uint(two))
}
