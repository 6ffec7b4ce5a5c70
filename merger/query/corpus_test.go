package query

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// group is a set-up with the queries over it, and what Spark 4.1.2 said.
type group struct {
	Name  string
	Steps []step
}

type step struct {
	SQL     string
	Class   string
	Columns [][2]string
	Rows    []json.RawMessage
	Ordered bool
	Bug     bool `json:"engine_bug"`
}

func recordedQueries(t *testing.T) []group {
	f, err := os.Open("testdata/queries.jsonl.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var list []group
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var g group
		require.NoError(t, json.Unmarshal(s.Bytes(), &g))
		list = append(list, g)
	}
	require.NoError(t, s.Err())
	return list
}

// memory is a source of tables in memory, and enough of the other statements to set
// the recorded queries up.
type memory struct{ tables map[string]*table }

type table struct {
	fields []types.Field
	rows   []expr.Row
}

func (m *memory) Table(_ context.Context, ref *sqlparse.TableRef) (*Relation, error) {
	t := m.tables[ref.Table.Last()]
	if t == nil || ref.Version != nil || ref.Timestamp != nil {
		return nil, &expr.Error{Pos: ref.Pos, Class: "TABLE_OR_VIEW_NOT_FOUND", Message: "no table " + ref.Table.String(), Analysis: true}
	}
	r := &Relation{Name: []string{"p", "db", ref.Table.Last()}, Columns: t.columns()}
	r.Scan = func(_ context.Context, need []int, yield func(expr.Row) error) error {
		only := make(expr.Row, len(t.fields)) // what was not asked for is NULL here
		for _, row := range t.rows {
			for i := range only {
				if only[i] = types.Null; slices.Contains(need, i) {
					only[i] = row[i]
				}
			}
			if err := yield(only); err != nil {
				return err
			}
		}
		return nil
	}
	return r, nil
}

func (t *table) columns() []expr.Column {
	var cols []expr.Column
	for i, f := range t.fields {
		c, _ := expr.TableColumn([]string{"t"}, f, i)
		cols = append(cols, c)
	}
	return cols
}

// exec runs a set-up statement; false means that it is beyond this test's reach.
func (m *memory) exec(t *testing.T, sql string) bool {
	s, err := sqlparse.Parse(sql)
	require.NoError(t, err, sql)
	switch s := s.(type) {
	case *sqlparse.CreateTable:
		tab := &table{}
		for i, c := range s.Columns {
			typ, err := expr.TypeOf(c.Type)
			require.NoError(t, err)
			st, ok := typ.ToStorage()
			require.True(t, ok)
			tab.fields = append(tab.fields, types.Field{ID: i, Name: c.Path.Last(), Type: st})
		}
		m.tables[s.Table.Last()] = tab
	case *sqlparse.Insert:
		m.insert(t, s)
	case *sqlparse.Delete:
		tab := m.tables[s.Table.Last()]
		cond, err := expr.CompileBool(s.Where, &expr.Scope{Columns: tab.columns()})
		require.NoError(t, err)
		tab.rows = slices.DeleteFunc(tab.rows, func(r expr.Row) bool {
			hit, err := cond.Test(r)
			require.NoError(t, err)
			return hit
		})
	case *sqlparse.Update:
		m.update(t, s)
	default:
		return false
	}
	return true
}

func (m *memory) insert(t *testing.T, s *sqlparse.Insert) {
	tab := m.tables[s.Table.Last()]
	p, err := Compile(t.Context(), s.Source, m, nil)
	require.NoError(t, err)
	rows, err := p.Rows(t.Context())
	require.NoError(t, err)
	for _, r := range rows {
		out := make(expr.Row, len(tab.fields))
		for i := range out {
			out[i] = types.Null
		}
		for i, c := range p.Columns() {
			to := i
			if len(s.Columns) > 0 {
				to = slices.IndexFunc(tab.fields, func(f types.Field) bool { return f.Name == s.Columns[i].Name })
			}
			out[to] = store(t, c.Type, r[i], tab.fields[to])
		}
		tab.rows = append(tab.rows, out)
	}
}

