package merger

import (
	"github.com/stretchr/testify/require"
)

// mergeOf reads clauses.
func mergeOf(t require.TestingT, skip bool, lines ...string) *Merge {
	clauses, err := ParseMerge(lines)
	require.NoError(t, err)
	return &Merge{Clauses: clauses, SkipUnchanged: skip}
}
