//go:build !failpoints

package failpoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/failpoint"
)

func TestHit_DoesNothingInAnOrdinaryBuild(t *testing.T) {
	require.False(t, failpoint.Enabled)
	t.Setenv("APPLIER_FAILPOINTS", "commit/publish=kill,this is not even well formed")
	require.NoError(t, failpoint.Hit("commit/publish"))
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = failpoint.Hit("commit/publish") }))
}

func BenchmarkHit_Off(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = failpoint.Hit("commit/publish")
	}
}
