package expr

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Regular expressions are Go's: linear time, no look-around and no back
// references. What Java spells differently is translated.

// javaClasses are Java's names of character classes; those of POSIX are ASCII.
var javaClasses = strings.NewReplacer(
	`\p{Lower}`, `[[:lower:]]`, `\p{Upper}`, `[[:upper:]]`, `\p{ASCII}`, `[[:ascii:]]`, `\p{Alpha}`, `[[:alpha:]]`,
	`\p{Digit}`, `[[:digit:]]`, `\p{Alnum}`, `[[:alnum:]]`, `\p{Punct}`, `[[:punct:]]`, `\p{Graph}`, `[[:graph:]]`,
	`\p{Print}`, `[[:print:]]`, `\p{Blank}`, `[[:blank:]]`, `\p{Cntrl}`, `[[:cntrl:]]`, `\p{XDigit}`, `[[:xdigit:]]`,
	`\p{Space}`, `[[:space:]]`, `\p{IsAlphabetic}`, `\p{L}`, `\p{IsLetter}`, `\p{L}`, `\p{IsDigit}`, `\p{Nd}`,
	`\h`, `[\t\x{a0}\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000} ]`, `\Z`, `\z`, `\R`, `(?:\r\n|[\n\v\f\r\x{85}\x{2028}\x{2029}])`,
	`\\`, `\\`,
)

// translateRegex spells a Java pattern as Go does; [[:alpha:]] becomes [:alpha:] where
// a class is open already.
func translateRegex(s string) string {
	t := javaClasses.Replace(s)
	var b strings.Builder
	depth := false
	for i := 0; i < len(t); i++ {
		switch {
		case t[i] == '\\' && i+1 < len(t):
			b.WriteByte(t[i])
			i++
		case t[i] == '[' && !depth:
			depth = true
			if strings.HasPrefix(t[i:], "[[:") {
				end := strings.Index(t[i:], ":]]")
				if end > 0 {
					b.WriteString(t[i : i+end+3])
					i += end + 2
					depth = false
					continue
				}
			}
		case depth && strings.HasPrefix(t[i:], "[[:"):
			end := strings.Index(t[i:], ":]]")
			if end > 0 {
				b.WriteString(t[i+1 : i+end+2])
				i += end + 2
				continue
			}
		case t[i] == ']':
			depth = false
		}
		b.WriteByte(t[i])
	}
	return b.String()
}

// regexCache compiles patterns; the last one is kept, since patterns seldom change
// from row to row.
type regexCache struct {
	pattern string
	re      *regexp.Regexp
	// behind is re bound to the place behind a match; nil if it cannot be empty there,
	// or looks at what stands before.
	behind *regexp.Regexp
}

