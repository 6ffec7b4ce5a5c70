package expr

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"applier/storage/types"
)

// test2 is a function from two texts or two binaries to BOOLEAN.
func test2(name string, f func(a, b []byte) bool) function {
	return function{name, 2, 2, func(c *compiler, k *call) *node {
		if k.args[0].typ.Kind != Binary || k.args[1].typ.Kind != Binary {
			c.wantAll(k, tString, tString)
		}
		return strict(tBool, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.BoolDatum(f(a[0].B, a[1].B)), nil
		})
	}}
}

func searchFunctions() []function {
	text2 := []Type{tString, tString}
	return []function{
		test2("startswith", bytes.HasPrefix),
		test2("endswith", bytes.HasSuffix),
		test2("contains", bytes.Contains),
		scalar("instr", 2, tInt, text2, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.IntDatum(indexFrom(a[0].B, a[1].B, 0)), nil
		}),
		{"locate position", 2, 3, (*compiler).locate},
		scalar("substring_index", 3, tString, []Type{tString, tString, tInt}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.BytesDatum(substringIndex(a[0].B, a[1].B, a[2].I)), nil
		}),
		scalar("split_part", 3, tString, []Type{tString, tString, tInt}, splitPart),
		scalar("find_in_set", 2, tInt, text2, func(_ *Env, a []types.Datum) (types.Datum, error) {
			if bytes.IndexByte(a[0].B, ',') >= 0 {
				return types.IntDatum(0), nil
			}
			for i, p := range strings.Split(string(a[1].B), ",") {
				if p == string(a[0].B) {
					return types.IntDatum(int64(i + 1)), nil
				}
			}
			return types.IntDatum(0), nil
		}),
		scalar("levenshtein", 2, tInt, []Type{tString, tString, tInt}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			if len(a[0].B) > 1<<13 || len(a[1].B) > 1<<13 {
				return types.Null, fault(classTooLarge, "levenshtein compares texts of up to 8192 bytes")
			}
			d := levenshtein([]rune(string(a[0].B)), []rune(string(a[1].B)))
			if len(a) == 3 && d > a[2].I {
				d = -1
			}
			return types.IntDatum(d), nil
		}),
	}
}

// indexFrom returns the place, counted from 1, at which b stands in a from
// character skip on; 0 if nowhere.
func indexFrom(a, b []byte, skip int64) int64 {
	from := runeOffset(a, skip)
	i := bytes.Index(a[from:], b)
	if i < 0 {
		return 0
	}
	return int64(utf8.RuneCount(a[:from+i])) + 1
}

// locate is locate(what, text[, from]); a NULL from is 0, no place at all.
func (c *compiler) locate(k *call) *node {
	params := []Type{tString, tString, tInt}
	a := c.wantAll(k, params[:len(k.args)]...)
	return lenient(tInt, k.pos, a, func(_ *Env, v []types.Datum) (types.Datum, error) {
		from := int64(1)
		if len(v) == 3 {
			if v[2].Null {
				return types.IntDatum(0), nil
			}
			from = v[2].I
		}
		switch {
		case v[0].Null || v[1].Null:
			return types.Null, nil
		case from < 1:
			return types.IntDatum(0), nil
		case len(v[0].B) == 0:
			return types.IntDatum(1), nil
		}
		return types.IntDatum(indexFrom(v[1].B, v[0].B, from-1)), nil
	})
}

// substringIndex returns what stands before the n-th separator, behind it counted
// from the end if n is negative.
func substringIndex(b, sep []byte, n int64) []byte {
	if len(sep) == 0 || n == 0 {
		return []byte{}
	}
	at := 0
	if n > 0 {
		for ; n > 0; n-- {
			i := bytes.Index(b[at:], sep)
			if i < 0 {
				return b
			}
			at += i + len(sep)
		}
		return b[:at-len(sep)]
	}
	end := len(b)
	for ; n < 0; n++ {
		i := bytes.LastIndex(b[:min(end+len(sep)-1, len(b))], sep)
		if i < 0 {
			return b
		}
		end = i
	}
	return b[end+len(sep):]
}

func splitPart(_ *Env, a []types.Datum) (types.Datum, error) {
	parts := [][]byte{a[0].B}
	if len(a[1].B) > 0 {
		parts = bytes.Split(a[0].B, a[1].B)
	}
	i := a[2].I
	switch n := int64(len(parts)); {
	case i == 0:
		return types.Null, fault("INVALID_INDEX_OF_ZERO", "parts are counted from 1, or from the end from -1")
	case i > n || i < -n:
		return textDatum(""), nil
	case i > 0:
		return types.BytesDatum(parts[i-1]), nil
	default:
		return types.BytesDatum(parts[n+i]), nil
	}
}

// levenshtein counts the edits between two texts.
func levenshtein(a, b []rune) int64 {
	row := make([]int64, len(b)+1)
	for j := range row {
		row[j] = int64(j)
	}
	for i, x := range a {
		diag := row[0]
		row[0] = int64(i + 1)
		for j, y := range b {
			cost := diag
			if x != y {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, diag+1)
		}
	}
	return row[len(b)]
}
