package keyindex

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// mapped reports whether the process still maps the address, by its own list.
func mapped(t *testing.T, addr uintptr) bool {
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.SplitSeq(string(maps), "\n") {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x", &from, &to); n == 2 && from <= addr && addr < to {
			return true
		}
	}
	return false
}

func addressOf[T any](s []T) uintptr { return uintptr(unsafe.Pointer(&s[0])) }

func TestArena_MemoryThatGrowsAgainReadsAsZero(t *testing.T) {
	mem, s := newShard(t, 2)
	defer mem.close()
	require.NoError(t, mem.resize(s, 200_000))
	for i := range s.t {
		s.t[i] = ^uint64(0)
	}
	require.NoError(t, mem.resize(s, 1000))
	for i := range s.t {
		require.NotZero(t, s.t[i])
	}
	used := s.slots()
	require.NoError(t, mem.resize(s, 300_000))
	for i := used * 2; i < len(s.t); i++ {
		require.Zero(t, s.t[i], "word %d", i)
	}
}

func TestArena_CountsEveryByteAndRefusesBeyondTheLimit(t *testing.T) {
	mem, s := newShard(t, 3)
	defer mem.close()
	require.EqualValues(t, len(s.bytes), mem.used)
	mem.limit = mem.used + 10*int64(pageSize)

	words, err := mem.scratch(4 * pageSize / 8)
	require.NoError(t, err)
	require.EqualValues(t, len(s.bytes)+4*pageSize, mem.used)
	_, err = mem.scratch(7 * pageSize / 8)
	require.ErrorIs(t, err, ErrMemory)
	before := len(s.bytes)
	require.ErrorIs(t, mem.resize(s, (before+7*pageSize)/24), ErrMemory)
	require.Len(t, s.bytes, before)
	require.NoError(t, mem.resize(s, (before+6*pageSize)/24))

	require.NoError(t, mem.release(words))
	require.EqualValues(t, len(s.bytes), mem.used)
	require.Equal(t, mem.limit, mem.peak)
}

func TestArena_RefusesAShardBeyondItsAddressSpace(t *testing.T) {
	mem, s := newShard(t, 2)
	defer mem.close()
	require.ErrorIs(t, mem.resize(s, mem.stride/16+1), ErrMemory)
	require.Equal(t, int64(len(s.bytes)), mem.used)
}

func TestIndex_CloseUnmapsEverythingAndRemovesItsFolder(t *testing.T) {
	s := keySpaces[6]
	dir := t.TempDir() + "/deep/keys"
	x := s.open(t, dir, Options{})
	seg := s.addFile(t, x, 1000, sequence(0, 5000)...)
	side := x.segs.get(seg).side
	table, keys := addressOf(x.mem.raw), addressOf(side.mem)
	shard := addressOf(x.shards[3].bytes)
	require.True(t, mapped(t, table) && mapped(t, keys) && mapped(t, shard))
	require.DirExists(t, dir)

	require.NoError(t, x.Close())
	require.False(t, mapped(t, table) || mapped(t, keys) || mapped(t, shard))
	require.NoDirExists(t, dir)
	require.NoError(t, x.Close(), "a second Close does nothing")
	require.Zero(t, x.Stats().Bytes)
}

func TestIndex_RemovedSegmentsFreeTheirSidecar(t *testing.T) {
	s := keySpaces[6]
	x := s.new(t, Options{})
	seg := s.addFile(t, x, 1000, sequence(0, 5000)...)
	small := s.addFile(t, x, 1000, 1, 2, 3)
	require.NotZero(t, x.Stats().SidecarBytes)
	require.NotZero(t, x.Stats().HeapBytes)
	keys := addressOf(x.segs.get(seg).side.mem)
	require.NoError(t, x.RemoveSegment(seg))
	require.False(t, mapped(t, keys))
	require.Zero(t, x.Stats().SidecarBytes)
	require.NoError(t, x.RemoveSegment(small))
	require.Zero(t, x.Stats().HeapBytes)
}

func TestIndex_CloseAfterEveryKindOfTroubleUnmaps(t *testing.T) {
	s := keySpaces[6]
	trouble := map[string]func(x *Index){
		"half a file":        func(x *Index) { seg, _ := x.AddSegment(9000); _ = x.Add(seg, 0, s.keys(sequence(0, 4000)...)) },
		"an abandoned build": func(x *Index) { _, _ = x.AddSegment(5); _, _ = x.NewBuilder(1_000_000) },
		"a lost index":       func(x *Index) { _ = x.fail(os.ErrInvalid) },
	}
	for name, f := range trouble {
		t.Run(name, func(t *testing.T) {
			x := s.open(t, t.TempDir()+"/keys", Options{})
			f(x)
			table := addressOf(x.mem.raw)
			require.NoError(t, x.Close())
			require.False(t, mapped(t, table))
			_, err := x.AddSegment(1)
			require.ErrorIs(t, err, ErrClosed)
		})
	}
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	_, err := New(Options{Class: 9})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = New(Options{Class: types.KeyBytes})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = New(Options{Class: types.Key64, MaxBytes: 10_000})
	require.ErrorIs(t, err, ErrMemory)
	file := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = New(Options{Class: types.KeyBytes, Dir: file + "/keys"})
	require.Error(t, err)
}
