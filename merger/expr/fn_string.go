package expr

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// maxText bounds what a function makes of a text, in bytes, and maxItems what it
// makes of an array: small arguments must not fill the memory.
const (
	maxText  = 16 << 20
	maxItems = 1 << 20
)

func itoa(i int) string { return strconv.Itoa(i) }

// text1 is a function from a text to a text.
func text1(name string, f func(b []byte) []byte) function {
	return scalar(name, 1, tString, []Type{tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.BytesDatum(f(a[0].B)), nil
	})
}

func stringFunctions() []function {
	return []function{
		{"length len char_length character_length", 1, 1, (*compiler).length},
		scalar("octet_length", 1, tInt, nil, nil).with(func(c *compiler, k *call) *node { return c.byteLength(k, 1) }),
		scalar("bit_length", 1, tInt, nil, nil).with(func(c *compiler, k *call) *node { return c.byteLength(k, 8) }),
		text1("upper ucase", func(b []byte) []byte { return cases.Upper(language.Und).Bytes(b) }),
		text1("lower lcase", func(b []byte) []byte { return cases.Lower(language.Und).Bytes(b) }),
		text1("initcap", initcap),
		text1("soundex", soundex),
		text1("quote", quoteText),
		{"concat", 0, unbounded, (*compiler).concat},
		{"concat_ws", 1, unbounded, (*compiler).concatWS},
		{"reverse", 1, 1, (*compiler).reverse},
		{"trim btrim", 1, 2, trimCall(trimBoth)},
		{"ltrim", 1, 2, trimCall(trimLeft)},
		{"rtrim", 1, 2, trimCall(trimRight)},
		scalar("ascii", 1, tInt, []Type{tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			r, n := utf8.DecodeRune(a[0].B)
			if n == 0 {
				r = 0
			}
			return types.IntDatum(int64(r)), nil
		}),
		scalar("char chr", 1, tString, []Type{tLong}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			if a[0].I < 0 {
				return textDatum(""), nil
			}
			return textDatum(string(rune(a[0].I & 0xff))), nil
		}),
		scalar("translate", 3, tString, []Type{tString, tString, tString}, translate),
		scalar("replace", 2, tString, []Type{tString, tString, tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			with := []byte(nil)
			if len(a) == 3 {
				with = a[2].B
			}
			if len(a[1].B) == 0 {
				return a[0], nil
			}
			if bytes.Count(a[0].B, a[1].B)*len(with) > maxText {
				return types.Null, tooLong("replace")
			}
			return types.BytesDatum(bytes.ReplaceAll(a[0].B, a[1].B, with)), nil
		}),
		{"elt", 2, unbounded, (*compiler).elt},
		scalar("luhn_check", 1, tBool, []Type{tString}, func(_ *Env, a []types.Datum) (types.Datum, error) { return types.BoolDatum(luhn(a[0].B)), nil }),
		scalar("is_valid_utf8", 1, tBool, []Type{tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.BoolDatum(utf8.Valid(a[0].B)), nil
		}),
		text1("validate_utf8", func(b []byte) []byte { return b }).with(func(c *compiler, k *call) *node { return c.validUTF8(k, false) }),
		text1("try_validate_utf8", func(b []byte) []byte { return b }).with(func(c *compiler, k *call) *node { return c.validUTF8(k, true) }),
		text1("make_valid_utf8", func(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("\uFFFD")) }),
		scalar("sentences", 1, arrayOf(arrayOf(tString)), []Type{tString, tString, tString}, sentences),
		{"mask", 1, 5, (*compiler).mask},
		{"collate", 2, 2, (*compiler).collateCall},
		{"collation", 1, 1, func(c *compiler, k *call) *node {
			name := "UTF8_BINARY"
			if n := k.args[0].typ.Collation; n != "" {
				name = n
			}
			return newConst(k.pos, tString, textDatum("SYSTEM.BUILTIN."+name))
		}},
	}
}

// with replaces how a function is compiled.
func (f function) with(build func(*compiler, *call) *node) function {
	f.build = build
	f.max = max(f.max, f.min)
	return f
}

func tooLong(fn string) error {
	return fault(classTooLarge, "%s would make a text of more than %d MiB", fn, maxText>>20)
}

// textOrBytes casts an argument to STRING unless it is BINARY.
func (c *compiler) textOrBytes(n *node, fn string, arg int) *node {
	if n.typ.Kind == Binary || n.typ.Kind == String {
		return n
	}
	return c.want(n, tString, fn, arg)
}

