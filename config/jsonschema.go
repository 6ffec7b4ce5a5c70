package config

import (
	"encoding/json"
	"fmt"
)

// referencePattern is a text that holds ${env:...} or ${file:...}; it may stand
// for a value of any form.
const referencePattern = `\$\{(env|file):[^}]+\}`

// object is one object of a JSON Schema. encoding/json writes its members in
// the order of their names, so the output is stable.
type object = map[string]any

// Schema returns a JSON Schema (draft 7) of the file, for editors. It knows keys,
// forms and names; contradictions between keys, ranges of sizes and durations,
// and duplicates are found by Load only.
func Schema() ([]byte, error) {
	root := schemaBlock(contract())
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "applier configuration"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the JSON Schema: %w", err)
	}
	return append(out, '\n'), nil
}

// schemaBlock describes a map with fixed keys, or its short form.
func schemaBlock(b *block) object {
	props, required := object{}, []string{}
	for _, k := range b.keys {
		props[k.name] = schemaKey(k)
		if k.required {
			required = append(required, k.name)
		}
	}
	out := object{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	if b.shortOnly {
		out["minProperties"] = 1
	}
	if b.short != nil {
		return object{"anyOf": []object{schemaKey(b.short), out}}
	}
	return out
}

// schemaKey describes the value of a key.
func schemaKey(k *key) object {
	out := schemaValue(k)
	if text := k.doc(); text != "" {
		out["description"] = text
	}
	if k.def != "" {
		out["default"], _ = convert(k, k.def)
	}
	return out
}

func schemaValue(k *key) object {
	switch k.kind {
	case kindInt:
		return orReference(integer(k))
	case kindBool:
		return orReference(object{"type": "boolean"})
	case kindSize:
		return orReference(object{"type": "string", "pattern": `^[0-9][0-9_]*([KMGT]iB|[kMGT]?B)$`})
	case kindDuration:
		return orReference(object{"type": "string", "pattern": `^(([0-9]+d)|([0-9]+d)?([0-9.]+(ns|us|µs|ms|s|m|h))+)$`})
	case kindRatio:
		return orReference(object{"type": "number", "exclusiveMinimum": 0, "maximum": 1})
	case kindTime:
		return orReference(object{"type": "string", "format": "date-time"})
	case kindList:
		return object{"type": "array", "minItems": 1, "uniqueItems": true, "items": schemaText(k)}
	case kindStrings:
		out := object{"type": "object", "additionalProperties": schemaText(k)}
		if p := checks[k.keys].pattern; p != "" {
			out["propertyNames"] = object{"pattern": p}
		}
		return out
	case kindOffsets:
		return object{
			"type": "object", "minProperties": 1, "propertyNames": object{"pattern": "^[0-9]+$"},
			"additionalProperties": orReference(object{"type": "integer", "minimum": 0}),
		}
	case kindBlock:
		return schemaBlock(k.block)
	case kindBlocks:
		return object{
			"type": "object", "minProperties": 1, "additionalProperties": schemaBlock(k.block),
			"propertyNames": object{"pattern": checks[k.keys].pattern},
		}
	}
	return schemaText(k)
}

// schemaText describes a text, or the texts of a list or map.
func schemaText(k *key) object {
	if len(k.enum) > 0 {
		return orReference(object{"enum": k.enum})
	}
	out := object{"type": "string"}
	if k.raw {
		out["type"] = []string{"string", "number", "boolean"}
	}
	if !k.emptyOK {
		out["minLength"] = 1
	}
	if p := checks[k.check].pattern; p != "" {
		out["pattern"] = p
		return orReference(out)
	}
	return out
}

// orReference also allows a reference in place of the value.
func orReference(o object) object {
	return object{"anyOf": []object{o, {"type": "string", "pattern": referencePattern}}}
}

func integer(k *key) object {
	out := object{"type": "integer"}
	if n, err := parseInt(k.min); err == nil {
		out["minimum"] = n
	}
	if n, err := parseInt(k.max); err == nil {
		out["maximum"] = n
	}
	if k.check == "version" {
		out["enum"] = []int{formatVersion}
	}
	return out
}
