package paimon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
	"applier/storage/paimon/datafile"
	"applier/storage/types"
)

// jsonGen draws JSON documents.
func jsonGen(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return json.Number(fmt.Sprint(rapid.Int64().Draw(t, "int")))
		case 3:
			return rapid.String().Draw(t, "text")
		case 4:
			return append([]any{}, rapid.SliceOfN(jsonGen(depth-1), 0, 4).Draw(t, "array")...)
		}
		return rapid.MapOfN(rapid.String(), jsonGen(depth-1), 0, 4).Draw(t, "object")
	})
}

// The layout changes no value, and laying out again changes nothing at all.
func TestJSONWriter_KeepsEveryDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := jsonGen(3).Draw(t, "document")
		in, err := json.Marshal(doc)
		require.NoError(t, err)
		lay := func(raw []byte) []byte {
			var w jsonWriter
			w.raw("v", raw)
			out, err := w.end()
			require.NoError(t, err)
			return out
		}
		out := lay(in)
		var back struct {
			V any `json:"v"`
		}
		dec := json.NewDecoder(bytes.NewReader(out))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&back))
		want, err := json.Marshal(doc)
		require.NoError(t, err)
		got, err := json.Marshal(back.V)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		ms, err := parseObject(out)
		require.NoError(t, err)
		require.Equal(t, string(out), string(lay(ms[0].raw)))
		for line := range strings.SplitSeq(string(out), "\n") {
			require.Equal(t, strings.TrimRight(line, " "), line, "no blanks at the ends of lines")
		}
	})
}

func snapshotGen(t *rapid.T) Snapshot {
	number, text := rapid.Int64(), rapid.String()
	return Snapshot{
		Version: rapid.IntRange(1, 3).Draw(t, "version"), UUID: text.Draw(t, "uuid"), ID: rapid.Int64Range(1, 1<<60).Draw(t, "id"), SchemaID: number.Draw(t, "schema"),
		BaseManifestList: text.Draw(t, "base"), BaseManifestListSize: rapid.Ptr(number, true).Draw(t, "base size"),
		DeltaManifestList: text.Draw(t, "delta"), DeltaManifestListSize: rapid.Ptr(number, true).Draw(t, "delta size"),
		ChangelogManifestList: rapid.Ptr(text, true).Draw(t, "changelog"), ChangelogManifestListSize: rapid.Ptr(number, true).Draw(t, "changelog size"),
		IndexManifest: rapid.Ptr(text, true).Draw(t, "index"), CommitUser: text.Draw(t, "user"), WriterVersion: rapid.Ptr(text, true).Draw(t, "writer"),
		CommitIdentifier: number.Draw(t, "identifier"), CommitKind: rapid.SampledFrom([]CommitKind{CommitAppend, CommitCompact, CommitOverwrite, CommitAnalyze}).Draw(t, "kind"),
		TimeMillis: number.Draw(t, "time"), TotalRecordCount: number.Draw(t, "total"), DeltaRecordCount: number.Draw(t, "change"),
		ChangelogRecordCount: rapid.Ptr(number, true).Draw(t, "changelog count"), Watermark: rapid.Ptr(number, true).Draw(t, "watermark"),
		Statistics: rapid.Ptr(text, true).Draw(t, "statistics"), NextRowID: rapid.Ptr(number, true).Draw(t, "row id"),
		Properties: rapid.MapOfN(text, text, 1, 4).Draw(t, "properties"),
		Operation:  rapid.SampledFrom([]Operation{"", OperationMerge, OperationDelete, OperationWrite}).Draw(t, "operation"),
	}
}

func TestSnapshotAndTag_RoundTripAnyContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshotGen(t)
		b, err := s.Encode()
		require.NoError(t, err)
		require.True(t, json.Valid(b))
		got, err := ParseSnapshot(b)
		require.NoError(t, err)
		got.propertyOrder = nil
		require.Equal(t, &s, got)

		tag := Tag{Snapshot: s}
		if rapid.Bool().Draw(t, "kept for a time") {
			tag.Retained = new(time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "retained")))
			tag.CreateTime = time.Date(rapid.IntRange(1970, 2200).Draw(t, "y"), time.Month(rapid.IntRange(1, 12).Draw(t, "m")), rapid.IntRange(1, 28).Draw(t, "d"),
				rapid.IntRange(0, 23).Draw(t, "h"), rapid.IntRange(0, 59).Draw(t, "min"), rapid.IntRange(0, 59).Draw(t, "s"), rapid.IntRange(0, 999_999_999).Draw(t, "n"), time.UTC)
		}
		b, err = tag.Encode()
		require.NoError(t, err)
		gotTag, err := ParseTag(b)
		require.NoError(t, err)
		gotTag.propertyOrder = nil
		require.Equal(t, &tag, gotTag)
		if tag.Retained == nil {
			plain, err := s.Encode()
			require.NoError(t, err)
			require.Equal(t, string(plain), string(b), "a tag without an end is a copy of its snapshot")
		}
	})
}

