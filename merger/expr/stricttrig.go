package expr

import (
	"math"
	"math/big"
)

// Sine, cosine and tangent are computed exactly and rounded once: Java's Math takes
// the processor's variants of these, which round to the nearest all but always.

const (
	trigBits   = 160  // of the series: the tangent near its poles keeps 100
	reduceBits = 1300 // of the argument: what the largest DOUBLE needs
)

// reduced returns x - n*pi/2, at most pi/4 in size, and n modulo 4.
func reduced(x float64) (r *big.Float, n int) {
	bx := new(big.Float).SetPrec(reduceBits).SetFloat64(x)
	q := new(big.Float).SetPrec(reduceBits).Quo(bx, halfPi)
	q.Add(q, big.NewFloat(math.Copysign(0.5, x)))
	whole, _ := q.Int(nil)
	bx.Sub(bx, q.Mul(q.SetInt(whole), halfPi))
	return bx.SetPrec(trigBits), int(whole.And(whole, big.NewInt(3)).Int64())
}

// sinCos sums the series of sine and cosine.
func sinCos(r *big.Float) (sin, cos *big.Float) {
	sin, cos = new(big.Float).SetPrec(trigBits), big.NewFloat(1).SetPrec(trigBits)
	term := big.NewFloat(1).SetPrec(trigBits)
	for k := int64(1); k < 60; k++ {
		term.Mul(term, r)
		term.Quo(term, new(big.Float).SetInt64(k))
		to := cos
		if k%2 == 1 {
			to = sin
		}
		if k/2%2 == 1 {
			to.Sub(to, term)
		} else {
			to.Add(to, term)
		}
	}
	return sin, cos
}

// quarter returns the sine of x + n quarter turns.
func quarter(x float64, n int) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return math.NaN()
	}
	r, m := reduced(x)
	sin, cos := sinCos(r)
	if (m+n)%2 == 1 {
		sin = cos
	}
	v, _ := sin.Float64()
	if (m+n)%4 > 1 {
		v = -v
	}
	return v
}

func exactSin(x float64) float64 {
	if x == 0 {
		return x
	}
	return quarter(x, 0)
}

func exactCos(x float64) float64 { return quarter(x, 1) }

func exactTan(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return math.Tan(x)
	}
	r, n := reduced(x)
	sin, cos := sinCos(r)
	if n%2 == 1 {
		sin, cos = cos.Neg(cos), sin
	}
	v, _ := sin.Quo(sin, cos).Float64()
	return v
}

// halfPi is pi/2 to 1300 bits, by Machin's formula.
var halfPi = func() *big.Float {
	const bits = 1340
	one := new(big.Int).Lsh(big.NewInt(1), bits)
	arctanInv := func(n int64) *big.Int {
		sum, term := new(big.Int), new(big.Int).Quo(one, big.NewInt(n))
		for k := int64(0); term.Sign() != 0; k++ {
			part := new(big.Int).Quo(term, big.NewInt(2*k+1))
			if k%2 == 1 {
				part.Neg(part)
			}
			sum.Add(sum, part)
			term.Quo(term, big.NewInt(n*n))
		}
		return sum
	}
	pi := new(big.Int).Mul(arctanInv(5), big.NewInt(16))
	pi.Sub(pi, new(big.Int).Mul(arctanInv(239), big.NewInt(4)))
	f := new(big.Float).SetPrec(1300).SetInt(pi)
	return f.SetMantExp(f, -bits-1)
}()

