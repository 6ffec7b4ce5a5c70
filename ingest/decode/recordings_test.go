package decode

import (
	"strings"
	"testing"

	"applier/ingest/change"

	"github.com/stretchr/testify/require"
)

// decodeAll decodes records one by one into one batch and counts the skips.
func decodeAll(t *testing.T, d Decoder, o Options, recs []Record) (*change.Batch, map[Skip]int) {
	out, skips := newBatch(o), map[Skip]int{}
	for i := range recs {
		row := out.Len()
		res, err := d.Decode(&recs[i], out)
		require.NoError(t, err, "%s offset %d", recs[i].Topic, recs[i].Offset)
		require.Equal(t, out.Len()-row, res.Rows)
		if res.Skip != SkipNone {
			require.Zero(t, res.Rows)
			skips[res.Skip]++
		}
	}
	return out, skips
}

// mirror decodes records one by one into a folder, which a truncate empties.
func mirror(t *testing.T, format string, o Options, recs []Record) (*folder, map[Skip]int) {
	require.NotEmpty(t, recs)
	d, f, out, skips := mustNew(t, format, o), newFolder(o), newBatch(o), map[Skip]int{}
	for i := range recs {
		out.Reset()
		res, err := d.Decode(&recs[i], out)
		require.NoError(t, err, "%s offset %d", recs[i].Topic, recs[i].Offset)
		if res.Skip != SkipNone {
			skips[res.Skip]++
		}
		if res.Skip == SkipTruncate {
			clear(f.rows)
		}
		f.apply(t, out)
	}
	return f, skips
}

// equalFinal compares a folder with what the source held at the end.
func equalFinal(t *testing.T, f *folder, want map[string]map[string]string, expected func(key, col, text string) string) {
	require.Len(t, f.rows, len(want))
	for key, row := range want {
		got := f.rows[key]
		require.NotNil(t, got, "row %s", key)
		for i := range f.fields {
			col := f.fields[i].Name
			require.Equal(t, expected(key, col, row[col]), got[col], "row %s column %s", key, col)
		}
	}
}

// pgAllTypes is the table of acceptance test (i): the scalar columns of the
// recorded table, in the Paimon types that fit them.
const pgAllTypes = `id BIGINT NOT NULL; i2 SMALLINT; i4 INT; i8 BIGINT; r FLOAT; d DOUBLE; n DECIMAL(38, 9); n12 DECIMAL(12, 2);
	n38 DECIMAL(38, 10); m DECIMAL(19, 2); b BOOLEAN; c CHAR(5); vc VARCHAR(20); t STRING; by BYTES; dt DATE; tm TIME(6); tm3 TIME(3);
	tz STRING; ts TIMESTAMP(6); ts3 TIMESTAMP(3); tstz TIMESTAMP(6) WITH LOCAL TIME ZONE; iv BIGINT; u STRING; j STRING; jb STRING;
	x STRING; ia STRING; ta STRING; na STRING; r4 STRING; ip STRING; bits BYTES; p STRING; big STRING`

// pgText turns PostgreSQL's output of a column into ours.
var pgText = map[string]func(string) string{
	"m":    func(s string) string { return strings.Replace(s, "$", "", 1) },
	"b":    func(s string) string { return map[string]string{"t": "true", "f": "false"}[s] },
	"by":   func(s string) string { return strings.TrimPrefix(s, `\x`) },
	"ts":   func(s string) string { return strings.Replace(s, " ", "T", 1) },
	"ts3":  func(s string) string { return strings.Replace(s, " ", "T", 1) },
	"tstz": func(s string) string { return strings.TrimSuffix(strings.Replace(s, " ", "T", 1), "+00") },
	"tm":   func(s string) string { return s },
}

// fraction pads the fraction digits PostgreSQL leaves out.
func fraction(s string, digits int) string {
	if !strings.Contains(s, ".") {
		s += "."
	}
	for len(s)-strings.IndexByte(s, '.')-1 < digits {
		s += "0"
	}
	return s
}

func pgExpected(col, s string) string {
	if s == "NULL" {
		return s
	}
	if f := pgText[col]; f != nil {
		s = f(s)
	}
	switch col {
	case "ts", "tstz", "tm":
		s = fraction(s, 6)
	case "ts3", "tm3":
		s = fraction(s, 3)
	case "n":
		s = fraction(s, 9)
	}
	if col == "tstz" {
		s += "Z"
	}
	return s
}

