package types

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every day from year -9999 to 20000, one after the other, and Go's calendar at
// many of them.
func TestCivil_EveryDayOf30000Years(t *testing.T) {
	days := DaysFromCivil(-9999, 1, 1)
	require.Equal(t, time.Date(-9999, 1, 1, 0, 0, 0, 0, time.UTC).Unix()/86_400, days)
	for y := int64(-9999); y <= 20_000; y++ {
		for m := 1; m <= 12; m++ {
			for d := 1; d <= daysIn(y, m); d++ {
				if got := DaysFromCivil(y, m, d); got != days {
					t.Fatalf("%d-%d-%d is day %d, not %d", y, m, d, got, days)
				}
				if gy, gm, gd := CivilFromDays(days); gy != y || gm != m || gd != d {
					t.Fatalf("day %d is %d-%d-%d, not %d-%d-%d", days, y, m, d, gy, gm, gd)
				}
				if days%97 == 0 {
					gy, gm, gd := time.Unix(days*86_400, 0).UTC().Date()
					if int64(gy) != y || int(gm) != m || gd != d {
						t.Fatalf("day %d is %d-%d-%d, not %d-%d-%d", days, gy, gm, gd, y, m, d)
					}
				}
				days++
			}
		}
	}
	require.Equal(t, time.Date(20_001, 1, 1, 0, 0, 0, 0, time.UTC).Unix()/86_400, days)
}

func TestCivil_RapidFarYears(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.Int64Range(math.MinInt64/microsPerDay-1, math.MaxInt64/microsPerDay+1).Draw(t, "days")
		y, m, d := CivilFromDays(days)
		require.Equal(t, days, DaysFromCivil(y, m, d))
		gy, gm, gd := time.Unix(days*86_400, 0).UTC().Date()
		require.Equal(t, []int64{int64(gy), int64(gm), int64(gd)}, []int64{y, int64(m), int64(d)})
	})
}

func TestFloorDiv(t *testing.T) {
	for _, test := range [][3]int64{
		{7, 2, 3}, {-7, 2, -4}, {-8, 2, -4}, {0, 5, 0}, {-1, 1000, -1}, {7, -2, -4}, {-7, -2, 3}, {math.MinInt64, 1000, -9223372036854776},
	} {
		require.Equal(t, test[2], FloorDiv(test[0], test[1]), "%d/%d", test[0], test[1])
	}
}

func TestAppendDate(t *testing.T) {
	for want, date := range map[string][3]int{
		"1970-01-01": {1970, 1, 1}, "0001-01-01": {1, 1, 1}, "0000-02-29": {0, 2, 29}, "9999-12-31": {9999, 12, 31},
		"+10000-01-01": {10_000, 1, 1}, "-0001-12-31": {-1, 12, 31}, "-10000-01-01": {-10_000, 1, 1}, "+292277-01-01": {292_277, 1, 1},
	} {
		require.Equal(t, "x"+want, string(AppendDate([]byte("x"), DaysFromCivil(int64(date[0]), date[1], date[2]))))
	}
}

func TestAppendTime(t *testing.T) {
	const nanos = ((1*60+2)*60+3)*1_000_000_000 + 4_005_006
	for precision, want := range []string{
		"01:02:03", "01:02:03.0", "01:02:03.00", "01:02:03.004", "01:02:03.0040", "01:02:03.00400", "01:02:03.004005",
		"01:02:03.0040050", "01:02:03.00400500", "01:02:03.004005006",
	} {
		require.Equal(t, want, string(AppendTime(nil, nanos, precision)))
	}
	require.Equal(t, "23:59:59.999", string(AppendTime(nil, 86_400_000_000_000-1, 3)), "cut, not rounded")
}

func TestAppendTimestamp_RapidAgainstGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(DaysFromCivil(0, 1, 1)*microsPerDay, DaysFromCivil(10_000, 1, 1)*microsPerDay-1).Draw(t, "micros")
		nanos := rapid.Int32Range(0, 999).Draw(t, "nanos")
		want := time.UnixMicro(micros).Add(time.Duration(nanos)).UTC()
		require.Equal(t, want.Format("2006-01-02T15:04:05.000000000"), string(AppendTimestamp(nil, micros, nanos, 9, 'T')))
		require.Equal(t, want.Format("2006-01-02 15:04:05.000"), string(AppendTimestamp(nil, micros, nanos, 3, ' ')))
		require.Equal(t, want.Format("2006-01-02 15:04:05"), string(AppendTimestamp(nil, micros, nanos, 0, ' ')))
	})
}

func TestAppendTimestamp_AtTheEndsOfMicroseconds(t *testing.T) {
	require.Equal(t, "+294247-01-10T04:00:54.775807", string(AppendTimestamp(nil, math.MaxInt64, 0, 6, 'T')))
	require.Equal(t, "-290308-12-21T19:59:05.224192", string(AppendTimestamp(nil, math.MinInt64, 0, 6, 'T')))
}
