package types

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseDate(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01": 0, "1969-12-31": -1, "2026-01-01": 20_454, "2026-1-1": 20_454, "2000-02-29": 11_016, "+2026-01-01": 20_454,
		"0000-01-01": -719_528, "-0001-12-31": -719_529, "9999-12-31": 2_932_896, "12345-06-07": DaysFromCivil(12345, 6, 7), "9999999-01-01": DaysFromCivil(9_999_999, 1, 1),
	} {
		got, err := ParseDate([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "2026", "2026-01", "2026-01-", "26-01-01", "2026-13-01", "2026-00-01", "2026-01-00", "2026-01-32", "2025-02-29", "1900-02-29", "2026-04-31",
		"2026-01-01 ", " 2026-01-01", "2026-01-01x", "2026/01/01", "20260101", "2026-001-01", "2026-01-001", "12345678-01-01", "--2026-01-01", "2026-01-01T",
		"２０２６-01-01", "2026-01-1\x00",
	} {
		_, err := ParseDate([]byte(text))
		require.ErrorIs(t, err, ErrSyntax, "%q", text)
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"00:00": 0, "1:2": time.Hour + 2*time.Minute, "01:02:03": time.Hour + 2*time.Minute + 3*time.Second, "23:59:59.999999999": 24*time.Hour - 1,
		"00:00:00.5": 500 * time.Millisecond, "00:00:00.000000001": 1, "00:00:00.0000000019": 1, "1:2:3.4": time.Hour + 2*time.Minute + 3400*time.Millisecond,
		"00:00:00." + strings.Repeat("9", 1000): 999_999_999,
	} {
		got, err := ParseTime([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, int64(want), got, text)
	}
	for _, text := range []string{
		"", "1", "1:", ":1", "24:00", "23:60", "23:59:60", "001:00", "1:002", "1:2:003", "1:2:", "1:2:3.", "1:2:3.x", "1:2.5", " 1:2", "1:2 ", "1:2:3Z", "-1:2",
	} {
		_, err := ParseTime([]byte(text))
		require.ErrorIs(t, err, ErrSyntax, "%q", text)
	}
}

func TestParseTimestamp_Zones(t *testing.T) {
	at := func(text string) int64 {
		tm, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		return tm.UnixMicro()
	}
	utc := at("2026-03-04T05:06:07Z")
	const bad = math.MinInt64 // refused
	for _, test := range []struct {
		text                              string
		none, optional, required, ignored int64
	}{
		{"2026-03-04T05:06:07", utc, utc, bad, utc},
		{"2026-03-04 05:06:07", utc, utc, bad, utc},
		{"2026-03-04t05:06:07", utc, utc, bad, utc},
		{"2026-03-04T05:06", utc - 7e6, utc - 7e6, bad, utc - 7e6},
		{"2026-03-04", at("2026-03-04T00:00:00Z"), at("2026-03-04T00:00:00Z"), bad, at("2026-03-04T00:00:00Z")},
		{"2026-03-04T05:06:07Z", bad, utc, utc, utc},
		{"2026-03-04T05:06:07z", bad, utc, utc, utc},
		{"2026-03-04T05:06:07+00:00", bad, utc, utc, utc},
		{"2026-03-04T05:06:07+02:00", bad, utc - 7200e6, utc - 7200e6, utc},
		{"2026-03-04T05:06:07+0200", bad, utc - 7200e6, utc - 7200e6, utc},
		{"2026-03-04T05:06:07+02", bad, utc - 7200e6, utc - 7200e6, utc},
		{"2026-03-04T05:06:07-02:30", bad, utc + 9000e6, utc + 9000e6, utc},
		{"2026-03-04T05:06:07+00:00:30", bad, utc - 30e6, utc - 30e6, utc},
		{"2026-03-04T05:06:07+18:59:59", bad, utc - 68_399e6, utc - 68_399e6, utc},
		{"2026-03-04T05:06:07+19", bad, bad, bad, bad},
		{"2026-03-04T05:06:07+1", bad, bad, bad, bad},
		{"2026-03-04T05:06:07+02:", bad, bad, bad, bad},
		{"2026-03-04T05:06:07+02:60", bad, bad, bad, bad},
		{"2026-03-04T05:06:07+02:00:60", bad, bad, bad, bad},
		{"2026-03-04T05:06:07 +02:00", bad, bad, bad, bad},
		{"2026-03-04T05:06:07 UTC", bad, bad, bad, bad},
		{"2026-03-04T05:06:07ZZ", bad, bad, bad, bad},
		{"2026-03-04T05:06:07+02:00x", bad, bad, bad, bad},
		{"2026-03-04T05:06:07[Europe/Paris]", bad, bad, bad, bad},
		{"2026-03-04Z", bad, bad, bad, bad},
		{"2026-03-04T", bad, bad, bad, bad},
		{"2026-03-04 ", bad, bad, bad, bad},
		{"2026-03-04_05:06:07", bad, bad, bad, bad},
		{"2026-02-30T05:06:07", bad, bad, bad, bad},
		{"", bad, bad, bad, bad},
	} {
		for rule, want := range map[ZoneRule]int64{ZoneNone: test.none, ZoneOptional: test.optional, ZoneRequired: test.required, ZoneIgnored: test.ignored} {
			micros, nanos, err := ParseTimestamp([]byte(test.text), rule)
			if want == bad {
				require.ErrorIs(t, err, ErrSyntax, "%q under rule %d", test.text, rule)
				continue
			}
			require.NoError(t, err, "%q under rule %d", test.text, rule)
			require.Equal(t, want, micros, "%q under rule %d", test.text, rule)
			require.Zero(t, nanos)
		}
	}
}

func TestParseTimestamp_Fractions(t *testing.T) {
	for text, want := range map[string][2]int64{
		"1970-01-01T00:00:00.1":           {100_000, 0},
		"1970-01-01T00:00:00.123456":      {123_456, 0},
		"1970-01-01T00:00:00.123456789":   {123_456, 789},
		"1970-01-01T00:00:00.12345678999": {123_456, 789},
		"1969-12-31T23:59:59.999999999":   {-1, 999},
		"1969-12-31T23:59:59.000000001":   {-1_000_000, 1},
		"0001-01-01T00:00:00.0000001":     {-62_135_596_800_000_000, 100},
	} {
		micros, nanos, err := ParseTimestamp([]byte(text), ZoneNone)
		require.NoError(t, err, text)
		require.Equal(t, want, [2]int64{micros, int64(nanos)}, text)
	}
}

func TestParseTimestamp_Range(t *testing.T) {
	for _, text := range []string{
		"294247-01-10T00:00:00Z", "294247-01-09T23:59:59-18:59:59", "-290308-12-21T00:00:00Z", "-290308-12-22T00:00:00+18:59:59", "9999999-01-01", "-9999999-01-01",
	} {
		micros, _, err := ParseTimestamp([]byte(text), ZoneOptional)
		if err != nil {
			require.ErrorIs(t, err, ErrOverflow, text)
			continue
		}
		require.Equal(t, text[0] == '-', micros < 0, "%s wrapped around to %d", text, micros)
	}
	micros, _, err := ParseTimestamp([]byte("294247-01-08T23:59:59.999999"), ZoneNone)
	require.NoError(t, err)
	require.Equal(t, "+294247-01-08T23:59:59.999999", string(AppendTimestamp(nil, micros, 0, 6, 'T')))
}

func TestParseTimestamp_RapidRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-106_751_989*microsPerDay, 106_751_989*microsPerDay).Draw(t, "micros")
		nanos := rapid.Int32Range(0, 999).Draw(t, "nanos")
		text := AppendTimestamp(nil, micros, nanos, 9, rapid.SampledFrom([]byte("T ")).Draw(t, "separator"))
		gotMicros, gotNanos, err := ParseTimestamp(text, ZoneNone)
		require.NoError(t, err, "%s", text)
		require.Equal(t, micros, gotMicros, "%s", text)
		require.Equal(t, nanos, gotNanos, "%s", text)
		days := floorDiv(micros, microsPerDay)
		got, err := ParseDate(AppendDate(nil, days))
		require.NoError(t, err)
		require.Equal(t, days, got)
		clock := micros - days*microsPerDay
		got, err = ParseTime(AppendTime(nil, clock*1000+int64(nanos), 9))
		require.NoError(t, err)
		require.Equal(t, clock*1000+int64(nanos), got)
	})
}