// pgDifferent are the cells of final-all_types.csv that cannot be equal, with
// what they are instead. The reasons are the producer's or Paimon's.
func pgDifferent(schema bool) map[string]map[string]string {
	one := map[string]string{
		"tm": "12:34:56.123000",                                             // Paimon's TIME holds milliseconds
		"tz": "10:34:56.5Z",                                                 // Debezium normalises timetz to UTC
		"iv": "37091106700000",                                              // interval as microseconds, a month is 30.4375 days
		"ia": "[1,null,3]", "ta": `["x","y z",null]`, "na": `["fQ==",null]`, // arrays as the JSON they came in
		"p":    `{"x":1.0,"y":2.0,"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":null}`,
		"bits": "0a",
	}
	ten := map[string]string{
		"n":  "NULL", // NaN: the producer's precise mode has no form for it
		"tz": "00:00:00Z", "iv": "0", "ia": "[]", "ta": "[]", "na": "[]",
		"p":    `{"x":0.0,"y":0.0,"wkb":"AQEAAAAAAAAAAAAAAAAAAAAAAAAA","srid":null}`,
		"bits": "",
	}
	if schema {
		ten["bits"] = "00" // the schema knows the length of the bit string
	}
	return map[string]map[string]string{"0": {}, "1": one, "10": ten}
}

func TestDebezium_MirrorsTheRecordedPostgresTableOfAllTypes(t *testing.T) {
	for _, name := range []string{"pgschema", "pgplain"} {
		t.Run(name, func(t *testing.T) {
			o := options(t, pgAllTypes, "id")
			o.UnscaledDecimals = true // without effect on pgschema
			recs := ofTopic(loadRecording(t, "debezium/"+name), "all_types")
			require.Len(t, recs, 11)
			d := mustNew(t, "debezium-json", o)
			out, skips := decodeAll(t, d, o, recs)
			require.Equal(t, map[Skip]int{SkipTombstone: 2}, skips)
			require.Empty(t, d.UnknownColumns())

			f := newFolder(o)
			f.apply(t, out)
			names, want := loadFinal(t, "debezium/final-all_types.csv", "id")
			require.Len(t, f.rows, len(want))
			different := pgDifferent(name == "pgschema")
			for key, row := range want {
				got := f.rows[key]
				require.NotNil(t, got, "row %s", key)
				for _, col := range names {
					expected, ok := different[key][col]
					if !ok {
						expected = pgExpected(col, row[col])
					}
					require.Equal(t, expected, got[col], "row %s column %s", key, col)
				}
			}
		})
	}
}

func TestDebezium_ClampsPostgresInfinitiesInEveryRecordedForm(t *testing.T) {
	for _, name := range []string{"pgschema", "pgplain", "pgstring", "pgiso"} {
		t.Run(name, func(t *testing.T) {
			spec := "id BIGINT NOT NULL; dt DATE; ts TIMESTAMP(6); tstz TIMESTAMP(6) WITH LOCAL TIME ZONE"
			if name == "pgstring" {
				spec = strings.Replace(spec, "ts TIMESTAMP(6)", "ts TIMESTAMP(3)", 1) // time.precision.mode=connect: millis
			}
			o := options(t, spec, "id")
			recs := ofTopic(loadRecording(t, "debezium/"+name), "all_types")
			out, _ := decodeAll(t, mustNew(t, "debezium-json", o), o, recs[3:4])
			require.Equal(t, "9999-12-31", cellText(&out.Cols[1], 0))
			require.Equal(t, fraction("0001-01-01T00:00:00", o.Fields[2].Type.Precision), cellText(&out.Cols[2], 0))
			require.Equal(t, "9999-12-31T23:59:59.999999Z", cellText(&out.Cols[3], 0))
		})
	}
}

