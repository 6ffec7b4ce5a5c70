package datafile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// The golden tables were written by Spark 4.1.2 + Paimon 2.0.0 (flink_types: Flink
// 1.20 + Paimon 1.3.1); dump-*.json is what an independent decoder found in them.
const goldenRoot = "../testdata/golden"

type goldenDump struct {
	Table string                `json:"table"`
	Heads map[string]goldenHead `json:"heads"`
}

type goldenHead struct {
	Schemas   map[string]struct{ Fields []types.Field } `json:"schemas"`
	Snapshots map[string]json.RawMessage                `json:"snapshots"`
	Latest    []goldenFile                              `json:"latest"`
}

type goldenFile struct {
	Path     string         `json:"path"`
	Rows     int64          `json:"rows"`
	SchemaID int            `json:"schemaId"`
	Deleted  any            `json:"deleted"`
	Stats    map[string]any `json:"stats"`
	Parquet  struct {
		Message   string   `json:"message"`
		Schema    []string `json:"schema"`
		Rows      int64    `json:"rows"`
		RowGroups []struct {
			Rows int64 `json:"rows"`
		} `json:"rowGroups"`
	} `json:"parquet"`

	fields []types.Field // filled by the test
	dir    string
}

// goldenTables calls f for every live file of every golden table.
func goldenTables(t *testing.T, f func(t *testing.T, name string, d goldenDump)) {
	dumps, err := filepath.Glob(goldenRoot + "/*/dump-*.json")
	require.NoError(t, err)
	require.NotEmpty(t, dumps)
	for _, path := range dumps {
		name := filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "dump-"), ".json")
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			var d goldenDump
			require.NoError(t, json.Unmarshal(b, &d))
			for _, h := range d.Heads {
				for i := range h.Latest {
					g := &h.Latest[i]
					g.dir = filepath.Join(filepath.Dir(path), "warehouse", d.Table)
					g.fields = slices.Clone(h.Schemas[fmt.Sprint(g.SchemaID)].Fields)
					g.addSystemColumns()
				}
			}
			f(t, name, d)
		})
	}
}

// addSystemColumns appends the row-tracking columns that the file has.
func (g *goldenFile) addSystemColumns() {
	for _, s := range g.Parquet.Schema {
		for name, id := range map[string]int{"_ROW_ID": 2147483642, "_SEQUENCE_NUMBER": 2147483646} {
			if strings.Contains(s, " "+name+" ") {
				typ := types.BigIntType()
				typ.NotNull = strings.HasPrefix(s, "required")
				g.fields = append(g.fields, types.Field{ID: id, Name: name, Type: typ})
			}
		}
	}
	sort.SliceStable(g.fields, func(i, j int) bool { // _ROW_ID first
		return g.fields[i].Name == "_ROW_ID" && g.fields[j].Name == "_SEQUENCE_NUMBER"
	})
}

func (g *goldenFile) read(t *testing.T) []byte {
	b, err := os.ReadFile(filepath.Join(g.dir, g.Path))
	require.NoError(t, err)
	return b
}

// schemaLines shows a schema as the dumps do.
func schemaLines(elements []schemaElement) []string {
	var lines []string
	var walk func(depth int)
	rest := elements[1:]
	walk = func(depth int) {
		e := rest[0]
		rest = rest[1:]
		typ := "group"
		if e.Type.Valid {
			typ = strings.ToLower(e.Type.V.String())
			switch typ {
			case "byte_array":
				typ = "binary"
			case "fixed_len_byte_array":
				typ = fmt.Sprintf("fixed[%d]", e.TypeLength.V)
			}
		}
		line := strings.Repeat("  ", depth) + strings.ToLower(e.RepetitionType.V.String()) + " " + typ + " " + e.Name
		var notes []string
		if e.LogicalType.Value != nil {
			l := e.LogicalType.String()
			if a, ok := strings.CutPrefix(l, "TIMESTAMP(isAdjustedToUTC="); ok {
				utc, unit, _ := strings.Cut(strings.TrimSuffix(a, ")"), ",unit=")
				l = "TIMESTAMP(" + unit + "," + utc + ")"
			}
			if a, ok := strings.CutPrefix(l, "TIME(isAdjustedToUTC="); ok {
				utc, unit, _ := strings.Cut(strings.TrimSuffix(a, ")"), ",unit=")
				l = "TIME(" + unit + "," + utc + ")"
			}
			notes = append(notes, l)
		}
		if e.ConvertedType.Valid {
			names := map[int32]string{
				0: "UTF8", 1: "MAP", 2: "MAP_KEY_VALUE", 3: "LIST", 5: "DECIMAL", 6: "DATE", 7: "TIME_MILLIS",
				9: "TIMESTAMP_MILLIS", 10: "TIMESTAMP_MICROS", 15: "INT_8", 16: "INT_16",
			}
			notes = append(notes, "~"+names[int32(e.ConvertedType.V)])
		}
		if len(notes) > 0 {
			line += " (" + strings.Join(notes, "/") + ")"
		}
		if e.FieldID.Valid {
			line += fmt.Sprintf(" = %d", e.FieldID.V)
		}
		lines = append(lines, line)
		for range int(e.NumChildren.V) {
			walk(depth + 1)
		}
	}
	for range int(elements[0].NumChildren.V) {
		walk(0)
	}
	return lines
}