func TestTruncateMicros(t *testing.T) {
	for _, test := range []struct {
		micros    int64
		precision int
		want      int64
	}{
		{1_234_567, 6, 1_234_567},
		{1_234_567, 9, 1_234_567},
		{1_234_567, 5, 1_234_560},
		{1_234_567, 3, 1_234_000},
		{1_234_567, 0, 1_000_000},
		{-1, 3, -1000},
		{-1, 0, -1_000_000},
		{-1_000_000, 0, -1_000_000},
		{-1_000_001, 0, -2_000_000},
		{-1, 6, -1},
		{0, 0, 0},
		{math.MaxInt64, 0, 9_223_372_036_854_000_000},
		{math.MinInt64, 6, math.MinInt64},
		{math.MinInt64, 0, -9_223_372_036_854_000_000}, // the second before is out of range
		{math.MinInt64, 5, -9_223_372_036_854_775_800},
		{math.MinInt64 + 8, 5, -9_223_372_036_854_775_800},
	} {
		require.Equal(t, test.want, TruncateMicros(test.micros, test.precision), "%d at %d", test.micros, test.precision)
	}
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Min(math.MinInt64+1_000_000).Draw(t, "micros")
		p := rapid.IntRange(0, 6).Draw(t, "precision")
		unit := int64(math.Pow10(6 - p))
		got := TruncateMicros(micros, p)
		require.Zero(t, got%unit)
		require.True(t, got <= micros && micros-got < unit)
		require.Equal(t, got, TruncateMicros(got, p))
	})
}