func TestDebezium_MirrorsTheRecordedPostgresTableInOtherModes(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		different  map[string]map[string]string
	}{
		// decimals as text, times as Connect types (milliseconds)
		{"pgstring", strings.NewReplacer("TIMESTAMP(6);", "TIMESTAMP(3);", "TIME(6)", "TIME(3)").Replace(pgAllTypes), map[string]map[string]string{
			"1":  {"ts": "2026-09-10T12:34:56.123", "tm": "12:34:56.123", "na": `["1.25",null]`},
			"10": {"ts": "1969-12-31T23:59:59.999", "tm": "00:00:00.000"}, // the producer floors -1 µs
		}},
		// decimals as doubles, times as ISO texts, bytes as hex text
		{"pgiso", strings.NewReplacer("n DECIMAL(38, 9)", "n DOUBLE", "n38 DECIMAL(38, 10)", "n38 DOUBLE", "iv BIGINT", "iv STRING").Replace(pgAllTypes), map[string]map[string]string{
			"1":  {"n": "12345678901234567000", "n38": "1.2345678901234569e+27", "iv": "P1Y2M3DT4H5M6.7S", "na": "[1.25,null]"},
			"10": {"n": "NaN", "n38": "-1e-10", "iv": "P0Y0M0DT0H0M0S", "bits": "00"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := options(t, tc.spec, "id")
			if tc.name == "pgiso" {
				o.Binary = BinaryHex
			}
			recs := ofTopic(loadRecording(t, "debezium/"+tc.name), "all_types")
			if tc.name == "pgstring" {
				// NUMERIC NaN is the text NAN, which DECIMAL cannot hold: that column as text.
				o.Fields[6].Type = table(t, "n STRING")[0].Type
				tc.different["1"]["n"] = "12345678901234567890.123456789"
				tc.different["10"]["n"] = "NAN"
			}
			f, _ := mirror(t, "debezium-json", o, recs)
			_, want := loadFinal(t, "debezium/final-all_types.csv", "id")
			base := pgDifferent(false)
			equalFinal(t, f, want, func(key, col, text string) string {
				if s, ok := tc.different[key][col]; ok {
					return s
				}
				if s, ok := base[key][col]; ok {
					return s
				}
				return pgExpected(col, text)
			})
		})
	}
}

func TestDebezium_MirrorsTheRecordedTableWhoseSchemaChanges(t *testing.T) {
	for _, name := range []string{"pgschema", "pgplain", "pgstring", "pgiso"} {
		t.Run(name, func(t *testing.T) {
			o := options(t, "a INT NOT NULL; b STRING NOT NULL; v DECIMAL(20, 5); big STRING", "a", "b")
			// Without schema the scale of v, 3 at first and 5 later, must come from
			// the column: rows from before the change would be read 100 times too
			// small. They are gone at the end, so the final state is right.
			o.UnscaledDecimals = name == "pgplain"
			recs := ofTopic(loadRecording(t, "debezium/"+name), "full_id")
			f, skips := mirror(t, "debezium-json", o, recs)
			_, want := loadFinal(t, "debezium/final-full_id.csv", "a", "b")
			equalFinal(t, f, want, func(_, _, text string) string { return text })
			require.Equal(t, map[Skip]int{SkipTruncate: 1, SkipTombstone: 3}, skips)

			d := mustNew(t, "debezium-json", o)
			decodeAll(t, d, o, recs)
			require.Equal(t, []string{"added"}, d.UnknownColumns())
		})
	}
}

func TestDebezium_AppendsTheRecordedTableWithoutKey(t *testing.T) {
	o := options(t, "a INT; b STRING; op STRING; lsn BIGINT; at TIMESTAMP(3) WITH LOCAL TIME ZONE; connector STRING")
	o.Columns = []MetaColumn{{2, "op"}, {3, "source.lsn"}, {4, "source.ts_ms"}, {5, "header.__debezium.context.connectorName"}}
	recs := ofTopic(loadRecording(t, "debezium/pgschema"), "nokey")
	out, skips := decodeAll(t, mustNew(t, "debezium-json", o), o, recs)
	require.Equal(t, map[Skip]int{SkipTombstone: 2}, skips, "key and value null")
	var rows []string
	for i := range out.Len() {
		rows = append(rows, out.Kind[i].String()+" "+cellText(&out.Cols[0], i)+cellText(&out.Cols[1], i)+" "+cellText(&out.Cols[2], i))
	}
	require.Equal(t, []string{"insert 1p c", "insert 1p c", "update 1q u", "update 1q u", "delete 1q d", "delete 1q d"}, rows)
	require.Equal(t, "2026-11-29T23:13:08.677Z", cellText(&out.Cols[4], 0))
	require.Equal(t, int64(1795993988677), out.Time[0])
	require.NotEqual(t, "NULL", cellText(&out.Cols[3], 0))
	require.Equal(t, "postgresql", cellText(&out.Cols[5], 0))
	require.False(t, out.Holes.Any())

	o = options(t, "a INT; b STRING") // no column for op: deletes are ignored
	out, skips = decodeAll(t, mustNew(t, "debezium-json", o), o, recs)
	require.Equal(t, 4, out.Len())
	require.Equal(t, map[Skip]int{SkipDelete: 2, SkipTombstone: 2}, skips)
}

