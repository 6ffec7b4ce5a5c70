//go:build itest

package itest

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
	"applier/storage/types"
)

const recordingsDir = "../ingest/decode/testdata/recordings/debezium"

// recording loads the records of one table of a recorded Debezium connector, for
// a topic of ours.
func recording(t *testing.T, name, table, topic string) []*kgo.Record {
	t.Helper()
	f, err := os.Open(filepath.Join(recordingsDir, name+".jsonl.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var out []*kgo.Record
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r struct {
			Topic      string
			Key, Value json.RawMessage
			Headers    [][2]json.RawMessage
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		if !strings.HasSuffix(r.Topic, "."+table) {
			continue
		}
		rec := &kgo.Record{Topic: topic, Key: recordedBytes(t, r.Key), Value: recordedBytes(t, r.Value)}
		for _, h := range r.Headers {
			var key string
			require.NoError(t, json.Unmarshal(h[0], &key))
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: key, Value: recordedBytes(t, h[1])})
		}
		out = append(out, rec)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, out)
	return out
}

// recordedBytes reads a text, or {"b64": …} where the bytes are no UTF-8.
func recordedBytes(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var text *string
	if json.Unmarshal(raw, &text) == nil {
		if text == nil {
			return nil
		}
		return []byte(*text)
	}
	var b struct{ B64 string }
	require.NoError(t, json.Unmarshal(raw, &b))
	out, err := base64.StdEncoding.DecodeString(b.B64)
	require.NoError(t, err)
	return out
}

// pgColumns are the recorded table's scalar columns in the Paimon types that fit
// them, as in the decoder's own test of these recordings.
const pgColumns = `id BIGINT NOT NULL; i2 SMALLINT; i4 INT; i8 BIGINT; r FLOAT; d DOUBLE; n DECIMAL(38, 9); n12 DECIMAL(12, 2);
	n38 DECIMAL(38, 10); m DECIMAL(19, 2); b BOOLEAN; c CHAR(5); vc VARCHAR(20); t STRING; by BYTES; dt DATE; tm TIME(6); tm3 TIME(3);
	tz STRING; ts TIMESTAMP(6); ts3 TIMESTAMP(3); tstz TIMESTAMP(6) WITH LOCAL TIME ZONE; iv BIGINT; u STRING; j STRING; jb STRING;
	x STRING; ia STRING; ta STRING; na STRING; r4 STRING; ip STRING; bits BYTES; p STRING; big STRING`

// pgFields reads columns as pgColumns has them.
func pgFields(t *testing.T, spec string) (columns []harness.Column, fields []types.Field) {
	t.Helper()
	for _, c := range strings.Split(spec, ";") {
		name, text, _ := strings.Cut(strings.TrimSpace(c), " ")
		ty, err := types.ParseType(text)
		require.NoError(t, err)
		columns, fields = append(columns, harness.Column{Name: name, Type: text}), append(fields, types.Field{Name: name, Type: ty})
	}
	return columns, fields
}

// pgValue turns PostgreSQL's output of a column into the text a judge prints.
func pgValue(col, s string) string {
	fraction := func(digits int) {
		if !strings.Contains(s, ".") {
			s += "."
		}
		for len(s)-strings.IndexByte(s, '.')-1 < digits {
			s += "0"
		}
	}
	switch col {
	case "m":
		s = strings.Replace(s, "$", "", 1)
	case "b":
		s = map[string]string{"t": "true", "f": "false"}[s]
	case "by":
		s = strings.TrimPrefix(s, `\x`)
	case "n":
		fraction(9)
	case "tm":
		fraction(6)
		s = s[:12] + "000" // Paimon's TIME holds milliseconds
	case "tm3":
		fraction(3)
	case "ts3":
		s = strings.Replace(s, " ", "T", 1)
		fraction(3)
	case "ts", "tstz":
		s = strings.TrimSuffix(strings.Replace(s, " ", "T", 1), "+00")
		fraction(6)
		if col == "tstz" {
			s += "Z"
		}
	}
	return s
}

