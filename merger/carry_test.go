package merger

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/batcher"
)

// An empty commit that carries the record over foreign snapshots is built on a
// table that the index has not seen: it must still learn what those brought.
func TestCarry_TheIndexStillFollowsWhatOthersCommitted(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "a")
	r.commit()
	for k := range int64(12) {
		r.foreign(kvRow(50+k, "theirs"))
	}
	r.post(Tick{})
	require.Contains(t, r.seen.notices, NoticeCarried)
	r.put(0, 51, "ours")
	c := r.commit()
	require.Equal(t, Counts{Updated: 1}, c.Counts)
	r.checkIndex()
}
