//go:build itest

package itest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// TestMemoryGroup_KillsWhatUsesTooMuch proves that a limit holds, so that a run
// without a kill means something.
func TestMemoryGroup_KillsWhatUsesTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		allocate string
		kills    int64
	}{"within": {"8", 0}, "beyond": {"256", 1}} {
		t.Run(name, func(t *testing.T) {
			g := harness.NewMemoryGroup(t, 64<<20)
			p := harness.StartBinary(t, harness.Build(t, "./itest/harness/testdata/allocate"), harness.Run{Args: []string{c.allocate}, Memory: g})
			code, err := p.Wait(t.Context())
			require.NoError(t, err)
			kills, err := g.OOMKills()
			require.NoError(t, err)
			require.Equal(t, c.kills, kills)
			require.Equal(t, c.kills == 0, code == 0)
			peak, err := g.Peak()
			require.NoError(t, err)
			require.Greater(t, peak, int64(8<<20))
			require.LessOrEqual(t, peak, int64(64<<20))
		})
	}
}
