package decode

import (
	"testing"

	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

func TestNew_NamesTheKnownFormats(t *testing.T) {
	o := options(t, "id INT", "id")
	for _, format := range Formats() {
		_, err := New(format, o)
		require.NoError(t, err, format)
	}
	_, err := New("xml", o)
	require.EqualError(t, err, `format "xml": unknown; known formats: debezium-json, json`)
	for _, format := range laterFormats {
		_, err := New(format, o)
		require.ErrorContains(t, err, `format "`+format+`": not supported yet; known formats: debezium-json, json`)
	}
	Formats()[0] = "changed"
	require.Equal(t, "debezium-json", Formats()[0])
}

func TestNew_ReportsEveryWrongOption(t *testing.T) {
	base := func() Options {
		return options(t, "id INT NOT NULL; v STRING; at TIMESTAMP(3); m MAP<STRING, INT>", "id")
	}
	for name, tc := range map[string]struct {
		set  func(*Options)
		want []string
	}{
		"no columns":         {func(o *Options) { o.Fields, o.Key = nil, nil }, []string{"no columns", "merge key is needed"}},
		"column twice":       {func(o *Options) { o.Fields = append(o.Fields, o.Fields[1]) }, []string{"column v: named twice"}},
		"unsupported type":   {func(o *Options) { o.Fields[1].Type = types.Type{Kind: types.Blob} }, []string{"column v: type BLOB is not supported"}},
		"append with key":    {func(o *Options) { o.Append = true }, []string{"append takes no merge key"}},
		"no key":             {func(o *Options) { o.Key = nil }, []string{"a merge key is needed"}},
		"key out of range":   {func(o *Options) { o.Key = []int{-1, 9} }, []string{"merge key: no column -1", "no column 9"}},
		"key twice":          {func(o *Options) { o.Key = []int{0, 0} }, []string{"column id is named twice"}},
		"key not comparable": {func(o *Options) { o.Key = []int{3} }, []string{"column m of type MAP<STRING, INT> cannot be compared"}},
		"key column":         {func(o *Options) { o.KeyColumn = "zz" }, []string{"the column of the record key, zz, does not exist"}},
		"key column is meta": {func(o *Options) { o.KeyColumn, o.Columns = "v", []MetaColumn{{1, "op"}} }, []string{"v, is filled from metadata"}},
		"condition":          {func(o *Options) { o.Conditions = []Condition{{Column: 9}} }, []string{"condition: no column 9"}},
		"binary":             {func(o *Options) { o.Binary = 9 }, []string{"unknown encoding"}},
		"placeholder":        {func(o *Options) { o.Unavailable = "hex:x" }, []string{"hexadecimal"}},
		"metadata": {func(o *Options) {
			o.Columns = []MetaColumn{{9, "op"}, {0, "op"}, {1, "nonsense"}, {1, "source."}, {2, "kafka.topic"}, {2, "kafka.offset"}, {3, "source.x"}, {3, "header.x"}, {1, "header."}}
		}, []string{
			"metadata op: no column 9", "column id: metadata op: does not suit a column of type INT", "column v: metadata nonsense: unknown; known are op, ts_ms",
			"metadata source.: column v is filled twice", "column at: metadata kafka.topic: does not suit", "column at: metadata kafka.offset: does not suit", "column m: metadata source.x: does not suit", "metadata header.x: column m is filled twice", "metadata header.: unknown",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := base()
			tc.set(&o)
			_, err := New("debezium-json", o)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
	for _, source := range []string{"ts_ms", "source.lsn"} {
		o := base()
		o.Columns = []MetaColumn{{1, source}}
		_, err := New("json", o)
		require.ErrorContains(t, err, "column v: metadata "+source+": records of this format have none")
	}
	for column, sources := range map[int][]string{1: {"op", "ts_ms", "source.a.b", "header.x", "kafka.topic", "kafka.offset", "kafka.partition", "kafka.timestamp"}, 2: {"ts_ms", "kafka.timestamp", "source.ts_us", "header.x"}} {
		for _, source := range sources {
			o := base()
			o.Columns = []MetaColumn{{column, source}}
			_, err := New("debezium-json", o)
			require.NoError(t, err, source)
		}
	}
}

func TestRowError_NamesColumnAndClass(t *testing.T) {
	require.EqualError(t, &RowError{Class: ClassRange, Column: "v", Msg: "m"}, "range: column v: m")
	require.EqualError(t, &RowError{Class: ClassSyntax, Msg: "m"}, "syntax: m")
}

func TestMetadata_IsCoercedToItsColumn(t *testing.T) {
	spec := "id INT; a BIGINT; b STRING; c TIMESTAMP(6); d TIMESTAMP(9) WITH LOCAL TIME ZONE; e DATE; f BYTES; g INT; h DOUBLE"
	o := options(t, spec)
	o.Columns = []MetaColumn{{1, "ts_ms"}, {2, "source.ts_us"}, {3, "source.ts_us"}, {4, "source.ts_ns"}, {5, "header.day"}, {6, "header.raw"}, {7, "header.n"}, {8, "kafka.timestamp"}}
	rec := record("null", `{"op":"c","after":{"id":1,"a":"ignored"},"source":{"ts_us":1500000000000001,"ts_ns":1500000000000000001},"ts_ms":1500000000000}`)
	rec.Headers = append(rec.Headers, header("day", "2026-09-10"), header("raw", "\xff\x00"), header("n", "42"))
	out := newBatch(o)
	_, err := mustNew(t, "debezium-json", o).Decode(rec, out)
	require.NoError(t, err)
	require.Equal(t, "insert part=0 offset=7 time=1500000000000 id=1 a=1500000000000 b=1500000000000001 c=2017-07-14T02:40:00.000001 d=2017-07-14T02:40:00.000000001Z e=2026-09-10 f=ff00 g=42 h=1700000000000\n", dump(out, o.Fields))

	for name, value := range map[string]string{"day": "\xff", "raw": "", "n": "x"} {
		bad := *rec
		bad.Headers = append(bad.Headers[:3:3], header(name, value))
		out.Reset()
		_, err := mustNew(t, "debezium-json", o).Decode(&bad, out)
		if name == "raw" {
			require.NoError(t, err)
			continue
		}
		require.Error(t, err, name)
		require.Zero(t, out.Len())
	}
	o.Fields[6].Type = types.VarBinaryType(1)
	_, err = mustNew(t, "debezium-json", o).Decode(rec, newBatch(o))
	require.ErrorContains(t, err, "length: column f")
}

func TestMetadata_ReadsNestedMembersOfTheSourceBlock(t *testing.T) {
	for path, want := range map[string]string{
		"a": `{"b":{"c":"deep"},"n":null,"l":[1]}`, "a.b.c": "deep", "a.b": `{"c":"deep"}`, "a.zz": "NULL", "a.b.c.d": "NULL", "zz.a": "NULL", "a.n": "NULL", "a.l": "[1]", "a.l.x": "NULL",
	} {
		o := options(t, "id INT; v STRING; w STRING")
		o.Columns = []MetaColumn{{1, "source." + path}, {2, "source." + path}}
		out := newBatch(o)
		_, err := mustNew(t, "debezium-json", o).Decode(record("null", `{"op":"c","after":{"id":1},"source":{"x":1,"a":{"b":{"c":"deep"},"n":null,"l":[1]}}}`), out)
		require.NoError(t, err)
		require.Equal(t, want, cellText(&out.Cols[1], 0), path)
		require.Equal(t, want, cellText(&out.Cols[2], 0), path)
	}
}
