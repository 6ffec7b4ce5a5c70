package assign

import (
	"testing"
	"time"

	"applier/merger/expr"
	"applier/merger/sqlparse"

	"github.com/stretchr/testify/require"
)

func TestFixed_FindsWhatNoRowChanges(t *testing.T) {
	env := &expr.Env{Now: time.Unix(0, 0)}
	for src, want := range map[string]string{
		"1 + 1": "2", "coalesce(-1, a) >= -3": "true", "nvl(nvl(2, a), b) * 2": "4", "a > 1 OR true": "true", "date_sub(DATE'2024-01-02', 1)": "2024-01-01",
		"CAST(ifnull(5, a) AS BIGINT)": "5", "-coalesce(3, a)": "-3",
		"a": "", "coalesce(NULL, a)": "", "coalesce(a, 1)": "", "a > 1 AND true": "", "rand()": "", "coalesce('x', a)": "", "coalesce(123456789, a)": "", "a OR NULL": "",
	} {
		e, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		x, ok := Fixed(e, env)
		require.Equal(t, want != "", ok, src)
		if ok {
			d, err := x.Eval(nil)
			require.NoError(t, err)
			require.Equal(t, want, expr.Text(x.Type(), d, nil), src)
		}
	}
}
