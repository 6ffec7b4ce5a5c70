package compact

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/paimon/manifest"
)

func TestDebt_Since(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	file := func(name string, at int64) File {
		f := File{Entry: manifest.Entry{}}
		f.Entry.File.Name = name
		if at > 0 {
			f.Entry.File.CreationTime = &at
		}
		return f
	}
	group := func(at ...int64) (g []File) {
		for _, a := range at {
			g = append(g, file("", a))
		}
		return g
	}
	purge := [][]File{{file("a", 10)}}
	for _, c := range []struct {
		name   string
		groups [][]File
		want   int64 // 0: nothing waits
	}{
		{"nothing to do", nil, 0},
		{"the third file made them enough", [][]File{group(500, 100, 300, 200)}, 300},
		{"too few, joined for their deleted rows", [][]File{group(500, 100)}, 500},
		{"the group that waits longest counts", [][]File{group(900, 901, 902), group(700, 701, 702)}, 702},
		{"a file without a time is new", [][]File{group(0, 1, 2)}, 1_000_000},
		{"a file with deleted rows, however old, waits since it was seen", purge, 1_000_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d Debt
			got := d.Since(c.groups, 3, now)
			if c.want == 0 {
				require.True(t, got.IsZero())
				return
			}
			require.EqualValues(t, c.want, got.UnixMilli())
		})
	}
}

func TestDebt_AFileToPurgeWaitsUntilItIsGone(t *testing.T) {
	var d Debt
	at := func(n int64) time.Time { return time.UnixMilli(n) }
	one := func(name string) []File {
		f := File{}
		f.Entry.File.Name = name
		return []File{f}
	}
	require.Equal(t, at(10), d.Since([][]File{one("a")}, 5, at(10)))
	require.Equal(t, at(10), d.Since([][]File{one("a"), one("b")}, 5, at(20)))
	require.Equal(t, at(20), d.Since([][]File{one("b")}, 5, at(30)), "a was written again")
	require.True(t, d.Since(nil, 5, at(40)).IsZero())
	require.Equal(t, at(50), d.Since([][]File{one("b")}, 5, at(50)))
}
