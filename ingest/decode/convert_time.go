package decode

import (
	"math"
	"strings"

	"applier/storage/types"
)

// PostgreSQL's infinities as Debezium sends them. Up to 3.x micros are the JDBC
// driver's milliseconds taken as micros (seen in recordings), millis and dates
// derive from them; later versions send the extremes of int64.
const (
	infinityMicros      = 9223372036825200000
	minusInfinityMicros = -9223372036832400000
	infinityDays        = -2147472692
	minusInfinityDays   = -2147472691

	// What an infinity becomes: 9999-12-31T23:59:59.999999 and 0001-01-01.
	farFutureMicros = 253402300799999999
	farPastMicros   = -62135596800000000
	farFutureDays   = 2932896
	farPastDays     = -719162

	microsPerDay = 86_400_000_000
	nanosPerDay  = 86_400_000_000_000
)

// wholeNumber reads a number that counts time units.
func (c *conv) wholeNumber(t *token) (int64, *fault) {
	switch {
	case t.kind != kindNumber:
		return 0, errForm
	case t.small:
		return t.num, nil
	}
	d, err := types.ParseDecimal(t.raw, types.MaxPrecision, 0)
	if err != nil {
		return 0, numberFault(err)
	}
	if !d.IsInt64() {
		return 0, errOverflow
	}
	return int64(d.Lo), nil
}

// dateInfinity returns 1 or -1 for an infinite date, else 0.
func dateInfinity(days int64) int {
	switch days {
	case infinityDays, math.MaxInt32:
		return 1
	case minusInfinityDays, math.MinInt32:
		return -1
	}
	return 0
}

// microsInfinity returns 1 or -1 for an infinite timestamp, else 0.
func microsInfinity(micros int64) int {
	switch micros {
	case infinityMicros, math.MaxInt64:
		return 1
	case minusInfinityMicros, math.MinInt64:
		return -1
	}
	return 0
}

// epoch turns a number of the source's unit into micros and nanos, or names the
// infinity it stands for.
func (c *conv) epoch(n int64) (micros int64, nanos int32, infinity int, f *fault) {
	switch c.unit() {
	case srcMilliTimestamp:
		switch n {
		case math.MaxInt64, math.MaxInt64 / 1000:
			return 0, 0, 1, nil
		case math.MinInt64, math.MinInt64 / 1000:
			return 0, 0, -1, nil
		}
		if n > math.MaxInt64/1000 || n < math.MinInt64/1000 {
			return 0, 0, 0, errTimeRange
		}
		n *= 1000
		return n, 0, microsInfinity(n), nil
	case srcMicroTimestamp:
		return n, 0, microsInfinity(n), nil
	case srcNanoTimestamp:
		switch n {
		case math.MaxInt64:
			return 0, 0, 1, nil
		case math.MinInt64:
			return 0, 0, -1, nil
		}
		micros = types.FloorDiv(n, 1000)
		return micros, int32(n - micros*1000), 0, nil
	}
	return 0, 0, 0, errTimeUnit
}

// unit returns the source whose unit a number has. Without schema that is what
// Debezium's adaptive mode chooses for a source column like the target column.
func (c *conv) unit() source {
	if c.src != srcDebezium || c.typ.Kind != types.Timestamp {
		return c.src
	}
	switch {
	case c.typ.Precision <= 3:
		return srcMilliTimestamp
	case c.typ.Precision <= 6:
		return srcMicroTimestamp
	}
	return srcNanoTimestamp
}

// toMicros is toTimestamp for micros into a column of micros.
func toMicros(c *conv, t *token, v *types.Vector) *fault {
	const near = 9_000_000_000_000_000_000 // everything that is not infinite is nearer to 0
	if t.kind == kindNumber && t.small && t.num < near && t.num > -near {
		v.AppendInt64(t.num)
		return nil
	}
	return toTimestamp(c, t, v)
}

