//go:build itestfull

package itest

import (
	"fmt"
	"slices"
	"strings"
)

// genColumn is a column of a generated table with the few values that statements
// draw from, so that conditions and joins hit rows.
type genColumn struct {
	name, typ string
	kind      byte
	pool      []string
}

// tableGen makes a table and statements about it.
type tableGen struct {
	*exprGen
	name    string
	columns []genColumn
	added   int // columns that got a name
	ours    string
	theirs  string
}

// columnKinds are those of table columns. Iceberg makes TINYINT and SMALLINT an INT.
const columnKinds = "iilfdccsssbDTNxASMR"

// modes are kinds of Paimon tables; Iceberg has nothing to do with them.
var sparkModes = []string{
	"'deletion-vectors.enabled' = 'true'", "'deletion-vectors.enabled' = 'false'",
	"'deletion-vectors.enabled' = 'true', 'bucket' = '2', 'bucket-key' = 'id'",
	"'deletion-vectors.enabled' = 'true', 'row-tracking.enabled' = 'true'",
	"'deletion-vectors.enabled' = 'true', 'deletion-vectors.bitmap64' = 'true'",
}

// newTable draws a table; ours and theirs are the statements that make the twins.
func (g *exprGen) newTable(name string) *tableGen {
	t := &tableGen{exprGen: g, name: name}
	t.columns = []genColumn{{name: "id", typ: "INT", kind: 'i', pool: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}}}
	for range 2 + g.r.IntN(5) {
		t.columns = append(t.columns, t.newColumn())
	}
	var parts []string
	for _, c := range t.columns {
		parts = append(parts, c.name+" "+c.typ)
	}
	if g.r.IntN(3) == 0 {
		parts[0] += " NOT NULL"
	}
	definition := fmt.Sprintf("CREATE TABLE %s (%s)", name, strings.Join(parts, ", "))
	partition := ""
	if i := slices.IndexFunc(t.columns, func(c genColumn) bool { return strings.ContainsRune("isDb", rune(c.kind)) && c.name != "id" }); i > 0 && g.r.IntN(3) == 0 {
		partition = " PARTITIONED BY (" + t.columns[i].name + ")"
	}
	t.ours = definition + " USING paimon" + partition + " TBLPROPERTIES (" + pick(g.r, sparkModes) + ")"
	t.theirs = definition + " USING iceberg TBLPROPERTIES ('write.distribution-mode' = 'none', 'write.merge.distribution-mode' = 'none', 'write.update.distribution-mode' = 'none', 'write.delete.distribution-mode' = 'none')"
	return t
}

func (t *tableGen) newColumn() genColumn {
	k := columnKinds[t.r.IntN(len(columnKinds))]
	c := genColumn{name: fmt.Sprintf("c%d", t.added), kind: k, typ: pick(t.r, sparkTypes[k])}
	t.added++
	for range 4 {
		x := t.literal(k)
		if k == 'c' || t.r.IntN(4) == 0 {
			x = fmt.Sprintf("TRY_CAST(%s AS %s)", x, c.typ)
		}
		c.pool = append(c.pool, x)
	}
	c.pool = append(c.pool, fmt.Sprintf("CAST(NULL AS %s)", c.typ))
	return c
}

// see lets expressions use the columns of the table under these names.
func (t *tableGen) see(qualifiers ...string) {
	t.exprGen.columns = map[byte][]string{}
	for _, q := range qualifiers {
		for _, c := range t.columns {
			t.exprGen.columns[c.kind] = append(t.exprGen.columns[c.kind], q+c.name)
		}
	}
}

func (t *tableGen) names() []string {
	var out []string
	for _, c := range t.columns {
		out = append(out, c.name)
	}
	return out
}

// chance is true once in n times.
func (t *tableGen) chance(n int) bool { return t.r.IntN(n) == 0 }

// value is something for a column: a value of its pool or an expression of its type.
func (t *tableGen) value(c genColumn) string {
	if t.chance(2) {
		return pick(t.r, c.pool)
	}
	x := t.expr(c.kind, 1+t.r.IntN(2))
	if c.kind == 'c' {
		return fmt.Sprintf("CAST(%s AS %s)", x, c.typ)
	}
	return x
}

// scalar returns a column that compares with literals: Iceberg fails over nested ones
// ("Cannot create expression literal").
func (t *tableGen) scalar() genColumn {
	for {
		if c := pick(t.r, t.columns); strings.IndexByte(scalarKinds, c.kind) >= 0 {
			return c
		}
	}
}

