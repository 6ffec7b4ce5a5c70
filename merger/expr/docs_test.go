package expr

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// example is a row of the tables of docs/expressions.md: names, an expression, and
// what it gives; that is left out where it changes.
var example = regexp.MustCompile("(?m)^\\| (`[a-z_0-9]+`(?:, `[a-z_0-9]+`)*) \\| `(.*)` \\| (?:`(.*)` )?\\|$")

func TestDocs_ExpressionsHasAnExampleOfEveryFunctionAndTheyHold(t *testing.T) {
	page, err := os.ReadFile("../../docs/expressions.md")
	require.NoError(t, err)
	shown := map[string]bool{}
	rows := example.FindAllStringSubmatch(string(page), -1)
	require.Equal(t, strings.Count(string(page), "\n| `"), len(rows), "every row of the tables is understood")
	for _, r := range rows {
		for name := range strings.SplitSeq(r[1], ", ") {
			shown[strings.Trim(name, "`")] = true
		}
		src, want := strings.ReplaceAll(r[2], `\|`, "|"), r[3]
		typ, d, err := evaluate(src)
		if class, ok := strings.CutPrefix(want, "error "); ok {
			got, _ := classOf(err)
			require.Equal(t, class, got, src)
			continue
		}
		require.NoError(t, err, src)
		got := "NULL"
		if !d.Null {
			got = Text(typ, d, time.UTC)
		}
		if want != "" {
			require.Equal(t, want, got, src)
		}
	}
	for _, name := range FunctionNames() {
		require.True(t, shown[name], "the page does not show %s", name)
	}
	for _, name := range AggregateNames() {
		require.Contains(t, string(page), "`"+name+"`", "the page does not name an aggregate")
	}
	for name := range shown {
		require.NotNil(t, functions()[name], "the page shows %s, which is not there", name)
	}
}