func (c *compiler) length(k *call) *node {
	a := c.textOrBytes(k.args[0], k.name, 0)
	binary := a.typ.Kind == Binary
	return strict(tInt, k.pos, []*node{a}, func(_ *Env, v []types.Datum) (types.Datum, error) {
		if binary {
			return types.IntDatum(int64(len(v[0].B))), nil
		}
		return types.IntDatum(int64(utf8.RuneCount(v[0].B))), nil
	})
}

func (c *compiler) byteLength(k *call, unit int64) *node {
	a := c.textOrBytes(k.args[0], k.name, 0)
	return strict(tInt, k.pos, []*node{a}, func(_ *Env, v []types.Datum) (types.Datum, error) {
		return types.IntDatum(int64(len(v[0].B)) * unit), nil
	})
}

// initcap makes the first letter of each word a capital; blanks part words.
func initcap(b []byte) []byte {
	out := make([]byte, 0, len(b))
	start := true
	for _, r := range string(cases.Lower(language.Und).Bytes(b)) {
		if start {
			r = unicode.ToTitle(r)
		}
		start = r == ' '
		out = utf8.AppendRune(out, r)
	}
	return out
}

// soundex codes by letter: 0 for vowels, 7 for the silent H and W.
const soundexCodes = "01230127022455012623017202"

func soundex(b []byte) []byte {
	if len(b) == 0 || !isLetter(b[0]) {
		return b
	}
	out := []byte{b[0] &^ 0x20, '0', '0', '0'}
	last, n := soundexCodes[out[0]-'A'], 1
	for _, ch := range b[1:] {
		if !isLetter(ch) {
			last = '0'
			continue
		}
		code := soundexCodes[ch&^0x20-'A']
		if code == '7' {
			continue
		}
		if code != '0' && code != last {
			out[n] = code
			if n++; n > 3 {
				break
			}
		}
		last = code
	}
	return out
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func quoteText(b []byte) []byte {
	s := strings.ReplaceAll(string(b), `\`, `\\`)
	return []byte("'" + strings.ReplaceAll(s, "'", `\'`) + "'")
}

// concat joins texts, binaries or arrays.
func (c *compiler) concat(k *call) *node {
	if len(k.args) == 0 {
		return newConst(k.pos, tString, textDatum(""))
	}
	arrays, binaries := 0, 0
	for _, a := range k.args {
		switch a.typ.Kind {
		case Array:
			arrays++
		case Binary:
			binaries++
		}
	}
	t := tString
	switch {
	case arrays == len(k.args):
		var ok bool
		if t, ok = c.coerceAll(k.args, wider); !ok {
			return c.fail(k.pos, classDataDiff, "the arrays of concat must have one type, not %s", typeList(k.args))
		}
		return concatArrays(t, k)
	case arrays > 0:
		return c.fail(k.pos, classDataDiff, "concat takes texts, binaries or arrays, not %s", typeList(k.args))
	case binaries == len(k.args):
		t = tBinary
	default:
		for i, a := range k.args {
			k.args[i] = c.want(a, tString, "concat", i)
		}
	}
	return strict(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		n := 0
		for _, d := range a {
			n += len(d.B)
		}
		if n > maxText {
			return types.Null, tooLong("concat")
		}
		out := make([]byte, 0, n)
		for _, d := range a {
			out = append(out, d.B...)
		}
		return types.BytesDatum(out), nil
	})
}

// concatWS joins texts and arrays of texts with a separator, leaving NULL out.
func (c *compiler) concatWS(k *call) *node {
	for i, a := range k.args {
		if i > 0 && a.typ.Kind == Array {
			k.args[i] = c.want(a, arrayOf(tString), k.name, i)
		} else {
			k.args[i] = c.want(a, tString, k.name, i)
		}
	}
	return lenient(tString, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if a[0].Null {
			return types.Null, nil
		}
		var parts [][]byte
		n := 0
		add := func(d types.Datum) {
			if !d.Null {
				parts = append(parts, d.B)
				n += len(d.B) + len(a[0].B)
			}
		}
		for i, d := range a[1:] {
			if k.args[i+1].typ.Kind != Array {
				add(d)
				continue
			}
			for _, x := range d.L {
				add(x)
			}
		}
		if n > maxText {
			return types.Null, tooLong("concat_ws")
		}
		return types.BytesDatum(bytes.Join(parts, a[0].B)), nil
	})
}