func TestTruncateNanos(t *testing.T) {
	for precision, want := range map[int]int32{6: 987, 7: 900, 8: 980, 9: 987} {
		require.Equal(t, want, TruncateNanos(987, precision))
	}
}

func FuzzParseTimestamp(f *testing.F) {
	for _, text := range []string{
		"2026-03-04T05:06:07.123456789+02:00", "2026-03-04", "-0001-12-31 23:59", "294247-01-10T04:00:54.775807Z", "1:2:3.4", "+12345-1-1 1:1", "2026-03-04T05:06:07Z",
	} {
		for rule := range byte(4) {
			f.Add([]byte(text), rule)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, rule byte) {
		before := string(text)
		micros, nanos, err := ParseTimestamp(text, ZoneRule(rule%4))
		if err == nil {
			require.True(t, nanos >= 0 && nanos < 1000)
			out := AppendTimestamp(nil, micros, nanos, 9, 'T')
			m, n, err := ParseTimestamp(out, ZoneNone)
			if err != nil { // shifted out of the range of texts by its zone
				require.ErrorIs(t, err, ErrOverflow, "%q gave %q", text, out)
			} else {
				require.Equal(t, []int64{micros, int64(nanos)}, []int64{m, int64(n)}, "%q gave %q", text, out)
			}
		}
		if days, err := ParseDate(text); err == nil {
			again, err := ParseDate(AppendDate(nil, days))
			require.NoError(t, err)
			require.Equal(t, days, again, "%q", text)
		}
		if n, err := ParseTime(text); err == nil {
			require.True(t, n >= 0 && n < 86_400_000_000_000)
			again, err := ParseTime(AppendTime(nil, n, 9))
			require.NoError(t, err)
			require.Equal(t, n, again, "%q", text)
		}
		require.Equal(t, before, string(text))
	})
}

func TestParseTimestamp_RapidAgainstGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", 60*rapid.IntRange(-18*60, 18*60).Draw(t, "zone"))
		want := time.Unix(rapid.Int64Range(-62_135_596_800+86_400, 253_402_300_799-86_400).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos"))
		text := want.In(zone).Format(rapid.SampledFrom([]string{
			time.RFC3339Nano, time.RFC3339, "2006-01-02 15:04:05.999999999-07:00", "2006-01-02T15:04:05.000000-0700", "2006-1-2T15:4:5Z07:00",
		}).Draw(t, "layout"))
		micros, nanos, err := ParseTimestamp([]byte(text), ZoneRequired)
		require.NoError(t, err, text)
		got := time.UnixMicro(micros).Add(time.Duration(nanos))
		unit := time.Second
		if strings.Contains(text, ".") {
			unit = time.Microsecond // layouts cut at seconds, microseconds or not at all
		}
		require.True(t, got.Truncate(unit).Equal(want.Truncate(unit)), "%s: %s, %s", text, got.UTC(), want.UTC())
	})
}