// store casts a value to its column.
func store(t *testing.T, from expr.Type, d types.Datum, f types.Field) types.Datum {
	ref, err := sqlparse.ParseExpr("v")
	require.NoError(t, err)
	x, err := expr.Compile(ref, &expr.Scope{Columns: []expr.Column{{Name: "v", Type: from}}})
	require.NoError(t, err)
	x, err = expr.AssignmentCast(x, f.Name, f.Type)
	require.NoError(t, err)
	v, err := x.Eval(expr.Row{d})
	require.NoError(t, err)
	return v
}

func (m *memory) update(t *testing.T, s *sqlparse.Update) {
	tab := m.tables[s.Table.Last()]
	scope := &expr.Scope{Columns: tab.columns()}
	cond, err := expr.CompileBool(s.Where, scope)
	require.NoError(t, err)
	for i, r := range tab.rows {
		hit, err := cond.Test(r)
		require.NoError(t, err)
		if !hit {
			continue
		}
		out := slices.Clone(r)
		for _, a := range s.Set {
			to := slices.IndexFunc(tab.fields, func(f types.Field) bool { return f.Name == a.Target.Last() })
			x, err := expr.Compile(a.Value, scope)
			require.NoError(t, err)
			d, err := x.Eval(r)
			require.NoError(t, err)
			out[to] = store(t, x.Type(), d, tab.fields[to])
		}
		tab.rows[i] = out
	}
}

// reach are the groups whose set-up and queries need nothing but rows.
var reach = []string{"order_", "agg_", "subquery_", "partitions", "decimals", "nested"}

// elsewhere are queries of those groups that need a real table.
var elsewhere = []string{"$partitions"}

// wrongThere are queries that the connector answers wrongly: it takes partitions from
// its manifests, one whose rows are all deleted included.
var wrongThere = map[string]string{
	"SELECT p, count(*) FROM t GROUP BY p ORDER BY p": "shows a partition of no rows",
	"SELECT DISTINCT p FROM t":                        "shows a partition of no rows",
}

func TestCompile_AgreesWithEveryRecordedQuery(t *testing.T) {
	ran, refused := 0, 0
	for _, g := range recordedQueries(t) {
		if !slices.ContainsFunc(reach, func(p string) bool { return strings.HasPrefix(g.Name, p) }) {
			continue
		}
		m := &memory{tables: map[string]*table{}}
		for _, s := range g.Steps {
			query := strings.HasPrefix(s.SQL, "SELECT") || strings.HasPrefix(s.SQL, "WITH")
			switch {
			case s.Bug || slices.ContainsFunc(elsewhere, func(p string) bool { return strings.Contains(s.SQL, p) }):
			case !query:
				require.True(t, m.exec(t, s.SQL), s.SQL)
			case s.Class != "":
				refused++
				require.Equal(t, s.Class, refusal(t, m, s.SQL), "%s: %s", g.Name, s.SQL)
			case wrongThere[s.SQL] != "" && g.Name == "partitions":
			default:
				ran++
				requireRecorded(t, m, g.Name, s)
			}
		}
	}
	t.Logf("%d queries with Spark's rows, %d refused as recorded", ran, refused)
	require.Greater(t, ran, 110)
}

// refusal runs a query that must fail and returns the error's class.
func refusal(t *testing.T, m *memory, sql string) string {
	err := func() error {
		s, err := sqlparse.Parse(sql)
		if err != nil {
			return err
		}
		p, err := Compile(t.Context(), s.(*sqlparse.QueryStmt).Query, m, nil)
		if err != nil {
			return err
		}
		_, err = p.Rows(t.Context())
		return err
	}()
	var pe *sqlparse.Error
	if errors.As(err, &pe) {
		return pe.Class
	}
	if err == nil {
		return "it ran"
	}
	return classOf(err)
}

