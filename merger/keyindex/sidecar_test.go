package keyindex

import (
	"os"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"applier/storage/types"
)

var longKeys = keySpace{"bytes", types.KeyBytes, spread}

// growing returns an index with a file of 2n rows of which n have arrived.
func growing(t *testing.T, n int) (*Index, *sidecar, uint32) {
	x := longKeys.new(t, Options{})
	longKeys.addFile(t, x, 4000, sequence(50_000, 4000)...)
	seg, err := x.AddSegment(uint32(2 * n))
	require.NoError(t, err)
	require.NoError(t, x.Add(seg, 0, longKeys.keys(sequence(0, n)...)))
	return x, x.segs.get(seg).side, seg
}

func requireLost(t *testing.T, x *Index, err error) {
	t.Helper()
	require.ErrorIs(t, err, ErrLost)
	var m Matches
	require.ErrorIs(t, x.Lookup(longKeys.keys(50_000), nil, &m), ErrLost, "no answer after that")
	require.Empty(t, m.Loc)
}

func TestSidecar_AFullDiskLosesTheIndexWithTheReason(t *testing.T) {
	for name, rows := range map[string]int{"while rows arrive": 1000, "when the file is sealed": 2000} {
		t.Run(name, func(t *testing.T) {
			x, side, seg := growing(t, 2000)
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			require.NoError(t, err)
			require.NoError(t, side.f.Close())
			side.f = full
			err = x.Add(seg, 2000, longKeys.keys(sequence(2000, rows)...))
			require.ErrorIs(t, err, unix.ENOSPC)
			requireLost(t, x, err)
		})
	}
}

func TestSidecar_AFolderThatIsGoneIsMadeAgain(t *testing.T) {
	x := longKeys.new(t, Options{})
	require.NoError(t, os.Remove(x.side.path))
	seg := longKeys.addFile(t, x, 2000, sequence(0, 2000)...)
	require.Equal(t, locs(seg, 77), longKeys.lookup(t, x, 77)[0])
}

func TestSidecar_AFileThatCannotBeCreatedLosesTheIndex(t *testing.T) {
	x := longKeys.new(t, Options{})
	require.NoError(t, os.Remove(x.side.path))
	require.NoError(t, os.WriteFile(x.side.path, nil, 0o600))
	seg, err := x.AddSegment(2000)
	require.NoError(t, err)
	err = x.Add(seg, 0, longKeys.keys(sequence(0, 2000)...))
	require.ErrorIs(t, err, unix.ENOTDIR)
	requireLost(t, x, err)
}

func TestSidecar_ATruncatedFileIsAnErrorNotACrash(t *testing.T) {
	for name, f := range map[string]func(x *Index) error{
		"lookup": func(x *Index) error {
			var m Matches
			return x.Lookup(longKeys.keys(sequence(0, 4000)...), nil, &m)
		},
		"check": func(x *Index) error { return x.fail(x.Check()) },
	} {
		t.Run(name, func(t *testing.T) {
			x, side, seg := growing(t, 2000)
			fd, err := unix.Dup(int(side.f.Fd()))
			require.NoError(t, err)
			defer unix.Close(fd)
			require.NoError(t, x.Add(seg, 2000, longKeys.keys(sequence(2000, 2000)...)))
			require.NoError(t, x.Check())
			require.NoError(t, unix.Ftruncate(fd, int64(pageSize)))
			before := debug.SetPanicOnFault(false)
			err = f(x)
			require.False(t, debug.SetPanicOnFault(before), "the setting is restored")
			require.ErrorContains(t, err, "memory fault")
			requireLost(t, x, err)
		})
	}
}

