package expr

import (
	"testing"

	"applier/merger/sqlparse"
)

// BenchmarkEval measures conditions and values of the kind that statements have.
func BenchmarkEval(b *testing.B) {
	for name, src := range map[string]string{
		"integers": "t.id + s.id * 2 > 5 AND s.id <> 7", "text": "Name = 'ann' OR Name LIKE 'b%'", "case": "CASE WHEN t.id = 1 THEN s.id ELSE t.id END",
		"decimal": "CAST(t.id AS DECIMAL(10,2)) * 1.5", "concat": "concat(upper(Name), '-', t.id)",
	} {
		b.Run(name, func(b *testing.B) {
			ast, err := sqlparse.ParseExpr(src)
			if err != nil {
				b.Fatal(err)
			}
			x, err := Compile(ast, mergeScope())
			if err != nil {
				b.Fatal(err)
			}
			row := mergeRow()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Eval(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
