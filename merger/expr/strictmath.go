package expr

import "math"

// Java prescribes the results of StrictMath to the last bit: they are those of the
// methods that Sun published as fdlibm (argument reduction and minimax polynomials;
// the coefficients are facts of the method). Go's functions use other methods or
// the processor's instructions and differ in the last digit.

func highWord(x float64) int32 { return int32(math.Float64bits(x) >> 32) }

func lowWord(x float64) uint32 { return uint32(math.Float64bits(x)) }

// withHigh replaces the upper half of x's bits.
func withHigh(x float64, hi int32) float64 {
	return math.Float64frombits(uint64(uint32(hi))<<32 | math.Float64bits(x)&0xffffffff)
}

// cutLow clears the lower half of x's bits.
func cutLow(x float64) float64 { return math.Float64frombits(math.Float64bits(x) &^ 0xffffffff) }

const (
	ln2Hi  = 6.93147180369123816490e-01
	ln2Lo  = 1.90821492927058770002e-10
	invLn2 = 1.44269504088896338700e+00
)

// strictExp reduces x to k*ln2 + r and evaluates a rational function of r.
func strictExp(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x > 7.09782712893383973096e+02:
		return math.Inf(1)
	case x < -7.45133219101941108420e+02:
		return 0
	}
	hx := uint32(highWord(x)) & 0x7fffffff
	var hi, lo float64
	k := 0
	switch {
	case hx > 0x3fd62e42 && hx < 0x3ff0a2b2: // |x| between ln2/2 and 3*ln2/2
		k = 1
		if x < 0 {
			k = -1
		}
		hi, lo = x-float64(k)*ln2Hi, float64(k)*ln2Lo
	case hx > 0x3fd62e42:
		half := 0.5
		if x < 0 {
			half = -0.5
		}
		k = int(invLn2*x + half)
		hi, lo = x-float64(float64(k)*ln2Hi), float64(k)*ln2Lo
	case hx < 0x3e300000:
		return 1 + x
	}
	if k != 0 {
		x = hi - lo
	}
	t := x * x
	c := x - float64(t*expPoly(t))
	if k == 0 {
		return 1 - (float64(x*c)/(c-2) - x)
	}
	y := 1 - ((lo - float64(x*c)/(2-c)) - hi)
	return scaleBits(y, k)
}

func expPoly(t float64) float64 {
	const p1, p2, p3, p4, p5 = 1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05, -1.65339022054652515390e-06, 4.13813679705723846039e-08
	return p1 + float64(t*(p2+float64(t*(p3+float64(t*(p4+float64(t*p5)))))))
}

// scaleBits multiplies by 2^k.
func scaleBits(y float64, k int) float64 {
	if k >= -1021 {
		if k == 1024 {
			return y * 2 * 0x1p1023
		}
		return withHigh(y, highWord(y)+int32(k)<<20)
	}
	return withHigh(y, highWord(y)+int32(k+1000)<<20) * 0x1p-1000
}

// strictSinh and strictCosh go by expm1 and exp.
func strictSinh(x float64) float64 {
	ix := highWord(x) & 0x7fffffff
	if ix >= 0x7ff00000 {
		return x + x
	}
	h := math.Copysign(0.5, x)
	ax := math.Abs(x)
	switch {
	case ix < 0x40360000: // below 22
		if ix < 0x3e300000 {
			return x
		}
		t := math.Expm1(ax)
		if ix < 0x3ff00000 {
			return h * (2*t - float64(t*t)/(t+1))
		}
		return h * (t + t/(t+1))
	case ix < 0x40862e42:
		return h * strictExp(ax)
	case ax <= 7.10475860073943863426e+02:
		w := strictExp(0.5 * ax)
		return float64(h*w) * w
	}
	return x * math.Inf(1)
}

func strictCosh(x float64) float64 {
	ix := highWord(x) & 0x7fffffff
	ax := math.Abs(x)
	switch {
	case ix >= 0x7ff00000:
		return x * x
	case ix < 0x3fd62e43:
		t := math.Expm1(ax)
		w := 1 + t
		if ix < 0x3c800000 {
			return w
		}
		return 1 + float64(t*t)/(w+w)
	case ix < 0x40360000:
		t := strictExp(ax)
		return 0.5*t + 0.5/t
	case ix < 0x40862e42:
		return 0.5 * strictExp(ax)
	case ax <= 7.10475860073943863426e+02:
		w := strictExp(0.5 * ax)
		return float64(0.5*w) * w
	}
	return math.Inf(1)
}

func strictTanh(x float64) float64 {
	ix := highWord(x) & 0x7fffffff
	switch {
	case math.IsNaN(x):
		return x
	case ix >= 0x40360000: // from 22 on
		return math.Copysign(1, x)
	case ix < 0x3c800000:
		return x * (1 + x)
	}
	ax := math.Abs(x)
	var z float64
	if ix >= 0x3ff00000 {
		z = 1 - 2/(math.Expm1(2*ax)+2)
	} else {
		t := math.Expm1(-2 * ax)
		z = -t / (t + 2)
	}
	return math.Copysign(z, x)
}

// strictCbrt estimates from the exponent and improves once by Newton's method.
func strictCbrt(x float64) float64 {
	const c, d, e, f, g = 5.42857142857142815906e-01, -7.05306122448979611050e-01, 1.41428571428571436819e+00, 1.60714285714285720630e+00, 3.57142857142857150787e-01
	hx := highWord(x) & 0x7fffffff
	if x == 0 || hx >= 0x7ff00000 {
		return x
	}
	ax := math.Abs(x)
	t := withHigh(0, hx/3+715094163)
	if hx < 0x00100000 { // subnormal
		t = 0x1p54 * ax
		t = withHigh(t, highWord(t)/3+696219795)
	}
	r := float64(t*t) / ax
	s := c + float64(r*t)
	t *= g + f/(s+e+d/s)
	t = withHigh(0, highWord(t)+1) // 20 bits, larger than the root
	s = t * t
	r = ax / s
	w := t + t
	r = (r - t) / (w + r)
	return math.Copysign(t+float64(t*r), x)
}

// strictHypot computes sqrt(x*x + y*y) with an error below one unit.
func strictHypot(x, y float64) float64 {
	a, b := math.Abs(x), math.Abs(y)
	if math.IsInf(a, 0) || math.IsInf(b, 0) {
		return math.Inf(1)
	}
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	if a < b {
		a, b = b, a
	}
	ha, hb := highWord(a), highWord(b)
	if ha-hb > 0x3c00000 {
		return a + b
	}
	k := 0
	switch {
	case ha > 0x5f300000:
		ha, hb, k = ha-0x25800000, hb-0x25800000, 600
		a, b = a*0x1p-600, b*0x1p-600
	case b == 0:
		return a
	case hb < 0x20b00000:
		a, b, k = a*0x1p600, b*0x1p600, -600
		ha, hb = highWord(a), highWord(b)
	}
	w := a - b
	if w > b {
		t1 := withHigh(0, ha)
		t2 := a - t1
		w = math.Sqrt(float64(t1*t1) - (float64(b*(-b)) - float64(t2*(a+t1))))
	} else {
		a += a
		y1 := withHigh(0, hb)
		y2 := b - y1
		t1 := withHigh(0, ha+0x00100000)
		t2 := a - t1
		w = math.Sqrt(float64(t1*y1) - (float64(w*(-w)) - (float64(t1*y2) + float64(t2*b))))
	}
	return math.Ldexp(w, k)
}
