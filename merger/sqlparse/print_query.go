package sqlparse

func (p *printer) query(q *Query) {
	p.with(q.With)
	p.body(q.Body)
	if len(q.OrderBy) > 0 {
		p.w(" ORDER BY ")
		p.list(len(q.OrderBy), func(i int) {
			o := q.OrderBy[i]
			p.expr(o.X, precLambda)
			p.opt(o.Desc, " DESC")
			if o.NullsFirst != nil {
				p.opt(*o.NullsFirst, " NULLS FIRST")
				p.opt(!*o.NullsFirst, " NULLS LAST")
			}
		})
	}
	if q.Limit != nil {
		p.w(" LIMIT ")
		p.expr(q.Limit, precLambda)
	}
	if q.Offset != nil {
		p.w(" OFFSET ")
		p.expr(q.Offset, precLambda)
	}
}

func (p *printer) with(list []CTE) {
	if len(list) == 0 {
		return
	}
	p.w("WITH ")
	p.list(len(list), func(i int) {
		c := list[i]
		p.ident(c.Name)
		if len(c.Columns) > 0 {
			p.idents(c.Columns)
		}
		p.w(" AS (")
		p.query(c.Query)
		p.w(")")
	})
	p.w(" ")
}

func (p *printer) body(b QueryBody) {
	switch b := b.(type) {
	case *Select:
		p.selectQuery(b)
	case *Values:
		p.values(b)
	case *SetOp:
		p.body(b.L)
		p.w(" ", b.Op, " ")
		p.opt(b.All, "ALL ")
		p.body(b.R)
	case *TableQuery:
		p.w("TABLE ")
		p.name(b.Table)
	case *SubQuery:
		p.w("(")
		p.query(b.Query)
		p.w(")")
	}
}

func (p *printer) values(v *Values) {
	p.w("VALUES ")
	p.list(len(v.Rows), func(i int) {
		p.w("(")
		p.exprs(v.Rows[i])
		p.w(")")
	})
}

func (p *printer) selectQuery(s *Select) {
	p.w("SELECT ")
	p.opt(s.Distinct, "DISTINCT ")
	p.list(len(s.Items), func(i int) {
		it := s.Items[i]
		p.expr(it.X, precLambda)
		if it.Alias != nil {
			p.w(" AS ")
			p.ident(*it.Alias)
		}
	})
	if s.From != nil {
		p.w(" FROM ")
		p.relation(s.From)
	}
	if s.Where != nil {
		p.w(" WHERE ")
		p.expr(s.Where, precLambda)
	}
	if len(s.GroupBy) > 0 {
		p.w(" GROUP BY ")
		p.exprs(s.GroupBy)
	}
	p.opt(s.GroupByAll, " GROUP BY ALL")
	if s.Having != nil {
		p.w(" HAVING ")
		p.expr(s.Having, precLambda)
	}
}

func (p *printer) relation(r Relation) {
	switch r := r.(type) {
	case *TableRef:
		p.name(r.Table)
		if r.Version != nil {
			p.w(" VERSION AS OF ")
			p.expr(r.Version, precPrimary)
		}
		if r.Timestamp != nil {
			p.w(" TIMESTAMP AS OF ")
			p.expr(r.Timestamp, precComparison)
		}
		p.alias(r.Alias)
	case *QueryRef:
		p.w("(")
		p.query(r.Query)
		p.w(")")
		p.alias(r.Alias)
	case *ValuesRef:
		p.values(r.Values)
		p.alias(r.Alias)
	case *FunctionRef:
		p.name(r.Func)
		p.w("(")
		p.exprs(r.Args)
		p.w(")")
		p.alias(r.Alias)
	case *Join:
		p.join(r)
	}
}

func (p *printer) join(j *Join) {
	p.relation(j.L)
	p.w(" ")
	p.opt(j.Natural, "NATURAL ")
	switch j.Kind {
	case "INNER":
	case "SEMI", "ANTI":
		p.w("LEFT ", j.Kind, " ")
	default:
		p.w(j.Kind, " ")
	}
	p.w("JOIN ")
	if _, ok := j.R.(*Join); ok {
		p.w("(")
		p.relation(j.R)
		p.w(")")
	} else {
		p.relation(j.R)
	}
	if j.On != nil {
		p.w(" ON ")
		p.expr(j.On, precLambda)
	}
	if len(j.Using) > 0 {
		p.w(" USING ")
		p.idents(j.Using)
	}
}

func (p *printer) alias(a *Alias) {
	if a == nil {
		return
	}
	p.w(" AS ")
	p.id(a.Name)
	if len(a.Columns) > 0 {
		p.idents(a.Columns)
	}
}
