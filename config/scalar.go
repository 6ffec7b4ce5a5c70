package config

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// value reads the value of key k. at is where its key stands.
func (p *loader) value(k *key, n *yaml.Node, path, pattern string, at position) (any, bool) {
	if n = p.deref(n); n == nil || p.null(n, path, at) {
		return nil, false
	}
	switch k.kind {
	case kindBlock:
		return p.block(k.block, n, path, pattern)
	case kindBlocks:
		return p.blocks(k, n, path, pattern)
	case kindList:
		return p.list(k, n, path, at)
	case kindStrings:
		return p.strings(k, n, path)
	case kindOffsets:
		return p.offsets(k, n, path)
	}
	return p.scalar(k, n, path, at)
}

// null reports a key without a value: YAML cannot tell it from a forgotten one.
func (p *loader) null(n *yaml.Node, path string, at position) bool {
	if n.ShortTag() != "!!null" {
		return false
	}
	p.problem(at, path, "has no value", "write one, or remove the line")
	return true
}

// list reads a list of different texts.
func (p *loader) list(k *key, n *yaml.Node, path string, at position) (any, bool) {
	if n.Kind != yaml.SequenceNode {
		hint := "write " + example(k)
		if n.Kind == yaml.ScalarNode {
			hint = "put brackets around it: [...]"
		}
		p.wrongForm(n, path, "a list", hint)
		return nil, false
	}
	if len(n.Content) == 0 {
		p.problem(at, path, "is an empty list", "name at least one, or remove the line")
		return nil, false
	}
	out, seen := make([]string, 0, len(n.Content)), map[string]bool{}
	for i, e := range n.Content {
		sub, pos := item(path, i), position{e.Line, e.Column}
		v, ok := p.value(&key{name: k.name, kind: kindText, check: k.check, elem: true}, e, sub, "", pos)
		if !ok {
			continue
		}
		s := v.(string)
		if seen[s] {
			p.problem(pos, sub, p.show(k, sub, s)+" is listed twice", "remove one")
			continue
		}
		p.at[sub], seen[s] = pos, true
		out = append(out, s)
	}
	return out, len(out) == len(n.Content)
}

// strings reads a map of texts.
func (p *loader) strings(k *key, n *yaml.Node, path string) (any, bool) {
	if n.Kind != yaml.MappingNode {
		p.wrongForm(n, path, "names, each with a value", "write {name: value}")
		return nil, false
	}
	out := map[string]string{}
	p.pairs(n, path, func(name string, at position, value *yaml.Node) {
		sub := join(path, name)
		if msg, hint := checks[k.keys].find(name); msg != "" {
			p.problem(at, sub, msg, hint)
			return
		}
		elem := &key{name: name, kind: kindText, check: k.check, raw: k.raw}
		if v, ok := p.value(elem, value, sub, "", at); ok {
			out[name] = v.(string)
		}
	})
	return out, true
}

// offsets reads a map of partition numbers to offsets.
func (p *loader) offsets(k *key, n *yaml.Node, path string) (any, bool) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.wrongForm(n, path, "partition numbers, each with an offset", "write {0: 1200, 1: 1188}")
		return nil, false
	}
	out := map[int32]int64{}
	p.pairs(n, path, func(name string, at position, value *yaml.Node) {
		sub := join(path, name)
		part, err := parseInt(name)
		if err != nil || part < 0 || part > math.MaxInt32 {
			p.problem(at, sub, "is not a partition number", "write {0: 1200, 1: 1188}")
			return
		}
		if v, ok := p.value(&key{name: name, kind: kindInt, min: "0"}, value, sub, "", at); ok {
			out[int32(part)] = v.(int64)
		}
	})
	return out, true
}

// scalar reads one value.
func (p *loader) scalar(k *key, n *yaml.Node, path string, at position) (any, bool) {
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode || !strings.HasPrefix(tag, "!!") {
		p.wrongForm(n, path, form(k), "write "+example(k))
		return nil, false
	}
	text, referenced, bad := p.expand.expand(n.Value)
	for _, f := range bad {
		p.problem(at, path, f.msg, f.hint)
	}
	if len(bad) > 0 {
		return nil, false
	}
	if referenced {
		p.literal[path] = n.Value
	}
	if !tagFits(k, tag, referenced) {
		hint := "write " + example(k)
		if k.kind == kindText && tag != "!!binary" {
			hint = "put it into quotes"
		}
		p.wrongForm(n, path, form(k), hint)
		return nil, false
	}
	v, f := convert(k, text)
	if f != nil {
		if f.msg != "is empty" && !k.secret {
			f.msg = p.show(k, path, text) + " " + f.msg
		}
		p.problem(at, path, f.msg, f.hint)
		return nil, false
	}
	if k.secret && !referenced {
		p.warnings = append(p.warnings, Problem{
			p.file, at.line, at.column, path,
			"is written into the file", "use ${env:NAME} or ${file:PATH}",
		})
	}
	return v, true
}

