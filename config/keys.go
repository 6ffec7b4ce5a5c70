package config

import (
	"reflect"
	"strings"
	"sync"
	"time"
)

// kind is the form of a key's value.
type kind int

const (
	kindText kind = iota
	kindInt
	kindBool
	kindSize
	kindDuration
	kindRatio
	kindTime
	kindList    // of texts, without repetition
	kindStrings // map of texts
	kindOffsets // map of partition number to offset
	kindBlock   // fixed keys
	kindBlocks  // map of names to blocks
)

// key is one key of the file, as the tags of its struct field describe it.
type key struct {
	name   string // the last part of its path
	goName string // Type.Field, for the comment
	kind   kind
	block  *block // of kindBlock and kindBlocks

	required, secret, raw, emptyOK bool
	optional                       bool // a block that is off when absent
	elem                           bool // stands for an element of the list
	def, shown                     string
	enum, later, never             []string
	min, max                       string
	check, keys                    string
}

// block is a map with fixed keys, as a struct describes it.
type block struct {
	goType string
	keys   []*key
	// short is the member that a scalar or list in place of the block sets, nil
	// if there is none; shortOnly: it is not among keys.
	short     *key
	shortOnly bool
}

// find returns the key of that name, or nil.
func (b *block) find(name string) *key {
	for _, k := range b.keys {
		if k.name == name {
			return k
		}
	}
	return nil
}

// names returns the names of the keys in declared order.
func (b *block) names() []string {
	out := make([]string, len(b.keys))
	for i, k := range b.keys {
		out[i] = k.name
	}
	return out
}

// contract returns the keys of the whole file, read once from the structs.
var contract = sync.OnceValue(func() *block { return blockOf(reflect.TypeFor[Config]()) })

// blockOf reads the tags of a struct.
func blockOf(t reflect.Type) *block {
	b := &block{goType: t.Name()}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opt, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		switch {
		case opt == "squash":
			b.keys = append(b.keys, blockOf(f.Type).keys...)
			continue
		case name == "" || name == "-":
			continue
		}
		k := keyOf(f, name)
		k.goName = t.Name() + "." + f.Name
		if short := f.Tag.Get("short"); short != "" {
			b.short, b.shortOnly = k, short == "only"
		}
		if !b.shortOnly || b.short != k {
			b.keys = append(b.keys, k)
		}
	}
	return b
}

// keyOf reads the tags of a field.
func keyOf(f reflect.StructField, name string) *key {
	tag := f.Tag.Get
	list := func(n string) []string {
		if tag(n) == "" {
			return nil
		}
		return strings.Split(tag(n), ",")
	}
	k := &key{
		name: name, required: tag("required") == "true", raw: tag("raw") == "true",
		emptyOK: tag("empty") == "true", def: tag("default"), shown: tag("shown"),
		enum: list("enum"), later: list("later"), never: list("never"),
		min: tag("min"), max: tag("max"), check: tag("check"), keys: tag("keys"),
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		k.optional = true
		t = t.Elem()
	}
	k.kind, k.block = kindOf(t)
	k.secret = t == reflect.TypeFor[Secret]()
	return k
}

// kindOf says how a Go type is written in the file.
func kindOf(t reflect.Type) (kind, *block) {
	switch t {
	case reflect.TypeFor[Secret]():
		return kindText, nil
	case reflect.TypeFor[Size]():
		return kindSize, nil
	case reflect.TypeFor[time.Duration]():
		return kindDuration, nil
	case reflect.TypeFor[Ratio]():
		return kindRatio, nil
	case reflect.TypeFor[time.Time]():
		return kindTime, nil
	case reflect.TypeFor[map[int32]int64]():
		return kindOffsets, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return kindBool, nil
	case reflect.Int, reflect.Int64:
		return kindInt, nil
	case reflect.Slice:
		return kindList, nil
	case reflect.Struct:
		return kindBlock, blockOf(t)
	case reflect.Map:
		if e := t.Elem(); e.Kind() == reflect.Pointer {
			return kindBlocks, blockOf(e.Elem())
		}
		return kindStrings, nil
	}
	return kindText, nil
}
