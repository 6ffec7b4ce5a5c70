package decode

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// myAllTypes is the recorded MariaDB table in the Paimon types that fit it.
const myAllTypes = `id INT NOT NULL; t1 TINYINT; t1b TINYINT; bo TINYINT; t1u SMALLINT; s2 SMALLINT; s2u INT; m3 INT; m3u INT; i4 INT;
	i4u BIGINT; i4z BIGINT; i8 BIGINT; i8u BIGINT; f FLOAT; f72 DOUBLE; d DOUBLE; de DECIMAL(12, 2); de0 DECIMAL(20, 0); de65 STRING;
	deu DECIMAL(10, 4); b1 BOOLEAN; b4 BINARY(1); b64 BINARY(8); c CHAR(5); vc VARCHAR(40); vcb VARCHAR(20); l1 VARCHAR(40); u2 VARCHAR(20);
	cp VARCHAR(20); tt STRING; tx STRING; mt STRING; lt STRING; bi BINARY(4); vbi VARBINARY(20); tb BYTES; bl BYTES; e STRING; st STRING;
	j STRING; y INT; da DATE; ti STRING; ti6 STRING; dt TIMESTAMP(3); dt3 TIMESTAMP(3); dt6 TIMESTAMP(6);
	ts TIMESTAMP(0) WITH LOCAL TIME ZONE; ts6 TIMESTAMP(6) WITH LOCAL TIME ZONE; gen INT; gens INT`

// myExpected turns MariaDB's output of a column into ours.
func myExpected(col, s string) string {
	if s == "NULL" {
		return s
	}
	switch col {
	case "b1":
		return map[string]string{"1": "true", "0": "false"}[s]
	case "b4":
		return map[string]string{"1010": "0a", "0": "00"}[s]
	case "b64":
		return map[string]string{"1000000000000000000000000000000000000000000000000000000000000001": "8000000000000001", "0": "0000000000000000"}[s]
	case "bi", "vbi", "tb", "bl":
		return strings.ToLower(strings.TrimPrefix(s, "0x"))
	case "i4z":
		return strings.TrimLeft(s[:len(s)-1], "0") + s[len(s)-1:]
	case "ti6":
		return fraction(s, 6)
	case "dt", "dt3":
		return fraction(strings.Replace(s, " ", "T", 1), 3)
	case "dt6":
		return fraction(strings.Replace(s, " ", "T", 1), 6)
	case "ts":
		return strings.Replace(s, " ", "T", 1) + "Z"
	case "ts6":
		return fraction(strings.Replace(s, " ", "T", 1), 6) + "Z"
	case "ti":
		return fraction(s, 6)
	}
	return s
}

// myDifferent are the cells that cannot be equal, and why.
func myDifferent(schema bool) map[string]map[string]string {
	d := map[string]map[string]string{
		"-5": {"i8u": "-1"}, // bigint.unsigned.handling.mode=long wraps
		"1":  {"i8u": "-1"},
		"4":  {"da": "NULL", "dt": "NULL"},          // partial dates arrive as NULL
		"5":  {"dt6": "1999-12-31T00:00:00.000000"}, // the producer's two-digit-year adjuster
		// the same adjuster: year 1 is 2001, YEAR 0 is 1900; unsigned 2^63 wraps
		"21": {"i8u": "-9223372036854775808", "y": "1900", "da": "2001-01-01", "f": "0"},
		// the CSV shows FLOAT widened to DOUBLE
		"6": {"f": "0.1", "f72": "0.10000000149011612"},
		"7": {"d": "9007199254740992"},
		"8": {"f": "3.4028235e+38", "d": "2.2250738585072014e-308"},
		"9": {"f": "1.17549e-38", "d": "-1e-320"},
	}
	d["21"]["d"] = "1.7976931348623157e+308"
	if schema {
		return d
	}
	// Without schema nothing says that a number is a duration or text a decimal,
	// nor that bytes are bits, least significant first.
	for key, cells := range map[string]map[string]string{
		"-5": {"ti": "-1000000", "ti6": "3020399000000"},
		"1":  {"ti": "45296000000", "ti6": "45296123456", "de65": "HgK8HpeFi9xsuVBY80JMFjWLJ/5OyymuOYEV", "b64": "0100000000000080"},
		"4":  {"ti": "-86400000000", "ti6": "360000500000"},
		"5":  {"ti": "86399000000", "ti6": "-1"},
		"21": {"ti": "0", "ti6": "-3020399000000", "de65": "/w=="},
	} {
		for col, text := range cells {
			d[key][col] = text
		}
	}
	return d
}

