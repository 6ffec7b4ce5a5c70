package types

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBitmap_RapidAgainstASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Bitmap
		model := map[int]bool{}
		row := rapid.IntRange(0, 300)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i := row.Draw(t, "i")
				b.Set(i)
				model[i] = true
			},
			"clear": func(t *rapid.T) {
				i := row.Draw(t, "i")
				b.Clear(i)
				delete(model, i)
			},
			"truncate": func(t *rapid.T) {
				n := row.Draw(t, "n")
				b.Truncate(n)
				for i := range model {
					if i >= n {
						delete(model, i)
					}
				}
			},
			"reset": func(t *rapid.T) {
				b.Reset()
				clear(model)
			},
			"": func(t *rapid.T) {
				for i := range 320 {
					require.Equal(t, model[i], b.Get(i), "row %d", i)
				}
				require.Equal(t, len(model), b.Count())
				require.Equal(t, len(model) > 0, b.Any())
				from := row.Draw(t, "from")
				to := rapid.IntRange(from, 400).Draw(t, "to")
				n := 0
				for i := from; i < to; i++ {
					if model[i] {
						n++
					}
				}
				require.Equal(t, n, b.CountRange(from, to), "[%d, %d)", from, to)
			},
		})
	})
}

func TestBitmap_EmptyAndBeyondTheEnd(t *testing.T) {
	var b Bitmap
	require.False(t, b.Get(0))
	require.False(t, b.Get(1<<40))
	require.False(t, b.Get(-1))
	b.Clear(1000)
	b.Truncate(1000)
	require.Empty(t, b)
	require.Zero(t, b.CountRange(0, 1<<30))
	require.Zero(t, b.CountRange(5, 5))
	require.Zero(t, b.CountRange(5, 4))
}

// A truncated bitmap that grows again has no bits of its former life.
func TestBitmap_KeepsNoOldBits(t *testing.T) {
	var b Bitmap
	for i := range 200 {
		b.Set(i)
	}
	b.Truncate(70)
	b.Set(199)
	require.Equal(t, 71, b.Count())
	b.Reset()
	b.Set(190)
	require.Equal(t, 1, b.Count())
}