// strictAtan reduces to one of four points and evaluates a polynomial.
func strictAtan(x float64) float64 {
	at := [...]float64{
		3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01, -1.11111104054623557880e-01,
		9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02, -5.83357013379057348645e-02,
		4.97687799461593236017e-02, -3.65315727442169155270e-02, 1.62858201153657823623e-02,
	}
	hi := [...]float64{4.63647609000806093515e-01, 7.85398163397448278999e-01, 9.82793723247329054082e-01, 1.57079632679489655800e+00}
	lo := [...]float64{2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17, 6.12323399573676603587e-17}
	hx := highWord(x)
	ix := hx & 0x7fffffff
	if math.IsNaN(x) {
		return x
	}
	if ix >= 0x44100000 {
		return math.Copysign(hi[3]+lo[3], x)
	}
	id := -1
	if ix < 0x3fdc0000 {
		if ix < 0x3e200000 {
			return x
		}
	} else {
		x = math.Abs(x)
		switch {
		case ix < 0x3fe60000:
			id, x = 0, (2*x-1)/(2+x)
		case ix < 0x3ff30000:
			id, x = 1, (x-1)/(x+1)
		case ix < 0x40038000:
			id, x = 2, (x-1.5)/(1+float64(1.5*x))
		default:
			id, x = 3, -1/x
		}
	}
	z := x * x
	w := z * z
	s1 := z * (at[0] + float64(w*(at[2]+float64(w*(at[4]+float64(w*(at[6]+float64(w*(at[8]+float64(w*at[10]))))))))))
	s2 := w * (at[1] + float64(w*(at[3]+float64(w*(at[5]+float64(w*(at[7]+float64(w*at[9]))))))))
	if id < 0 {
		return x - float64(x*(s1+s2))
	}
	z = hi[id] - ((float64(x*(s1+s2)) - lo[id]) - x)
	if hx < 0 {
		return -z
	}
	return z
}

func strictAtan2(y, x float64) float64 {
	const piLo = 1.2246467991473531772e-16
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return math.NaN()
	case x == 1:
		return strictAtan(y)
	case x == 0 || y == 0 || math.IsInf(x, 0) || math.IsInf(y, 0):
		return math.Atan2(y, x)
	}
	k := (highWord(y)&0x7fffffff - highWord(x)&0x7fffffff) >> 20
	var z float64
	switch {
	case k > 60:
		z = math.Pi / 2
	case x < 0 && k < -60:
		z = 0
	default:
		z = strictAtan(math.Abs(y / x))
	}
	switch {
	case x > 0 && y > 0:
		return z
	case x > 0:
		return -z
	case y > 0:
		return math.Pi - (z - piLo)
	}
	return (z - piLo) - math.Pi
}

// arcPoly is the rational function of asin and acos.
func arcPoly(z float64) float64 {
	p := z * (1.66666666666666657415e-01 + float64(z*(-3.25565818622400915405e-01+float64(z*(2.01212532134862925881e-01+float64(z*(-4.00555345006794114027e-02+float64(z*(7.91534994289814532176e-04+float64(z*3.47933107596021167570e-05))))))))))
	q := 1 + float64(z*(-2.40339491173441421878e+00+float64(z*(2.02094576023350569471e+00+float64(z*(-6.88283971605453293030e-01+float64(z*7.70381505559019352791e-02)))))))
	return p / q
}

func strictAsin(x float64) float64 {
	const hi, lo, pio4 = 1.57079632679489655800e+00, 6.12323399573676603587e-17, 7.85398163397448278999e-01
	ax := math.Abs(x)
	ix := highWord(ax)
	switch {
	case ax > 1 || math.IsNaN(x):
		return math.NaN()
	case ax == 1:
		return float64(x*hi) + float64(x*lo)
	case ix < 0x3fe00000:
		if ix < 0x3e400000 {
			return x
		}
		return x + float64(x*arcPoly(x*x))
	}
	t := (1 - ax) * 0.5
	r := arcPoly(t)
	s := math.Sqrt(t)
	if ix >= 0x3fef3333 {
		return math.Copysign(hi-(2*(s+float64(s*r))-lo), x)
	}
	w := cutLow(s)
	c := (t - float64(w*w)) / (s + w)
	p := float64(2*s*r) - (lo - 2*c)
	q := pio4 - 2*w
	return math.Copysign(pio4-(p-q), x)
}

func strictAcos(x float64) float64 {
	const hi, lo = 1.57079632679489655800e+00, 6.12323399573676603587e-17
	ax := math.Abs(x)
	ix := highWord(ax)
	switch {
	case ax > 1 || math.IsNaN(x):
		return math.NaN()
	case x == 1:
		return 0
	case x == -1:
		return math.Pi
	case ix < 0x3fe00000:
		if ix <= 0x3c600000 {
			return hi
		}
		return hi - (x - (lo - float64(x*arcPoly(x*x))))
	case x < 0:
		z := (1 + x) * 0.5
		s := math.Sqrt(z)
		w := float64(arcPoly(z)*s) - lo
		return math.Pi - 2*(s+w)
	}
	z := (1 - x) * 0.5
	s := math.Sqrt(z)
	df := cutLow(s)
	c := (z - float64(df*df)) / (s + df)
	w := float64(arcPoly(z)*s) + c
	return 2 * (df + w)
}