// pgNull stands for NULL among the cells of pgOther.
const pgNull = "NULL"

// pgOther are the cells of all_types that cannot be what PostgreSQL shows, with what
// they are instead: the producer's or Paimon's form of them.
func pgOther(schema bool) map[string]map[string]string {
	ten := map[string]string{
		"n":  pgNull, // NaN: the producer's precise mode has no form for it
		"tz": "00:00:00Z", "iv": "0", "ia": "[]", "ta": "[]", "na": "[]",
		"p": `{"x":0.0,"y":0.0,"wkb":"AQEAAAAAAAAAAAAAAAAAAAAAAAAA","srid":null}`, "bits": "",
	}
	if schema {
		ten["bits"] = "00" // the schema knows the length of the bit string
	}
	return map[string]map[string]string{"0": {}, "10": ten, "1": {
		"tz": "10:34:56.5Z", "iv": "37091106700000", // UTC; microseconds, a month of 30.4375 days
		"ia": "[1,null,3]", "ta": `["x","y z",null]`, "na": `["fQ==",null]`, // arrays as the JSON they came in
		"p": `{"x":1.0,"y":2.0,"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":null}`, "bits": "0a",
	}}
}

// pgFinal are the rows that PostgreSQL held of a table at the end, as judges print
// them; other has cells by the first column and their own.
func pgFinal(t *testing.T, table string, fields []types.Field, other map[string]map[string]string) (rows []string) {
	t.Helper()
	f, err := os.Open(filepath.Join(recordingsDir, "final-"+table+".csv"))
	require.NoError(t, err)
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for _, line := range all[1:] {
		row, ty := types.Datum{}, types.Type{Kind: types.Row, Fields: fields}
		for i, f := range fields {
			require.Equal(t, f.Name, all[0][i])
			text, known := other[line[0]][f.Name]
			null := known && text == pgNull || !known && line[i] == `\N`
			if !known && !null {
				if text = line[i]; table == "all_types" {
					text = pgValue(f.Name, text)
				}
			}
			d := types.Null
			if !null {
				d, err = types.ParseDatum(f.Type, text)
				require.NoError(t, err, "row %s column %s", line[0], f.Name)
			}
			row.L = append(row.L, d)
		}
		rows = append(rows, string(types.AppendJSON(nil, ty, row)))
	}
	return rows
}

// TestReplay_RecordedPostgresTopicEndsAsPostgresDid is acceptance test (i).
func TestReplay_RecordedPostgresTopicEndsAsPostgresDid(t *testing.T) {
	columns, fields := pgFields(t, pgColumns)
	for _, name := range []string{"pgschema", "pgplain"} {
		for _, batch := range []string{"{ rows: 1000, interval: 10s, idle_flush: 300ms }", "{ rows: 1, interval: 1s, idle_flush: 300ms }"} {
			t.Run(name+strings.Split(batch, ",")[0][1:], func(t *testing.T) {
				topic := newTopic(t, 1)
				r := newRig(t, "", pipe{Topic: topic, Format: "{ type: debezium-json, decimals: unscaled }", More: "batch: " + batch})
				require.NoError(t, harness.Java(t).Create(t.Context(), r.ref(), harness.TableSpec{Columns: columns, Options: vectorOptions}))
				recs := recording(t, name, "all_types", topic)
				require.Len(t, recs, 11)
				r.kafka.Produce(t, recs...)
				p := r.start()
				r.waitApplied(p)
				harness.MustStop(t, p)
				want := pgFinal(t, "all_types", fields, pgOther(name == "pgschema"))
				require.Len(t, want, 3)
				harness.SameRows(t.Context(), t, want, r.ref(), harness.Query{}, readers(t)...)
				commits := len(snapshotIDs(r.ref())) - 1 // the first says where reading began
				if strings.Contains(batch, "rows: 1,") {
					require.Greater(t, commits, 5)
				} else {
					require.Equal(t, 1, commits)
				}
			})
		}
	}
}
