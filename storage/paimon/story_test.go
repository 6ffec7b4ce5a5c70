package paimon

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// What is refused, with the words that a user sees: testdata/refuse.
//
//	table     describes a table, one thing a line: "column NAME TYPE [= DEFAULT]",
//	          "partition NAME", "primary NAME", "version N", "KEY: VALUE" for an
//	          option; the answer lists what stands against reading and creating it
func TestRefuse_Stories(t *testing.T) {
	datadriven.Walk(t, "testdata/refuse", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			require.Equal(t, "table", d.Cmd)
			s := storyTable(t, d.Input)
			return "read: " + storyReasons(t, Refuse(s, Read)) + "write: " + storyReasons(t, Refuse(s, Create))
		})
	})
}

func storyTable(t *testing.T, text string) *Schema {
	s := &Schema{Version: SchemaVersion, Options: map[string]string{OptDeletionVectors: "true"}}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "column":
			name, typ, _ := strings.Cut(rest, " ")
			typ, dflt, hasDefault := strings.Cut(typ, " = ")
			parsed, err := types.ParseType(typ)
			require.NoError(t, err)
			f := field(len(s.Fields), name, parsed)
			if hasDefault {
				f.Default = &dflt
			}
			s.Fields = append(s.Fields, f)
		case "partition":
			s.PartitionKeys = append(s.PartitionKeys, rest)
		case "primary":
			s.PrimaryKeys = append(s.PrimaryKeys, rest)
		case "version":
			_, err := fmt.Sscan(rest, &s.Version)
			require.NoError(t, err)
		default:
			key, value, ok := strings.Cut(line, ": ")
			require.True(t, ok, line)
			s.Options[key] = value
		}
	}
	require.NoError(t, s.index())
	return s
}

func storyReasons(t *testing.T, err error) string {
	if err == nil {
		return "yes\n"
	}
	var r *Refusal
	require.True(t, errors.As(err, &r))
	require.ErrorIs(t, err, ErrRefused)
	b := strings.Builder{}
	b.WriteString("no\n")
	seen := map[Reason]bool{}
	for _, x := range r.Reasons {
		require.False(t, seen[x], "said twice")
		seen[x] = true
		fmt.Fprintf(&b, "  %s: %s\n", x.Code, x.Text)
	}
	return b.String()
}
