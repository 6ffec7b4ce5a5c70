package expr

import (
	"math"
	"math/big"
)

// kernelSin and kernelCos are for |x| up to pi/4; y is the tail of x.
func kernelSin(x, y float64, tail bool) float64 {
	const s1, s2, s3, s4, s5, s6 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
	if highWord(x)&0x7fffffff < 0x3e400000 {
		return x
	}
	z := x * x
	v := z * x
	r := s2 + float64(z*(s3+float64(z*(s4+float64(z*(s5+float64(z*s6)))))))
	if !tail {
		return x + float64(v*(s1+float64(z*r)))
	}
	return x - ((float64(z*(float64(0.5*y)-float64(v*r))) - y) - float64(v*s1))
}

func kernelCos(x, y float64) float64 {
	const c1, c2, c3, c4, c5, c6 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05, -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11
	ix := highWord(x) & 0x7fffffff
	if ix < 0x3e400000 {
		return 1
	}
	z := x * x
	r := z * (c1 + float64(z*(c2+float64(z*(c3+float64(z*(c4+float64(z*(c5+float64(z*c6))))))))))
	if ix < 0x3fd33333 {
		return 1 - (float64(0.5*z) - (float64(z*r) - float64(x*y)))
	}
	qx := 0.28125
	if ix <= 0x3fe90000 {
		qx = withHigh(0, ix-0x00200000)
	}
	hz := float64(0.5*z) - qx
	a := 1 - qx
	return a - (hz - (float64(z*r) - float64(x*y)))
}

// kernelTan is tan (k 1) or -1/tan (k -1) for |x| up to pi/4.
func kernelTan(x, y float64, k int) float64 {
	t := [...]float64{
		3.33333333333334091986e-01, 1.33333333333201242699e-01, 5.39682539762260521377e-02, 2.18694882948595424599e-02,
		8.86323982359930005737e-03, 3.59207910759131235356e-03, 1.45620945432529025516e-03, 5.88041240820264096874e-04,
		2.46463134818469906812e-04, 7.81794442939557092300e-05, 7.14072491382608190305e-05, -1.85586374855275456654e-05,
		2.59073051863633712884e-05,
	}
	const pio4, pio4lo = 7.85398163397448278999e-01, 3.06161699786838301793e-17
	hx := highWord(x)
	ix := hx & 0x7fffffff
	if ix < 0x3e300000 {
		if k == 1 {
			return x
		}
		return -1 / x
	}
	if ix >= 0x3fe59428 {
		if hx < 0 {
			x, y = -x, -y
		}
		x = (pio4 - x) + (pio4lo - y)
		y = 0
	}
	z := x * x
	w := z * z
	r := t[1] + float64(w*(t[3]+float64(w*(t[5]+float64(w*(t[7]+float64(w*(t[9]+float64(w*t[11])))))))))
	v := z * (t[2] + float64(w*(t[4]+float64(w*(t[6]+float64(w*(t[8]+float64(w*(t[10]+float64(w*t[12]))))))))))
	s := z * x
	r = y + float64(z*(float64(s*(r+v))+y))
	r += float64(t[0] * s)
	w = x + r
	if ix >= 0x3fe59428 {
		v = float64(k)
		sign := float64(1 - (int(hx>>30) & 2))
		return sign * (v - 2*(x-(float64(w*w)/(w+v)-r)))
	}
	if k == 1 {
		return w
	}
	z = cutLow(w)
	v = r - (z - x)
	a := -1 / w
	q := cutLow(a)
	s = 1 + float64(q*z)
	return q + float64(a*(s+float64(q*v)))
}

// reducePi2 returns x - n*pi/2 as a number and its tail, and n modulo 4. Up to
// 2^19*pi/2 pi/2 is taken in pieces of 33 bits, as many as cancellation needs; beyond
// the remainder is exact.
func reducePi2(x float64) (n int, hi, lo float64) {
	const invPio2 = 6.36619772367581382433e-01
	pieces := [...]float64{1.57079632673412561417e+00, 6.07710050630396597660e-11, 2.02226624871116645580e-21}
	tails := [...]float64{6.07710050650619224932e-11, 2.02226624879595063154e-21, 8.47842766036889956997e-32}
	ax := math.Abs(x)
	ix := highWord(ax)
	if ix > 0x413921fb {
		return reduceExact(x)
	}
	n = int(float64(ax*invPio2) + 0.5)
	fn := float64(n)
	r := ax - float64(fn*pieces[0])
	w := fn * tails[0]
	hi = r - w
	if ix < 0x4002d97c || n >= 32 || ix == highWord(fn*(math.Pi/2)) {
		for i, lost := 1, int32(16); i < 3 && ix>>20-highWord(hi)>>20&0x7ff > lost; i, lost = i+1, 49 {
			t := r
			w = fn * pieces[i]
			r = t - w
			w = float64(fn*tails[i]) - ((t - r) - w)
			hi = r - w
		}
	}
	lo = (r - hi) - w
	if x < 0 {
		return (4 - n%4) % 4, -hi, -lo
	}
	return n % 4, hi, lo
}

// reduceExact computes the remainder with 1300 bits.
func reduceExact(x float64) (n int, hi, lo float64) {
	const prec = 1300
	bx := new(big.Float).SetPrec(prec).SetFloat64(x)
	q := new(big.Float).SetPrec(prec).Quo(bx, halfPi)
	if q.Sign() >= 0 {
		q.Add(q, big.NewFloat(0.5))
	} else {
		q.Sub(q, big.NewFloat(0.5))
	}
	whole, _ := q.Int(nil)
	r := bx.Sub(bx, new(big.Float).SetPrec(prec).Mul(new(big.Float).SetPrec(prec).SetInt(whole), halfPi))
	hi, _ = r.Float64()
	lo, _ = r.Sub(r, new(big.Float).SetFloat64(hi)).Float64()
	m := new(big.Int).And(whole, big.NewInt(3))
	return int(m.Int64()), hi, lo
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

func strictSin(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return math.NaN()
	case highWord(x)&0x7fffffff <= 0x3fe921fb:
		return kernelSin(x, 0, false)
	}
	n, a, b := reducePi2(x)
	switch n {
	case 0:
		return kernelSin(a, b, true)
	case 1:
		return kernelCos(a, b)
	case 2:
		return -kernelSin(a, b, true)
	}
	return -kernelCos(a, b)
}

func strictCos(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return math.NaN()
	case highWord(x)&0x7fffffff <= 0x3fe921fb:
		return kernelCos(x, 0)
	}
	n, a, b := reducePi2(x)
	switch n {
	case 0:
		return kernelCos(a, b)
	case 1:
		return -kernelSin(a, b, true)
	case 2:
		return -kernelCos(a, b)
	}
	return kernelSin(a, b, true)
}

func strictTan(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return math.NaN()
	case highWord(x)&0x7fffffff <= 0x3fe921fb:
		return kernelTan(x, 0, 1)
	}
	n, a, b := reducePi2(x)
	return kernelTan(a, b, 1-n%2*2)
}

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
