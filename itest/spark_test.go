//go:build itest

package itest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

func TestSpark_AnswersSQLInRowTexts(t *testing.T) {
	rows, err := harness.Spark(t).SQL(t.Context(), `SELECT * FROM VALUES (1L, 1.50BD, DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05.6', array('a', NULL), map('k', 1), named_struct('x', X'00ff')) AS v(a, b, c, d, e, f, g)`)
	require.NoError(t, err)
	require.Equal(t, []string{`{"a":1,"b":"1.50","c":"2026-01-02","d":"2026-01-02T03:04:05.600000Z","e":["a",null],"f":{"k":1},"g":{"x":"00ff"}}`}, rows.Texts())
	_, err = harness.Spark(t).SQL(t.Context(), `SELECT assert_true(false)`)
	require.Error(t, err)
}
