package keyindex

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestArena_SettlesForLessAddressSpace(t *testing.T) {
	status, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var pages uint64
	_, err = fmt.Sscan(string(status), &pages)
	require.NoError(t, err)
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_AS, &old))
	limit := func(more uint64) {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: pages*uint64(pageSize) + more, Max: old.Max}))
	}
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &old)) }()

	limit(16 << 30)
	mem, err := newArena(32, 0)
	require.NoError(t, err)
	require.Less(t, mem.stride, 1<<30)
	require.GreaterOrEqual(t, int64(mem.stride), minReserve)
	require.NoError(t, mem.close())

	limit(1 << 30)
	_, err = newArena(32, 0)
	require.ErrorIs(t, err, ErrMemory)
	require.ErrorIs(t, err, unix.ENOMEM)
}
