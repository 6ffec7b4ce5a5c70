package config

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Effective returns the configuration as YAML: defaults applied, secrets as
// "***". Loading it again gives the same pipelines, except for the secrets.
func (c *Config) Effective() string {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(effectiveBlock(reflect.ValueOf(*c))); err != nil {
		return fmt.Sprintf("# not printable: %s\n", err)
	}
	return b.String()
}

// effectiveBlock returns the keys of a struct that have a value.
func effectiveBlock(v reflect.Value) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	var empty []*yaml.Node
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, opt, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		if opt == "squash" {
			out.Content = append(out.Content, effectiveBlock(v.Field(i)).Content...)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		if d, ok := v.Field(i).Interface().(time.Duration); ok && d == 0 && f.Tag.Get("default") == "" {
			continue // not set
		}
		if n := effectiveValue(v.Field(i)); n != nil {
			out.Content = append(out.Content, text(name), n)
		} else if f.Tag.Get("empty") == "true" {
			empty = append(empty, text(name), text(""))
		}
	}
	// A block that says no more than its short form is written short.
	if b := blockOf(v.Type()); b.short != nil && len(out.Content) == 2 && out.Content[0].Value == b.short.name {
		return out.Content[1]
	}
	out.Content = append(out.Content, empty...)
	return out
}

// effectiveValue returns a value, nil if there is nothing to say.
func effectiveValue(v reflect.Value) *yaml.Node {
	switch x := v.Interface().(type) {
	case Secret:
		if !x.IsSet() {
			return nil
		}
		return text(x.String())
	case time.Duration:
		return text(x.String())
	case Ratio:
		if x == 0 {
			return nil
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(float64(x), 'f', -1, 64)}
	case time.Time:
		if x.IsZero() {
			return nil
		}
		return text(x.Format(time.RFC3339Nano))
	case encoding.TextMarshaler:
		b, _ := x.MarshalText()
		return text(string(b))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return effectiveBlock(v.Elem())
	case reflect.Struct:
		n := effectiveBlock(v)
		if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
			return nil
		}
		return n
	case reflect.Map:
		return effectiveMap(v)
	case reflect.Slice:
		return effectiveList(v)
	case reflect.String:
		if v.Len() == 0 {
			return nil
		}
		return text(v.String())
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(v.Bool())}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v.Interface())}
}

func effectiveMap(v reflect.Value) *yaml.Node {
	if v.Len() == 0 {
		return nil
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.CanInt() {
			return int(a.Int() - b.Int())
		}
		return strings.Compare(a.String(), b.String())
	})
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range keys {
		out.Content = append(out.Content, effectiveValue(k), effectiveValue(v.MapIndex(k)))
	}
	return out
}

func effectiveList(v reflect.Value) *yaml.Node {
	if v.Len() == 0 {
		return nil
	}
	out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for i := range v.Len() {
		out.Content = append(out.Content, effectiveValue(v.Index(i)))
	}
	return out
}

// text returns a text, quoted where YAML would take it for something else and
// with ${ escaped.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(strings.ReplaceAll(s, "${", "$${"))
	return n
}