func requireRecorded(t *testing.T, m *memory, name string, s step) {
	what := name + ": " + s.SQL
	q, err := sqlparse.ParseQuery(s.SQL)
	require.NoError(t, err, what)
	p, err := Compile(t.Context(), q, m, nil)
	require.NoError(t, err, what)
	rows, err := p.Rows(t.Context())
	require.NoError(t, err, what)
	var cols [][2]string
	var typs []expr.Type
	for _, c := range p.Columns() {
		cols = append(cols, [2]string{c.Name, c.Type.String()})
		typs = append(typs, c.Type)
	}
	assert.Equal(t, s.Columns, cols, what)
	var got, want []string
	for _, r := range rows {
		line := ""
		for i, d := range r {
			line += spell(typs[i], d) + " | "
		}
		got = append(got, line)
	}
	for _, raw := range s.Rows {
		var cells []any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		require.NoError(t, d.Decode(&cells))
		line := ""
		for i, c := range cells {
			line += spellRecorded(typs[i], c) + " | "
		}
		want = append(want, line)
	}
	if !s.Ordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	assert.Equal(t, want, got, what)
}

// spell writes a value, spellRecorded a recorded one, in one form.
func spell(t expr.Type, d types.Datum) string {
	if d.Null {
		return "null"
	}
	switch t.Kind {
	case expr.Float, expr.Double:
		return spellFloat(d.F)
	case expr.Timestamp, expr.TimestampNTZ:
		text := strings.Replace(expr.Text(t, d, nil), " ", "T", 1)
		if i := strings.IndexByte(text, '.'); i > 0 {
			text += strings.Repeat("0", 7-(len(text)-i))
		}
		return text
	case expr.Binary:
		return hex.EncodeToString(d.B)
	case expr.Array, expr.Struct, expr.Map:
		var parts []string
		for i, x := range d.L {
			item := t.Elem
			switch {
			case t.Kind == expr.Struct:
				item = &t.Fields[i].Type
			case t.Kind == expr.Map && i%2 == 0:
				item = t.Key
			}
			parts = append(parts, spell(*item, x))
		}
		return spellParts(t, parts)
	}
	return expr.Text(t, d, nil)
}

// spellParts joins the parts of a nested value; the entries of a map have no order.
func spellParts(t expr.Type, parts []string) string {
	if t.Kind == expr.Map {
		var entries []string
		for pair := range slices.Chunk(parts, 2) {
			entries = append(entries, strings.Join(pair, ":"))
		}
		slices.Sort(entries)
		parts = entries
	}
	return fmt.Sprint(parts)
}

func spellFloat(f float64) string {
	if math.IsNaN(f) {
		return "nan"
	}
	return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
}

func spellRecorded(t expr.Type, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case json.Number:
		if t.Kind == expr.Float || t.Kind == expr.Double {
			f, _ := v.Float64()
			return spellFloat(f)
		}
		return v.String()
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, spellRecorded(*t.Elem, x))
		}
		return fmt.Sprint(parts)
	case map[string]any:
		for mark, x := range v {
			switch mark {
			case "row":
				var parts []string
				for i, f := range x.([]any) {
					parts = append(parts, spellRecorded(t.Fields[i].Type, f.([]any)[1]))
				}
				return fmt.Sprint(parts)
			case "map":
				var parts []string
				for _, e := range x.([]any) {
					parts = append(parts, spellRecorded(*t.Key, e.([]any)[0]), spellRecorded(*t.Elem, e.([]any)[1]))
				}
				return spellParts(t, parts)
			}
			if r, ok := new(big.Rat).SetString(fmt.Sprint(x)); mark == "decimal" && ok {
				return r.FloatString(t.Scale) // 0E-10 is 0.0000000000
			}
			return fmt.Sprint(x)
		}
	}
	return fmt.Sprint(v)
}
