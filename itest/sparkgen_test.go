//go:build itest

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
	def       string // its default, "" without
	partition bool   // of the Paimon table, which then keeps its name and type
}

// tableGen makes a table and statements about it. A statement may have another text for
// Spark, whose Iceberg tables have no defaults: see either.
type tableGen struct {
	*exprGen
	name    string
	columns []genColumn
	added   int // columns that got a name
	ours    string
	theirs  string
}

// either is a part of a statement that has one text here and another one in Spark.
func either(ours, theirs string) string { return "\x01" + ours + "\x02" + theirs + "\x03" }

// twinTexts returns the two texts of a statement.
func twinTexts(sql string) (ours, theirs string) {
	var a, b strings.Builder
	for {
		plain, rest, ok := strings.Cut(sql, "\x01")
		a.WriteString(plain)
		b.WriteString(plain)
		if !ok {
			return a.String(), b.String()
		}
		both, rest, _ := strings.Cut(rest, "\x03")
		here, there, _ := strings.Cut(both, "\x02")
		a.WriteString(here)
		b.WriteString(there)
		sql = rest
	}
}

// columnKinds are those of table columns. Iceberg makes TINYINT and SMALLINT an INT.
const columnKinds = "iilfdccsssbDTNxASMRPQW"

// sparkModes are kinds of Paimon tables; Iceberg has nothing to do with them.
var sparkModes = []string{
	"'deletion-vectors.enabled' = 'true'", "'deletion-vectors.enabled' = 'false'",
	"'deletion-vectors.enabled' = 'true', 'bucket' = '2', 'bucket-key' = 'id'",
	"'deletion-vectors.enabled' = 'true', 'row-tracking.enabled' = 'true'",
	"'deletion-vectors.enabled' = 'true', 'deletion-vectors.bitmap64' = 'true'",
}

// unsorted keeps Iceberg from sorting what it writes: the order in which rows fail stays theirs.
const unsorted = " TBLPROPERTIES ('write.distribution-mode' = 'none', 'write.merge.distribution-mode' = 'none', 'write.update.distribution-mode' = 'none', 'write.delete.distribution-mode' = 'none')"

// newTable draws a table; ours and theirs are the statements that make the twins.
func (g *exprGen) newTable(name string) *tableGen {
	t := &tableGen{exprGen: g, name: name}
	t.columns = []genColumn{{name: "id", typ: "INT", kind: 'i', pool: []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}}}
	defaults := t.chance(3)
	for range 2 + g.r.IntN(5) {
		c := t.newColumn()
		if list := defaultLiterals[c.kind]; defaults && len(list) > 0 && !t.chance(3) {
			c.def = pick(g.r, list)
		}
		t.columns = append(t.columns, c)
	}
	var parts []string
	for i, c := range t.columns {
		part := c.name + " " + c.typ
		if i == 0 && t.chance(3) {
			part += " NOT NULL"
		}
		if c.def != "" {
			part += either(" DEFAULT "+c.def, "")
		}
		parts = append(parts, part)
	}
	partition := ""
	if i := slices.IndexFunc(t.columns, func(c genColumn) bool { return strings.ContainsRune("isDb", rune(c.kind)) && c.name != "id" }); i > 0 && t.chance(3) {
		partition = " PARTITIONED BY (" + t.columns[i].name + ")"
		t.columns[i].partition = true
		if t.chance(2) {
			partition = either(partition, "")
		}
	}
	t.ours, t.theirs = twinTexts(fmt.Sprintf("CREATE TABLE %s (%s) USING %s%s%s", name, strings.Join(parts, ", "), either("paimon", "iceberg"), partition,
		either(" TBLPROPERTIES ("+pick(g.r, sparkModes)+")", unsorted)))
	return t
}