func TestDebezium_NamesEveryRecordedControlRecord(t *testing.T) {
	o := options(t, "id BIGINT", "id")
	for _, tc := range []struct {
		file, topic string
		want        map[Skip]int
	}{
		{"debezium/pgstring", "pgstring.transaction", map[Skip]int{SkipTransaction: 40}},
		{"postgres-extra/pgmsg", "__debezium-heartbeat.pgmsg", map[Skip]int{SkipHeartbeat: 12}},
		{"postgres-extra/pgmsg", "pgmsg.message", map[Skip]int{SkipMessage: 3}},
		{"postgres-extra/pgext", "pgext.message", map[Skip]int{SkipMessage: 3}},
		{"mariadb/myplain", "myplain", map[Skip]int{SkipSchemaChange: 0}},
		{"mariadb/myschema-ddl", "myschema", map[Skip]int{SkipSchemaChange: 0}},
		{"mariadb/mystring", "mystring.transaction", map[Skip]int{SkipTransaction: 0}},
	} {
		t.Run(tc.topic, func(t *testing.T) {
			var recs []Record
			for _, r := range loadRecording(t, tc.file) {
				if r.Topic == tc.topic {
					recs = append(recs, r)
				}
			}
			require.NotEmpty(t, recs)
			out, skips := decodeAll(t, mustNew(t, "debezium-json", o), o, recs)
			require.Zero(t, out.Len())
			for skip, n := range tc.want {
				if n == 0 {
					n = len(recs)
				}
				require.Equal(t, map[Skip]int{skip: n}, skips)
			}
		})
	}
}

func TestDebezium_StripsTheRoutersKeyField(t *testing.T) {
	o := options(t, "id INT NOT NULL; v STRING; shard STRING NOT NULL", "id", "shard")
	o.Columns = []MetaColumn{{2, "source.table"}} // shards merged: the table is part of the key
	recs := ofTopic(loadRecording(t, "postgres-extra/pgroute"), "x.all_shards")
	d := mustNew(t, "debezium-json", o)
	out, _ := decodeAll(t, d, o, recs)
	f := newFolder(o)
	f.apply(t, out)
	require.Empty(t, d.UnknownColumns())
	got := map[string]string{}
	for k, r := range f.rows {
		got[k] = r["v"]
	}
	require.Equal(t, map[string]string{"1|shard_1": "u", "2|shard_1": "s1-2", "2|shard_2": "s2-2"}, got)
}

