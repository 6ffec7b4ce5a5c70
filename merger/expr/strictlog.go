package expr

import "math"

// strictLog reduces to 2^k * (1+f) with 1+f near 1.
func strictLog(x float64) float64 {
	const (
		l1, l2, l3, l4 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01
		l5, l6, l7     = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01
	)
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0 || math.IsNaN(x):
		return math.NaN()
	case math.IsInf(x, 1):
		return x
	}
	k := int32(0)
	if highWord(x) < 0x00100000 {
		k, x = -54, x*0x1p54
	}
	hx := highWord(x)
	k += hx>>20 - 1023
	hx &= 0x000fffff
	i := (hx + 0x95f64) & 0x100000
	x = withHigh(x, hx|(i^0x3ff00000))
	k += i >> 20
	f := x - 1
	dk := float64(k)
	if 0x000fffff&(2+hx) < 3 { // |f| < 2^-20
		if f == 0 {
			return float64(dk*ln2Hi) + float64(dk*ln2Lo)
		}
		r := float64(f*f) * (0.5 - float64(0.33333333333333333*f))
		if k == 0 {
			return f - r
		}
		return float64(dk*ln2Hi) - ((r - float64(dk*ln2Lo)) - f)
	}
	s := f / (2 + f)
	z := s * s
	w := z * z
	t1 := w * (l2 + float64(w*(l4+float64(w*l6))))
	t2 := z * (l1 + float64(w*(l3+float64(w*(l5+float64(w*l7))))))
	r := t2 + t1
	if (hx-0x6147a)|(0x6b851-hx) > 0 {
		hfsq := 0.5 * f * f
		if k == 0 {
			return f - (hfsq - float64(s*(hfsq+r)))
		}
		return float64(dk*ln2Hi) - ((hfsq - (float64(s*(hfsq+r)) + float64(dk*ln2Lo))) - f)
	}
	if k == 0 {
		return f - float64(s*(f-r))
	}
	return float64(dk*ln2Hi) - ((float64(s*(f-r)) - float64(dk*ln2Lo)) - f)
}

func strictLog10(x float64) float64 {
	const ivln10, hi, lo = 4.34294481903251816668e-01, 3.01029995663611771306e-01, 3.69423907715893078616e-13
	if x <= 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return math.Log10(x)
	}
	k := int32(0)
	if highWord(x) < 0x00100000 {
		k, x = -54, x*0x1p54
	}
	hx := highWord(x)
	k += hx>>20 - 1023
	i := int32(uint32(k) >> 31)
	x = withHigh(x, hx&0x000fffff|(0x3ff-i)<<20)
	y := float64(k + i)
	z := float64(y*lo) + float64(ivln10*strictLog(x))
	return z + float64(y*hi)
}

// strictPow computes 2^(y*log2(x)) with log2(x) in two parts.
func strictPow(x, y float64) float64 {
	ix, iy := highWord(x)&0x7fffffff, highWord(y)&0x7fffffff
	switch {
	case y == 0:
		return 1
	case math.IsNaN(x) || math.IsNaN(y), math.Abs(x) == 1 && math.IsInf(y, 0):
		return math.NaN()
	case x == 0 || math.IsInf(x, 0) || math.IsInf(y, 0) || x == 1:
		return math.Pow(x, y)
	case y == 1:
		return x
	case y == 2:
		return x * x
	case y == -1:
		return 1 / x
	case y == 0.5 && x > 0:
		return math.Sqrt(x)
	}
	sign := 1.0
	if x < 0 {
		if math.Trunc(y) != y {
			return math.NaN()
		}
		if math.Abs(y) < 0x1p53 && math.Mod(y, 2) != 0 {
			sign = -1
		}
	}
	if x == -1 {
		return sign
	}
	ax := math.Abs(x)
	var t1, t2 float64
	if iy > 0x41e00000 { // |y| > 2^31
		if r, done := hugePow(ix, iy, highWord(y), sign); done {
			return r
		}
		const ivln2, ivln2h, ivln2l = 1.44269504088896338700e+00, 1.44269502162933349609e+00, 1.92596299112661746887e-08
		t := ax - 1
		w := float64(t*t) * (0.5 - float64(t*(0.3333333333333333333333-float64(t*0.25))))
		u := ivln2h * t
		v := float64(t*ivln2l) - float64(w*ivln2)
		t1 = cutLow(u + v)
		t2 = v - (t1 - u)
	} else {
		t1, t2 = log2Parts(ax)
	}
	y1 := cutLow(y)
	pl := float64((y-y1)*t1) + float64(y*t2)
	ph := y1 * t1
	return exp2Parts(ph, pl, sign)
}