// defaultLiterals are the defaults of columns of some kinds.
var defaultLiterals = map[byte][]string{
	'i': {"7", "-3"}, 'l': {"5000000000"}, 'd': {"2.5D"}, 'c': {"0.50"}, 's': {"'none'", "'a b'", "''"}, 'b': {"true"}, 'D': {"DATE'2024-02-29'"},
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

// constant is the default as a value of the column's type.
func (c genColumn) constant() string { return fmt.Sprintf("CAST(%s AS %s)", c.def, c.typ) }

// stored is a value as it gets into a column: for NULL its default stands.
func (c genColumn) stored(x string) string {
	if c.def == "" {
		return x
	}
	return either("", "coalesce(") + x + either("", ", "+c.constant()+")")
}

// byDefault is the keyword DEFAULT where a column has one, NULL otherwise.
func (c genColumn) byDefault() string {
	if c.def == "" {
		return "DEFAULT"
	}
	return either("DEFAULT", c.constant())
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

// value is something for a column: a value of its pool, an expression of its type or of one
// that is stored as it, or a sub-query.
func (t *tableGen) value(c genColumn) string {
	switch t.r.IntN(16) {
	case 0:
		if strings.IndexByte(numberKinds, c.kind) >= 0 && c.def == "" {
			return t.expr('n', 1)
		}
	case 1:
		if c.kind == 's' && c.def == "" {
			return t.expr('a', 1)
		}
	}
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
	switch t.r.IntN(14) {
	case 3:
		return fmt.Sprintf("%s = (SELECT max(x.%s) FROM %s x WHERE x.id = %s.id)", c.name, c.name, t.name, t.name)
	case 4:
		return fmt.Sprintf("NOT EXISTS (SELECT 1 FROM %s x WHERE x.id = %s.id + 1) AND %s", t.name, t.name, t.condition(""))
	case 0:
		return fmt.Sprintf("%s %s (SELECT %s FROM %s WHERE %s)", c.name, pick(t.r, []string{"IN", "NOT IN"}), c.name, t.name, t.condition(""))
	case 1:
		return fmt.Sprintf("id = (SELECT %s(id) FROM %s)", pick(t.r, []string{"min", "max"}), t.name)
	case 2:
		return fmt.Sprintf("%s (SELECT 1 FROM %s x WHERE x.%s = %s.%s AND x.id <> %s.id)", pick(t.r, []string{"EXISTS", "NOT EXISTS"}), t.name, c.name, t.name, c.name, t.name)
	}
	return t.condition("")
}

// literals are rows of literals; with distinct ids where keys says so.
func (t *tableGen) literals(columns []genColumn, rows int, keys bool) [][]string {
	ids := slices.Clone(t.columns[0].pool)
	t.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var list [][]string
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
		list = append(list, row)
	}
	return list
}

func tuples(rows [][]string) string {
	var list []string
	for _, row := range rows {
		list = append(list, "("+strings.Join(row, ", ")+")")
	}
	return strings.Join(list, ", ")
}

// values are rows of literals to be stored, for the columns of a list (see listed).
func (t *tableGen) values(columns []genColumn, rows int) string {
	list := t.literals(columns, rows, false)
	for _, row := range list {
		for i, c := range columns {
			if t.chance(12) && c.name != "id" {
				row[i] = c.byDefault()
			} else {
				row[i] = c.stored(row[i])
			}
		}
		row[len(row)-1] += t.omitted(columns)
	}
	return tuples(list)
}

// listed are the columns of an INSERT by their names; Spark is given all that have a default.
func (t *tableGen) listed(columns []genColumn) string {
	text := namesOf(columns)
	for _, c := range t.without(columns) {
		text += either("", ", "+c.name)
	}
	return text
}

// omitted are the values of the columns that listed adds.
func (t *tableGen) omitted(columns []genColumn) string {
	text := ""
	for _, c := range t.without(columns) {
		text += either("", ", "+c.constant())
	}
	return text
}

// without are the columns with a default that are not among some.
func (t *tableGen) without(some []genColumn) []genColumn {
	var list []genColumn
	for _, c := range t.columns {
		if c.def != "" && !slices.ContainsFunc(some, func(o genColumn) bool { return o.name == c.name }) {
			list = append(list, c)
		}
	}
	return list
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