func (c *regexCache) get(fn string, pattern []byte) (*regexp.Regexp, error) {
	if c.re != nil && c.pattern == string(pattern) {
		return c.re, nil
	}
	re, err := regexp.Compile(translateRegex(string(pattern)))
	if err != nil {
		return nil, fault("INVALID_PARAMETER_VALUE.PATTERN", "%s: %q is no regular expression here (there is no look-around and no back reference): %v", fn, pattern, err)
	}
	c.pattern, c.re, c.behind = string(pattern), re, nil
	if text := re.String(); re.MatchString("") && !strings.Contains(text, "^") && !strings.ContainsAny(text, `\`) {
		c.behind, err = regexp.Compile(`\A(?:` + text + `)`)
	}
	return re, err
}

// regexScalar is a strict function whose second argument is a pattern.
func regexScalar(name string, min int, ret Type, params []Type, f func(re *regexp.Regexp, a []types.Datum) (types.Datum, error)) function {
	return regexCached(name, min, ret, params, func(c *regexCache, a []types.Datum) (types.Datum, error) { return f(c.re, a) })
}

// regexCached is regexScalar for what needs Java's idea of all matches.
func regexCached(name string, min int, ret Type, params []Type, f func(c *regexCache, a []types.Datum) (types.Datum, error)) function {
	return function{name, min, len(params), func(c *compiler, k *call) *node {
		cache := &regexCache{}
		return strict(ret, k.pos, c.wantAll(k, params...), func(_ *Env, a []types.Datum) (types.Datum, error) {
			if _, err := cache.get(k.name, a[1].B); err != nil {
				return types.Null, err
			}
			return f(cache, a)
		})
	}}
}

func regexFunctions() []function {
	two, three := []Type{tString, tString}, []Type{tString, tString, tInt}
	return []function{
		regexScalar("rlike regexp regexp_like", 2, tBool, two, func(re *regexp.Regexp, a []types.Datum) (types.Datum, error) {
			return types.BoolDatum(re.Match(a[0].B)), nil
		}),
		regexScalar("regexp_count", 2, tInt, two, func(re *regexp.Regexp, a []types.Datum) (types.Datum, error) {
			return types.IntDatum(int64(len(re.FindAllIndex(a[0].B, -1)))), nil
		}),
		regexScalar("regexp_substr", 2, tString, two, func(re *regexp.Regexp, a []types.Datum) (types.Datum, error) {
			m := re.FindIndex(a[0].B)
			if m == nil || m[0] == m[1] {
				return types.Null, nil
			}
			return types.BytesDatum(a[0].B[m[0]:m[1]]), nil
		}),
		regexScalar("regexp_instr", 2, tInt, three, func(re *regexp.Regexp, a []types.Datum) (types.Datum, error) {
			m := re.FindIndex(a[0].B)
			if m == nil {
				return types.IntDatum(0), nil
			}
			return types.IntDatum(int64(utf8.RuneCount(a[0].B[:m[0]]) + 1)), nil
		}),
		regexScalar("regexp_extract", 2, tString, three, regexExtract),
		regexScalar("regexp_extract_all", 2, arrayOf(tString), three, regexExtractAll),
		regexCached("regexp_replace", 3, tString, []Type{tString, tString, tString, tInt}, regexReplace),
		regexCached("split", 2, arrayOf(tString), three, regexSplit),
		{"like", 2, 3, func(c *compiler, k *call) *node { return c.likeCall(k, "LIKE") }},
		{"ilike", 2, 3, func(c *compiler, k *call) *node { return c.likeCall(k, "ILIKE") }},
	}
}

// groupArg returns the group asked for, 1 by default.
func groupArg(re *regexp.Regexp, a []types.Datum) (int, error) {
	g := int64(1)
	if len(a) == 3 {
		g = a[2].I
	}
	if g < 0 || g > int64(re.NumSubexp()) {
		return 0, fault("INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX", "the pattern has %d groups, there is no group %d", re.NumSubexp(), g)
	}
	return int(g), nil
}

func regexExtract(re *regexp.Regexp, a []types.Datum) (types.Datum, error) {
	m := re.FindSubmatch(a[0].B)
	if m == nil {
		return textDatum(""), nil
	}
	g, err := groupArg(re, a)
	if err != nil {
		return types.Null, err
	}
	return types.BytesDatum(m[g]), nil
}

func regexExtractAll(re *regexp.Regexp, a []types.Datum) (types.Datum, error) {
	out := types.Datum{L: []types.Datum{}}
	for _, m := range re.FindAllSubmatch(a[0].B, maxItems) {
		g, err := groupArg(re, a)
		if err != nil {
			return types.Null, err
		}
		out.L = append(out.L, types.BytesDatum(m[g]))
	}
	return out, nil
}

// regexReplace replaces from a position on; $1 and \$ stand for a group and a
// dollar sign.
func regexReplace(c *regexCache, a []types.Datum) (types.Datum, error) {
	from := 0
	if len(a) == 4 {
		if a[3].I < 1 {
			return types.Null, fault("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", "positions are counted from 1")
		}
		from = runeOffset(a[0].B, a[3].I-1)
	}
	src := a[0].B[from:] // matching begins there, for ^ too
	out := bytes.Clone(a[0].B[:from])
	last := 0
	for _, m := range c.allMatches(src) {
		out = append(out, src[last:m[0]]...)
		var err error
		if out, err = expand(out, a[2].B, src, m, c.re.NumSubexp()); err != nil {
			return types.Null, err
		}
		if len(out) > maxText {
			return types.Null, tooLong("regexp_replace")
		}
		last = m[1]
	}
	return types.BytesDatum(append(out, src[last:]...)), nil
}

// allMatches finds the matches as Java does: unlike Go's, an empty one may follow
// directly behind another match.
func (c *regexCache) allMatches(src []byte) [][]int {
	all := c.re.FindAllSubmatchIndex(src, maxItems)
	if c.behind == nil {
		return all
	}
	list := make([][]int, 0, 2*len(all))
	for i, m := range all {
		list = append(list, m)
		if m[0] == m[1] || i+1 < len(all) && all[i+1][0] == m[1] {
			continue
		}
		if e := c.behind.FindSubmatchIndex(src[m[1]:]); e != nil && e[1] == 0 {
			for j := range e {
				if e[j] >= 0 {
					e[j] += m[1]
				}
			}
			list = append(list, e)
		}
	}
	return list
}

// expand appends a replacement with its groups.
func expand(out, with, src []byte, m []int, groups int) ([]byte, error) {
	for i := 0; i < len(with); i++ {
		switch {
		case with[i] == '\\' && i+1 < len(with):
			i++
			out = append(out, with[i])
		case with[i] == '$':
			g, n := 0, 0
			for i+1+n < len(with) && with[i+1+n] >= '0' && with[i+1+n] <= '9' && (n == 0 || g*10+int(with[i+1+n]-'0') <= groups) {
				g = g*10 + int(with[i+1+n]-'0')
				n++
			}
			if n == 0 || g > groups {
				return out, fault("INVALID_REGEXP_REPLACE", "the replacement %q names a group that the pattern does not have", with)
			}
			if m[2*g] >= 0 {
				out = append(out, src[m[2*g]:m[2*g+1]]...)
			}
			i += n
		default:
			out = append(out, with[i])
		}
	}
	return out, nil
}

// regexSplit splits as Java does: an empty match at the beginning gives nothing,
// a limit makes the last part hold the rest.
func regexSplit(c *regexCache, a []types.Datum) (types.Datum, error) {
	limit := int64(-1)
	if len(a) == 3 && a[2].I > 0 {
		limit = a[2].I
	}
	src := a[0].B
	out := types.Datum{L: []types.Datum{}}
	last := 0
	if len(a[1].B) == 0 { // the empty pattern parts all characters
		for len(src) > 0 && (limit < 0 || int64(len(out.L)) < limit) {
			_, n := utf8.DecodeRune(src)
			out.L = append(out.L, types.BytesDatum(src[:n]))
			src = src[n:]
		}
		if len(out.L) == 0 {
			out.L = append(out.L, types.BytesDatum(src))
		}
		return out, nil
	}
	for _, m := range c.allMatches(src) {
		if limit > 0 && int64(len(out.L)) >= limit-1 {
			break
		}
		if m[1] == 0 {
			continue
		}
		out.L = append(out.L, types.BytesDatum(src[last:m[0]]))
		last = m[1]
	}
	out.L = append(out.L, types.BytesDatum(src[last:]))
	return out, nil
}

// like compiles x [NOT] LIKE, ILIKE and RLIKE.
func (c *compiler) like(e *sqlparse.Like) *node {
	x, pattern := c.expr(e.X), c.expr(e.Pattern)
	if e.Op == "RLIKE" {
		return maybeNot(c.apply(e.Pos, "rlike", []*node{x, pattern}), e.Not)
	}
	return maybeNot(c.likeNode(e.Pos, e.Op, x, pattern, e.Escape), e.Not)
}

func (c *compiler) likeCall(k *call, op string) *node {
	escape := ""
	if len(k.args) == 3 {
		escape, _ = c.constText(k, 2)
	}
	return c.likeNode(k.pos, op, k.args[0], k.args[1], escape)
}

// likeAny compiles x [NOT] LIKE ANY (…) and ALL (…); NOT belongs to each pattern.
func (c *compiler) likeAny(e *sqlparse.LikeAny) *node {
	x := c.expr(e.X)
	var n *node
	for _, p := range e.Patterns {
		m := maybeNot(c.likeNode(e.Pos, e.Op, x, c.expr(p), ""), e.Not)
		if n == nil {
			n = m
		} else {
			n = logicNode(e.Pos, e.Quantifier == "ANY", n, m)
		}
	}
	return n
}

func (c *compiler) likeNode(pos sqlparse.Pos, op string, x, pattern *node, escape string) *node {
	args := []*node{c.want(x, tString, op, 0), c.want(pattern, tString, op, 1)}
	esc := '\\'
	if escape != "" {
		esc, _ = utf8.DecodeRuneInString(escape)
	}
	fold := op == "ILIKE" || args[0].typ.Collation == "UTF8_LCASE"
	var last string
	var re *regexp.Regexp
	return strict(tBool, pos, args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if re == nil || last != string(a[1].B) {
			text, err := likeRegex(string(a[1].B), esc, fold)
			if err != nil {
				return types.Null, err
			}
			if re, err = regexp.Compile(text); err != nil {
				return types.Null, fault("INVALID_PARAMETER_VALUE.PATTERN", "the pattern %q is too large", a[1].B)
			}
			last = string(a[1].B)
		}
		return types.BoolDatum(re.Match(a[0].B)), nil
	})
}

// likeRegex turns a LIKE pattern into a regular expression. The escape stands
// before %, _ or itself only.
func likeRegex(pattern string, esc rune, fold bool) (string, error) {
	var b strings.Builder
	b.WriteString("(?s)\\A")
	if fold {
		b.WriteString("(?i)")
	}
	runes := []rune(pattern)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case r == esc:
			if i++; i == len(runes) {
				return "", fault("INVALID_FORMAT.ESC_AT_THE_END", "the pattern %q ends in its escape character", pattern)
			}
			if n := runes[i]; n != esc && n != '_' && n != '%' {
				return "", fault("INVALID_FORMAT.ESC_IN_THE_MIDDLE", "in the pattern %q the escape character stands before %q; it goes before %%, _ or itself", pattern, n)
			}
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		case r == '%':
			b.WriteString(".*")
		case r == '_':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString("\\z")
	return b.String(), nil
}