// hugePow settles the powers beyond 2^31 that over- or underflow.
func hugePow(ix, iy, hy int32, sign float64) (float64, bool) {
	over := func(b bool) (float64, bool) {
		if b {
			return sign * math.Inf(1), true
		}
		return sign * 0, true
	}
	switch {
	case iy > 0x43f00000 && ix <= 0x3fefffff:
		return over(hy < 0)
	case iy > 0x43f00000 && ix >= 0x3ff00000:
		return over(hy > 0)
	case ix < 0x3fefffff:
		return over(hy < 0)
	case ix > 0x3ff00000:
		return over(hy > 0)
	}
	return 0, false
}

// log2Parts returns log2(ax) as a number of 21 bits and its rest.
func log2Parts(ax float64) (t1, t2 float64) {
	const (
		l1, l2, l3  = 5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01
		l4, l5, l6  = 2.72728123808534006489e-01, 2.30660745775561754067e-01, 2.06975017800338417784e-01
		cp, cph, cl = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
	)
	bp := [...]float64{1, 1.5}
	dph, dpl := [...]float64{0, 5.84962487220764160156e-01}, [...]float64{0, 1.35003920212974897128e-08}
	n := int32(0)
	if highWord(ax) < 0x00100000 {
		n, ax = -53, ax*0x1p53
	}
	ix := highWord(ax)
	n += ix>>20 - 0x3ff
	j := ix & 0x000fffff
	ix = j | 0x3ff00000
	k := 0
	switch {
	case j <= 0x3988e:
	case j < 0xbb67a:
		k = 1
	default:
		n++
		ix -= 0x00100000
	}
	ax = withHigh(ax, ix)
	u := ax - bp[k]
	v := 1 / (ax + bp[k])
	ss := u * v
	sh := cutLow(ss)
	th := withHigh(0, (ix>>1|0x20000000)+0x00080000+int32(k)<<18)
	tl := ax - (th - bp[k])
	sl := v * ((u - float64(sh*th)) - float64(sh*tl))
	s2 := ss * ss
	r := float64(s2*s2) * (l1 + float64(s2*(l2+float64(s2*(l3+float64(s2*(l4+float64(s2*(l5+float64(s2*l6))))))))))
	r += sl * (sh + ss)
	s2 = sh * sh
	th = cutLow(3 + s2 + r)
	tl = r - ((th - 3) - s2)
	u = sh * th
	v = float64(sl*th) + float64(tl*ss)
	ph := cutLow(u + v)
	pl := v - (ph - u)
	zh := cph * ph
	zl := float64(cl*ph) + float64(pl*cp) + dpl[k]
	t := float64(n)
	t1 = cutLow(((zh + zl) + dph[k]) + t)
	t2 = zl - (((t1 - t) - dph[k]) - zh)
	return t1, t2
}

// exp2Parts returns sign * 2^(ph + pl).
func exp2Parts(ph, pl, sign float64) float64 {
	const lg2, lg2h, lg2l, ovt = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09, 8.0085662595372944372e-17
	z := pl + ph
	j := highWord(z)
	low := int32(lowWord(z))
	switch {
	case j >= 0x40900000:
		if (j-0x40900000)|low != 0 || pl+ovt > z-ph {
			return sign * math.Inf(1)
		}
	case j&0x7fffffff >= 0x4090cc00:
		if (j-int32(-0x3f6f3400))|low != 0 || pl <= z-ph {
			return sign * 0
		}
	}
	i := j & 0x7fffffff
	k := i>>20 - 0x3ff
	n := int32(0)
	if i > 0x3fe00000 {
		n = j + 0x00100000>>(k+1)
		k = (n&0x7fffffff)>>20 - 0x3ff
		t := withHigh(0, n&^(0x000fffff>>k))
		n = (n&0x000fffff | 0x00100000) >> (20 - k)
		if j < 0 {
			n = -n
		}
		ph -= t
	}
	t := cutLow(pl + ph)
	u := t * lg2h
	v := float64((pl-(t-ph))*lg2) + float64(t*lg2l)
	z = u + v
	w := v - (z - u)
	t = z * z
	t1 := z - float64(t*expPoly(t))
	r := float64(z*t1)/(t1-2) - (w + float64(z*w))
	z = 1 - (r - z)
	j = highWord(z) + n<<20
	if j>>20 <= 0 {
		return sign * math.Ldexp(z, int(n))
	}
	return sign * withHigh(z, j)
}