// condition is about columns as q names them.
func (t *tableGen) condition(q string) string {
	c := t.scalar()
	switch t.r.IntN(9) {
	case 0:
		return fmt.Sprintf("%s%s = %s", q, c.name, pick(t.r, c.pool))
	case 1:
		return fmt.Sprintf("%s%s %s %s", q, c.name, pick(t.r, []string{"<", "<=", ">", ">=", "<>", "<=>"}), pick(t.r, c.pool))
	case 2:
		return q + c.name + pick(t.r, []string{" IS NULL", " IS NOT NULL"})
	case 3:
		return fmt.Sprintf("%s%s %s (%s, %s)", q, c.name, pick(t.r, []string{"IN", "NOT IN"}), pick(t.r, c.pool), pick(t.r, c.pool))
	case 4:
		return fmt.Sprintf("%s AND %s", t.condition(q), t.condition(q))
	case 5:
		return fmt.Sprintf("(%s OR %s)", t.condition(q), t.condition(q))
	case 6:
		return fmt.Sprintf("NOT (%s)", t.condition(q))
	case 7:
		return fmt.Sprintf("%sid > %s", q, pick(t.r, t.columns[0].pool))
	}
	t.see(q)
	return t.expr('b', 1+t.r.IntN(2))
}

// rowCondition is a condition of UPDATE and DELETE, which may look at other rows.
func (t *tableGen) rowCondition() string {
	c := t.scalar()
	switch t.r.IntN(12) {
	case 0:
		return fmt.Sprintf("%s %s (SELECT %s FROM %s WHERE %s)", c.name, pick(t.r, []string{"IN", "NOT IN"}), c.name, t.name, t.condition(""))
	case 1:
		return fmt.Sprintf("id = (SELECT %s(id) FROM %s)", pick(t.r, []string{"min", "max"}), t.name)
	case 2:
		return fmt.Sprintf("%s (SELECT 1 FROM %s x WHERE x.%s = %s.%s AND x.id <> %s.id)", pick(t.r, []string{"EXISTS", "NOT EXISTS"}), t.name, c.name, t.name, c.name, t.name)
	}
	return t.condition("")
}

// values are rows of literals; with distinct ids where keys says so.
func (t *tableGen) values(columns []genColumn, rows int, keys bool) string {
	ids := slices.Clone(t.columns[0].pool)
	t.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var list []string
	for i := range rows {
		var row []string
		for _, c := range columns {
			switch {
			case c.name == "id" && keys:
				row = append(row, ids[i])
			case c.name == "id" && !t.chance(20):
				row = append(row, pick(t.r, ids))
			case !keys && t.chance(10):
				row = append(row, "NULL")
			default:
				row = append(row, pick(t.r, c.pool))
			}
		}
		list = append(list, "("+strings.Join(row, ", ")+")")
	}
	return strings.Join(list, ", ")
}

// some are some of the columns, in any order, id among them.
func (t *tableGen) some() []genColumn {
	list := slices.Clone(t.columns)
	t.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = list[:1+t.r.IntN(len(list))]
	if !slices.ContainsFunc(list, func(c genColumn) bool { return c.name == "id" }) {
		list = append(list, t.columns[0])
	}
	return list
}

func namesOf(columns []genColumn) string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return strings.Join(out, ", ")
}

// statement draws one statement that changes the table.
func (t *tableGen) statement() string {
	switch n := t.r.IntN(100); {
	case n < 20:
		return t.insert()
	case n < 42:
		return t.update()
	case n < 57:
		return "DELETE FROM " + t.name + " WHERE " + t.rowCondition()
	case n < 93:
		return t.merge()
	case n < 95:
		return fmt.Sprintf("INSERT OVERWRITE %s VALUES %s", t.name, t.values(t.columns, 3, false))
	case n < 96:
		return pick(t.r, []string{"TRUNCATE TABLE ", "DELETE FROM "}) + t.name
	}
	return t.alter()
}

func (t *tableGen) insert() string {
	if t.chance(3) {
		t.see("")
		var list []string
		columns := t.some()
		for _, c := range columns {
			list = append(list, t.value(c))
		}
		return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE %s", t.name, namesOf(columns), strings.Join(list, ", "), t.name, t.condition(""))
	}
	if t.chance(2) {
		return fmt.Sprintf("INSERT INTO %s VALUES %s", t.name, t.values(t.columns, 1+t.r.IntN(5), false))
	}
	columns := t.some()
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, namesOf(columns), t.values(columns, 1+t.r.IntN(4), false))
}

// assignments sets some columns to expressions over what see shows.
func (t *tableGen) assignments() string {
	var list []string
	for _, c := range t.some() {
		if c.name == "id" && !t.chance(4) && len(list) > 0 {
			continue
		}
		list = append(list, c.name+" = "+t.value(c))
	}
	return strings.Join(list, ", ")
}

func (t *tableGen) update() string {
	t.see("")
	set := t.assignments()
	if t.chance(8) {
		return "UPDATE " + t.name + " SET " + set
	}
	return "UPDATE " + t.name + " SET " + set + " WHERE " + t.rowCondition()
}

