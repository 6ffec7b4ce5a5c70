//go:build itest && itestfull

package itest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// TestFault_E8_ALogThatWasCutAndGrewAgainHalts: the position is inside of the log,
// but its offsets mean other records; only the leader epochs tell.
func TestFault_E8_ALogThatWasCutAndGrewAgainHalts(t *testing.T) {
	k := threeBrokers(t)
	j := journalOn(t, k, uncleanTopic)
	p := j.r.start()
	j.put(10, 0)
	j.r.waitApplied(p)
	uncleanly(t, j, k, func() {
		j.put(10, 0)
		j.r.waitApplied(p)
		harness.MustStop(t, p)
	})
	j.put(30, 0)
	require.EqualValues(t, 40, k.EndOffsets(t, "t")[0])
	p = j.r.start()
	s := j.r.waitHalt(p, "K-TRUNCATED")
	require.Contains(t, s.Halt.Message, "ends at offset 10, but records up to 20 of it are applied")
	j.r.must("offsets", "set", "p", "--to", "t/0=10")
	j.r.waitRecovered(p)
	harness.MustStop(t, p)
	j.holds()
}
