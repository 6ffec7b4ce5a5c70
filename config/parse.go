package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits on what is read, far above any real file: a small file with aliases
// can stand for a huge one.
const (
	maxFileBytes = 1 << 20
	maxValues    = 100_000
)

// position is where a key stands in the file.
type position struct{ line, column int }

// loader checks a YAML document against the contract and turns it into the map
// that koanf merges. It implements koanf.Parser. What is wrong becomes a
// problem and stays out of the map, so that the rest can be checked too.
type loader struct {
	file     string
	expand   expander
	refused  map[string]refusal
	problems Problems
	warnings Problems
	// at has the position of every key that was written, accepted or not.
	at map[string]position
	// literal has, for a text that held references, what was written: messages
	// show it instead of the value.
	literal map[string]string
	// broken has the keys whose value was not accepted.
	broken map[string]bool
	// suggested has the keys that a misspelt one seems to mean: they are not
	// reported as missing too.
	suggested map[string]bool
	values    int
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Unmarshal implements koanf.Parser. Its error is one Problems about the YAML
// itself; other problems are collected in the loader.
func (p *loader) Unmarshal(data []byte) (map[string]any, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || (err == nil && isEmpty(&doc)) {
		p.problem(position{}, "", "the file is empty", "see the documentation for a first example")
		return nil, p.problems
	}
	if err != nil {
		return nil, Problems{p.syntaxError(err)}
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		p.problem(position{second.Line, second.Column}, "", "a second YAML document starts here", "write one document")
	case !errors.Is(err, io.EOF):
		return nil, Problems{p.syntaxError(err)}
	}
	out, _ := p.block(contract(), doc.Content[0], "", "")
	return out, nil
}

// Marshal implements koanf.Parser; it is not used.
func (p *loader) Marshal(map[string]any) ([]byte, error) { return nil, errors.ErrUnsupported }

func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null"
}

// syntaxError turns the YAML library's text into a problem. The library quotes
// names of aliases, which may be half of a mistyped secret.
func (p *loader) syntaxError(err error) Problem {
	text, line := err.Error(), 0
	if m := syntaxLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	hint := "check indentation, quotes and brackets on this line and the one before"
	if strings.Contains(text, "unknown anchor") {
		text, hint = "a value starts with *, which YAML takes for an alias", "put the value into quotes"
	}
	return Problem{File: p.file, Line: line, Msg: "is not valid YAML: " + text, Hint: hint}
}

func (p *loader) problem(at position, path, msg, hint string) {
	p.problems = append(p.problems, Problem{p.file, at.line, at.column, path, msg, hint})
}

// deref follows aliases and counts values. A nil result ends the walk.
func (p *loader) deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if p.values++; p.values <= maxValues {
		return n
	}
	if p.values == maxValues+1 {
		p.problem(position{n.Line, n.Column}, "", "the file has more than 100000 values", "split it")
	}
	return nil
}

// block reads a map with fixed keys. pattern is path with * for names.
func (p *loader) block(b *block, n *yaml.Node, path, pattern string) (map[string]any, bool) {
	if n = p.deref(n); n == nil {
		return nil, false
	}
	if n.Kind != yaml.MappingNode && b.short != nil {
		// The scalar or list in place of the block belongs to its short member.
		v, ok := p.value(b.short, n, path, pattern, p.at[path])
		return map[string]any{b.short.name: v}, ok
	}
	if n.Kind != yaml.MappingNode {
		p.wrongForm(n, path, "a block of keys", "write "+hintKeys(b))
		return nil, false
	}
	out := map[string]any{}
	p.pairs(n, path, func(name string, at position, value *yaml.Node) {
		sub, subPattern := join(path, name), join(pattern, name)
		k := b.find(name)
		if k == nil {
			p.unknown(b, name, at, path, subPattern)
			return
		}
		if v, ok := p.value(k, value, sub, subPattern, at); ok {
			out[name] = v
		} else {
			p.broken[sub] = true
		}
	})
	if b.shortOnly && len(n.Content) == 0 {
		p.problem(p.at[path], path, "says nothing", "write one of "+strings.Join(append(slices.Clone(b.short.enum), b.names()...), ", "))
		return nil, false
	}
	p.missing(b, n, path)
	return out, true
}

// pairs calls f for each key of a map, once a name.
func (p *loader) pairs(n *yaml.Node, path string, f func(name string, at position, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, at := p.deref(n.Content[i]), position{n.Content[i].Line, n.Content[i].Column}
		switch {
		case k == nil:
			return
		case k.ShortTag() == "!!merge":
			p.problem(at, path, "YAML merge keys (<<) are not supported", "put what pipelines share under defaults")
			continue
		case k.Kind != yaml.ScalarNode || k.ShortTag() == "!!null":
			p.problem(at, path, "a key is not a text", "write one name before the colon")
			continue
		}
		if first, ok := seen[k.Value]; ok {
			p.problem(at, join(path, k.Value), "is written twice, first on line "+strconv.Itoa(first), "remove one")
			continue
		}
		seen[k.Value] = at.line
		p.at[join(path, k.Value)] = at
		f(k.Value, at, n.Content[i+1])
	}
}

// unknown reports a key that block b at path base does not have.
func (p *loader) unknown(b *block, name string, at position, base, pattern string) {
	path := join(base, name)
	if r, ok := p.refused[pattern]; ok {
		p.problem(at, path, r.msg, r.hint)
		return
	}
	if near := nearest(name, b.names()); near != "" {
		p.suggested[join(base, near)] = true
		p.problem(at, path, "unknown key", "did you mean "+near+"?")
		return
	}
	if inner := findBelow(b, name); inner != "" {
		p.problem(at, path, "unknown key", "write it as "+inner+" here")
		return
	}
	p.problem(at, path, "unknown key", "use "+hintKeys(b))
}

// findBelow returns where a key of that name is one level down, or "".
func findBelow(b *block, name string) string {
	for _, k := range b.keys {
		if k.kind == kindBlock && k.block.find(name) != nil {
			return join(k.name, name)
		}
	}
	return ""
}

// missing reports required keys that were not written.
func (p *loader) missing(b *block, n *yaml.Node, path string) {
	for _, k := range b.keys {
		sub := join(path, k.name)
		if _, ok := p.at[sub]; !ok && k.required && !p.suggested[sub] {
			at := p.at[path]
			if at.line == 0 {
				at = position{n.Line, n.Column}
			}
			p.problem(at, sub, "is missing", "add it: "+example(k))
		}
	}
}

// blocks reads a map of names to blocks.
func (p *loader) blocks(k *key, n *yaml.Node, path, pattern string) (map[string]any, bool) {
	if n.Kind != yaml.MappingNode {
		p.wrongForm(n, path, "names, each with a block of keys", "write "+example(k))
		return nil, false
	}
	if len(n.Content) == 0 {
		p.problem(p.at[path], path, "is empty", "add at least one")
	}
	out := map[string]any{}
	p.pairs(n, path, func(name string, at position, value *yaml.Node) {
		sub := join(path, name)
		if msg, hint := checks[k.keys].find(name); msg != "" {
			p.problem(at, sub, msg, hint)
			return
		}
		if v := p.deref(value); v == nil || p.null(v, sub, at) {
			return
		}
		if v, ok := p.block(k.block, value, sub, join(pattern, "*")); ok {
			out[name] = v
		}
	})
	return out, true
}
