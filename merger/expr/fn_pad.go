package expr

import (
	"bytes"
	"math"
	"unicode/utf8"

	"applier/storage/types"
)

func padFunctions() []function {
	return []function{
		{"substring substr", 2, 3, (*compiler).substringCall},
		{"left", 2, 2, func(c *compiler, k *call) *node {
			k.args = []*node{k.args[0], newConst(k.pos, tInt, types.IntDatum(1)), k.args[1]}
			return c.substringCall(k)
		}},
		{"right", 2, 2, (*compiler).right},
		{"lpad", 2, 3, func(c *compiler, k *call) *node { return c.pad(k, true) }},
		{"rpad", 2, 3, func(c *compiler, k *call) *node { return c.pad(k, false) }},
		{"overlay", 3, 4, (*compiler).overlay},
		scalar("repeat", 2, tString, []Type{tString, tInt}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			n := max(a[1].I, 0)
			if n > maxText || n*int64(len(a[0].B)) > maxText {
				return types.Null, tooLong("repeat")
			}
			return types.BytesDatum(bytes.Repeat(a[0].B, int(n))), nil
		}),
		scalar("space", 1, tString, []Type{tInt}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			n := max(a[0].I, 0)
			if n > maxText {
				return types.Null, tooLong("space")
			}
			return types.BytesDatum(bytes.Repeat([]byte(" "), int(n))), nil
		}),
	}
}

func (c *compiler) substringCall(k *call) *node {
	k.args[0] = c.textOrBytes(k.args[0], k.name, 0)
	for i := 1; i < len(k.args); i++ {
		k.args[i] = c.want(k.args[i], tInt, k.name, i)
	}
	t := k.args[0].typ
	binary := t.Kind == Binary
	return strict(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		n := int64(math.MaxInt32)
		if len(a) == 3 {
			n = a[2].I
		}
		return types.BytesDatum(substring(a[0].B, binary, a[1].I, n)), nil
	})
}

func (c *compiler) right(k *call) *node {
	return strict(tString, k.pos, c.wantAll(k, tString, tInt), func(_ *Env, a []types.Datum) (types.Datum, error) {
		if a[1].I <= 0 {
			return textDatum(""), nil
		}
		n := int64(utf8.RuneCount(a[0].B))
		return types.BytesDatum(a[0].B[runeOffset(a[0].B, max(0, n-a[1].I)):]), nil
	})
}

// pad is lpad and rpad: to a length in characters, or in bytes for BINARY.
func (c *compiler) pad(k *call, left bool) *node {
	k.args[0] = c.textOrBytes(k.args[0], k.name, 0)
	t := k.args[0].typ
	binary := t.Kind == Binary
	if len(k.args) == 2 {
		fill := textDatum(" ")
		if binary {
			fill = types.BytesDatum([]byte{0})
		}
		k.args = append(k.args, newConst(k.pos, t, fill))
	}
	if binary && k.args[2].typ.Kind != Binary {
		k.args[0], t, binary = c.castTo(k.args[0], tString), tString, false
	}
	a := c.wantAll(k, t, tInt, t)
	return strict(t, k.pos, a, func(_ *Env, v []types.Datum) (types.Datum, error) {
		b, fill, want := v[0].B, v[2].B, max(v[1].I, 0)
		if want > maxText {
			return types.Null, tooLong(k.name)
		}
		have := int64(len(b))
		cut := func(b []byte, n int64) []byte { return b[:min(n, int64(len(b)))] }
		if !binary {
			have = int64(utf8.RuneCount(b))
			cut = func(b []byte, n int64) []byte { return b[:runeOffset(b, n)] }
		}
		if have >= want || len(fill) == 0 {
			return types.BytesDatum(cut(b, want)), nil
		}
		padding := cut(bytes.Repeat(fill, int(want-have)/max(1, unitLen(fill, binary))+1), want-have)
		if left {
			return types.BytesDatum(append(padding, b...)), nil
		}
		return types.BytesDatum(append(append(make([]byte, 0, len(b)+len(padding)), b...), padding...)), nil
	})
}

func unitLen(b []byte, binary bool) int {
	if binary {
		return len(b)
	}
	return utf8.RuneCount(b)
}

// overlay replaces a part of a text; without a length as much as it puts in.
func (c *compiler) overlay(k *call) *node {
	k.args[0] = c.textOrBytes(k.args[0], k.name, 0)
	t := k.args[0].typ
	binary := t.Kind == Binary
	params := []Type{t, t, tInt, tInt}
	a := c.wantAll(k, params[:len(k.args)]...)
	return strict(t, k.pos, a, func(_ *Env, v []types.Datum) (types.Datum, error) {
		n := int64(-1)
		if len(v) == 4 {
			n = v[3].I
		}
		if n < 0 {
			n = int64(unitLen(v[1].B, binary))
		}
		pos := v[2].I
		out := bytes.Clone(substring(v[0].B, binary, 1, pos-1))
		out = append(out, v[1].B...)
		return types.BytesDatum(append(out, substring(v[0].B, binary, pos+n, math.MaxInt32)...)), nil
	})
}

// padBlanks fills a text with blanks to n characters.
func padBlanks(b []byte, n int) []byte {
	have := utf8.RuneCount(b)
	if have >= n {
		return b
	}
	return append(append(make([]byte, 0, len(b)+n-have), b...), bytes.Repeat([]byte(" "), n-have)...)
}
