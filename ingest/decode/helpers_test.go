package decode

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

const unavailable = "__debezium_unavailable_value"

// table parses "id BIGINT NOT NULL; name STRING" into columns. DEFAULT text at
// the end of a column becomes its default.
func table(t require.TestingT, spec string) []types.Field {
	var fields []types.Field
	for i, col := range strings.Split(spec, ";") {
		name, typ, ok := strings.Cut(strings.TrimSpace(col), " ")
		require.True(t, ok, col)
		var dflt *string
		if typ2, d, has := strings.Cut(typ, " DEFAULT "); has {
			typ, dflt = typ2, &d
		}
		ty, err := types.ParseType(typ)
		require.NoError(t, err, col)
		fields = append(fields, types.Field{ID: i, Name: strings.ReplaceAll(name, "~", " "), Type: ty, Default: dflt})
	}
	return fields
}

// options returns Options for columns and the names of the merge key.
func options(t require.TestingT, spec string, key ...string) Options {
	o := Options{Fields: table(t, spec), Unavailable: unavailable, Append: len(key) == 0}
	for _, k := range key {
		o.Key = append(o.Key, column(t, o.Fields, k))
	}
	return o
}

func column(t require.TestingT, fields []types.Field, name string) int {
	for i, f := range fields {
		if f.Name == name {
			return i
		}
	}
	require.Fail(t, "no column "+name)
	return -1
}

// newBatch returns a batch for the options.
func newBatch(o Options) *change.Batch {
	var key []types.Field
	for _, k := range o.Key {
		key = append(key, o.Fields[k])
	}
	return change.NewBatch(o.Fields, key)
}

func mustNew(t require.TestingT, format string, o Options) Decoder {
	d, err := New(format, o)
	require.NoError(t, err)
	return d
}

// record makes a record; "null" as text stands for no bytes.
func record(key, value string) *Record {
	r := &Record{Topic: "shop.public.t", Partition: 3, Part: 0, Offset: 7, Timestamp: 1_700_000_000_000}
	if key != "null" {
		r.Key = []byte(key)
	}
	if value != "null" {
		r.Value = []byte(value)
	}
	return r
}

// cellText shows a cell: its text, NULL, absent or unavailable.
func cellText(c *change.Column, row int) string {
	switch {
	case c.Absent.Get(row):
		return "absent"
	case c.Unavailable.Get(row):
		return "unavailable"
	case c.IsNull(row):
		return "NULL"
	}
	return string(types.AppendText(nil, c.Type, c.Datum(row)))
}

// dump shows a batch, one line a change.
func dump(b *change.Batch, fields []types.Field) string {
	var s strings.Builder
	for i := range b.Len() {
		fmt.Fprintf(&s, "%s part=%d offset=%d time=%d", b.Kind[i], b.Part[i], b.Offset[i], b.Time[i])
		for c := range b.Cols {
			fmt.Fprintf(&s, " %s=%s", fields[c].Name, cellText(&b.Cols[c], i))
		}
		if k := b.OldKeyOf(i); k >= 0 {
			s.WriteString(" oldkey=(")
			for c, v := range b.OldKeys.Cols {
				if c > 0 {
					s.WriteString(",")
				}
				s.Write(types.AppendText(nil, v.Type, v.Datum(k)))
			}
			s.WriteString(")")
		}
		if raw := b.RawOf(i); raw != nil {
			fmt.Fprintf(&s, " raw=%d+%d", len(raw.Key), len(raw.Value))
		}
		s.WriteString("\n")
	}
	return s.String()
}

// recording is one line of a recording file.
type recording struct {
	Topic     string            `json:"topic"`
	Partition int32             `json:"partition"`
	Offset    int64             `json:"offset"`
	Timestamp int64             `json:"timestamp"`
	Key       json.RawMessage   `json:"key"`
	Value     json.RawMessage   `json:"value"`
	Headers   []json.RawMessage `json:"headers"`
}