func (c *compiler) reverse(k *call) *node {
	a := k.args[0]
	if a.typ.Kind != Array {
		a = c.want(a, tString, "reverse", 0)
	}
	return strict(a.typ, k.pos, []*node{a}, func(_ *Env, v []types.Datum) (types.Datum, error) {
		if a.typ.Kind == Array {
			l := slices.Clone(v[0].L)
			slices.Reverse(l)
			return types.Datum{L: l}, nil
		}
		out := make([]byte, 0, len(v[0].B))
		for b := v[0].B; len(b) > 0; {
			_, n := utf8.DecodeLastRune(b)
			out = append(out, b[len(b)-n:]...)
			b = b[:len(b)-n]
		}
		return types.BytesDatum(out), nil
	})
}

func trimLeft(b []byte, set string) []byte  { return bytes.TrimLeft(b, set) }
func trimRight(b []byte, set string) []byte { return bytes.TrimRight(b, set) }
func trimBoth(b []byte, set string) []byte  { return bytes.Trim(b, set) }

// trimCall is trim and its like. With two arguments the characters stand first,
// but for btrim.
func trimCall(f func([]byte, string) []byte) func(*compiler, *call) *node {
	return func(c *compiler, k *call) *node {
		if len(k.args) == 2 && k.name != "btrim" {
			k.args[0], k.args[1] = k.args[1], k.args[0]
		}
		return c.trimNode(k, f)
	}
}

func (c *compiler) trimNode(k *call, f func([]byte, string) []byte) *node {
	for i, a := range k.args {
		k.args[i] = c.want(a, tString, k.name, i)
	}
	return strict(tString, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		set := " "
		if len(a) == 2 {
			set = string(a[1].B)
		}
		return types.BytesDatum(f(a[0].B, set)), nil
	})
}

// trim compiles TRIM([BOTH | LEADING | TRAILING] [chars] FROM x).
func (c *compiler) trim(e *sqlparse.Trim) *node {
	f := trimBoth
	switch e.Where {
	case "LEADING":
		f = trimLeft
	case "TRAILING":
		f = trimRight
	}
	k := &call{pos: e.Pos, name: "trim", args: []*node{c.expr(e.X)}}
	if e.Chars != nil {
		k.args = append(k.args, c.expr(e.Chars))
	}
	return c.trimNode(k, f)
}

// translate replaces characters one by one; those without a partner go.
func translate(_ *Env, a []types.Datum) (types.Datum, error) {
	from, to := []rune(string(a[1].B)), []rune(string(a[2].B))
	m := map[rune]rune{}
	for i, r := range from {
		if _, ok := m[r]; ok {
			continue
		}
		if m[r] = -1; i < len(to) {
			m[r] = to[i]
		}
	}
	return types.BytesDatum(bytes.Map(func(r rune) rune {
		if t, ok := m[r]; ok {
			return t
		}
		return r
	}, a[0].B)), nil
}

// elt returns its argument of a number.
func (c *compiler) elt(k *call) *node {
	t := tBinary
	for _, a := range k.args[1:] {
		if a.typ.Kind != Binary {
			t = tString
		}
	}
	k.args[0] = c.want(k.args[0], tInt, k.name, 0)
	for i := range k.args[1:] {
		k.args[i+1] = c.want(k.args[i+1], t, k.name, i+1)
	}
	return lenient(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch i := a[0].I; {
		case a[0].Null:
			return types.Null, nil
		case i < 1 || i >= int64(len(a)):
			return types.Null, fault("INVALID_ARRAY_INDEX", "there is no argument %d, there are %d", i, len(a)-1)
		default:
			return a[i], nil
		}
	})
}

// luhn reports whether digits end in their check digit.
func luhn(b []byte) bool {
	sum := 0
	for i := range b {
		ch := b[len(b)-1-i]
		if ch < '0' || ch > '9' {
			return false
		}
		d := int(ch - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return len(b) > 0 && sum%10 == 0
}

// sentences splits a text into sentences and those into words: letters and digits,
// with apostrophes and points between them.
func sentences(_ *Env, a []types.Datum) (types.Datum, error) {
	out := types.Datum{L: []types.Datum{}}
	words := []types.Datum{}
	runes := []rune(string(a[0].B))
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsNumber(runes[i]))
	}
	for i := 0; i < len(runes); i++ {
		from := i
		for inWord(i) || i > from && (runes[min(i, len(runes)-1)] == '\'' || runes[min(i, len(runes)-1)] == '.') && inWord(i+1) {
			i++
		}
		if i > from {
			words = append(words, textDatum(string(runes[from:i])))
		}
		if i < len(runes) && strings.ContainsRune(".!?", runes[i]) && len(words) > 0 {
			out.L = append(out.L, types.Datum{L: words})
			words = []types.Datum{}
		}
	}
	if len(words) > 0 {
		out.L = append(out.L, types.Datum{L: words})
	}
	return out, nil
}