// merge draws a MERGE with clauses of all kinds; most of its sources match a row of
// the table at most once.
func (t *tableGen) merge() string {
	var b strings.Builder
	source := fmt.Sprintf("(SELECT * FROM VALUES %s AS v(%s))", t.values(t.columns, 1+t.r.IntN(6), !t.chance(6)), strings.Join(t.names(), ", "))
	if t.chance(4) {
		source = fmt.Sprintf("(SELECT * FROM %s WHERE %s)", t.name, t.condition(""))
	}
	on := "t.id = s.id"
	switch t.r.IntN(8) {
	case 0:
		on += " AND " + t.condition("t.")
	case 1:
		on += " AND " + t.condition("s.")
	case 2:
		c := t.scalar()
		on += fmt.Sprintf(" AND t.%s %s s.%s", c.name, pick(t.r, []string{"=", "<=>", "<>", "<="}), c.name)
	case 3:
		on = "t.id <=> s.id"
	}
	fmt.Fprintf(&b, "MERGE INTO %s AS t USING %s AS s ON %s", t.name, source, on)
	with := func(clause, q string) {
		b.WriteString(" WHEN " + clause)
		if t.chance(3) {
			b.WriteString(" AND " + t.condition(q))
		}
		b.WriteString(" THEN ")
	}
	clauses := 0
	for range t.r.IntN(3) {
		with("MATCHED", pick(t.r, []string{"t.", "s."}))
		b.WriteString(t.matched())
		clauses++
	}
	if clauses == 0 || t.chance(2) {
		with("NOT MATCHED", "s.")
		b.WriteString(t.notMatched())
	}
	if t.chance(3) {
		with("NOT MATCHED BY SOURCE", "t.")
		t.see("t.")
		b.WriteString(pick(t.r, []string{"DELETE", "UPDATE SET " + t.assignments()}))
	}
	return b.String()
}

func (t *tableGen) matched() string {
	t.see("t.", "s.")
	switch t.r.IntN(4) {
	case 0:
		return "DELETE"
	case 1:
		return "UPDATE SET *"
	}
	return "UPDATE SET " + t.assignments()
}

func (t *tableGen) notMatched() string {
	if t.chance(2) {
		return "INSERT *"
	}
	t.see("s.")
	columns := t.some()
	var list []string
	for _, c := range columns {
		if c.name == "id" && t.chance(2) {
			list = append(list, "s.id")
			continue
		}
		list = append(list, t.value(c))
	}
	return fmt.Sprintf("INSERT (%s) VALUES (%s)", namesOf(columns), strings.Join(list, ", "))
}

// alter changes the columns, and what is known of them.
func (t *tableGen) alter() string {
	i := 1 + t.r.IntN(len(t.columns)-1)
	c := &t.columns[i]
	switch t.r.IntN(3) {
	case 0:
		old := c.name
		c.name = fmt.Sprintf("c%d", t.added)
		t.added++
		return fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", t.name, old, c.name)
	case 1:
		if c.kind == 'i' {
			c.typ, c.kind = "BIGINT", 'l'
			return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE BIGINT", t.name, c.name)
		}
	}
	added := t.newColumn()
	t.columns = append(t.columns, added)
	return fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", t.name, added.name, added.typ)
}

// query draws a query whose rows have no order, or a total one.
func (t *tableGen) query() (sql string, ordered bool) {
	a, b := t.scalar(), t.scalar()
	t.see("")
	switch t.r.IntN(8) {
	case 0:
		return fmt.Sprintf("SELECT %s AS k, count(*) AS n, count(%s) AS m, min(%s) AS lo, max(%s) AS hi FROM %s GROUP BY %s", a.name, b.name, b.name, b.name, t.name, a.name), false
	case 1:
		return fmt.Sprintf("SELECT DISTINCT %s AS a, %s AS b FROM %s WHERE %s", a.name, b.name, t.name, t.condition("")), false
	case 2:
		return fmt.Sprintf("SELECT %s AS a, %s AS b FROM %s ORDER BY %s %s, %s LIMIT %d", a.name, b.name, t.name, a.name, pick(t.r, []string{"", "DESC", "NULLS LAST", "DESC NULLS FIRST"}), b.name, 1+t.r.IntN(6)), true
	case 3:
		join := pick(t.r, []string{"JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"})
		return fmt.Sprintf("SELECT l.id AS i, r.id AS j, r.%s AS a FROM %s l %s (SELECT * FROM %s WHERE %s) r ON l.%s = r.%s", a.name, t.name, join, t.name, t.condition(""), b.name, b.name), false
	case 4:
		join := pick(t.r, []string{"LEFT SEMI JOIN", "LEFT ANTI JOIN"})
		return fmt.Sprintf("SELECT l.id AS i FROM %s l %s %s r ON l.%s = r.%s AND %s", t.name, join, t.name, a.name, a.name, t.condition("r.")), false
	case 5:
		set := pick(t.r, []string{"UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"})
		return fmt.Sprintf("SELECT %s AS a FROM %s WHERE %s %s SELECT %s FROM %s WHERE %s", a.name, t.name, t.condition(""), set, a.name, t.name, t.condition("")), false
	case 6:
		return fmt.Sprintf("SELECT sum(id) AS s, avg(id) AS a, count(DISTINCT %s) AS d, sum(%s) AS x FROM %s WHERE %s", a.name, t.expr(pick(t.r, []byte("ilc")), 1), t.name, t.condition("")), false
	}
	return fmt.Sprintf("SELECT id, %s AS v FROM %s WHERE %s", t.expr(a.kind, 2), t.name, t.rowCondition()), false
}
