//go:build itest

package itest

import (
	"fmt"
	"slices"
	"strings"
)

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
		return fmt.Sprintf("INSERT OVERWRITE %s VALUES %s", t.name, t.values(t.columns, 3))
	case n < 96:
		return pick(t.r, []string{"TRUNCATE TABLE ", "DELETE FROM "}) + t.name
	}
	return t.alter()
}

func (t *tableGen) insert() string {
	columns := t.some()
	switch t.r.IntN(6) {
	case 0, 1:
		return fmt.Sprintf("INSERT INTO %s VALUES %s", t.name, t.values(t.columns, 1+t.r.IntN(5)))
	case 2, 3:
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, t.listed(columns), t.values(columns, 1+t.r.IntN(4)))
	}
	t.see("")
	var list, named []string
	for _, c := range columns {
		x := c.stored(t.value(c))
		list, named = append(list, x), append(named, x+" AS "+c.name)
	}
	rows := fmt.Sprintf("FROM %s WHERE %s", t.name, t.condition(""))
	if t.chance(3) {
		text := strings.Join(named, ", ")
		for _, c := range t.without(columns) {
			text += either("", ", "+c.constant()+" AS "+c.name)
		}
		return fmt.Sprintf("INSERT INTO %s BY NAME SELECT %s %s", t.name, text, rows)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s%s %s", t.name, t.listed(columns), strings.Join(list, ", "), t.omitted(columns), rows)
}

// assignments sets some columns, or fields of structs, to expressions over what see shows; to
// sub-queries too where queries says so.
func (t *tableGen) assignments(queries bool) string {
	var list []string
	for _, c := range t.some() {
		switch {
		case c.name == "id" && !t.chance(4) && len(list) > 0:
		case c.kind == 'R' && t.chance(2):
			list = append(list, c.name+".a = "+t.expr('i', 1))
		case c.kind == 'P' && t.chance(2):
			list = append(list, c.name+".r.b = "+t.expr('s', 1), c.name+".l = "+t.expr('A', 1))
		case queries && strings.IndexByte(scalarKinds, c.kind) >= 0 && t.chance(10):
			list = append(list, fmt.Sprintf("%s = %s", c.name, c.stored(fmt.Sprintf("(SELECT max(x.%s) FROM %s x)", c.name, t.name))))
		case c.def != "" && t.chance(4):
			list = append(list, c.name+" = "+c.byDefault())
		default:
			list = append(list, c.name+" = "+c.stored(t.value(c)))
		}
	}
	return strings.Join(list, ", ")
}

func (t *tableGen) update() string {
	t.see("")
	set := t.assignments(true)
	if t.chance(8) {
		return "UPDATE " + t.name + " SET " + set
	}
	return "UPDATE " + t.name + " SET " + set + " WHERE " + t.rowCondition()
}

// source draws what a MERGE takes its rows from; most match a row of the table at most once.
func (t *tableGen) source() string {
	switch t.r.IntN(6) {
	case 0:
		return fmt.Sprintf("(SELECT * FROM %s WHERE %s)", t.name, t.condition(""))
	case 1: // one row a key; maps do not compare
		var list []string
		for _, c := range t.columns[1:] {
			x := fmt.Sprintf("max(%s)", c.name)
			if c.kind == 'M' || c.kind == 'W' {
				x = fmt.Sprintf("CAST(NULL AS %s)", c.typ)
			}
			list = append(list, x+" AS "+c.name)
		}
		return fmt.Sprintf("(SELECT id + 1 AS id, %s FROM %s GROUP BY id)", strings.Join(list, ", "), t.name)
	}
	return fmt.Sprintf("(SELECT * FROM VALUES %s AS v(%s))", tuples(t.literals(t.columns, 1+t.r.IntN(6), !t.chance(6))), strings.Join(t.names(), ", "))
}

// merge draws a MERGE with clauses of all kinds.
func (t *tableGen) merge() string {
	var b strings.Builder
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
	fmt.Fprintf(&b, "MERGE INTO %s AS t USING %s AS s ON %s", t.name, t.source(), on)
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
	for n := t.r.IntN(3); n > 0 || clauses == 0; n-- {
		with("NOT MATCHED", "s.")
		b.WriteString(t.notMatched())
		clauses++
	}
	if t.chance(3) {
		with("NOT MATCHED BY SOURCE", "t.")
		t.see("t.")
		b.WriteString(pick(t.r, []string{"DELETE", "UPDATE SET " + t.assignments(false)}))
	}
	return b.String()
}

// star are the columns that * stands for, as Spark is told where defaults are to hold.
func (t *tableGen) star() (names, values, set []string) {
	for _, c := range t.columns {
		_, x := twinTexts(c.stored("s." + c.name))
		names, values, set = append(names, c.name), append(values, x), append(set, c.name+" = "+x)
	}
	return names, values, set
}

func (t *tableGen) matched() string {
	t.see("t.", "s.")
	switch t.r.IntN(4) {
	case 0:
		return "DELETE"
	case 1:
		_, _, set := t.star()
		if len(t.without(nil)) > 0 {
			return "UPDATE SET " + either("*", strings.Join(set, ", "))
		}
		return "UPDATE SET *"
	}
	return "UPDATE SET " + t.assignments(false)
}

func (t *tableGen) notMatched() string {
	if t.chance(2) {
		if names, values, _ := t.star(); len(t.without(nil)) > 0 {
			return "INSERT " + either("*", fmt.Sprintf("(%s) VALUES (%s)", strings.Join(names, ", "), strings.Join(values, ", ")))
		}
		return "INSERT *"
	}
	t.see("s.")
	columns := t.some()
	var list []string
	for _, c := range columns {
		switch {
		case c.name == "id" && t.chance(2):
			list = append(list, "s.id")
		case c.def != "" && t.chance(6):
			list = append(list, c.byDefault())
		default:
			list = append(list, c.stored(t.value(c)))
		}
	}
	return fmt.Sprintf("INSERT (%s) VALUES (%s%s)", t.listed(columns), strings.Join(list, ", "), t.omitted(columns))
}

// alter changes the columns, and what is known of them.
func (t *tableGen) alter() string {
	i := 1 + t.r.IntN(len(t.columns)-1)
	c := &t.columns[i]
	n := t.r.IntN(4)
	if c.partition {
		n = 2 + n%2
	}
	switch n {
	case 0:
		old := c.name
		c.name = fmt.Sprintf("c%d", t.added)
		t.added++
		return fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", t.name, old, c.name)
	case 1:
		if c.kind == 'i' && c.def == "" {
			c.typ, c.kind = "BIGINT", 'l'
			return fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE BIGINT", t.name, c.name)
		}
	case 2:
		if len(defaultLiterals[c.kind]) > 0 { // Spark has nothing to do
			change := " DROP DEFAULT"
			if c.def = pick(t.r, append(slices.Clone(defaultLiterals[c.kind]), "")); c.def != "" {
				change = " SET DEFAULT " + c.def
			}
			return fmt.Sprintf("ALTER TABLE %s %s", t.name, either("ALTER COLUMN "+c.name+change, "SET TBLPROPERTIES ('k' = 'v')"))
		}
	}
	added := t.newColumn()
	text := fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", t.name, added.name, added.typ)
	if list := defaultLiterals[added.kind]; len(list) > 0 && t.chance(2) {
		added.def = pick(t.r, list)
		text += either(" DEFAULT "+added.def, "")
	}
	t.columns = append(t.columns, added)
	return text
}