func recordedBytes(t testing.TB, raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []byte(s)
	}
	var b struct{ B64 string }
	require.NoError(t, json.Unmarshal(raw, &b))
	out, err := base64.StdEncoding.DecodeString(b.B64)
	require.NoError(t, err)
	return out
}

// loadRecording reads records of a real producer, in order.
func loadRecording(t testing.TB, name string) []Record {
	f, err := os.Open(filepath.Join("testdata", "recordings", name+".jsonl.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var out []Record
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r recording
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		rec := Record{
			Topic: r.Topic, Part: r.Partition, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp,
			Key: recordedBytes(t, r.Key), Value: recordedBytes(t, r.Value),
		}
		for _, h := range r.Headers {
			var pair [2]json.RawMessage
			require.NoError(t, json.Unmarshal(h, &pair))
			var key string
			require.NoError(t, json.Unmarshal(pair[0], &key))
			rec.Headers = append(rec.Headers, change.Header{Key: key, Value: recordedBytes(t, pair[1])})
		}
		out = append(out, rec)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, out)
	return out
}

// ofTopic returns the records of the topic with that suffix.
func ofTopic(recs []Record, suffix string) []Record {
	var out []Record
	for _, r := range recs {
		if strings.HasSuffix(r.Topic, "."+suffix) {
			out = append(out, r)
		}
	}
	return out
}

// loadFinal reads what the source database held at the end: header and rows by
// the text of their key columns. \N is NULL.
func loadFinal(t testing.TB, name string, key ...string) ([]string, map[string]map[string]string) {
	f, err := os.Open(filepath.Join("testdata", "recordings", name))
	require.NoError(t, err)
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	rows := make(map[string]map[string]string)
	for _, line := range all[1:] {
		row := make(map[string]string)
		for i, v := range line {
			if v == `\N` {
				v = "NULL"
			}
			row[all[0][i]] = v
		}
		var k []string
		for _, name := range key {
			k = append(k, row[name])
		}
		rows[strings.Join(k, "|")] = row
	}
	return all[0], rows
}

// folder is a mirror table in a map: the meaning of a batch of changes, as
// simple as it can be said.
type folder struct {
	fields []types.Field
	key    []int
	rows   map[string]map[string]string
	gone   map[string]map[string]string // rows as they were when deleted, for key changes
}

func newFolder(o Options) *folder {
	return &folder{fields: o.Fields, key: o.Key, rows: map[string]map[string]string{}, gone: map[string]map[string]string{}}
}

func (f *folder) apply(t testing.TB, b *change.Batch) {
	for i := range b.Len() {
		var k []string
		for _, c := range f.key {
			k = append(k, cellText(&b.Cols[c], i))
		}
		key := strings.Join(k, "|")
		if b.Kind[i] == change.Delete {
			if r, ok := f.rows[key]; ok {
				f.gone[key] = r
			}
			delete(f.rows, key)
			continue
		}
		before := f.rows[key]
		if o := b.OldKeyOf(i); o >= 0 {
			var k []string
			for _, v := range b.OldKeys.Cols {
				k = append(k, string(types.AppendText(nil, v.Type, v.Datum(o))))
			}
			if before = f.rows[strings.Join(k, "|")]; before == nil {
				before = f.gone[strings.Join(k, "|")]
			}
		}
		row := make(map[string]string)
		for c := range b.Cols {
			text := cellText(&b.Cols[c], i)
			if text == "absent" || text == "unavailable" {
				require.False(t, text == "unavailable" && before == nil, "an unavailable value without a row to take it from: %v", key)
				text = "NULL"
				if before != nil {
					text = before[f.fields[c].Name]
				}
			}
			row[f.fields[c].Name] = text
		}
		f.rows[key] = row
	}
}

func header(key, value string) change.Header { return change.Header{Key: key, Value: []byte(value)} }