func toTimestamp(c *conv, t *token, v *types.Vector) *fault {
	micros, nanos, f := c.timestamp(t)
	if f != nil {
		return f
	}
	p := c.typ.Precision
	if v.Layout == types.LayoutNano {
		v.AppendNano(micros, types.TruncateNanos(nanos, p))
		return nil
	}
	if p < 6 && (p < 3 || c.unit() != srcMilliTimestamp) {
		micros = types.TruncateMicros(micros, p)
	}
	v.AppendInt64(micros)
	return nil
}

// timestamp reads a value as micros since the epoch and nanos inside the micro.
func (c *conv) timestamp(t *token) (micros int64, nanos int32, f *fault) {
	infinity := 0
	switch {
	case (c.src == srcDate || c.src == srcIsoDate) && c.typ.Kind == types.Timestamp:
		days, f := c.days(t)
		if f != nil {
			return 0, 0, f
		}
		if days > math.MaxInt64/microsPerDay || days < math.MinInt64/microsPerDay {
			return 0, 0, errTimeRange
		}
		return days * microsPerDay, 0, nil
	case t.kind == kindNumber:
		n, f := c.wholeNumber(t)
		if f != nil {
			return 0, 0, f
		}
		if micros, nanos, infinity, f = c.epoch(n); f != nil {
			return 0, 0, f
		}
	case t.kind == kindString:
		if micros, nanos, infinity, f = c.timestampText(t.text); f != nil {
			return 0, 0, f
		}
	default:
		return 0, 0, errForm
	}
	switch infinity {
	case 1:
		return farFutureMicros, 0, nil
	case -1:
		return farPastMicros, 0, nil
	}
	return micros, nanos, nil
}

func (c *conv) timestampText(text []byte) (micros int64, nanos int32, infinity int, f *fault) {
	switch c.src {
	case srcIsoTimestamp, srcZonedTimestamp, srcString, srcDebezium, srcPlain:
	default:
		return 0, 0, 0, errForm
	}
	if sign := infiniteText(text); sign != 0 {
		return 0, 0, sign, nil
	}
	rule := types.ZoneRequired
	if c.src == srcIsoTimestamp {
		rule = types.ZoneIgnored
	} else if c.typ.Kind == types.Timestamp {
		rule = types.ZoneNone
		if n := len(text); n > 0 && (text[n-1] == 'Z' || text[n-1] == 'z') {
			rule = types.ZoneIgnored
		}
	}
	micros, nanos, err := types.ParseTimestamp(text, rule)
	if err == nil {
		return micros, nanos, microsInfinity(micros), nil
	}
	if _, _, err := types.ParseTimestamp(text, types.ZoneOptional); err == nil {
		if rule == types.ZoneRequired {
			return 0, 0, 0, errZoneMissing
		}
		return 0, 0, 0, errZoneExtra
	}
	return 0, 0, 0, badTimeText(text)
}

// infiniteText returns 1 or -1 for an infinite timestamp, else 0: PostgreSQL's
// words, and what the numbers above become in Debezium's isostring mode.
func infiniteText(text []byte) int {
	switch s := string(text); {
	case s == "infinity", strings.HasPrefix(s, "+294247-01-10T04:00:"):
		return 1
	case s == "-infinity", strings.HasPrefix(s, "-290308-12-21T19:59:"):
		return -1
	}
	return 0
}

// badTimeText tells an impossible date (0000-00-00, 31 February) from a text
// that is no date at all.
func badTimeText(text []byte) *fault {
	digits := 0
	for _, c := range text {
		switch {
		case c-'0' <= 9:
			digits++
		case c == '-' || c == ':' || c == '.' || c == '+' || c == ' ' || c|0x20 == 't' || c|0x20 == 'z':
		default:
			return errTimeText
		}
	}
	if digits < 4 {
		return errTimeText
	}
	return errTimeRange
}

func toDate(c *conv, t *token, v *types.Vector) *fault {
	days, f := c.days(t)
	if f != nil {
		return f
	}
	if days != int64(int32(days)) {
		return errTimeRange
	}
	v.AppendInt32(int32(days))
	return nil
}

