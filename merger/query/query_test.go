package query

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"applier/merger/expr"
	"applier/merger/internal/recorded"
	"applier/merger/sqlparse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a source of two small tables.
func shop(t *testing.T) *memory {
	m := &memory{tables: map[string]*table{}}
	for _, sql := range []string{
		"CREATE TABLE c (id INT, name STRING, city STRING)",
		"INSERT INTO c VALUES (1, 'ann', 'Oslo'), (2, 'bob', NULL), (3, 'cyd', 'Rome'), (4, 'dan', 'Oslo')",
		"CREATE TABLE o (id INT, cust INT, amount DECIMAL(9,2))",
		"INSERT INTO o VALUES (10, 1, 5.00), (11, 1, 7.50), (12, 3, 1.25), (13, NULL, 9.99), (14, 9, 2.00)",
	} {
		require.True(t, m.exec(t, sql))
	}
	return m
}

// result runs a query and writes its rows in one line.
func result(t *testing.T, src Source, sql string) string {
	q, err := sqlparse.ParseQuery(sql)
	require.NoError(t, err, sql)
	p, err := Compile(t.Context(), q, src, nil)
	require.NoError(t, err, sql)
	rows, err := p.Rows(t.Context())
	require.NoError(t, err, sql)
	var lines []string
	for _, r := range rows {
		var cells []string
		for i, d := range r {
			cells = append(cells, recorded.Spell(p.Columns()[i].Type, d))
		}
		lines = append(lines, strings.Join(cells, ","))
	}
	return strings.Join(lines, " ")
}

