package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written with a unit: 64MiB.
type Size int64

// sizeUnits in the order in which String tries them: largest first, binary
// before decimal.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"kB", 1e3},
	{"B", 1},
}

var (
	errSize     = errors.New("not a size such as 64MiB")
	errSizeUnit = errors.New("a size without a unit")
	errSizeBig  = errors.New("a size beyond 8 EiB")
	errNumber   = errors.New("not a whole number")
	errRatio    = errors.New("not a share such as 0.3")
)

// ParseSize reads a whole number with one of the units B, KiB, MiB, GiB, TiB,
// kB, MB, GB, TB. Digits may be grouped with underscores.
func ParseSize(s string) (Size, error) {
	digits := strings.TrimRight(s, "TGMKkiB")
	unit := s[len(digits):]
	n, err := parseInt(digits)
	if err != nil || n < 0 {
		return 0, errSize
	}
	if unit == "" {
		return 0, errSizeUnit
	}
	for _, u := range sizeUnits {
		if u.name != unit {
			continue
		}
		if n > math.MaxInt64/u.bytes {
			return 0, errSizeBig
		}
		return Size(n * u.bytes), nil
	}
	return 0, errSize
}

// String returns the size with the largest unit that divides it.
func (s Size) String() string {
	if s == 0 {
		return "0B"
	}
	for _, u := range sizeUnits {
		if int64(s)%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s)/u.bytes, u.name)
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText returns String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSize.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := ParseSize(string(text))
	*s = n
	return err
}

// Ratio is a share, above 0 and at most 1; 0 is one that was not set.
type Ratio float64

var ratioPattern = regexp.MustCompile(`^(0?\.[0-9]{1,9}|1(\.0{1,9})?)$`)

// parseRatio reads a share in plain digits.
func parseRatio(s string) (Ratio, error) {
	if !ratioPattern.MatchString(s) {
		return 0, errRatio
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f <= 0 {
		return 0, errRatio
	}
	return Ratio(f), nil
}

var intPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*(_[0-9]+)*)$`)

// parseInt reads a decimal number whose digits may be grouped with underscores.
// Leading zeros are refused: YAML 1.1 reads them as octal.
func parseInt(s string) (int64, error) {
	if !intPattern.MatchString(s) {
		return 0, errNumber
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil {
		return 0, errNumber
	}
	return n, nil
}

// parseDuration reads a duration as Go writes it, with a whole number of days (of
// 24 hours) in front if there are any: 90s, 7d, 1d12h.
func parseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := parseInt(days)
	if err != nil {
		return 0, err
	}
	const most = math.MaxInt64 / int64(24*time.Hour)
	if n < 0 || n > most {
		return 0, fmt.Errorf("%d days are more than %d", n, most)
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || more > math.MaxInt64-d {
		return 0, fmt.Errorf("%q does not end as a duration", s)
	}
	return d + more, nil
}
