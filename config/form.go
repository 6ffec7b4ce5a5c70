package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// wrongForm reports a value that is, say, a list where a number is wanted.
func (p *loader) wrongForm(n *yaml.Node, path, want, hint string) {
	at, ok := p.at[path]
	if !ok {
		at = position{n.Line, n.Column}
	}
	p.problem(at, path, "is "+nodeForm(n)+", but must be "+want, hint)
}

// nodeForm names what YAML took a value for.
func nodeForm(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a block of keys"
	}
	switch n.ShortTag() {
	case "!!str":
		return "a text"
	case "!!int":
		return "a whole number"
	case "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a time"
	case "!!null":
		return "no value"
	}
	return "of the YAML type " + n.ShortTag()
}

// form names what a key wants.
func form(k *key) string {
	switch k.kind {
	case kindInt:
		return "a whole number"
	case kindBool:
		return "true or false"
	case kindSize:
		return "a size"
	case kindDuration:
		return "a duration"
	case kindRatio:
		return "a share"
	case kindTime:
		return "a time"
	case kindList:
		return "a list"
	case kindStrings:
		return "names with values"
	case kindOffsets:
		return "partitions with offsets"
	case kindBlock, kindBlocks:
		if k.block.short != nil {
			return form(k.block.short) + ", or a block of keys"
		}
		return "a block of keys"
	}
	return "a text"
}

// example returns a line that sets the key.
func example(k *key) string {
	if k.elem {
		return "texts only: [a, b]"
	}
	value := map[string]string{
		"version": "1", "brokers": "[kafka-1:9092]", "warehouse": "/data/warehouse", "path": "/data/warehouse",
		"topic": "shop.public.orders", "format": "debezium-json", "type": "debezium-json",
		"target": "sales.orders", "table": "sales.orders", "time": "2026-11-01T00:00:00Z",
		"password": `"${env:KAFKA_PASSWORD}"`, "username": "applier", "key": "[order_id]",
	}[k.name]
	switch {
	case value != "":
	case k.def != "":
		value = k.def
	case len(k.enum) > 0:
		value = k.enum[0]
	case k.kind == kindList:
		value = "[...]"
	case k.kind == kindBlock || k.kind == kindBlocks:
		value = "{...}"
	case k.kind == kindInt:
		value = "1"
	case k.kind == kindBool:
		value = "true"
	case k.kind == kindRatio:
		value = "0.3"
	default:
		value = "..."
	}
	return k.name + ": " + value
}

// hintKeys lists the keys of a block.
func hintKeys(b *block) string {
	if len(b.keys) == 1 {
		return b.keys[0].name
	}
	return "one of " + strings.Join(b.names(), ", ")
}
