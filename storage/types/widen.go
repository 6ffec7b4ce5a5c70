package types

// Widen returns the narrowest type that holds every value of have and of want, which
// is have where nothing is to be done; false if there is none that data files of type
// have can be read as without loss. Nullability is that of have. Lengths of texts and
// binaries, and nested types, are left alone: see cdc-formats.md §15.
func Widen(have, want Type) (Type, bool) {
	if have.Kind == want.Kind && have.EqualIgnoringNull(want) {
		return have, true
	}
	wide, ok := have, false
	switch {
	case have.IsInteger() && want.IsInteger():
		wide.Kind, ok = max(have.Kind, want.Kind), true
	case have.Kind == Double && want.Kind == Float, have.Kind == Float && want.Kind == Double:
		wide.Kind, ok = Double, true
	case have.IsInteger() && want.Kind == Decimal:
		wide, ok = widenDecimal(DecimalType(integerDigits[have.Kind], 0), want)
	case have.Kind == Decimal && want.IsInteger():
		wide, ok = widenDecimal(have, DecimalType(integerDigits[want.Kind], 0))
	case have.Kind == Decimal && want.Kind == Decimal:
		wide, ok = widenDecimal(have, want)
	case have.Kind == want.Kind && (have.IsTimestamp() || have.Kind == Time):
		wide.Precision, ok = max(have.Precision, want.Precision), true
	}
	if !ok {
		return have, false
	}
	wide.NotNull = have.NotNull
	return wide, true
}

// integerDigits are the decimal digits that values of an integer type may have.
var integerDigits = map[Kind]int{TinyInt: 3, SmallInt: 5, Int: 10, BigInt: 19}

// widenDecimal keeps the digits on both sides of the point.
func widenDecimal(a, b Type) (Type, bool) {
	whole, scale := max(a.Precision-a.Scale, b.Precision-b.Scale), max(a.Scale, b.Scale)
	if whole+scale > MaxPrecision {
		return a, false
	}
	return DecimalType(max(whole+scale, 1), scale), true
}