// days reads a value as days since the epoch.
func (c *conv) days(t *token) (days int64, f *fault) {
	infinity := 0
	switch c.src {
	case srcMilliTimestamp, srcMicroTimestamp, srcNanoTimestamp, srcIsoTimestamp:
		return c.midnight(t)
	case srcDate, srcIsoDate, srcString, srcDebezium, srcPlain:
	default:
		if t.kind == kindNumber {
			return 0, errTimeUnit
		}
		return 0, errForm
	}
	switch {
	case t.kind == kindNumber && (c.src == srcDate || c.src == srcDebezium):
		if days, f = c.wholeNumber(t); f != nil {
			return 0, f
		}
		infinity = dateInfinity(days)
	case t.kind == kindString && c.src != srcDate:
		if days, infinity, f = dateText(t.text); f != nil {
			return 0, f
		}
	case t.kind == kindNumber:
		return 0, errTimeUnit
	default:
		return 0, errForm
	}
	switch infinity {
	case 1:
		return farFutureDays, nil
	case -1:
		return farPastDays, nil
	}
	return days, nil
}

// dateText reads an ISO date; Debezium's isostring mode puts a Z behind it.
func dateText(text []byte) (days int64, infinity int, f *fault) {
	switch string(text) {
	case "infinity":
		return 0, 1, nil
	case "-infinity":
		return 0, -1, nil
	}
	if n := len(text); n > 0 && text[n-1] == 'Z' {
		text = text[:n-1]
	}
	days, err := types.ParseDate(text)
	if err != nil {
		return 0, 0, badTimeText(text)
	}
	return days, dateInfinity(days), nil
}

// midnight reads a wall-clock timestamp that is a whole day (Oracle's DATE).
func (c *conv) midnight(t *token) (int64, *fault) {
	micros, nanos, f := c.timestamp(t)
	if f != nil {
		return 0, f
	}
	days := types.FloorDiv(micros, microsPerDay)
	if micros == farFutureMicros {
		return days, nil
	}
	if days*microsPerDay != micros || nanos != 0 {
		return 0, errMidnight
	}
	return days, nil
}

func toTime(c *conv, t *token, v *types.Vector) *fault {
	nanos, f := c.clock(t)
	if f != nil {
		return f
	}
	millis := nanos / 1_000_000
	if p := c.typ.Precision; p < 3 {
		unit := [...]int64{1000, 100, 10}[max(p, 0)]
		millis -= millis % unit
	}
	v.AppendInt32(int32(millis))
	return nil
}

// clock reads a value as nanoseconds of day.
func (c *conv) clock(t *token) (int64, *fault) {
	if t.kind == kindString {
		switch c.src {
		case srcIsoTime, srcZonedTime, srcString, srcDebezium, srcPlain:
			return clockText(t.text)
		}
		return 0, errForm
	}
	n, f := c.wholeNumber(t)
	if f != nil {
		return 0, f
	}
	unit := int64(1)
	switch src := c.src; {
	case src == srcMilliTime, src == srcDebezium && c.typ.Precision <= 3:
		unit = 1_000_000
	case src == srcMicroTime, src == srcDebezium:
		unit = 1000
	case src != srcNanoTime:
		return 0, errTimeUnit
	}
	if n < 0 || n >= nanosPerDay/unit {
		return 0, errClock
	}
	return n * unit, nil
}

// clockText reads HH:MM[:SS[.fraction]], optionally with a Z.
func clockText(text []byte) (int64, *fault) {
	body := text
	if n := len(body); n > 0 && body[n-1] == 'Z' {
		body = body[:n-1]
	}
	nanos, err := types.ParseTime(body)
	if err == nil {
		return nanos, nil
	}
	if f := badTimeText(text); f != errTimeRange {
		return 0, f
	}
	if i := len(text) - 6; i > 0 && (text[i] == '+' || text[i] == '-') {
		return 0, errZoneExtra
	}
	return 0, errClock
}
