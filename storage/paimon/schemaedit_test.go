package paimon

import (
	"testing"

	"applier/storage/types"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func editable(t *testing.T) *Schema {
	s, err := NewSchema([]types.Field{
		{Name: "id", Type: types.IntType()},
		{Name: "s", Type: types.RowType(types.Field{Name: "a", Type: types.IntType()}, types.Field{Name: "b", Type: types.StringType()})},
		{Name: "l", Type: types.ArrayType(types.RowType(types.Field{Name: "x", Type: types.IntType()}))},
		{Name: "p", Type: types.StringType()},
	}, []string{"p"}, map[string]string{"bucket": "2", "bucket-key": "id", "fields.id.stats-mode": "full"}, nil, 1)
	require.NoError(t, err)
	return s
}

func TestSchemaEdit_FollowsJavasRules(t *testing.T) {
	s := editable(t)
	e := s.Edit(true)
	require.NoError(t, e.AddColumn([]string{"n"}, types.Field{Type: types.RowType(types.Field{Name: "z", Type: types.IntType()})}, &ColumnPlace{After: "id"}))
	require.NoError(t, e.AddColumn([]string{"s", "c"}, types.Field{Type: types.BigIntType()}, &ColumnPlace{First: true}))
	require.NoError(t, e.AddColumn([]string{"l", "element", "y"}, types.Field{Type: types.BigIntType()}, nil))
	require.NoError(t, e.RenameColumn([]string{"ID"}, "key"))
	require.NoError(t, e.SetType([]string{"key"}, types.BigIntType()))
	require.NoError(t, e.Move([]string{"key"}, ColumnPlace{After: "l"}))
	require.NoError(t, e.SetDefault("key", new("7")))
	n, changed, err := e.Schema(2)
	require.NoError(t, err)
	require.True(t, changed)
	var names []string
	for _, f := range n.Fields {
		names = append(names, f.Name)
	}
	assert.Equal(t, []string{"n", "s", "l", "key", "p"}, names)
	assert.Equal(t, int64(1), n.ID)
	assert.Equal(t, s.HighestFieldID+4, n.HighestFieldID)
	assert.Equal(t, s.HighestFieldID+1, n.Fields[0].ID)
	assert.Equal(t, 0, n.Fields[3].ID)
	assert.Equal(t, "key", n.Options["bucket-key"])
	assert.Equal(t, "full", n.Options["fields.key.stats-mode"])
	assert.Equal(t, "c", n.Fields[1].Type.Fields[0].Name)
	assert.Equal(t, "y", n.Fields[2].Type.Elem.Fields[1].Name)
	assert.Len(t, s.Fields[1].Type.Fields, 2, "the old schema is as it was")
}

func TestSchemaEdit_RefusesWhatFilesForbid(t *testing.T) {
	for name, fn := range map[string]func(*SchemaEdit) error{
		"drop of a partition column": func(e *SchemaEdit) error { return e.DropColumn([]string{"p"}) },
		"rename of one":              func(e *SchemaEdit) error { return e.RenameColumn([]string{"P"}, "q") },
		"another type of one":        func(e *SchemaEdit) error { return e.SetType([]string{"p"}, types.IntType()) },
		"drop of a bucket key":       func(e *SchemaEdit) error { return e.DropColumn([]string{"id"}) },
		"a NOT NULL column": func(e *SchemaEdit) error {
			return e.AddColumn([]string{"n"}, types.Field{Type: types.IntType().NonNull()}, nil)
		},
		"a name twice":         func(e *SchemaEdit) error { return e.AddColumn([]string{"ID"}, types.Field{Type: types.IntType()}, nil) },
		"a narrower type":      func(e *SchemaEdit) error { return e.SetType([]string{"id"}, types.TinyIntType()) },
		"NOT NULL":             func(e *SchemaEdit) error { return e.SetNotNull([]string{"id"}, true) },
		"bucket key":           func(e *SchemaEdit) error { return e.SetOption("bucket-key", "s") },
		"row tracking":         func(e *SchemaEdit) error { return e.SetOption("row-tracking.enabled", "true") },
		"vectors":              func(e *SchemaEdit) error { return e.SetOption("deletion-vectors.enabled", "true") },
		"no buckets":           func(e *SchemaEdit) error { return e.SetOption("bucket", "-1") },
		"an option's value":    func(e *SchemaEdit) error { return e.SetOption("write-only", "maybe") },
		"no such column":       func(e *SchemaEdit) error { return e.SetDefault("x", new("1")) },
		"no such field":        func(e *SchemaEdit) error { return e.DropColumn([]string{"s", "x"}) },
		"an element by itself": func(e *SchemaEdit) error { return e.DropColumn([]string{"l", "element"}) },
		"a default of another type": func(e *SchemaEdit) error {
			err := e.SetDefault("id", new("a"))
			if err == nil {
				_, _, err = e.Schema(1)
			}
			return err
		},
	} {
		assert.ErrorIs(t, fn(editable(t).Edit(true)), ErrSchemaChange, name)
	}
}

// V41: what is stored is what Java reads, or it is refused.
func TestFormatDefault_RapidReadsBackExactly(t *testing.T) {
	text := rapid.StringMatching(`[a-z '",()\[\]{}\\]{0,6}`)
	scalar := map[string]func(*rapid.T) (types.Type, types.Datum){
		"text": func(r *rapid.T) (types.Type, types.Datum) {
			return types.StringType(), types.StringDatum(text.Draw(r, "s"))
		},
		"int": func(r *rapid.T) (types.Type, types.Datum) {
			return types.IntType(), types.IntDatum(int64(rapid.Int32().Draw(r, "i")))
		},
		"real": func(r *rapid.T) (types.Type, types.Datum) {
			return types.DoubleType(), types.FloatDatum(rapid.Float64().Draw(r, "f"))
		},
		"date": func(r *rapid.T) (types.Type, types.Datum) {
			return types.DateType(), types.IntDatum(int64(rapid.IntRange(0, 40000).Draw(r, "d")))
		},
		"stamp": func(r *rapid.T) (types.Type, types.Datum) {
			return types.TimestampType(6), types.IntDatum(rapid.Int64Range(0, 4e15).Draw(r, "t"))
		},
	}
	rapid.Check(t, func(r *rapid.T) {
		k := rapid.SampledFrom([]string{"text", "int", "real", "date", "stamp"}).Draw(r, "kind")
		typ, v := scalar[k](r)
		f := types.Field{Name: "c", Type: typ}
		nested := rapid.IntRange(0, 3).Draw(r, "nested")
		_, w := scalar[k](r)
		switch nested {
		case 1:
			f.Type, v = types.ArrayType(typ), types.Datum{L: []types.Datum{v, w}}
		case 2:
			f.Type, v = types.MapType(typ, types.IntType()), types.Datum{L: []types.Datum{v, types.IntDatum(1)}}
		case 3:
			f.Type, v = types.RowType(types.Field{Name: "a", Type: typ}, types.Field{Name: "b", Type: typ}), types.Datum{L: []types.Datum{v, w}}
		}
		s, err := FormatDefault(f, v)
		if err != nil {
			require.ErrorIs(r, err, ErrDefault)
			if nested == 0 {
				r.Fatalf("a scalar was refused: %v", err)
			}
			return
		}
		f.Default = &s
		got, err := DefaultValue(f)
		require.NoError(r, err)
		require.True(r, sameDatum(f.Type, *got, v))
	})
}

func TestFormatDefault_PrefersWhatSparkReadsToo(t *testing.T) {
	list := func(v ...string) types.Datum {
		d := types.Datum{}
		for _, s := range v {
			d.L = append(d.L, types.StringDatum(s))
		}
		return d
	}
	text := types.StringType()
	for _, c := range []struct {
		t    types.Type
		v    types.Datum
		want string
	}{
		{types.IntType(), types.IntDatum(10), "10"},
		{text, types.StringDatum("it's"), "'it's'"},
		{types.DateType(), types.IntDatum(19724), "'2024-01-02'"},
		{types.ArrayType(text), list("a", "b"), "[a, b]"},
		{types.ArrayType(types.IntType()), types.Datum{L: []types.Datum{types.IntDatum(1), types.Null}}, "ARRAY(1, null)"},
		{types.MapType(text, text), list("key1", "value1"), `MAP("key1", "value1")`},
		{types.MapType(text, text), list("a,b", "c)"), `MAP("a,b", "c)")`},
		{types.MapType(text, text), list("", "x", "k", "y"), `MAP("k", "y", "", "x")`},
	} {
		got, err := FormatDefault(types.Field{Name: "c", Type: c.t}, c.v)
		if assert.NoError(t, err, c.want) {
			assert.Equal(t, c.want, got)
		}
	}
}
