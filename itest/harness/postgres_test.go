package harness

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The escapes are those of COPY's text format (PostgreSQL's page on COPY).
func TestReadCopy_TellsNullFromTexts(t *testing.T) {
	var rows []string
	err := readCopy(strings.NewReader("1\t\\N\t\ta\\\\N\n\\t\\n\\r\\b\\f\\v\\\\n\n"), func(row []*string) {
		var cells []string
		for _, c := range row {
			if c == nil {
				cells = append(cells, "NULL")
				continue
			}
			cells = append(cells, "<"+*c+">")
		}
		rows = append(rows, strings.Join(cells, " "))
	})
	require.NoError(t, err)
	require.Equal(t, []string{`<1> NULL <> <a\N>`, "<\t\n\r\b\f\v\\n>"}, rows)
	require.ErrorContains(t, readCopy(strings.NewReader("cut off"), func([]*string) {}), "reading rows")
}
