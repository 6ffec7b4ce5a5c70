package expr

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/merger/sqlparse"
)

// TestCompile_RefusesColumnsWhereConstantsMustStand once read a row that is not there.
func TestCompile_RefusesColumnsWhereConstantsMustStand(t *testing.T) {
	for src, class := range map[string]string{
		"round(1.5, t.id)": classNonFoldable, "ceil(1.5, t.id + 1)": classNonFoldable, "to_number('1', Name)": classNonFoldable,
		"to_char(1, Name)": classNonFoldable, "from_json('{}', Name)": classNonFoldable, "rand(t.id)": classNonFoldable,
		"date_part(Name, DATE'2024-01-01')": classNonFoldable, "window(TIMESTAMP'2024-01-01', Name)": classNonFoldable,
		"uniform(1, 2, t.id)": classNonFoldable, "round(1.5, size(transform(array(1), x -> t.id)))": classNonFoldable,
		"named_struct(Name, 1)": "DATATYPE_MISMATCH.CREATE_NAMED_STRUCT_WITHOUT_FOLDABLE_STRING", "like('a', 'a', Name)": classNonFoldable,
		"collate('a', Name)": classNonFoldable, "round(1.5, 1 / 0)": classDivZero,
	} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err, src)
		_, err = Compile(ast, mergeScope())
		var e *Error
		require.ErrorAs(t, err, &e, src)
		require.Equal(t, class, e.Class, src)
		require.True(t, e.Analysis, src)
	}
}