// tagFits reports whether YAML's idea of a scalar is what the key wants. There
// is no conversion between text, numbers and booleans, except for what a
// reference brought, which is always text.
func tagFits(k *key, tag string, referenced bool) bool {
	switch tag {
	case "!!str", "!!timestamp":
		return referenced || (k.kind != kindInt && k.kind != kindBool && k.kind != kindRatio)
	case "!!int":
		return k.kind == kindInt || k.kind == kindSize || k.kind == kindDuration || k.kind == kindRatio || k.raw
	case "!!bool":
		return k.kind == kindBool || k.raw
	case "!!float":
		return k.kind == kindRatio || k.raw
	}
	return false
}

// convert reads the text of a scalar. Sizes, durations and times stay texts:
// mapstructure decodes them.
func convert(k *key, text string) (any, *finding) {
	if text == "" && !k.emptyOK {
		return nil, &finding{"is empty", "write a value, or remove the line"}
	}
	switch k.kind {
	case kindBool:
		if text != "true" && text != "false" {
			return nil, &finding{"is neither true nor false", "write true or false"}
		}
		return text == "true", nil
	case kindInt:
		n, err := parseInt(text)
		if err != nil {
			return nil, &finding{"is not a whole number", "write decimal digits without leading zeros"}
		}
		if f := rangeFinding(k, n, parseInt); f != nil {
			return nil, f
		}
		return n, checkText(k, text)
	case kindSize:
		return text, sizeFinding(k, text)
	case kindDuration:
		d, err := parseDuration(text)
		if err != nil {
			return nil, &finding{"is not a duration", "write a number with a unit (ms, s, m, h, d), such as 10s"}
		}
		return d.String(), rangeFinding(k, d, parseDuration) // mapstructure knows no days
	case kindRatio:
		r, err := parseRatio(text)
		if err != nil {
			return nil, &finding{"is not a share", "write a number above 0 and at most 1, such as 0.3"}
		}
		return float64(r), nil
	case kindTime:
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return nil, &finding{"is not a time", "write it as 2026-11-01T00:00:00Z"}
		}
		return text, nil
	}
	return text, checkText(k, text)
}

func sizeFinding(k *key, text string) *finding {
	n, err := ParseSize(text)
	switch {
	case errors.Is(err, errSizeUnit):
		return &finding{"is a size without a unit", "write one of B, KiB, MiB, GiB, such as 64MiB"}
	case err != nil:
		return &finding{"is not a size", "write a whole number with a unit (B, KiB, MiB, GiB), such as 64MiB"}
	}
	return rangeFinding(k, n, ParseSize)
}

// rangeFinding checks a value against the tags min and max.
func rangeFinding[T ~int64](k *key, v T, parse func(string) (T, error)) *finding {
	hint := "use " + k.min + " or more"
	if k.max != "" {
		hint = "use " + k.min + " to " + k.max
	}
	if least, err := parse(k.min); err == nil && k.min != "" && v < least {
		return &finding{"is below the least value " + k.min, hint}
	}
	if most, err := parse(k.max); err == nil && k.max != "" && v > most {
		return &finding{"is above the greatest value " + k.max, hint}
	}
	return nil
}

// checkText applies the tags enum, later, never and check.
func checkText(k *key, text string) *finding {
	if len(k.enum) > 0 && !slices.Contains(k.enum, text) {
		choice := strings.Join(k.enum, ", ")
		switch near := nearest(text, k.enum); {
		case slices.Contains(k.later, text):
			return &finding{"is not supported yet by this version", "use one of " + choice}
		case slices.Contains(k.never, text):
			return &finding{"is not supported", "use one of " + choice}
		case near != "":
			return &finding{"is none of " + choice, "did you mean " + near + "?"}
		}
		return &finding{"is none of " + choice, "use one of them"}
	}
	if k.check == "" {
		return nil
	}
	if msg, hint := checks[k.check].find(text); msg != "" {
		return &finding{msg, hint}
	}
	return nil
}

// userInfo is a user and a password in an address, which some other programs take.
var userInfo = regexp.MustCompile(`[^/\s]*:[^/\s]*@`)

// show quotes a value for a message: what was written, not what a reference
// brought, and nothing of a secret.
func (p *loader) show(k *key, path, text string) string {
	const most = 80
	if k.secret {
		return redacted
	}
	if lit, ok := p.literal[path]; ok {
		text = lit
	}
	text = userInfo.ReplaceAllString(text, redacted+"@")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strconv.QuoteToGraphic(strings.ToValidUTF8(text, "?"))
}