func TestSidecar_AFileShortBeforeItIsSealedIsAnError(t *testing.T) {
	x, side, seg := growing(t, 2000)
	require.NoError(t, side.f.Truncate(100))
	// Further writes go to the old offset and leave a hole: right size, wrong bytes.
	require.NoError(t, x.Add(seg, 2000, longKeys.keys(sequence(2000, 2000)...)))
	require.ErrorContains(t, x.Check(), "does not have the bytes written to it")
	var m Matches
	requireLost(t, x, x.Lookup(longKeys.keys(1500), nil, &m))

	x, side, seg = growing(t, 2000)
	side.size++ // what seal finds differs from what it wrote
	require.Error(t, x.Add(seg, 2000, longKeys.keys(sequence(2000, 2000)...)))
}

func TestSidecar_BytesThatChangedAreAnErrorNotAMiss(t *testing.T) {
	damage := map[string]func(s *sidecar){
		"a bit of a key":        func(s *sidecar) { s.data[s.off[77]+3] ^= 1 },
		"an offset too high":    func(s *sidecar) { s.off[78] = 1 << 31 },
		"an offset backwards":   func(s *sidecar) { s.off[78] = 0 },
		"an offset in between":  func(s *sidecar) { s.off[77]++ },
		"both offsets too high": func(s *sidecar) { s.off[77], s.off[78] = 1<<31, 1<<31+8 },
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			x, side, seg := growing(t, 2000)
			require.NoError(t, x.Add(seg, 2000, longKeys.keys(sequence(2000, 2000)...)))
			require.Len(t, longKeys.lookup(t, x, 77)[0], 1)
			require.NoError(t, unix.Mprotect(side.mem, unix.PROT_READ|unix.PROT_WRITE))
			f(side)
			require.Error(t, x.Check())
			var m Matches
			requireLost(t, x, x.Lookup(longKeys.keys(77), nil, &m))
		})
	}
}

func TestSidecar_TooManyBytesForOneFile(t *testing.T) {
	x, side, seg := growing(t, 2000)
	side.size = 1<<32 - 100
	err := x.Add(seg, 2000, longKeys.keys(sequence(2000, 2000)...))
	side.size = 0
	requireLost(t, x, err)
}