func TestCompile_RunsWhatStatementsNeed(t *testing.T) {
	m := shop(t)
	for _, c := range []struct{ sql, want string }{
		// Order, limit, names.
		{"SELECT name FROM c ORDER BY id DESC LIMIT 2", "dan cyd"},
		{"SELECT name FROM c ORDER BY id LIMIT 2 OFFSET 1", "bob cyd"},
		{"SELECT id * -1 AS k, name FROM c ORDER BY k + 0, name LIMIT 1", "-4,dan"},
		{"SELECT name AS id FROM c ORDER BY id DESC LIMIT 1", "dan"},
		{"SELECT name FROM c x WHERE x.id = 3", "cyd"},
		{"SELECT city FROM c ORDER BY 1 NULLS LAST, id LIMIT 1", "Oslo"},
		{"SELECT DISTINCT city FROM c ORDER BY city DESC", "Rome Oslo null"},
		{"SELECT DISTINCT upper(city) FROM c ORDER BY upper(city) NULLS LAST", "OSLO ROME null"},
		{"SELECT * EXCEPT (id, city) FROM c ORDER BY id LIMIT 1", "ann"},
		{"SELECT c.*, 1 FROM c WHERE id = 1", "1,ann,Oslo,1"},
		// Groups.
		{"SELECT city, count(*) n FROM c GROUP BY city ORDER BY n DESC, city", "Oslo,2 null,1 Rome,1"},
		{"SELECT city AS town, count(*) FROM c GROUP BY town ORDER BY 2 DESC, 1 LIMIT 1", "Oslo,2"},
		{"SELECT upper(city), count(*) FROM c GROUP BY 1 ORDER BY 1 LIMIT 1", "null,1"},
		{"SELECT city, count(*) FROM c GROUP BY ALL HAVING count(*) > 1", "Oslo,2"},
		{"SELECT city, count(*) AS n FROM c GROUP BY city HAVING n > 1", "Oslo,2"},
		{"SELECT count(*) FROM c HAVING count(*) > 9", ""},
		{"SELECT c.city FROM c GROUP BY city HAVING max(c.id) = 4", "Oslo"},
		{"SELECT length(city) + 1, sum(id) FROM c GROUP BY length(city) + 1 ORDER BY 1", "null,2 5,8"},
		{"SELECT max(id), min(name), count(DISTINCT city) FROM c WHERE id > 100", "null,null,0"},
		{"SELECT sum(amount) / count(*) FROM o WHERE cust = 1", "6.250000000000000000000"},
		// Joins.
		{"SELECT name, amount FROM c JOIN o ON c.id = o.cust ORDER BY amount", "cyd,1.25 ann,5.00 ann,7.50"},
		{"SELECT name, amount FROM c LEFT JOIN o ON c.id = o.cust WHERE amount IS NULL ORDER BY name", "bob,null dan,null"},
		{"SELECT name, o.id FROM c RIGHT JOIN o ON c.id = o.cust ORDER BY o.id DESC LIMIT 2", "null,14 null,13"},
		{"SELECT count(*) FROM c FULL JOIN o ON c.id = o.cust", "7"},
		{"SELECT name FROM c LEFT SEMI JOIN o ON c.id = o.cust ORDER BY name", "ann cyd"},
		{"SELECT name FROM c LEFT ANTI JOIN o ON c.id = o.cust ORDER BY name", "bob dan"},
		{"SELECT count(*) FROM c CROSS JOIN o", "20"},
		{"SELECT id, name, y FROM c JOIN (VALUES (1, 'q'), (2, 'r')) AS v(id, y) USING (id) ORDER BY id", "1,ann,q 2,bob,r"},
		{"SELECT * FROM (VALUES (1, 2)) a(x, y) NATURAL JOIN (VALUES (1, 3)) b(x, z)", "1,2,3"},
		{"SELECT count(*) FROM range(20000) a JOIN range(20000) b ON a.id = b.id + 1 AND a.id < 100", "99"},
		{"SELECT count(*) FROM range(3000) a LEFT JOIN (SELECT CAST(id AS STRING) AS s FROM range(3000)) b ON b.s = a.id", "3000"},
		{"SELECT a.x, b.x FROM (VALUES (0.0D), (double('NaN')), (NULL)) a(x) JOIN (VALUES (-0.0D), (double('NaN')), (NULL)) b(x) ON a.x = b.x ORDER BY 1", "0,-0 nan,nan"},
		{"SELECT a.x, b.y FROM (VALUES (1), (2)) a(x) FULL JOIN (VALUES (2L), (3L)) b(y) ON x = y ORDER BY x, y", "null,3 1,null 2,2"},
		{"SELECT a.x FROM (VALUES (1, 'p'), (1, 'q')) a(x, n) JOIN (VALUES (1.0, 'q')) b(x, n) ON a.x = b.x AND a.n = b.n", "1"},
		// Sub-queries.
		{"SELECT name FROM c WHERE id IN (SELECT cust FROM o)", "ann cyd"},
		{"SELECT name FROM c WHERE id NOT IN (SELECT cust FROM o)", ""},
		{"SELECT id IN (SELECT cust FROM o), id NOT IN (SELECT cust FROM o WHERE cust IS NOT NULL) FROM c ORDER BY id", "true,false null,true true,false null,true"},
		{"SELECT NULL IN (SELECT 1), NULL IN (SELECT 1 WHERE false), 1 IN (SELECT NULL WHERE false)", "null,false,false"},
		{"SELECT (1, NULL) IN (SELECT 1, 2), (1, NULL) IN (SELECT 2, 2), (1, 3) IN (SELECT 1, NULL), (1, 2) IN (SELECT * FROM VALUES (1, NULL), (1, 2))", "null,false,null,true"},
		{"SELECT '2' IN (SELECT id FROM c), 2.0 IN (SELECT id FROM c), -0.0D IN (SELECT 0.0D)", "true,true,true"},
		{"SELECT name FROM c WHERE 7.5 IN (SELECT amount FROM o WHERE o.cust = c.id)", "ann"},
		{"SELECT name FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.cust = c.id) ORDER BY 1", "bob dan"},
		{"SELECT name, (SELECT sum(amount) FROM o WHERE cust = c.id) s FROM c ORDER BY id", "ann,12.50 bob,null cyd,1.25 dan,null"},
		{"SELECT name FROM c WHERE id = (SELECT max(id) FROM c)", "dan"},
		{"SELECT city FROM c GROUP BY city HAVING count(*) > (SELECT count(*) FROM o WHERE cust = 3)", "Oslo"},
		{"SELECT name FROM c WHERE EXISTS (SELECT 1 FROM o WHERE o.cust = c.id AND EXISTS (SELECT 1 FROM o p WHERE p.cust = c.id AND p.id > o.id))", "ann"},
		{"WITH big AS (SELECT * FROM o WHERE amount > 5), n AS (SELECT count(*) k FROM big) SELECT k FROM n", "2"},
		{"WITH c AS (SELECT 1 AS id) SELECT id FROM c", "1"},
		{"WITH c AS (SELECT id FROM c WHERE id > 2) SELECT id FROM c ORDER BY id", "3 4"},
		// Sets.
		{"SELECT id FROM c UNION SELECT cust FROM o ORDER BY id NULLS LAST", "1 2 3 4 9 null"},
		{"SELECT 1 UNION ALL SELECT 1.5 ORDER BY 1", "1.0 1.5"},
		{"SELECT city FROM c INTERSECT SELECT 'Oslo'", "Oslo"},
		{"SELECT city FROM c INTERSECT ALL SELECT * FROM VALUES ('Oslo'), ('Oslo'), ('Oslo')", "Oslo Oslo"},
		{"SELECT city FROM c EXCEPT ALL SELECT 'Oslo' ORDER BY city NULLS LAST", "Oslo Rome null"},
		{"(SELECT id FROM c ORDER BY id DESC LIMIT 1) UNION ALL SELECT 0", "4 0"},
		// Without tables.
		{"SELECT 1 + 1 AS two, 'x'", "2,x"},
		{"VALUES (1, 'a'), (2.5, NULL)", "1.0,a 2.5,null"},
		{"SELECT a + b FROM VALUES (1, 2), (3, 4) AS v(a, b)", "3 7"},
		{"SELECT sum(id) FROM range(5)", "10"},
		{"SELECT id FROM range(5, 0, -2)", "5 3 1"},
		{"TABLE c LIMIT 1", "1,ann,Oslo"},
		{"SELECT s.* FROM (SELECT named_struct('a', 1, 'b', 'x') AS s)", "1,x"},
	} {
		assert.Equal(t, c.want, result(t, m, c.sql), c.sql)
	}
}

