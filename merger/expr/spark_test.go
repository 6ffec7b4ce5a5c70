package expr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sparkSaid are expressions over which we once differed from Spark, found by running
// random ones here and there, with what Spark 4.1.2 gives: a text, NULL, or an error.
var sparkSaid = [][2]string{
	// Timestamps that leave their range used to come in again at the other end.
	{"timestampadd(DAY, 2147483647, TIMESTAMP'2000-01-31 00:00:00')", "error DATETIME_OVERFLOW"},
	{"timestampadd(YEAR, 10000000, TIMESTAMP'2000-01-31 00:00:00')", "error DATETIME_OVERFLOW"},
	{"timestampadd(MONTH, 20000000, TIMESTAMP_NTZ'2000-01-31 00:00:00')", "error DATETIME_OVERFLOW"},
	{"timestampadd(WEEK, 2147483647, TIMESTAMP'2000-01-31 00:00:00')", "error DATETIME_OVERFLOW"},
	{"timestampadd(DAY, 100000000, TIMESTAMP'2000-01-31 00:00:00')", "+275790-10-13 00:00:00"},
	{"TIMESTAMP'2000-01-31 00:00:00' + make_dt_interval(106751991)", "error ArithmeticException"},
	{"TIMESTAMP'2000-01-31 00:00:00' + make_ym_interval(178956970)", "error ArithmeticException"},
	{"TIMESTAMP'2000-01-31 00:00:00' + make_interval(0, 0, 0, 2147483647)", "error ArithmeticException"},
	{"DATE'2000-01-01' + make_ym_interval(178956970)", "error ARITHMETIC_OVERFLOW"},
	{"add_months(DATE'2000-01-01', 2147483647)", "error ARITHMETIC_OVERFLOW"},
	{"from_utc_timestamp(timestamp_micros(9223372036854775807), 'Europe/Paris')", "error ArithmeticException"},
	{"CAST(date_add(DATE'2000-01-01', 200000000) AS TIMESTAMP)", "error ArithmeticException"},
	// Without a unit that there is the value is not computed.
	{"trunc(to_date('x', 'yyyy-MM-dd'), 'junk')", "NULL"},
	{"trunc(to_date('x', 'yyyy-MM-dd'), CAST(NULL AS STRING))", "NULL"},
	{"trunc(to_date('x', 'yyyy-MM-dd'), CAST(1 / 0 AS STRING))", "error DIVIDE_BY_ZERO"},
	{"date_trunc('junk', to_timestamp('x', 'yyyy-MM-dd'))", "NULL"},
	{"date_trunc('HOUR', to_timestamp('x', 'yyyy-MM-dd'))", "error CANNOT_PARSE_TIMESTAMP"},
	// Some of the try_ functions forgive their arguments everything, others nothing.
	{"try_to_binary(CAST(1 / 0 AS STRING), 'hex')", "NULL"},
	{"try_to_binary('abc', 'junk')", "NULL"},
	{"try_add(DATE'2000-01-01', CAST(1 / 0 AS INT))", "NULL"},
	{"try_subtract(TIMESTAMP'2000-01-01 00:00:00', make_dt_interval(CAST(1 / 0 AS INT)))", "NULL"},
	{"try_add(1, CAST(1 / 0 AS INT))", "error DIVIDE_BY_ZERO"},
	{"try_url_decode(CAST(1 / 0 AS STRING))", "error DIVIDE_BY_ZERO"},
}

func TestCompile_AgreesWithSparkWhereItOnceDidNot(t *testing.T) {
	for _, s := range sparkSaid {
		typ, d, err := evaluate(s[0])
		got := "NULL"
		switch {
		case err != nil:
			class, _ := classOf(err)
			got = "error " + class
		case !d.Null:
			got = Text(typ, d, time.UTC)
		}
		require.Equal(t, s[1], got, s[0])
	}
}
