package query

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"applier/merger/expr"
	"applier/merger/internal/recorded"
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
			line += recorded.Spell(typs[i], d) + " | "
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
			line += recorded.SpellRecorded(typs[i], c) + " | "
		}
		want = append(want, line)
	}
	if !s.Ordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	assert.Equal(t, want, got, what)
}