func TestCompile_RefusesWithSparksClassAndAPlace(t *testing.T) {
	m := shop(t)
	for _, c := range []struct {
		sql, class string
		col        int
	}{
		{"SELECT name, count(*) FROM c", "MISSING_GROUP_BY", 8},
		{"SELECT name, count(*) FROM c GROUP BY city", "MISSING_AGGREGATION", 8},
		{"SELECT city FROM c GROUP BY city ORDER BY name", "MISSING_AGGREGATION", 43},
		{"SELECT nope FROM c", "UNRESOLVED_COLUMN.WITH_SUGGESTION", 8},
		{"SELECT c.id FROM c AS x", "UNRESOLVED_COLUMN.WITH_SUGGESTION", 8},
		{"SELECT id FROM c, o", "AMBIGUOUS_REFERENCE", 8},
		{"SELECT * FROM c WHERE id", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", 23},
		{"SELECT * FROM c WHERE count(*) > 1", "UNSUPPORTED_EXPR_FOR_OPERATOR", 23},
		{"SELECT id FROM c ORDER BY 2", "ORDER_BY_POS_OUT_OF_RANGE", 27},
		{"SELECT id FROM c GROUP BY 5", "GROUP_BY_POS_OUT_OF_RANGE", 27},
		{"SELECT max(id) FROM c GROUP BY 1", "GROUP_BY_AGGREGATE", 32},
		{"SELECT id FROM c LIMIT -1", "INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE", 24},
		{"SELECT id FROM c LIMIT 'x'", "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE", 24},
		{"SELECT (SELECT id, name FROM c)", "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN", 8},
		{"SELECT 1 WHERE 1 IN (SELECT id, name FROM c)", "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH", 16},
		{"SELECT 1 UNION SELECT 1, 2", "NUM_COLUMNS_MISMATCH", 1},
		{"SELECT 1 UNION ALL SELECT array(1)", "INCOMPATIBLE_COLUMN_TYPE", 1},
		{"SELECT x.* FROM c", "CANNOT_RESOLVE_STAR_EXPAND", 8},
		{"SELECT * FROM nosuch", "TABLE_OR_VIEW_NOT_FOUND", 15},
		{"SELECT * FROM c JOIN o ON c.id", "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", 27},
		{"SELECT * FROM VALUES (1), (2, 3)", "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH", 0},
		{"SELECT * FROM explode(array(1))", "UNRESOLVABLE_TABLE_VALUED_FUNCTION", 15},
	} {
		q, err := sqlparse.ParseQuery(c.sql)
		if err == nil {
			_, err = Compile(t.Context(), q, m, nil)
		}
		if c.col == 0 {
			require.Error(t, err, c.sql)
			continue
		}
		var e *expr.Error
		require.ErrorAs(t, err, &e, c.sql)
		require.Equal(t, c.class, e.Class, c.sql)
		require.Equal(t, c.col, e.Pos.Col, "%s: %v", c.sql, err)
	}
}

func TestCompile_ReadsAViewWithItsOwnNames(t *testing.T) {
	m := shop(t)
	view, err := sqlparse.ParseQuery("SELECT id AS k, upper(name) AS n FROM c WHERE id < 3")
	require.NoError(t, err)
	src := viewed{m, view}
	require.Equal(t, "2,BOB", result(t, src, "SELECT * FROM v WHERE k = 2"))
	require.Equal(t, "ANN", result(t, src, "WITH c AS (SELECT 1 AS id, 'zoe' AS name) SELECT v.n FROM v WHERE v.k = 1"), "a view does not see the query's WITH")
}

// viewed is a source with a view v besides.
type viewed struct {
	*memory
	view *sqlparse.Query
}

func (v viewed) Table(ctx context.Context, ref *sqlparse.TableRef) (*Relation, error) {
	if ref.Table.Last() == "v" {
		return &Relation{Name: []string{"v"}, View: v.view}, nil
	}
	return v.memory.Table(ctx, ref)
}

func TestRun_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	q, err := sqlparse.ParseQuery("SELECT count(*) FROM range(1000000000) a, range(1000000) b")
	require.NoError(t, err)
	p, err := Compile(ctx, q, shop(t), nil)
	require.NoError(t, err)
	cancel()
	_, err = p.Rows(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestRun_StopsTheScanWhenTheLimitIsReached(t *testing.T) {
	q, err := sqlparse.ParseQuery("SELECT id FROM range(9223372036854775807) WHERE id % 2 = 0 LIMIT 3")
	require.NoError(t, err)
	p, err := Compile(t.Context(), q, shop(t), nil)
	require.NoError(t, err)
	rows, err := p.Rows(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 3)
	require.Equal(t, int64(4), rows[2][0].I)
}

// noting is a source that notes what a scan was asked for.
type noting struct {
	*memory
	need map[string][]int
}

func (n noting) Table(ctx context.Context, ref *sqlparse.TableRef) (*Relation, error) {
	r, err := n.memory.Table(ctx, ref)
	if err != nil {
		return nil, err
	}
	scan := r.Scan
	r.Scan = func(ctx context.Context, need []int, yield func(expr.Row) error) error {
		n.need[ref.Table.Last()] = need
		return scan(ctx, need, yield)
	}
	return r, nil
}

func TestRun_AsksForTheColumnsThatAreRead(t *testing.T) {
	for sql, want := range map[string]map[string][]int{
		"SELECT name FROM c WHERE id > 1":                                            {"c": {0, 1}},
		"SELECT count(*) FROM c":                                                     {"c": nil},
		"SELECT * FROM c":                                                            {"c": {0, 1, 2}},
		"SELECT max(id) FROM c GROUP BY city ORDER BY city":                          {"c": {0, 2}},
		"SELECT name FROM c JOIN o ON c.id = o.cust":                                 {"c": {0, 1}, "o": {1}},
		"SELECT name FROM c WHERE EXISTS (SELECT 1 FROM o WHERE o.cust = c.id)":      {"c": {0, 1}, "o": {1}},
		"SELECT n FROM (SELECT name AS n, id FROM c) WHERE n > 'b' ORDER BY n":       {"c": {0, 1}},
		"SELECT name FROM c WHERE id = (SELECT max(cust) FROM o) ORDER BY city DESC": {"c": {0, 1, 2}, "o": {1}},
	} {
		src := noting{shop(t), map[string][]int{}}
		result(t, src, sql)
		require.Equal(t, want, src.need, sql)
	}
}