// validUTF8 passes what is valid UTF-8.
func (c *compiler) validUTF8(k *call, try bool) *node {
	return strict(tString, k.pos, c.wantAll(k, tString), func(_ *Env, a []types.Datum) (types.Datum, error) {
		if utf8.Valid(a[0].B) {
			return a[0], nil
		}
		if try {
			return types.Null, nil
		}
		return types.Null, fault("INVALID_UTF8_STRING", "the text is no valid UTF-8")
	})
}

// oneCharacter refuses what mask cannot put in the place of characters.
func (c *compiler) oneCharacter(k *call, i int) {
	text, ok := c.constText(k, i)
	if c.err == nil && ok && len(utf16.Encode([]rune(text))) != 1 {
		c.fail(k.args[i].pos, "DATATYPE_MISMATCH.INPUT_SIZE_NOT_ONE", "argument %d of mask must be one character, not %q", i+1, text)
	}
}

// mask replaces letters and digits by their kind; NULL for a kind keeps it.
func (c *compiler) mask(k *call) *node {
	signs := []string{"", "X", "x", "n", ""}
	var args []*node
	for i := range 5 {
		n := newConst(k.pos, tString, types.Datum{B: []byte(signs[i]), Null: signs[i] == ""})
		if i < len(k.args) {
			n = c.want(k.args[i], tString, k.name, i)
			if t := k.args[i].typ; t.Kind != String && t.Kind != Void { // Spark's mask casts nothing
				c.mismatch(k.pos, k.name, i, tString.sql(), t)
			}
			if i > 0 {
				c.oneCharacter(k, i)
			}
		}
		args = append(args, n)
	}
	return lenient(tString, k.pos, args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if a[0].Null {
			return types.Null, nil
		}
		var out []byte
		for _, r := range string(a[0].B) {
			with := a[4]
			switch {
			case unicode.IsUpper(r):
				with = a[1]
			case unicode.IsLower(r):
				with = a[2]
			case r >= '0' && r <= '9':
				with = a[3]
			}
			if with.Null {
				out = utf8.AppendRune(out, r)
			} else {
				out = append(out, with.B...)
			}
		}
		return types.BytesDatum(out), nil
	})
}

// collationName returns how a collation is kept in a Type, "" for the binary one.
func collationName(name string) string {
	name = strings.ToUpper(name)
	if name == "UTF8_BINARY" {
		return ""
	}
	return name
}

// collations are the supported ones. UNICODE orders as the binary one: only its
// equality is Spark's.
var collations = map[string]bool{"": true, "UTF8_LCASE": true, "UNICODE": true}

func (c *compiler) withCollation(x *node, name string) *node {
	t := tString
	t.Collation = collationName(name)
	if !collations[t.Collation] {
		return c.fail(x.pos, "COLLATION_INVALID_NAME", "the collation %s is not supported; there are UTF8_BINARY and UTF8_LCASE", name)
	}
	n := *x
	n.typ = t
	return &n
}

func (c *compiler) collate(e *sqlparse.Collate) *node {
	return c.withCollation(c.want(c.expr(e.X), tString, "collate", 0), e.Collation)
}

func (c *compiler) collateCall(k *call) *node {
	name, _ := c.constText(k, 1)
	return c.withCollation(c.want(k.args[0], tString, "collate", 0), name)
}

// collationKey is what texts of a collation compare by.
func collationKey(t Type, b []byte) string {
	if t.Collation == "UTF8_LCASE" {
		return strings.ToLower(string(b))
	}
	return string(b)
}

// runeOffset returns the byte at which character n begins, len(b) if b is shorter.
func runeOffset(b []byte, n int64) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return i
}

// substring returns the part of a text that Spark's substring gives: from counts
// from 1, or from the end if negative; 0 is 1.
func substring(b []byte, binary bool, from, n int64) []byte {
	total := int64(len(b))
	if !binary {
		total = int64(utf8.RuneCount(b))
	}
	start := from
	switch {
	case from > 0:
		start = from - 1
	case from < 0:
		start = total + from
	}
	end := int64(math.MaxInt64)
	if n < math.MaxInt32 {
		end = start + n
	}
	start, end = max(0, min(start, total)), max(0, min(end, total))
	if start >= end {
		return []byte{}
	}
	if binary {
		return b[start:end]
	}
	i := runeOffset(b, start)
	return b[i : i+runeOffset(b[i:], end-start)]
}
