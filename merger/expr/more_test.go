package expr

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// notOffered are functions of Spark that a person changing rows does not need, or
// that make rows: calling one is refused by name.
var notOffered = strings.Fields(`
	aes_decrypt aes_encrypt bitmap_bit_position bitmap_bucket_number bitmap_count explode explode_outer from_csv from_xml inline
	inline_outer is_variant_null java_method json_tuple make_time parse_json posexplode posexplode_outer reflect schema_of_avro
	schema_of_csv schema_of_json schema_of_variant schema_of_xml st_asbinary st_srid stack time_diff time_trunc to_csv to_time
	to_variant_object to_xml try_aes_decrypt try_make_interval try_parse_json try_parse_url try_reflect try_to_time try_variant_get
	variant_get xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
	try_avg try_sum session_window window_time theta_difference theta_intersection theta_sketch_estimate theta_union kll_sketch_get_n_bigint
`)

// differently says why we differ from Spark over an expression of the second
// recording, "" if we should not.
func differently(r recorded, err error) string {
	class := ""
	if err != nil {
		class, _ = classOf(err)
	}
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(r.Expr, p) })
	}
	switch {
	case class == classRoutine && slices.ContainsFunc(notOffered, func(f string) bool { return strings.Contains(err.Error(), " "+f) }):
		return "a function that is not offered"
	case class == "UNSUPPORTED_EXPR_FOR_OPERATOR":
		return "an aggregate: a query runs it, not an expression"
	case has("(SELECT", "AS S, S"):
		return "a query: package query runs it"
	case r.Error == "UNSUPPORTED_TIME_TYPE":
		return "Spark has its TIME type switched off; tables have such columns"
	case has("(?<=", "(?=", `(a)\\1`):
		return "regular expressions of linear time have no look-around and no back reference"
	case has(`\\bü`):
		return "word boundaries are those of ASCII"
	case has("make_timestamp") && has("DATE'"), has("'timestampFormat'"), has("width_bucket(INTERVAL"), has(`map(named_struct('a', 1),named_struct`):
		return "a rare form of the function is not offered"
	case has("LIKE ALL ()"):
		return "refused by the parser, in its own words"
	}
	return ""
}

func TestCompile_AgreesWithTheSecondRecording(t *testing.T) {
	agree := 0
	why := map[string]int{}
	for _, r := range readRecorded(t, "testdata/more.jsonl.gz") {
		diff := r.differs()
		if diff == "" {
			agree++
			continue
		}
		_, _, err := evaluate(r.Expr)
		reason := differently(r, err)
		if reason == "" {
			t.Errorf("%s: %s", r.Expr, diff)
		}
		why[reason]++
	}
	t.Logf("%d agree, differences by reason: %v", agree, why)
	require.Greater(t, agree, 11000)
}
