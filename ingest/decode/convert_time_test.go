package decode

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const ltz = " WITH LOCAL TIME ZONE"

func TestConvert_Dates(t *testing.T) {
	date, iso := sem("int32", "io.debezium.time.Date"), sem("string", "io.debezium.time.IsoDate")
	millis, micros := sem("int64", "io.debezium.time.Timestamp"), sem("int64", "io.debezium.time.MicroTimestamp")
	checkConversions(t, nil, []conversion{
		{"DATE", date, "20706", "2026-09-10"},
		{"DATE", date, "0", "1970-01-01"},
		{"DATE", date, "-1", "1969-12-31"},
		{"DATE", date, "-719162", "0001-01-01"},
		{"DATE", date, "-719163", "0000-12-31"},
		{"DATE", date, "2932897", "+10000-01-01"},
		{"DATE", date, "2147483648", "!range"},
		{"DATE", date, "1.5", "!range"},
		{"DATE", date, `"2026-09-10"`, "!type"},
		{"DATE", sem("int32", "org.apache.kafka.connect.data.Date"), "20706", "2026-09-10"},
		{"DATE", date, "-2147472692", "9999-12-31"},
		{"DATE", date, "-2147472691", "0001-01-01"},
		{"DATE", date, "2147483647", "9999-12-31"},
		{"DATE", date, "-2147483648", "0001-01-01"},
		{"DATE", iso, `"2017-09-15Z"`, "2017-09-15"},
		{"DATE", iso, `"-0044-03-15Z"`, "-0044-03-15"},
		{"DATE", iso, `"+10000-01-01Z"`, "+10000-01-01"},
		{"DATE", iso, `"-5877611-06-21Z"`, "9999-12-31"},
		{"DATE", iso, `"-5877611-06-22Z"`, "0001-01-01"},
		{"DATE", iso, `"infinity"`, "9999-12-31"},
		{"DATE", iso, `"-infinity"`, "0001-01-01"},
		{"DATE", date, "1e30", "!range"},
		{"DATE", millis, `"x"`, "!type"},
		{"DATE", lit("string"), `"2026-09-10"`, "2026-09-10"},
		{"DATE", lit("int32"), "20706", "!type"},
		{"DATE", lit("bytes"), `"AQ=="`, "!type"},
		{"DATE", noSchema, "20706", "2026-09-10"},
		{"DATE", noSchema, `"2026-09-10Z"`, "2026-09-10"},
		{"DATE", noPlain, `"2026-09-10"`, "2026-09-10"},
		{"DATE", noPlain, "20706", "!type"},
		{"DATE", noPlain, `"0000-00-00"`, "!range"},
		{"DATE", noPlain, `"2023-02-31"`, "!range"},
		{"DATE", noPlain, `"10.9.26"`, "!range"},
		{"DATE", noPlain, `"today"`, "!type"},
		{"DATE", noPlain, `""`, "!type"},
		{"DATE", noPlain, "true", "!type"},
		{"DATE", millis, "86400000", "1970-01-02"},
		{"DATE", millis, "-86400000", "1969-12-31"},
		{"DATE", millis, "1", "!range"},
		{"DATE", micros, "-86400000001", "!range"},
		{"DATE", micros, "9223372036825200000", "9999-12-31"},
		{"DATE", sem("string", "io.debezium.time.IsoTimestamp"), `"2026-09-10T00:00:00Z"`, "2026-09-10"},
		{"DATE", sem("string", "io.debezium.time.ZonedTimestamp"), `"2026-09-10T00:00:00Z"`, "!type"},
		{"DATE", sem("int64", "io.debezium.time.NanoTimestamp"), "86400000000001", "!range"},
	})
}

