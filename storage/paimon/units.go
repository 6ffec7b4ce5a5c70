package paimon

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var sizeUnits = map[string]int64{
	"": 1, "b": 1, "bytes": 1,
	"k": 1 << 10, "kb": 1 << 10, "kibibytes": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mebibytes": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gibibytes": 1 << 30,
	"t": 1 << 40, "tb": 1 << 40, "tebibytes": 1 << 40,
}

var durationUnits = map[string]time.Duration{
	"": time.Millisecond, "ms": time.Millisecond, "milli": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"min": time.Minute, "m": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"µs": time.Microsecond, "micro": time.Microsecond, "micros": time.Microsecond, "microsecond": time.Microsecond,
	"microseconds": time.Microsecond,
	"ns":           1, "nano": 1, "nanos": 1, "nanosecond": 1, "nanoseconds": 1,
}

// ParseSize reads a size as Java's options have it: "128 mb", "8MB", "100"
// (bytes). Units are powers of 1024 (source: MemorySize.parse).
func ParseSize(s string) (int64, error) {
	n, unit, err := splitUnit(s)
	if err != nil {
		return 0, err
	}
	u, ok := sizeUnits[unit]
	if !ok {
		return 0, fmt.Errorf("%q is no unit of size (b, kb, mb, gb, tb)", unit)
	}
	if n > math.MaxInt64/u {
		return 0, errors.New("the size is out of range")
	}
	return n * u, nil
}

// ParseDuration reads a duration as Java's options have it: "1 h", "10 min",
// "500" (milliseconds) (source: TimeUtils.parseDuration). What is longer than
// 292 years is cut to that.
func ParseDuration(s string) (time.Duration, error) {
	n, unit, err := splitUnit(s)
	if err != nil {
		return 0, err
	}
	u, ok := durationUnits[unit]
	if !ok {
		return 0, fmt.Errorf("%q is no unit of time (d, h, min, s, ms, µs, ns)", unit)
	}
	if n > math.MaxInt64/int64(u) {
		return math.MaxInt64, nil
	}
	return time.Duration(n) * u, nil
}

// splitUnit splits "10 MB" into 10 and "mb".
func splitUnit(s string) (int64, string, error) {
	s = strings.TrimSpace(s)
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == 0 {
		return 0, "", errors.New("a number is expected at its start")
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	if err != nil {
		return 0, "", errors.New("the number is out of range")
	}
	return n, strings.ToLower(strings.TrimSpace(s[i:])), nil
}
