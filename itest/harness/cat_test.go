package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeCat stands in for the applier binary: it prints its arguments as a row of
// its own, or fails.
func fakeCat(t *testing.T) Cat {
	t.Helper()
	file := filepath.Join(t.TempDir(), "applier")
	script := "#!/bin/sh\n[ \"$2\" = db.bad ] && { echo 'no such table' >&2; exit 3; }\necho '{\"a\":1}'\necho '{\"a\":2}'\nprintf '{\"args\":\"%s\"}' \"$*\"\n"
	require.NoError(t, os.WriteFile(file, []byte(script), 0o755))
	return Cat{Binary: file}
}

func TestCat_ReadsRowsOfTheCommand(t *testing.T) {
	c, ref := fakeCat(t), Ref{Warehouse: "/w", Table: "db.t"}
	want := []string{`{"a":1}`, `{"a":2}`, `{"args":"cat db.t --warehouse /w --format jsonl --snapshot 7"}`}
	SameRows(t.Context(), t, want, ref, Query{Snapshot: 7}, c)
	r, err := c.Read(t.Context(), ref, Query{Snapshot: 7})
	require.NoError(t, err)
	require.Equal(t, want, r.Texts())
	n, err := c.Count(t.Context(), ref, Query{})
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	r, err = c.Read(t.Context(), ref, Query{Limit: 1})
	require.NoError(t, err)
	require.Len(t, r.Rows, 1)
}

func TestCat_FailsWithWhatTheCommandSaid(t *testing.T) {
	_, err := fakeCat(t).Digest(t.Context(), Ref{Table: "db.bad"}, Query{})
	require.ErrorContains(t, err, "no such table")
	_, err = fakeCat(t).Read(t.Context(), Ref{Table: "db.t"}, Query{Where: []Cond{{}}})
	require.ErrorContains(t, err, "not supported")
}