func TestConvert_Times(t *testing.T) {
	ms, us, ns := sem("int32", "io.debezium.time.Time"), sem("int64", "io.debezium.time.MicroTime"), sem("int64", "io.debezium.time.NanoTime")
	checkConversions(t, nil, []conversion{
		{"TIME(3)", ms, "45296123", "12:34:56.123"},
		{"TIME(0)", ms, "86399999", "23:59:59"},
		{"TIME(2)", ms, "45296123", "12:34:56.12"},
		{"TIME(1)", ms, "45296123", "12:34:56.1"},
		{"TIME(3)", ms, "0", "00:00:00.000"},
		{"TIME(3)", ms, "86400000", "!range"},
		{"TIME(3)", ms, "-1", "!range"},
		{"TIME(6)", us, "45296123456", "12:34:56.123000"},
		{"TIME(3)", us, "86399999999", "23:59:59.999"},
		{"TIME(3)", us, "86400000000", "!range"},
		{"TIME(3)", us, "3020399000001", "!range"},
		{"TIME(3)", us, "-1", "!range"},
		{"TIME(9)", ns, "86399999999999", "23:59:59.999000000"},
		{"TIME(9)", ns, "86400000000000", "!range"},
		{"TIME(3)", sem("int32", "org.apache.kafka.connect.data.Time"), "45296123", "12:34:56.123"},
		{"TIME(3)", sem("int64", "org.apache.kafka.connect.data.Time"), "45296123456", "!range"},
		{"TIME(3)", sem("string", "io.debezium.time.IsoTime"), `"04:05:11.789Z"`, "04:05:11.789"},
		{"TIME(3)", sem("string", "io.debezium.time.IsoTime"), `"24:00:00Z"`, "!range"},
		{"TIME(3)", sem("string", "io.debezium.time.ZonedTime"), `"11:51:30.123789Z"`, "11:51:30.123"},
		{"TIME(3)", sem("string", "io.debezium.time.ZonedTime"), `"11:51:30+02:00"`, "!type"},
		{"TIME(3)", lit("int32"), "1", "!type"},
		{"TIME(3)", lit("bytes"), `"AQ=="`, "!type"},
		{"TIME(3)", ms, `"12:00"`, "!type"},
		{"TIME(3)", noSchema, "45296123", "12:34:56.123"},
		{"TIME(6)", noSchema, "45296123456", "12:34:56.123000"},
		{"TIME(3)", noSchema, "45296123456", "!range"},
		{"TIME(0)", noSchema, `"12:34:56.9Z"`, "12:34:56"},
		{"TIME(3)", noPlain, `"12:34:56.1"`, "12:34:56.100"},
		{"TIME(3)", noPlain, `"12:34"`, "12:34:00.000"},
		{"TIME(3)", noPlain, "1", "!type"},
		{"TIME(3)", noPlain, `"838:59:59"`, "!range"},
		{"TIME(3)", noPlain, `"-00:00:01"`, "!range"},
		{"TIME(3)", noPlain, `"noon"`, "!type"},
		{"TIME(3)", noPlain, "{}", "!type"},
	})
}