func schemaTypeGen(depth int) *rapid.Generator[types.Type] {
	return rapid.Custom(func(t *rapid.T) types.Type {
		scalars := []types.Type{types.IntType(), types.StringType(), types.DecimalType(20, 3), types.TimestampLTZType(3), types.CharType(5), types.BytesType(), types.TimeType(0)}
		typ := rapid.SampledFrom(scalars).Draw(t, "scalar")
		if depth > 0 {
			switch rapid.IntRange(0, 5).Draw(t, "nested") {
			case 0:
				typ = types.ArrayType(schemaTypeGen(depth-1).Draw(t, "element"))
			case 1:
				typ = types.MapType(types.StringType().NonNull(), schemaTypeGen(depth-1).Draw(t, "value"))
			case 2:
				typ = types.RowType(field(0, "x", schemaTypeGen(depth-1).Draw(t, "x")), field(0, "y", types.IntType()))
			case 3:
				typ = types.MultisetType(types.StringType())
			}
		}
		if rapid.Bool().Draw(t, "not null") {
			typ = typ.NonNull()
		}
		return typ
	})
}

func TestSchema_RoundTripsAnyTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "columns")
		var fields []types.Field
		for i := range n {
			f := field(rapid.IntRange(0, 3).Draw(t, "id, to be forgotten"), fmt.Sprint("c", i, rapid.StringOf(rapid.RuneFrom([]rune("abäß日\"\\\n<"))).Draw(t, "name")), schemaTypeGen(3).Draw(t, "type"))
			if rapid.Bool().Draw(t, "described") {
				f.Description = new(rapid.String().Draw(t, "description"))
			}
			if rapid.Bool().Draw(t, "default") {
				f.Default = new(rapid.String().Draw(t, "default"))
			}
			fields = append(fields, f)
		}
		options := rapid.MapOfN(rapid.String(), rapid.String(), 0, 4).Draw(t, "options")
		s, err := NewSchema(fields, nil, options, rapid.Ptr(rapid.String(), true).Draw(t, "comment"), rapid.Int64().Draw(t, "time"))
		require.NoError(t, err)
		ids := fieldIDs(s.Fields)
		seen := map[int]bool{}
		for _, id := range ids {
			require.False(t, seen[id], "id %d twice", id)
			require.LessOrEqual(t, id, s.HighestFieldID)
			seen[id] = true
		}
		require.Len(t, ids, s.HighestFieldID+1, "ids have no gaps")

		b, err := s.Encode()
		require.NoError(t, err)
		got, err := ParseSchema(b)
		require.NoError(t, err)
		require.Equal(t, len(s.Fields), len(got.Fields))
		for i, f := range s.Fields {
			require.True(t, f.Type.Equal(got.Fields[i].Type), "%s", f.Type)
			require.Equal(t, f.Name, got.Fields[i].Name)
			require.Equal(t, f.Default, got.Fields[i].Default)
			require.Equal(t, f.Description, got.Fields[i].Description)
		}
		require.Equal(t, s.Options, got.Options)
		again, err := got.Encode()
		require.NoError(t, err)
		if len(s.Options) == 0 || len(s.optionOrder) == len(got.optionOrder) {
			require.Equal(t, string(b), string(again))
		}
	})
}

