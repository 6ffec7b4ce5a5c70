package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDigest_DependsOnTheMultisetAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SampledFrom([]string{`{"a":1}`, `{"a":2}`, `{"a":null}`, `{}`}), 1, 20).Draw(t, "rows")
		shuffled := rapid.Permutation(rows).Draw(t, "shuffled")
		require.Equal(t, DigestOf(rows), DigestOf(shuffled))
		require.Empty(t, DiffRows("a", rows, "b", shuffled))
		more := append(shuffled, rows[0])
		require.NotEqual(t, DigestOf(rows), DigestOf(more))
		require.NotEmpty(t, DiffRows("a", rows, "b", more))
		other := append(append([]string{}, rows[1:]...), `{"b":9}`)
		require.NotEqual(t, DigestOf(rows), DigestOf(other))
		require.Contains(t, DiffRows("a", rows, "b", other), `{"b":9}`)
		var s Summer
		for _, r := range more {
			s.Add([]byte(r))
		}
		s.Remove([]byte(rows[0]))
		require.Equal(t, DigestOf(rows), s.Digest())
	})
}

func TestDigest_IsTheSumOfXXH64(t *testing.T) {
	require.Equal(t, Digest{Rows: 0, Hash: "0000000000000000"}, DigestOf(nil))
	require.Equal(t, Digest{Rows: 1, Hash: "ef46db3751d8e999"}, DigestOf([]string{""}), "the published XXH64 of nothing")
	require.Equal(t, "2 rows a49d89e35318dcb6", DigestOf([]string{"a", "a"}).String())
}