func TestConvert_WallClockTimestamps(t *testing.T) {
	ms, us, ns := sem("int64", "io.debezium.time.Timestamp"), sem("int64", "io.debezium.time.MicroTimestamp"), sem("int64", "io.debezium.time.NanoTimestamp")
	iso, zoned := sem("string", "io.debezium.time.IsoTimestamp"), sem("string", "io.debezium.time.ZonedTimestamp")
	checkConversions(t, nil, []conversion{
		{"TIMESTAMP(3)", ms, "1691171463000", "2023-08-04T17:51:03.000"},
		{"TIMESTAMP(3)", ms, "-1", "1969-12-31T23:59:59.999"},
		{"TIMESTAMP(0)", ms, "-1", "1969-12-31T23:59:59"},
		{"TIMESTAMP(6)", ms, "1", "1970-01-01T00:00:00.001000"},
		{"TIMESTAMP(9)", ms, "1", "1970-01-01T00:00:00.001000000"},
		{"TIMESTAMP(3)", sem("int64", "org.apache.kafka.connect.data.Timestamp"), "-62135596800000", "0001-01-01T00:00:00.000"},
		{"TIMESTAMP(6)", us, "1690366967048491", "2023-07-26T10:22:47.048491"},
		{"TIMESTAMP(6)", us, "-1", "1969-12-31T23:59:59.999999"},
		{"TIMESTAMP(3)", us, "-1", "1969-12-31T23:59:59.999"},
		{"TIMESTAMP(0)", us, "999999", "1970-01-01T00:00:00"},
		{"TIMESTAMP(6)", us, "-62135596800000000", "0001-01-01T00:00:00.000000"},
		{"TIMESTAMP(6)", us, "253402300800000000", "+10000-01-01T00:00:00.000000"},
		{"TIMESTAMP(9)", ns, "-1", "1969-12-31T23:59:59.999999999"},
		{"TIMESTAMP(7)", ns, "-1", "1969-12-31T23:59:59.9999999"},
		{"TIMESTAMP(8)", ns, "19", "1970-01-01T00:00:00.00000001"},
		{"TIMESTAMP(6)", ns, "-1", "1969-12-31T23:59:59.999999"},
		{"TIMESTAMP(9)", ns, "9223372036825200000", "2262-04-11T23:47:16.825200000"},
		// both generations of PostgreSQL's infinities
		{"TIMESTAMP(6)", us, "9223372036825200000", "9999-12-31T23:59:59.999999"},
		{"TIMESTAMP(6)", us, "-9223372036832400000", "0001-01-01T00:00:00.000000"},
		{"TIMESTAMP(6)", us, "9223372036854775807", "9999-12-31T23:59:59.999999"},
		{"TIMESTAMP(6)", us, "-9223372036854775808", "0001-01-01T00:00:00.000000"},
		{"TIMESTAMP(3)", ms, "9223372036825200", "9999-12-31T23:59:59.999"},
		{"TIMESTAMP(3)", ms, "-9223372036832400", "0001-01-01T00:00:00.000"},
		{"TIMESTAMP(3)", ms, "9223372036854775807", "9999-12-31T23:59:59.999"},
		{"TIMESTAMP(3)", ms, "-9223372036854775808", "0001-01-01T00:00:00.000"},
		{"TIMESTAMP(3)", ms, "9223372036854775", "9999-12-31T23:59:59.999"},
		{"TIMESTAMP(3)", ms, "9223372036854776", "!range"},
		{"TIMESTAMP(3)", ms, "-9223372036854776", "!range"},
		{"TIMESTAMP(9)", ns, "9223372036854775807", "9999-12-31T23:59:59.999999000"},
		{"TIMESTAMP(9)", ns, "-9223372036854775808", "0001-01-01T00:00:00.000000000"},
		{"TIMESTAMP(0)", us, "9223372036825200000", "9999-12-31T23:59:59"},
		{"TIMESTAMP(6)", iso, `"2019-07-09T02:28:57.123456Z"`, "2019-07-09T02:28:57.123456"},
		{"TIMESTAMP(3)", iso, `"2019-07-09T02:28:57.9999Z"`, "2019-07-09T02:28:57.999"},
		{"TIMESTAMP(6)", iso, `"-290308-12-21T19:59:27.6Z"`, "0001-01-01T00:00:00.000000"},
		{"TIMESTAMP(6)", iso, `"+294247-01-10T04:00:25.2Z"`, "9999-12-31T23:59:59.999999"},
		{"TIMESTAMP(6)", zoned, `"2019-07-09T02:28:57Z"`, "2019-07-09T02:28:57.000000"},
		{"TIMESTAMP(6)", zoned, `"2019-07-09T02:28:57+05:30"`, "!type"},
		{"TIMESTAMP(6)", zoned, `"infinity"`, "9999-12-31T23:59:59.999999"},
		{"TIMESTAMP(3)", sem("int32", "io.debezium.time.Date"), "-1", "1969-12-31T00:00:00.000"},
		{"TIMESTAMP(3)", sem("int32", "io.debezium.time.Date"), "106751992", "!range"},
		{"TIMESTAMP(3)", sem("int32", "io.debezium.time.Date"), "true", "!type"},
		{"TIMESTAMP(3)", sem("string", "io.debezium.time.IsoDate"), `"2026-09-10Z"`, "2026-09-10T00:00:00.000"},
		{"TIMESTAMP(3)", lit("int64"), "1", "!type"},
		{"TIMESTAMP(3)", lit("string"), `"2026-09-10 01:02:03"`, "2026-09-10T01:02:03.000"},
		{"TIMESTAMP(3)", ms, `"2026-09-10T01:02:03Z"`, "!type"},
		{"TIMESTAMP(3)", ms, "true", "!type"},
		{"TIMESTAMP(3)", ms, "0.5", "!range"},
		// without schema: the unit of Debezium's adaptive mode
		{"TIMESTAMP(3)", noSchema, "1789043696123", "2026-09-10T12:34:56.123"},
		{"TIMESTAMP(0)", noSchema, "1789043696999", "2026-09-10T12:34:56"},
		{"TIMESTAMP(4)", noSchema, "1789043696123456", "2026-09-10T12:34:56.1234"},
		{"TIMESTAMP(6)", noSchema, "1789043696123456", "2026-09-10T12:34:56.123456"},
		{"TIMESTAMP(9)", noSchema, "1789043696123456789", "2026-09-10T12:34:56.123456789"},
		{"TIMESTAMP(6)", noSchema, `"2026-09-10T12:34:56.123456Z"`, "2026-09-10T12:34:56.123456"},
		{"TIMESTAMP(6)", noPlain, `"2026-09-10T12:34:56.5"`, "2026-09-10T12:34:56.500000"},
		{"TIMESTAMP(6)", noPlain, `"2026-09-10"`, "2026-09-10T00:00:00.000000"},
		{"TIMESTAMP(6)", noPlain, `"2026-09-10T12:34:56Z"`, "2026-09-10T12:34:56.000000"},
		{"TIMESTAMP(6)", noPlain, `"2026-09-10T12:34:56-01:00"`, "!type"},
		{"TIMESTAMP(6)", noPlain, "1789043696123456", "!type"},
		{"TIMESTAMP(6)", noPlain, `"0000-00-00 00:00:00"`, "!range"},
		{"TIMESTAMP(6)", noPlain, `"2026-09-10T24:00:00"`, "!range"},
		{"TIMESTAMP(6)", noPlain, `"now"`, "!type"},
		{"TIMESTAMP(6)", noPlain, `"+999999-01-01T00:00:00"`, "!range"},
	})
}

