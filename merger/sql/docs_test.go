package sql

import (
	"os"
	"strings"
	"testing"

	"applier/merger/sqlparse"

	"github.com/stretchr/testify/require"
)

// Every example of docs/sql.md runs, and prints what stands behind it.
func TestDocs_ExamplesRun(t *testing.T) {
	b, err := os.ReadFile("../../docs/sql.md")
	require.NoError(t, err)
	s, _ := newSession(t)
	ran := 0
	for _, block := range strings.Split(string(b), "```sql\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		pieces := sqlparse.Split(text)
		for i, p := range pieces {
			end := len(text)
			if i+1 < len(pieces) {
				end = pieces[i+1].Start.Offset
			}
			stmt, err := p.Parse()
			require.NoError(t, err, p.Text())
			res, err := s.Execute(t.Context(), stmt)
			if err != nil {
				t.Fatalf("%s\n%s", p.Text(), Render(text, err))
			}
			ran++
			if _, ok := stmt.(*sqlparse.QueryStmt); ok {
				require.Equal(t, printed(text[p.End:end]), plain(s, res), p.Text())
			}
		}
	}
	require.GreaterOrEqual(t, ran, 50)
}

// The differences that the tests know stand in docs/sql.md.
func TestDocs_ListEveryDifference(t *testing.T) {
	b, err := os.ReadFile("../../docs/sql.md")
	require.NoError(t, err)
	for _, d := range []difference{engineBug, defaultTaken, defaultFilled, carriedDefault, defaultValue, prunedTarget, fannedOut, rowIDOrder, keptRowID, earlyCast, evolves} {
		require.Contains(t, string(b), "| "+string(d)+" |")
	}
}