func TestSidecar_FilesAreInvisibleAndPrivate(t *testing.T) {
	x, _, _ := growing(t, 2000)
	names, err := os.ReadDir(x.side.path)
	require.NoError(t, err)
	require.Empty(t, names, "nothing to be left behind by a killed process")
	info, err := os.Stat(x.side.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestSidecar_CloseLeavesWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir() + "/keys"
	x, other := longKeys.open(t, dir, Options{}), longKeys.open(t, dir, Options{})
	longKeys.addFile(t, x, 5000, sequence(0, 5000)...)
	longKeys.addFile(t, other, 5000, sequence(0, 5000)...)
	require.NoError(t, os.WriteFile(dir+"/precious", nil, 0o600))
	require.NoError(t, x.Close())
	require.FileExists(t, dir+"/precious")
	require.NoError(t, os.RemoveAll(dir))
	require.Len(t, longKeys.lookup(t, other, 77)[0], 1)
	require.NoError(t, other.Close())

	old := t.TempDir() // a folder that was there before stays, empty or not
	x = longKeys.open(t, old, Options{})
	require.NoError(t, x.Close())
	require.DirExists(t, old)
}

func TestSidecar_IndexesThatShareAFolderCloseInAnyOrder(t *testing.T) {
	dir := t.TempDir() + "/keys"
	x, other := longKeys.open(t, dir, Options{}), longKeys.open(t, dir, Options{})
	require.NoError(t, x.Close())
	require.NoDirExists(t, dir)
	seg := longKeys.addFile(t, other, 5000, sequence(0, 5000)...)
	require.Equal(t, locs(seg, 77), longKeys.lookup(t, other, 77)[0])
	require.NoError(t, other.Close())
	require.NoDirExists(t, dir)
}

func TestSidecar_TinyFilesStayInMemory(t *testing.T) {
	x := longKeys.new(t, Options{})
	seg := longKeys.addFile(t, x, 100, 1, 2, -1, 3)
	require.Nil(t, x.segs.get(seg).side.mem)
	require.Zero(t, x.Stats().SidecarBytes)
	require.Equal(t, [][]Loc{locs(seg, 1), locs(seg, 3), {}}, longKeys.lookup(t, x, 2, 3, 4))
	require.NoError(t, x.Check())
	in2 := longKeys.addFile(t, x, 2, 4, 5, 6)
	require.NotNil(t, x.segs.get(in2).side.mem, "in pieces: a file")
	require.Equal(t, locs(in2, 1), longKeys.lookup(t, x, 5)[0])
}

func TestSidecar_TakesAViewOfKeysThatBeginsInTheMiddle(t *testing.T) {
	for _, n := range []int{10, 5000} { // in memory, in a file
		x := longKeys.new(t, Options{})
		all := longKeys.keys(sequence(0, 2*n+1)...)
		seg, err := x.AddSegment(uint32(n))
		require.NoError(t, err)
		half := n / 2
		if n == 10 {
			half = n
		}
		for _, r := range [][2]int{{n + 1, n + 1 + half}, {n + 1 + half, 2*n + 1}} {
			from, to := r[0], r[1]
			require.NoError(t, x.Add(seg, uint32(from-n-1), &types.Keys{
				Class: types.KeyBytes, Hash: all.Hash[from:to], Off: all.Off[from : to+1], Data: all.Data,
			}))
		}
		side := x.segs.get(seg).side
		require.Zero(t, addressOf(side.off)%4, "offsets are aligned whatever the keys' length")
		require.NoError(t, x.Check())
		require.Equal(t, [][]Loc{{}, locs(seg, 0), locs(seg, uint32(n-1))}, longKeys.lookup(t, x, n, n+1, 2*n))
	}
}

func TestGuard_PassesErrorsAndOtherPanicsOn(t *testing.T) {
	require.ErrorIs(t, guard(func() error { return os.ErrExist }), os.ErrExist)
	require.PanicsWithValue(t, "mine", func() { _ = guard(func() error { panic("mine") }) })
	require.Panics(t, func() {
		var none []int
		_ = guard(func() error { _ = none[len(os.Args)]; return nil })
	})
}

func TestHashBytes_IsTheEncoders(t *testing.T) {
	enc, err := types.NewKeyEncoder([]types.Type{types.StringType()})
	require.NoError(t, err)
	v := types.NewVector(types.StringType())
	v.AppendString("")
	v.AppendString("Zürich")
	var k types.Keys
	enc.Append(&k, []*types.Vector{v}, 0, 2)
	for i := range 2 {
		require.Equal(t, k.Hash[i], hashBytes(k.Bytes(i)))
	}
}

func FuzzSidecar_ReadsAnyBytesWithoutPanic(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x03\x00\x00\x00\x05\x00\x00\x00"), []byte("abcde"), uint32(1))
	f.Add([]byte("\xff\xff\xff\xff\x00\x00\x00\x00"), []byte("x"), uint32(0))
	f.Add([]byte{}, []byte{}, uint32(1<<32-1))
	f.Fuzz(func(t *testing.T, offsets, data []byte, pos uint32) {
		s := &sidecar{data: data, off: make([]uint32, len(offsets)/4)}
		for i := range s.off {
			s.off[i] = *(*uint32)(unsafe.Pointer(&offsets[4*i]))
		}
		key, err := s.key(pos)
		if err != nil {
			require.Nil(t, key)
			return
		}
		same, err := s.equal(pos, key, 0, hashBytes)
		require.NoError(t, err)
		require.True(t, same)
		if hash := hashBytes(key); hash != 5 {
			_, err = s.equal(pos, append([]byte("no"), key...), 5, hashBytes)
			require.Error(t, err)
			same, err = s.equal(pos, append([]byte("no"), key...), hash, hashBytes)
			require.NoError(t, err)
			require.False(t, same)
		}
	})
}