func TestConvert_Instants(t *testing.T) {
	zoned, us := sem("string", "io.debezium.time.ZonedTimestamp"), sem("int64", "io.debezium.time.MicroTimestamp")
	checkConversions(t, nil, []conversion{
		{"TIMESTAMP(6)" + ltz, zoned, `"2026-09-10T12:34:56.123456Z"`, "2026-09-10T12:34:56.123456Z"},
		{"TIMESTAMP(3)" + ltz, zoned, `"2026-09-10T12:34:56.999999Z"`, "2026-09-10T12:34:56.999Z"},
		{"TIMESTAMP(9)" + ltz, zoned, `"2026-09-10T12:34:56.123456789Z"`, "2026-09-10T12:34:56.123456789Z"},
		{"TIMESTAMP(0)" + ltz, zoned, `"2026-09-10T12:34:56+05:30"`, "2026-09-10T07:04:56Z"},
		{"TIMESTAMP(0)" + ltz, zoned, `"2026-09-10T12:34:56+0530"`, "2026-09-10T07:04:56Z"},
		{"TIMESTAMP(0)" + ltz, zoned, `"2026-09-10T00:00:00-00:00"`, "2026-09-10T00:00:00Z"},
		{"TIMESTAMP(6)" + ltz, zoned, `"infinity"`, "9999-12-31T23:59:59.999999Z"},
		{"TIMESTAMP(6)" + ltz, zoned, `"-infinity"`, "0001-01-01T00:00:00.000000Z"},
		{"TIMESTAMP(6)" + ltz, zoned, `"+294247-01-01T00:00:00Z"`, "+294247-01-01T00:00:00.000000Z"},
		{"TIMESTAMP(0)" + ltz, zoned, `"-4713-11-24T00:00:00Z"`, "-4713-11-24T00:00:00Z"},
		{"TIMESTAMP(0)" + ltz, zoned, `"0000-01-01T00:00:00Z"`, "0000-01-01T00:00:00Z"},
		{"TIMESTAMP(6)" + ltz, zoned, `"2026-09-10T12:34:56"`, "!type"},
		{"TIMESTAMP(6)" + ltz, zoned, "1789043696123456", "!type"},
		{"TIMESTAMP(6)" + ltz, zoned, `"2026-13-10T12:34:56Z"`, "!range"},
		{"TIMESTAMP(6)" + ltz, zoned, `"soon"`, "!type"},
		{"TIMESTAMP(6)" + ltz, us, "-1", "1969-12-31T23:59:59.999999Z"},
		{"TIMESTAMP(6)" + ltz, sem("string", "io.debezium.time.IsoTimestamp"), `"2026-09-10T12:34:56Z"`, "2026-09-10T12:34:56.000000Z"},
		{"TIMESTAMP(6)" + ltz, noSchema, `"2026-09-10T12:34:56.5Z"`, "2026-09-10T12:34:56.500000Z"},
		{"TIMESTAMP(6)" + ltz, noSchema, "1789043696123456", "!type"},
		{"TIMESTAMP(6)" + ltz, noPlain, `"2026-09-10 12:34:56+02:00"`, "2026-09-10T10:34:56.000000Z"},
		{"TIMESTAMP(6)" + ltz, noPlain, `"2026-09-10T12:34:56"`, "!type"},
		{"TIMESTAMP(6)" + ltz, noPlain, `"2026-09-10"`, "!type"},
		{"TIMESTAMP(6)" + ltz, sem("int32", "io.debezium.time.Date"), "1", "!type"},
		{"TIMESTAMP(6)" + ltz, lit("int64"), "1", "!type"},
	})
}

func TestConvert_TimestampsAgreeWithPackageTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-62135596800000000, 253402300799999999).Draw(t, "micros")
		p := rapid.IntRange(0, 6).Draw(t, "p")
		unit := int64(math.Pow10(6 - p))
		at := time.UnixMicro(micros).UTC()
		layout := "2006-01-02T15:04:05"
		if p > 0 {
			layout += "." + "000000"[:p]
		}
		floor := time.UnixMicro((micros - ((micros%unit)+unit)%unit)).UTC().Format(layout)
		typ := fmt.Sprintf("TIMESTAMP(%d)", p)
		require.Equal(t, floor, convertCell(t, typ, sem("int64", "io.debezium.time.MicroTimestamp"), fmt.Sprint(micros), nil))
		text := `"` + at.Format("2006-01-02T15:04:05.999999Z07:00") + `"`
		require.Equal(t, floor+"Z", convertCell(t, typ+ltz, sem("string", "io.debezium.time.ZonedTimestamp"), text, nil))
	})
}