// inScope leaves out ORC, and primary-key files with their own system columns.
func inScope(g goldenFile) bool {
	return strings.HasSuffix(g.Path, ".parquet") && !strings.Contains(g.dir, "refused.db/pk")
}

func TestGolden_OurSchemaEqualsJavas(t *testing.T) {
	files := 0
	goldenTables(t, func(t *testing.T, _ string, d goldenDump) {
		for _, h := range d.Heads {
			for _, g := range h.Latest {
				if !inScope(g) {
					continue
				}
				m, _, _, err := readFooter(bytes.NewReader(g.read(t)), int64(len(g.read(t))), 1<<20, 1)
				require.NoError(t, err)
				require.Equal(t, g.Parquet.Schema, schemaLines(m.Schema), "our decoder of Java's file")
				s, err := newSchema(g.fields)
				require.NoError(t, err)
				require.Equal(t, g.Parquet.Schema, schemaLines(s.elements), "our schema for the same table")
				require.Equal(t, g.Parquet.Message, s.elements[0].Name)
				require.Equal(t, []schemaElement(m.Schema), s.elements, "every member of every element")
				files++
			}
		}
	})
	require.Greater(t, files, 80)
}

// TestGolden_StatisticsEqualJavas reads each live file, writes its rows with our
// writer and compares the truncated column statistics with those in Java's manifest.
func TestGolden_StatisticsEqualJavas(t *testing.T) {
	compared := 0
	goldenTables(t, func(t *testing.T, name string, d goldenDump) {
		for _, h := range d.Heads {
			for _, g := range h.Latest {
				if !inScope(g) {
					continue
				}
				f := openFile(t, g.read(t), ReadOptions{Fields: g.fields})
				require.Equal(t, g.Rows, f.Rows())
				rows := readAll(t, f)
				require.Len(t, rows, int(g.Rows))
				ours, info := writeFile(t, WriterOptions{Fields: g.fields}, batchOf(g.fields, rows))
				sameRows(t, rows, readAll(t, openFile(t, ours, ReadOptions{Fields: g.fields})))
				for i, field := range g.fields {
					want, ok := g.Stats[field.Name].([]any)
					if ok {
						compareStats(t, name, field, want, info.Columns[i])
						compared++
					}
				}
			}
		}
	})
	require.Greater(t, compared, 200)
}

func compareStats(t *testing.T, table string, field types.Field, want []any, got ColumnStats) {
	t.Helper()
	n := 16
	if strings.HasPrefix(field.Name, "_") {
		n = 128
	}
	if want[2] == nil { // mode none
		return
	}
	require.EqualValues(t, want[2], got.NullCount, "NULLs of %s", field.Name)
	lo, hi, ok := got.Min, got.Max, got.HasBounds
	if ok {
		lo, hi, ok = Truncate(field.Type, lo, hi, n)
	}
	switch {
	case want[0] == nan || want[1] == nan:
		require.False(t, ok, "%s: Java keeps NaN, we have no bounds", field.Name)
	case want[0] == nil:
		// Paimon 1.3.1 has no bounds of binary columns.
		if !(strings.HasPrefix(table, "flink") && field.Type.IsBinary()) && !strings.HasPrefix(table, "options_cow") {
			require.False(t, ok, "bounds of %s", field.Name)
		}
	default:
		require.True(t, ok, "bounds of %s", field.Name)
		require.Equal(t, want[0], dumpText(field.Type, lo), "minimum of %s", field.Name)
		require.Equal(t, want[1], dumpText(field.Type, hi), "maximum of %s", field.Name)
	}
}