func TestDebezium_MirrorsTheRecordedMariaDBTableOfAllTypes(t *testing.T) {
	plain := ofTopic(loadRecording(t, "mariadb/myplain"), "shop.all_types")
	schema := ofTopic(append(loadRecording(t, "mariadb/myschema-all_types-1"), loadRecording(t, "mariadb/myschema-all_types-2")...), "shop.all_types")
	for name, recs := range map[string][]Record{"plain": plain, "schema": schema} {
		t.Run(name, func(t *testing.T) {
			o := options(t, myAllTypes, "id")
			o.UnscaledDecimals = true
			f, _ := mirror(t, "debezium-json", o, recs)
			_, want := loadFinal(t, "mariadb/final-all_types.csv", "id")
			different := myDifferent(name == "schema")
			equalFinal(t, f, want, func(key, col, text string) string {
				if s, ok := different[key][col]; ok {
					return s
				}
				return myExpected(col, text)
			})
		})
	}
}

func TestDebezium_RefusesDurationsInTimeColumns(t *testing.T) {
	o := options(t, "id INT NOT NULL; ti TIME(6); ti6 TIME(6)", "id")
	recs := ofTopic(append(loadRecording(t, "mariadb/myschema-all_types-1"), loadRecording(t, "mariadb/myschema-all_types-2")...), "shop.all_types")
	d, out := mustNew(t, "debezium-json", o), newBatch(o)
	var refused []int64
	for i := range recs {
		if _, err := d.Decode(&recs[i], out); err != nil {
			var re *RowError
			require.ErrorAs(t, err, &re)
			require.Equal(t, ClassRange, re.Class)
			refused = append(refused, recs[i].Offset)
		}
	}
	require.NotEmpty(t, refused, "-00:00:01, 838:59:59, 24:00:00 are no times of day")
}

func TestDebezium_DecodesMariaDBRecordingsOfOtherModes(t *testing.T) {
	// Unsigned bigints are base64 although decimals are text (or doubles) there:
	// they are kept as the text they come in.
	for name, change := range map[string][]string{
		"mystring": {"i8u BIGINT", "i8u STRING", "dt6 TIMESTAMP(6)", "dt6 TIMESTAMP(3)", "b1 BOOLEAN", "b1 BOOLEAN"},
		"myiso": {
			"i8u BIGINT", "i8u STRING", "de0 DECIMAL(20, 0)", "de0 DOUBLE", "t1b TINYINT", "t1b BOOLEAN",
			"b4 BINARY(1)", "b4 STRING", "b64 BINARY(8)", "b64 STRING",
		}, // bits stay base64 where bytes are hex,
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, strings.NewReplacer(change...).Replace(myAllTypes), "id")
			if name == "myiso" {
				o.Binary = BinaryHex
			}
			f, _ := mirror(t, "debezium-json", o, ofTopic(loadRecording(t, "mariadb/"+name), "shop.all_types"))
			require.Len(t, f.rows, 10)
			require.Equal(t, "deadbeef00", f.rows["1"]["bl"])
			require.Equal(t, "AP//////////", f.rows["1"]["i8u"])
			require.Equal(t, "9999999999.99", f.rows["1"]["de"])
			require.Equal(t, "line\nbreak 😀 \\", f.rows["1"]["tx"])
			require.Equal(t, "2026-09-10T12:34:56.123", f.rows["1"]["dt3"])
		})
	}
}
