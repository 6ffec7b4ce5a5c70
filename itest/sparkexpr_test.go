//go:build itest

package itest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The kinds of the generated expressions, a letter each, as they stand in the
// patterns of sparkForms. A pattern's $k is an expression of kind k, its #k a literal.
// Of the letters that are no type: n is any number, z any date or time, a any scalar,
// 1 a scalar that is the same kind everywhere in one pattern, p a small number.
const (
	numberKinds = "thilfdc"
	timeKinds   = "DTN"
	scalarKinds = numberKinds + timeKinds + "sbx"
	everyKind   = scalarKinds + nestedKinds
	nestedKinds = "ASMRPQW"
)

// sparkTypes are the types of the kinds in CAST.
var sparkTypes = map[byte][]string{
	't': {"TINYINT"}, 'h': {"SMALLINT"}, 'i': {"INT"}, 'l': {"BIGINT"}, 'f': {"FLOAT"}, 'd': {"DOUBLE"},
	'c': {"DECIMAL(5, 2)", "DECIMAL(10, 0)", "DECIMAL(20, 10)", "DECIMAL(38, 18)", "DECIMAL(3, 3)"},
	's': {"STRING"}, 'b': {"BOOLEAN"}, 'D': {"DATE"}, 'T': {"TIMESTAMP"}, 'N': {"TIMESTAMP_NTZ"}, 'x': {"BINARY"},
	'A': {"ARRAY<INT>"}, 'S': {"ARRAY<STRING>"}, 'M': {"MAP<STRING, INT>"}, 'R': {"STRUCT<a: INT, b: STRING>"},
	'P': {"STRUCT<r: STRUCT<a: INT, b: STRING>, l: ARRAY<INT>, d: DECIMAL(10, 2)>"}, 'Q': {"ARRAY<STRUCT<a: INT, b: STRING>>"}, 'W': {"MAP<INT, ARRAY<STRING>>"},
}

// sparkLiterals are values of the kinds at their edges and between.
var sparkLiterals = map[byte][]string{
	't': {"1Y", "0Y", "-1Y", "127Y", "-128Y", "7Y"},
	'h': {"1S", "0S", "-1S", "32767S", "-32768S", "300S"},
	'i': {"0", "1", "-1", "2", "3", "5", "12", "100", "2147483647", "-2147483648", "86400"},
	'l': {"0L", "1L", "-1L", "3L", "1000000007L", "9223372036854775807L", "-9223372036854775808L", "1709164800L"},
	'f': {"0F", "-0F", "1.5F", "-2.25F", "0.1F", "float('NaN')", "float('Infinity')", "float('3.4028235E38')", "16777216F", "1E-10F"},
	'd': {"0D", "-0D", "1D", "0.1D", "-2.5D", "2.5D", "1E10D", "1E-7D", "double('NaN')", "double('Infinity')", "double('-Infinity')", "123456.789D", "9007199254740993D"},
	'c': {"0BD", "1.50", "-2.25", "0.5", "99.99", "1234567.891", "0.00001", "12345678901234567890.123456789", "99999999999999999999999999999999999999", "-7", "100.00", "2.5BD"},
	's': {"''", "'a'", "'abc'", "'ABC'", "'aBc,d'", "' 12 '", "'1.5'", "'1e3'", "'NaN'", "'2024-02-29'", "'2024-02-29 12:34:56.789'", "'true'", "'Straße'", "'日本語'", "'😀x'", "'a_%b'", "'0'", "'-7'", "'\\t'", "'no'", "'9999999999'", "'2021-3-4'", "'%'", "'b'"},
	'b': {"true", "false"},
	'D': {"DATE'1970-01-01'", "DATE'2024-02-29'", "DATE'1999-12-31'", "DATE'0001-01-01'", "DATE'9999-12-31'", "DATE'1969-12-31'", "DATE'2023-03-26'", "DATE'1582-10-15'"},
	'T': {"TIMESTAMP'1970-01-01 00:00:00'", "TIMESTAMP'2024-02-29 12:34:56.789'", "TIMESTAMP'1969-12-31 23:59:59.999999'", "TIMESTAMP'2023-03-26 01:30:00'", "TIMESTAMP'9999-12-31 23:59:59.999999'", "TIMESTAMP'1900-01-01 00:00:00.5'", "TIMESTAMP'2024-10-27 02:30:00+02:00'"},
	'N': {"TIMESTAMP_NTZ'1970-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-02-29 12:34:56.789'", "TIMESTAMP_NTZ'1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ'2000-01-31 00:00:00.000001'"},
	'x': {"X''", "X'00'", "X'616263'", "X'ff80'", "X'c3a9'"},
	'A': {"array(1, 2, 3)", "CAST(array() AS ARRAY<INT>)", "array(1, NULL, 1)", "array(-5, 7)"},
	'S': {"array('a', 'b')", "array('x', NULL, '')", "split('a,b,a', ',')"},
	'M': {"map('a', 1, 'b', 2)", "map('k', NULL)", "map('x', -1)"},
	'R': {"named_struct('a', 1, 'b', 'x')", "named_struct('a', -1, 'b', '')", "named_struct('a', 7, 'b', 'abc')"},
	'P': {"named_struct('r', named_struct('a', 1, 'b', 'x'), 'l', array(1, NULL), 'd', CAST(1.5 AS DECIMAL(10, 2)))", "named_struct('r', CAST(NULL AS STRUCT<a: INT, b: STRING>), 'l', array(3), 'd', CAST(NULL AS DECIMAL(10, 2)))"},
	'Q': {"array(named_struct('a', 1, 'b', 'x'), named_struct('a', -2, 'b', CAST(NULL AS STRING)))", "CAST(array() AS ARRAY<STRUCT<a: INT, b: STRING>>)", "array(CAST(NULL AS STRUCT<a: INT, b: STRING>))"},
	'W': {"map(1, array('a', NULL), 2, array('b'))", "map(7, CAST(NULL AS ARRAY<STRING>))"},
	'p': {"0", "1", "2", "3", "-1", "-2", "5"},
}

