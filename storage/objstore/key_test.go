package objstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCheckKey_SaysWhatIsWrong(t *testing.T) {
	for key, want := range map[string]string{
		"": "is empty", "/a": "empty part", "a//b": "empty part", "a/../b": "relative part", ".": "relative part",
		"a\x00": "NUL", "a\xff": "UTF-8", strings.Repeat("x", 256): "255 bytes",
	} {
		err := CheckKey(key)
		require.ErrorIs(t, err, ErrBadKey)
		require.ErrorContains(t, err, want)
	}
	require.Less(t, len(CheckKey("/"+strings.Repeat("x", 1<<20)).Error()), 2000, "a hostile key does not fill the log")
}

func TestTempKey_HiddenInTheSameFolderAndShortEnough(t *testing.T) {
	require.Equal(t, "snapshot/.snapshot-1.ID.tmp", tempKey("snapshot/snapshot-1", "ID"))
	require.Equal(t, ".a.ID.tmp", tempKey("a", "ID"))
	rapid.Check(t, func(t *rapid.T) {
		key := drawKey(t)
		id := uuid.NewString()
		temp := tempKey(key, id)
		require.NoError(t, CheckKey(temp))
		require.True(t, IsTemp(temp))
		require.Equal(t, folderOf(key), folderOf(temp))
		require.True(t, strings.HasPrefix(nameOf(temp), "."))
		require.Contains(t, temp, id)
		name := strings.TrimSuffix(strings.TrimPrefix(nameOf(temp), "."), "."+id+".tmp")
		require.True(t, strings.HasPrefix(nameOf(key), name))
	})
}

// drawKey draws a good key, with long and multi-byte parts.
func drawKey(t *rapid.T) string {
	part := rapid.Custom(func(t *rapid.T) string {
		s := strings.Repeat(rapid.SampledFrom([]string{"a", "é", "日", "😀", ".", "=", "%2F", " "}).Draw(t, "text"),
			rapid.IntRange(1, 255).Draw(t, "times"))
		for s = s[:min(len(s), 255)]; !utf8.ValidString(s); {
			s = s[:len(s)-1]
		}
		if s == "." || s == ".." {
			return "x"
		}
		return s
	})
	key := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "/")
	require.NoError(t, CheckKey(key))
	return key
}

func TestIsTemp(t *testing.T) {
	for _, key := range []string{".a.tmp", "x/.snapshot-1.0f.tmp", "..tmp"} {
		require.True(t, IsTemp(key), key)
	}
	for _, key := range []string{"a.tmp", ".hidden", "x/a", ".a.tmp/b", ".applier-probe-1"} {
		require.False(t, IsTemp(key), key)
	}
}

// What CheckKey lets through stays below the root, whatever it is.
func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"a", "a/b", "../a", "a/../../b", "/etc/passwd", "a//b", "dt=2026-01-01/bucket-0/x", "a\x00/..", "..\\a"} {
		f.Add(key)
	}
	root := filepath.Join(string(os.PathSeparator), "warehouse", "table")
	f.Fuzz(func(t *testing.T, key string) {
		if CheckKey(key) != nil {
			return
		}
		o := osFS{root: root}
		path := o.path(key)
		require.Equal(t, path, filepath.Clean(path))
		rel, err := filepath.Rel(root, path)
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(rel))
		require.NotEqual(t, root, path)
		require.NoError(t, CheckKey(tempKey(key, "00000000-0000-0000-0000-000000000000")))
	})
}