func TestDebezium_MirrorsRecordedTablesOfManyShapes(t *testing.T) {
	same := func(_, _, text string) string { return text }
	for _, tc := range []struct {
		file, topic, final, spec string
		key                      []string
		expected                 func(key, col, text string) string
	}{
		{"postgres-extra/pginc", "x.inc", "postgres-extra/final-inc.csv", "id INT NOT NULL; v STRING; n DECIMAL(10, 2)", []string{"id"}, same},
		{"postgres-extra/pgextj", "x.Weird_Name", "postgres-extra/final-Weird_Name.csv", "Id INT NOT NULL; select STRING; a.b INT; größe INT; schema STRING; payload STRING", []string{"Id"}, same},
		{"mariadb/myplain", "shop.Mixed-Case.t", "mariadb/final-Mixed-Case.t.csv", "Id INT NOT NULL; select STRING; per~cent% INT; größe INT", []string{"Id"}, same},
		{"mariadb/myschema-rest", "shop.Mixed-Case.t", "mariadb/final-Mixed-Case.t.csv", "Id INT NOT NULL; select STRING; per~cent% INT; größe INT", []string{"Id"}, same},
		{"mariadb/myplain", "shop.pk2", "mariadb/final-pk2.csv", "a INT NOT NULL; b STRING NOT NULL; v DECIMAL(10, 3); note STRING", []string{"a", "b"}, same},
		{"mariadb/myschema-rest", "shop.pk2", "mariadb/final-pk2.csv", "a INT NOT NULL; b STRING NOT NULL; v DECIMAL(10, 3); note STRING", []string{"a", "b"}, same},
		{"mariadb/myplain", "shop.uniq", "mariadb/final-uniq.csv", "id INT NOT NULL; code STRING; v INT", []string{"id"}, same},
		{"mariadb/mystring", "shop.uniq", "mariadb/final-uniq.csv", "id INT NOT NULL; code STRING; v INT", []string{"id"}, same},
		{"mariadb/myplain", "shop.only_uniq", "mariadb/final-only_uniq.csv", "code STRING NOT NULL; v INT", []string{"code"}, same},
		// A bare scalar as record key; a masked column; a column left out.
		{
			"mariadb/mykeys", "routed.t", "mariadb/final-mykeys-t.csv", "id INT NOT NULL; a INT; v DECIMAL(6, 2); big STRING; j STRING; nn STRING NOT NULL",
			[]string{"id"},
			func(_, col, text string) string {
				if col == "nn" {
					return "*****"
				}
				return text
			},
		},
		// Record key code, which is not unique: the merge key is wider and comes from the values.
		{"mariadb/mykeys", "routed.nk", "mariadb/final-mykeys-nk.csv", "code STRING NOT NULL; v INT NOT NULL; note STRING", []string{"code", "v"}, same},
		{"mariadb/myplain", "shop.not_null", "mariadb/final-not_null.csv", "id BIGINT NOT NULL; s STRING NOT NULL; n INT NOT NULL; de DECIMAL(8, 3) NOT NULL; da DATE NOT NULL; dt TIMESTAMP(3) NOT NULL; e STRING; b BOOLEAN", []string{"id"}, notNullExpected},
		{"mariadb/myschema-rest", "shop.not_null", "mariadb/final-not_null.csv", "id BIGINT NOT NULL; s STRING NOT NULL; n INT NOT NULL; de DECIMAL(8, 3) NOT NULL; da DATE NOT NULL; dt TIMESTAMP(3) NOT NULL; e STRING; b BOOLEAN", []string{"id"}, notNullExpected},
	} {
		t.Run(tc.file+"/"+tc.topic, func(t *testing.T) {
			o := options(t, tc.spec, tc.key...)
			o.UnscaledDecimals = true
			f, _ := mirror(t, "debezium-json", o, ofTopic(loadRecording(t, tc.file), tc.topic))
			_, want := loadFinal(t, tc.final, tc.key...)
			equalFinal(t, f, want, tc.expected)
		})
	}
}

// notNullExpected: MySQL's zero dates in NOT NULL columns arrive as the epoch.
func notNullExpected(_, col, text string) string {
	switch col {
	case "da", "dt":
		text = strings.Replace(text, "0000-00-00", "1970-01-01", 1)
	case "b":
		return map[string]string{"1": "true", "0": "false"}[text]
	}
	if col == "dt" {
		return fraction(strings.Replace(text, " ", "T", 1), 3)
	}
	return text
}

func TestDecoder_RefusesTruncatedRecordings(t *testing.T) {
	for name, spec := range map[string]string{
		"debezium/pgschema": pgAllTypes, "debezium/pgplain": pgAllTypes, "debezium/pgiso": "id BIGINT NOT NULL; t STRING", "mariadb/myplain": "id BIGINT; a STRING", "postgres-extra/pgroute": "id BIGINT",
	} {
		c := newChecker(t, "debezium-json", options(t, strings.ReplaceAll(spec, "\n\t", " "), "id"))
		for _, rec := range loadRecording(t, name) {
			for i := range 12 {
				cut := rec
				cut.Value = rec.Value[:len(rec.Value)*(i+1)/13]
				if len(cut.Value) > 0 {
					require.Error(t, c.decode(t, &cut))
				}
			}
		}
	}
}
