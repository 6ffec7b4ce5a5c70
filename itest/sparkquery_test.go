//go:build itest

package itest

import "fmt"

// query draws a query whose rows have no order, or a total one.
func (t *tableGen) query() (sql string, ordered bool) {
	a, b := t.scalar(), t.scalar()
	t.see("")
	where := func() string { return t.name + " WHERE " + t.condition("") }
	switch t.r.IntN(14) {
	case 0:
		return fmt.Sprintf("SELECT %s AS k, count(*) AS n, count(%s) AS m, min(%s) AS lo, max(%s) AS hi FROM %s GROUP BY %s", a.name, b.name, b.name, b.name, t.name, a.name), false
	case 1:
		return fmt.Sprintf("SELECT DISTINCT %s AS a, %s AS b FROM %s", a.name, b.name, where()), false
	case 2:
		offset := pick(t.r, []string{"", "", " OFFSET 1", " OFFSET 3"})
		return fmt.Sprintf("SELECT %s AS a, %s AS b FROM %s ORDER BY %s %s, %s LIMIT %d%s", a.name, b.name, t.name, a.name, pick(t.r, []string{"", "DESC", "NULLS LAST", "DESC NULLS FIRST"}), b.name, 1+t.r.IntN(6), offset), true
	case 3:
		join := pick(t.r, []string{"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"})
		return fmt.Sprintf("SELECT l.id AS i, r.id AS j, r.%s AS a FROM %s l %s (SELECT * FROM %s) r ON l.%s = r.%s", a.name, t.name, join, where(), b.name, b.name), false
	case 4:
		join := pick(t.r, []string{"LEFT SEMI JOIN", "LEFT ANTI JOIN"})
		return fmt.Sprintf("SELECT l.id AS i FROM %s l %s %s r ON l.%s = r.%s AND %s", t.name, join, t.name, a.name, a.name, t.condition("r.")), false
	case 5:
		set := pick(t.r, []string{"UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"})
		return fmt.Sprintf("SELECT %s AS a FROM %s %s SELECT %s FROM %s", a.name, where(), set, a.name, where()), false
	case 6:
		return fmt.Sprintf("SELECT sum(id) AS s, avg(id) AS a, count(DISTINCT %s) AS d, sum(%s) AS x FROM %s", a.name, t.expr(pick(t.r, []byte("ilc")), 1), where()), false
	case 7:
		return fmt.Sprintf("SELECT %s AS k, sum(id) AS s, avg(%s) AS x FROM %s GROUP BY 1 HAVING count(*) > 1 OR min(id) < 5", t.expr(a.kind, 1), t.expr(pick(t.r, []byte("ilc")), 1), t.name), false
	case 8:
		return fmt.Sprintf("SELECT count_if(%s) AS c, bool_and(%s) AS e, bool_or(%s) AS o, sum(id) FILTER (WHERE %s) AS f FROM %s", t.condition(""), t.condition(""), t.condition(""), t.condition(""), t.name), false
	case 9:
		return fmt.Sprintf("SELECT sort_array(collect_set(%s)) AS s, sort_array(collect_list(%s)) AS l, max(%s) AS m FROM %s", a.name, b.name, t.expr(b.kind, 1), where()), false
	case 10:
		return fmt.Sprintf("WITH c AS (SELECT * FROM %s) SELECT id, (SELECT max(%s) FROM c) AS m, (SELECT count(*) FROM %s x WHERE x.%s = c.%s) AS n FROM c", where(), a.name, t.name, b.name, b.name), false
	case 11:
		return fmt.Sprintf("SELECT id, CASE WHEN id %s (SELECT id FROM %s) THEN %s ELSE %s END AS v FROM %s", pick(t.r, []string{"IN", "NOT IN"}), where(), t.expr(a.kind, 1), pick(t.r, a.pool), t.name), false
	}
	return fmt.Sprintf("SELECT id, %s AS v FROM %s WHERE %s", t.expr(a.kind, 2), t.name, t.rowCondition()), false
}