// Columns through random renames, drops, additions and moves: statistics of a
// file always come back under the column that has the id, whatever its name is.
func TestStatsEvolution_AnyHistoryOfColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := 0
		var columns []types.Field
		add := func() {
			columns = append(columns, field(next, fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "name")), types.BigIntType()))
			next++
		}
		unique := func() {
			seen := map[string]bool{}
			for i := range columns {
				for seen[columns[i].Name] {
					columns[i].Name += "x"
				}
				seen[columns[i].Name] = true
			}
		}
		for range 3 {
			add()
		}
		unique()
		old := statsSchema(t, 0, append([]types.Field{}, columns...)...)
		var stats []ColumnStats
		for i := range old.Fields {
			stats = append(stats, counted(int64(i), types.IntDatum(int64(100*i)), types.IntDatum(int64(100*i+9))))
		}
		f := statsFile(t, 50, old.Fields, stats, true)
		for range rapid.IntRange(0, 10).Draw(t, "changes") {
			at := 0
			if len(columns) > 0 {
				at = rapid.IntRange(0, len(columns)-1).Draw(t, "at")
			}
			switch change := rapid.IntRange(0, 3).Draw(t, "change"); {
			case change == 0 || len(columns) < 2:
				add()
			case change == 1:
				columns = append(append([]types.Field{}, columns[:at]...), columns[at+1:]...)
			case change == 2:
				columns[at].Name = fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "new name"))
			case change == 3:
				columns[0], columns[at] = columns[at], columns[0]
			}
			unique()
		}
		now := statsSchema(t, 1, columns...)
		e := NewStatsEvolution(now, old)
		for i, c := range now.Fields {
			got, err := e.Column(f, i)
			require.NoError(t, err)
			if c.ID > 2 {
				require.Equal(t, counted(50, types.Null, types.Null), got, "added after the file")
				continue
			}
			require.Equal(t, stats[c.ID], got)
		}
	})
}

// Every option that has a mode is honoured from the bounds of the data to the
// manifest.
func TestStatsModes_FromDataToManifest(t *testing.T) {
	o, err := ParseOptions(map[string]string{"metadata.stats-mode": "truncate(2)", "fields.full.stats-mode": "full", "fields.none.stats-mode": "none", "fields.counts.stats-mode": "counts"})
	require.NoError(t, err)
	s := types.StringDatum
	fields := []types.Field{field(0, "cut", types.StringType()), field(1, "full", types.StringType()), field(2, "none", types.StringType()), field(3, "counts", types.StringType())}
	data := datafile.ColumnStats{NullCount: 1, HasBounds: true, Min: s("aaaa"), Max: s("zzzz")}
	var stats []ColumnStats
	for i, f := range fields {
		mode := o.StatsModeOf(i, f.Name)
		stats = append(stats, mode.Apply(f.Type, data))
	}
	f := statsFile(t, 9, fields, stats, o.StatsDense)
	require.Equal(t, []string{"cut", "full", "counts"}, f.StatsColumns)
	schema := statsSchema(t, 0, fields...)
	got, err := allColumns(NewStatsEvolution(schema, schema), f)
	require.NoError(t, err)
	require.Equal(t, []ColumnStats{counted(1, s("aa"), s("z{")), counted(1, s("aaaa"), s("zzzz")), unknownStats, counted(1, types.Null, types.Null)}, got)
}

// A branch and the main line keep their metadata apart and share the rest.
func TestPaths_BranchesDoNotMeet(t *testing.T) {
	b := objstore.NewMem(objstore.MemOptions{})
	main, err := NewPaths(&Schema{}, Options{}, "")
	require.NoError(t, err)
	dev, err := NewPaths(&Schema{}, Options{}, "dev")
	require.NoError(t, err)
	snapshots(t, b, 1, 2, 3)
	put(t, b, dev.Snapshot(1), strings.Replace(minimalSnapshot, `"id":7`, `"id":1`, 1))
	put(t, b, dev.Schema(0), minimalSchema)
	require.NoError(t, WriteConsumer(t.Context(), b, dev, "c", 1))
	latest, err := LatestSnapshotID(t.Context(), b, main)
	require.NoError(t, err)
	require.EqualValues(t, 3, latest)
	latest, err = LatestSnapshotID(t.Context(), b, dev)
	require.NoError(t, err)
	require.EqualValues(t, 1, latest)
	_, err = LatestSchema(t.Context(), b, main)
	require.ErrorIs(t, err, objstore.ErrNotExist)
	_, err = LatestSchema(t.Context(), b, dev)
	require.NoError(t, err)
	cs, err := ListConsumers(t.Context(), b, main)
	require.NoError(t, err)
	require.Empty(t, cs)
	a, err := main.Manifest("m")
	require.NoError(t, err)
	c, err := dev.Manifest("m")
	require.NoError(t, err)
	require.Equal(t, a, c)
}