// sparkForms are the ways in which an expression of a kind is made of others. Left out
// are sin, cos and tan, whose last bit Java leaves open (docs/expressions.md), and >>,
// which Spark's parser takes for the end of a type behind the word ARRAY. The number in
// element_at is small: -2147483648 kills Spark's JVM.
var sparkForms = map[byte][]string{
	't': {"-$t", "$t + $t", "$t - $t", "$t * $t", "$t % $t", "abs($t)", "$t & $t", "CAST($n AS TINYINT)", "TRY_CAST($a AS TINYINT)", "~$t", "pmod($t, $t)"},
	'h': {"-$h", "$h + $t", "$h - $h", "$h * $h", "$h % $h", "abs($h)", "$h | $t", "CAST($n AS SMALLINT)", "TRY_CAST($a AS SMALLINT)", "$h ^ $h", "greatest($h, $t)"},
	'i': {
		"-$i", "$i + $i", "$i - $h", "$i * $t", "$i % $i", "abs($i)", "$i & $i", "$i | $i", "$i ^ $i", "~$i", "$i << $p", "shiftright($i, $p)", "shiftrightunsigned($i, $p)",
		"pmod($i, $i)", "mod($i, $i)", "try_add($i, $i)", "try_subtract($i, $i)", "try_multiply($i, $i)", "try_mod($i, $i)", "sign($i)", "CAST($n AS INT)",
		"TRY_CAST($a AS INT)", "CAST($s AS INT)", "length($s)", "octet_length($s)", "bit_length($s)", "char_length($s)", "length($x)", "ascii($s)", "instr($s, $s)", "locate($s, $s)",
		"locate($s, $s, $p)", "position($s IN $s)", "levenshtein($s, $s)", "find_in_set($s, $s)", "year($z)", "month($z)", "day($z)", "quarter($z)", "dayofweek($z)",
		"weekday($z)", "dayofyear($z)", "weekofyear($z)", "hour($T)", "minute($N)", "second($T)", "datediff($z, $z)", "unix_date($D)", "size($A)", "size($M)", "cardinality($S)",
		"array_size($A)", "array_max($A)", "array_min($A)", "element_at($A, $p % 4)", "try_element_at($A, $p % 4)", "get($A, $p)", "$A[$p]", "element_at($M, $s)", "$M[$s]", "$R.a",
		"hash($a, $a)", "bit_count($l)", "getbit($l, 3)", "nullifzero($i)", "zeroifnull($i)", "width_bucket($d, 0, 10, 4)", "regexp_count($s, 'a')", "regexp_instr($s, '[a-c]')",
		"json_array_length('[1, 2]')", "EXTRACT(YEAR FROM $z)", "EXTRACT(DOY FROM $z)", "date_part('week', $z)", "round($i, #p)", "bround($i, -1)",
		"$P.r.a", "$Q[$p].a", "size($Q)", "size($W)", "element_at($Q, $p % 4).a", "aggregate($Q, 0, (acc, v) -> acc + v.a)",
		"CASE $1 WHEN $1 THEN $i ELSE $i END", "decode($i, 1, 5, 2, $i, $i)", "aggregate($A, 0, (acc, v) -> acc + v)",
	},
	'l': {
		"-$l", "$l + $i", "$l - $l", "$l * $l", "$l % $l", "$i DIV $i", "$l DIV $l", "abs($l)", "CAST($n AS BIGINT)", "TRY_CAST($a AS BIGINT)", "CAST($T AS BIGINT)", "unix_timestamp($z)",
		"unix_seconds($T)", "unix_millis($T)", "unix_micros($T)", "array_position($A, $i)", "xxhash64($a, $a)", "crc32($s)", "floor($d)", "ceil($d)", "factorial(#p)", "$l << $p", "pmod($l, $l)",
		"try_add($l, $l)", "try_multiply($l, $l)", "CAST($b AS BIGINT)", "shiftright($l, $p)", "greatest($i, $l)", "to_unix_timestamp($s, 'yyyy-MM-dd')", "round($l, #p)", "$c DIV $c",
		"timestampdiff(DAY, $T, $T)", "timestampdiff(MONTH, $T, $T)", "try_subtract($l, $l)",
	},
	'f': {"-$f", "$f + $f", "$f * $f", "$f - $f", "$f % $f", "CAST($n AS FLOAT)", "TRY_CAST($s AS FLOAT)", "abs($f)", "CAST($s AS FLOAT)", "round($f, #p)", "greatest($f, $h)"},
	'd': {
		"-$d", "$d + $d", "$d - $d", "$d * $d", "$d / $d", "$d % $d", "$i / $i", "$f / $d", "abs($d)", "CAST($n AS DOUBLE)", "TRY_CAST($s AS DOUBLE)", "sqrt($d)", "cbrt($d)", "exp($d)",
		"ln($d)", "log10($d)", "log2($d)", "log1p($d)", "expm1($d)", "atan($d)", "asin($d)", "sinh($d)", "tanh($d)", "atan2($d, $d)", "hypot($d, $d)", "power($d, $p)", "pow($d, $d)",
		"degrees($d)", "radians($d)", "rint($d)", "signum($d)", "nanvl($d, $d)", "round($d, #p)", "bround($d, #p)", "pmod($d, $d)", "try_divide($d, $d)", "try_divide($i, $i)", "months_between($T, $T)",
		"months_between($D, $D, false)", "$f + $d", "greatest($d, $i)", "log(#p, $d)", "CAST($T AS DOUBLE)", "asinh($d)",
	},
	'c': {
		"-$c", "$c + $c", "$c - $c", "$c * $c", "$c / $c", "$c % $c", "$c + $i", "$l * $c", "$c / $i", "abs($c)", "round($c, #p)", "bround($c, #p)", "floor($c)", "ceil($c, #p)", "floor($d, #p)", "round($c)",
		"CAST($n AS DECIMAL(10, 2))", "CAST($n AS DECIMAL(38, 10))", "CAST($s AS DECIMAL(12, 3))", "TRY_CAST($a AS DECIMAL(5, 2))", "pmod($c, $c)", "try_add($c, $c)", "try_divide($c, $c)", "greatest($c, $i)", "least($c, $c)",
		"$P.d", "CAST($T AS DECIMAL(20, 6))", "EXTRACT(SECOND FROM $T)", "try_multiply($c, $c)", "to_number($s, '999')", "try_to_number($s, '99.9')",
	},
	's': {
		"$s || $s", "concat($s, $a)", "upper($s)", "lower($s)", "initcap($s)", "reverse($s)", "trim($s)", "ltrim($s)", "rtrim($s)", "btrim($s, $s)", "TRIM(LEADING $s FROM $s)", "substring($s, $p, $p)", "substr($s, $p)",
		"left($s, $p)", "right($s, $p)", "lpad($s, #p, $s)", "rpad($s, 6, $s)", "repeat($s, #p)", "replace($s, $s, $s)", "translate($s, $s, $s)", "overlay($s PLACING $s FROM #p FOR #p)", "substring_index($s, $s, #p)",
		"split_part($s, ',', #p)", "concat_ws(',', $s, $s)", "concat_ws('-', $S)", "CAST($a AS STRING)", "CAST($A AS STRING)", "CAST($M AS STRING)", "CAST($R AS STRING)", "hex($s)", "hex($l)", "hex($x)", "md5($s)", "sha1($x)", "sha2($s, 256)",
		"base64($x)", "bin($l)", "conv($s, 10, 16)", "conv($s, 16, -10)", "soundex($s)", "quote($s)", "format_number($d, 2)", "format_number($c, 1)", "format_string('%d-%s', $i, $s)", "format_string('%.3f', $d)", "date_format($z, 'yyyy-MM-dd HH:mm:ss.SSS')", "date_format($z, 'EEE d MMM uuuu')",
		"from_unixtime($l)", "dayname($D)", "monthname($D)", "array_join($S, ',')", "array_join($S, ',', $s)", "element_at($S, $p % 4)", "$R.b", "regexp_extract($s, '([a-z]+)', 1)", "regexp_replace($s, '[0-9]', $s)", "regexp_substr($s, 'b.')",
		"to_json($P)", "to_json($Q)", "to_json($W)", "CAST($P AS STRING)", "CAST($Q AS STRING)", "CAST($W AS STRING)", "$P.r.b", "$Q[$p].b",
		"to_json($R)", "to_json($M)", "to_json($A)", "get_json_object('{\"a\":[1,2]}', '$.a[1]')", "typeof($n)", "nvl2($a, $s, $s)", "elt($p, $s, $s)", "decode($x, 'UTF-8')", "CAST($x AS STRING)", "url_encode($s)", "try_url_decode($s)", "space(#p)",
		"chr($i)", "to_char($c, '9,999.99')", "mask($s)", "CAST(make_interval(#p, #p) AS STRING)", "CAST($D - $D AS STRING)", "CAST($T - $T AS STRING)", "CASE WHEN $b THEN $s WHEN $b THEN $s END", "lpad($s, 5)",
	},
	'b': {
		"$1 = $1", "$1 <> $1", "$1 < $1", "$1 <= $1", "$1 > $1", "$1 >= $1", "$1 <=> $1", "$n = $n", "$n < $n", "$n >= $n", "$s = $i", "$s < $n", "$z = $z", "$z < $z", "$s = $z", "NOT $b", "$b AND $b", "$b OR $b", "$a IS NULL", "$a IS NOT NULL", "$b IS TRUE",
		"$b IS NOT FALSE", "$b IS UNKNOWN", "$1 BETWEEN $1 AND $1", "$1 NOT BETWEEN $1 AND $1", "$n BETWEEN $n AND $n", "$1 IN ($1, $1, $1)", "$1 NOT IN ($1, $1)", "$n IN ($n, $n)", "$1 IS DISTINCT FROM $1", "$s LIKE $s", "$s LIKE 'a%'", "$s LIKE '%b%'", "$s NOT LIKE '_b_'", "$s ILIKE 'A%'",
		"$s LIKE ANY ('a%', '%c')", "$s LIKE ALL ('%a%', '%b%')", "$s RLIKE '^[a-z]+$'", "regexp_like($s, 'a|b')", "contains($s, $s)", "startswith($s, $s)", "endswith($s, $s)", "isnan($d)", "isnull($a)", "isnotnull($a)", "equal_null($1, $1)", "array_contains($A, $i)",
		"array_contains($S, $s)", "arrays_overlap($A, $A)", "map_contains_key($M, $s)", "exists($A, v -> v > 1)", "forall($A, v -> v > $i)", "CAST($s AS BOOLEAN)", "CAST($n AS BOOLEAN)", "TRY_CAST($s AS BOOLEAN)", "$A = $A", "$A < $A", "$R = $R", "$R < $R", "$R IN ($R, $R)", "$P = $P", "$P < $P", "$Q = $Q", "$Q <=> $Q", "array_contains($Q, $R)", "exists($Q, v -> v.a > $i)", "$s = $b", "$x = $x", "luhn_check($s)",
	},
	'D': {
		"date_add($D, $p)", "date_sub($D, $i)", "$D + $p", "$D - $p", "add_months($D, $p)", "last_day($z)", "next_day($D, 'MON')", "trunc($z, 'MONTH')", "trunc($D, 'WEEK')", "trunc($D, $s)", "CAST($T AS DATE)", "CAST($N AS DATE)", "CAST($s AS DATE)", "TRY_CAST($s AS DATE)", "to_date($s)",
		"to_date($s, 'yyyy-MM-dd')", "try_to_date($s)", "make_date($i, $p, $p)", "date_from_unix_date($i)", "greatest($D, $D)", "$D + INTERVAL '1' MONTH", "$D - INTERVAL '2' YEAR", "$D + INTERVAL '3' DAY", "make_date(2024, 2, $p)",
	},
	'T': {
		"CAST($D AS TIMESTAMP)", "CAST($N AS TIMESTAMP)", "CAST($s AS TIMESTAMP)", "TRY_CAST($s AS TIMESTAMP)", "to_timestamp($s)", "to_timestamp($s, 'yyyy-MM-dd HH:mm:ss.SSS')", "try_to_timestamp($s)", "$T + INTERVAL '1' HOUR", "$T - INTERVAL '1 02:03:04.5' DAY TO SECOND", "$T + INTERVAL '1' MONTH",
		"date_trunc('DAY', $z)", "date_trunc('WEEK', $T)", "date_trunc('MILLISECOND', $T)", "date_trunc('QUARTER', $T)", "timestamp_seconds($l)", "timestamp_seconds($c)", "timestamp_millis($l)", "timestamp_micros($l)", "from_utc_timestamp($T, 'Europe/Paris')", "to_utc_timestamp($T, 'America/New_York')",
		"make_timestamp(2024, 2, $p, $p, 30, 1.5)", "CAST($l AS TIMESTAMP)", "CAST($d AS TIMESTAMP)", "CAST($c AS TIMESTAMP)", "timestampadd(MONTH, $p, $T)", "timestampadd(HOUR, $i, $T)", "dateadd(DAY, $p, $T)", "least($T, $T)", "$T + make_dt_interval(#p, #p)", "try_make_timestamp($i, 1, 1, 0, 0, 0)",
	},
	'N': {
		"CAST($T AS TIMESTAMP_NTZ)", "CAST($D AS TIMESTAMP_NTZ)", "CAST($s AS TIMESTAMP_NTZ)", "TRY_CAST($s AS TIMESTAMP_NTZ)", "$N + INTERVAL '1' DAY", "$N - INTERVAL '1' YEAR", "to_timestamp_ntz($s)", "convert_timezone('Asia/Tokyo', 'UTC', $N)", "make_timestamp_ntz(2024, $p, 29, 12, 34, 56)", "greatest($N, $N)",
		"timestampadd(DAY, $p, $N)",
	},
	'x': {"CAST($s AS BINARY)", "$x || $x", "substring($x, $p, $p)", "unhex($s)", "encode($s, 'UTF-8')", "encode($s, 'UTF-16BE')", "unbase64($s)", "try_to_binary($s, 'hex')", "CAST($i AS BINARY)", "CAST(reverse($x) AS BINARY)", "lpad($x, 4, $x)", "left($x, $p)"},
	'A': {
		"$Q.a", "$P.l", "map_keys($W)", "transform($Q, v -> v.a)",
		"array($i, $i)", "sort_array($A)", "sort_array($A, false)", "array_distinct($A)", "array_union($A, $A)", "array_intersect($A, $A)", "array_except($A, $A)", "array_remove($A, $i)", "array_append($A, $i)", "array_prepend($A, $i)", "array_insert($A, $p, $i)", "array_compact($A)", "slice($A, $p, $p)",
		"array_repeat($i, #p)", "sequence(1, $p)", "sequence($p, $p)", "flatten(array($A, $A))", "transform($A, v -> v * 2)", "transform($A, (v, j) -> v + j)", "filter($A, v -> v > 0)", "zip_with($A, $A, (x, y) -> x + y)", "array_sort($A)", "reverse($A)", "map_values($M)", "concat($A, $A)", "from_json('[1, 2]', 'ARRAY<INT>')", "CAST($S AS ARRAY<INT>)", "TRY_CAST($S AS ARRAY<INT>)",
	},
	'S': {"$Q.b", "$W[$i]", "element_at($W, $p)", "flatten(map_values($W))", "array($s, $s)", "split($s, ',')", "split($s, '')", "split($s, '[ab]', $p)", "map_keys($M)", "array_sort($S)", "array_distinct($S)", "transform($S, v -> upper(v))", "filter($S, v -> v <> '')", "CAST($A AS ARRAY<STRING>)", "regexp_extract_all($s, '([a-z])', 1)", "array_append($S, $s)", "slice($S, 1, $p)", "array_union($S, $S)"},
	'M': {"map($s, $i)", "map_concat($M, $M)", "map_from_arrays(array('p', 'q'), array($i, $i))", "map_filter($M, (k, v) -> v > 0)", "transform_values($M, (k, v) -> v + 1)", "transform_keys($M, (k, v) -> upper(k))", "map_from_entries(array(struct($s, $i)))", "map_zip_with($M, $M, (k, x, y) -> x + y)"},
	'R': {"named_struct('a', $i, 'b', $s)", "from_json('{\"a\":1}', 'a INT, b STRING')", "CAST(named_struct('a', $l, 'b', $i) AS STRUCT<a: INT, b: STRING>)", "element_at(array($R, $R), $p % 4)", "$P.r", "$Q[$p]", "array_max($Q)"},
	'P': {"named_struct('r', $R, 'l', $A, 'd', CAST($n AS DECIMAL(10, 2)))"},
	'Q': {"array($R, $R)", "filter($Q, v -> v.a > 0)", "array_append($Q, $R)", "reverse($Q)", "slice($Q, $p, $p)", "array_distinct($Q)", "array_union($Q, $Q)", "array_sort($Q)", "concat($Q, $Q)", "transform($A, v -> named_struct('a', v, 'b', $s))"},
	'W': {"map($i, $S)", "map_filter($W, (k, v) -> size(v) > 1)", "map_concat($W, $W)", "transform_values($W, (k, v) -> array_append(v, $s))"},
}