const nan = "nan"

// dumpText is a value in the text form of the dumps; zeros lose their sign,
// which we widen.
func dumpText(t types.Type, d types.Datum) any {
	switch t.Kind {
	case types.Boolean:
		return d.I != 0
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Time:
		return float64(d.I)
	case types.Float, types.Double:
		if d.F < -1.7e308 {
			return "-inf"
		}
		return d.F + 0
	case types.Binary, types.VarBinary:
		return map[string]any{"hex": hex.EncodeToString(d.B)}
	case types.Timestamp, types.TimestampLTZ:
		t.Precision = max(3, (t.Precision+2)/3*3)
	case types.Date:
		if d.I < -719162 {
			return fmt.Sprintf("days:%d", d.I)
		}
	}
	return string(types.AppendText(nil, t, d))
}

// TestGolden_EveryFileReadsLikeParquetGo reads all Parquet files of all golden
// tables, also dead ones, and compares every level and value with parquet-go's
// row reader.
func TestGolden_EveryFileReadsLikeParquetGo(t *testing.T) {
	schemas := goldenSchemas(t)
	files := 0
	for path, data := range goldenFiles(t) {
		m, _, _, err := readFooter(bytes.NewReader(data), int64(len(data)), 1<<20, 1)
		require.NoError(t, err, path)
		fields := fieldsForFile(t, m, schemas[tableDir(path)])
		rows := readAll(t, openFile(t, data, ReadOptions{Fields: fields}))
		if len(data) > 1<<20 {
			require.EqualValues(t, m.NumRows, len(rows)) // a large one; its values are in the statistics test
			continue
		}
		_, cols := parquetGoColumns(t, data)
		require.Equal(t, cols, stripeRows(fields, rows), path)
		files++
	}
	require.Greater(t, files, 150)
}

// goldenFiles are the Parquet files below the golden tables.
func goldenFiles(t testing.TB) map[string][]byte {
	out := map[string][]byte{}
	require.NoError(t, filepath.Walk(goldenRoot, func(path string, info os.FileInfo, err error) error {
		if err != nil || !strings.HasSuffix(path, ".parquet") {
			return err
		}
		out[path], err = os.ReadFile(path)
		return err
	}))
	return out
}

// tableDir is the folder of the table that a data file belongs to.
func tableDir(path string) string {
	dir := filepath.Dir(path)
	for {
		if _, err := os.Stat(filepath.Join(dir, "schema")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// goldenSchemas are all schemas of all tables, branches included.
func goldenSchemas(t testing.TB) map[string][][]types.Field {
	out := map[string][][]types.Field{}
	require.NoError(t, filepath.Walk(goldenRoot, func(path string, info os.FileInfo, err error) error {
		if err != nil || !strings.HasPrefix(filepath.Base(path), "schema-") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var s struct{ Fields []types.Field }
		dir := filepath.Dir(filepath.Dir(path))
		if i := strings.Index(dir, "/branch/"); i >= 0 {
			dir = dir[:i]
		}
		if err = json.Unmarshal(b, &s); err == nil {
			out[dir] = append(out[dir], s.Fields)
		}
		return err
	}))
	return out
}

// fieldsForFile finds the schema whose Parquet form the file has.
func fieldsForFile(t testing.TB, m *fileMetaData, schemas [][]types.Field) []types.Field {
	want := schemaLines(m.Schema)
	for _, fs := range schemas {
		g := goldenFile{fields: slices.Clone(fs)}
		g.Parquet.Schema = want
		g.addSystemColumns()
		s, err := newSchema(g.fields)
		require.NoError(t, err)
		if slices.Equal(schemaLines(s.elements), want) {
			return g.fields
		}
	}
	return fieldsOfElements(m.Schema[1:])
}

// fieldsOfElements makes fields from a flat file schema of another kind of table.
func fieldsOfElements(elements []schemaElement) []types.Field {
	var fs []types.Field
	for _, e := range elements {
		typ := types.StringType()
		switch e.Type.V {
		case format.Int32:
			typ = types.IntType()
		case format.Int64:
			typ = types.BigIntType()
		}
		typ.NotNull = e.RepetitionType.V == format.Required
		fs = append(fs, types.Field{ID: int(e.FieldID.V), Name: e.Name, Type: typ})
	}
	return fs
}