// everywhere are forms of every kind k.
var everywhere = []string{
	"coalesce($k, $k)", "if($b, $k, $k)", "CASE WHEN $b THEN $k ELSE $k END", "nullif($k, $k)", "nvl($k, $k)", "greatest($k, $k)", "least($k, $k)", "($k)", "nvl2($a, $k, $k)", "CASE WHEN $b THEN $k END",
}

// exprGen makes expressions over columns, the same ones for the same seed.
type exprGen struct {
	r       *rand.Rand
	columns map[byte][]string
	parts   []string // what the expression is made of, inner ones first
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// narrow turns a letter that stands for several kinds into one of them.
func (g *exprGen) narrow(k byte) byte {
	switch k {
	case 'n':
		return numberKinds[g.r.IntN(len(numberKinds))]
	case 'z':
		return timeKinds[g.r.IntN(len(timeKinds))]
	case 'a':
		return scalarKinds[g.r.IntN(len(scalarKinds))]
	}
	return k
}

// literal returns a literal of a kind; NULL is one of each.
func (g *exprGen) literal(k byte) string {
	k = g.narrow(k)
	if k != 'p' && g.r.IntN(12) == 0 {
		return fmt.Sprintf("CAST(NULL AS %s)", sparkTypes[k][0])
	}
	return pick(g.r, sparkLiterals[k])
}

// expr returns an expression of a kind whose operators nest up to depth deep.
func (g *exprGen) expr(k byte, depth int) string {
	if k == 'p' && g.r.IntN(3) > 0 {
		return g.literal(k)
	} else if k == 'p' {
		k = 'i'
	}
	k = g.narrow(k)
	if depth <= 0 || g.r.IntN(6) == 0 {
		if c := g.columns[k]; len(c) > 0 && g.r.IntN(4) > 0 {
			return pick(g.r, c)
		}
		return g.literal(k)
	}
	forms := sparkForms[k]
	if g.r.IntN(6) == 0 && k != 'M' && k != 'W' { // maps do not compare
		forms = everywhere
	}
	x := g.fill(pick(g.r, forms), k, depth-1)
	g.parts = append(g.parts, x)
	return x
}

// fill puts expressions into a form.
func (g *exprGen) fill(form string, k byte, depth int) string {
	same := g.narrow('a')
	var b strings.Builder
	for i := 0; i < len(form); i++ {
		c := form[i]
		if c != '$' && c != '#' || i+1 == len(form) || !strings.ContainsRune(everyKind+"nzapk1", rune(form[i+1])) {
			b.WriteByte(c)
			continue
		}
		i++
		kind := form[i]
		switch kind {
		case 'k':
			kind = k
		case '1':
			kind = same
		}
		x := g.literal(kind)
		if c == '$' {
			x = g.expr(kind, depth)
		}
		if strings.ContainsAny(x, " -") {
			x = "(" + x + ")"
		}
		b.WriteString(x)
	}
	return b.String()
}
