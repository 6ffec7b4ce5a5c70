package config

import (
	"fmt"
	"slices"
	"strings"
)

const referenceHead = `# Configuration reference

This page is generated from the code (package config); a test keeps it true.
` + "`applier validate -c FILE`" + ` checks a file and reports every problem at once, with
its line and what to do.

The smallest file applies one topic with Debezium records to a table that exists:

` + "```yaml" + `
version: 1
kafka: { brokers: ["kafka:9092"] }
warehouse: /data/warehouse
pipelines:
  orders:
    source: { topic: shop.public.orders, format: debezium-json }
    target: sales.orders
    key: [order_id]
` + "```" + `

## Rules of the file

* An unknown key is an error. So is a key that is written twice or has no value.
* Nothing is converted: a text is not a number, a number is not a text. Put texts
  that look like numbers into quotes.
* Sizes are whole numbers with a unit: B, KiB, MiB, GiB, TiB, or the decimal kB,
  MB, GB, TB. Durations are numbers with units: ms, s, m, h, and d for 24 hours.
  Digits may be grouped: 50_000.
* ` + "`${env:NAME}` stands for an environment variable and `${file:PATH}`" + ` for the
  content of a file (up to 64KiB, without its last line end), inside any value.
  A missing one is an error. ` + "`$${` stands for the text `${`." + `
* Relative paths start at the folder of the configuration file.
* Secrets are never printed; keep them in variables or files.
* YAML anchors and aliases work; merge keys (<<) do not: what pipelines share
  belongs under defaults.
* A pipeline takes what it does not say from defaults, key by key.
`

// Reference returns the page docs/config.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	referenceBlock(&b, contract(), "", "What a file may contain.")
	b.WriteString("\n## Keys that are refused by name\n\n")
	b.WriteString("They are known from other tools or planned for a later version.\n\n| key | why |\n|---|---|\n")
	refused := refusedKeys()
	var paths []string
	for path := range refused {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		r := refused[path]
		fmt.Fprintf(&b, "| `%s` | %s; %s |\n", strings.ReplaceAll(path, "*", "NAME"), r.msg, r.hint)
	}
	return b.String()
}

// referenceBlock writes the table of a block, then the blocks in it. Blocks that
// were described under defaults are not repeated.
func referenceBlock(b *strings.Builder, bl *block, path, text string) {
	title := path
	if path == "" {
		title = "Top level"
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", title, text)
	if bl.short != nil {
		fmt.Fprintf(b, "In place of the block, %s alone %s\n\n", article(bl.short), shortMeaning(bl))
	}
	inherited := contract().find("defaults").block
	b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, k := range bl.keys {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", k.name, valueText(k), defaultText(k, bl), k.doc())
	}
	for _, k := range bl.keys {
		sub := strings.TrimPrefix(path+"."+k.name, ".")
		switch {
		case bl.goType == "Pipeline" && inherited.find(k.name) != nil:
		case k.kind == kindBlocks:
			referenceBlock(b, k.block, sub+".NAME", k.doc())
		case k.kind == kindBlock:
			referenceBlock(b, k.block, sub, k.doc())
		}
	}
}

func article(k *key) string {
	if k.kind == kindList {
		return "a list"
	}
	return "a text"
}

// shortMeaning says what the short form of a block stands for.
func shortMeaning(bl *block) string {
	if bl.shortOnly {
		return "(" + code(bl.short.enum) + ") means: " + lowerFirst(bl.short.doc())
	}
	return "is `" + bl.short.name + "`."
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func code(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

// valueText describes what may be written.
func valueText(k *key) string {
	switch {
	case len(k.enum) > 0:
		return code(k.enum)
	case k.secret:
		return "secret"
	case k.kind == kindInt && k.min != "":
		return k.min + " to " + k.max
	case k.kind == kindStrings:
		return "map"
	case k.kind == kindList:
		return "list"
	case k.kind == kindBool:
		return "`true`, `false`"
	case k.min != "" && k.max != "":
		return strings.TrimPrefix(form(k), "a ") + ", " + k.min + " to " + k.max
	case k.min != "":
		return strings.TrimPrefix(form(k), "a ") + ", from " + k.min
	case k.kind == kindBlock || k.kind == kindBlocks:
		if k.block.short != nil && k.block.shortOnly {
			return code(k.block.short.enum) + " or block"
		}
		if k.block.short != nil {
			return strings.TrimPrefix(article(k.block.short), "a ") + " or block"
		}
		return "block"
	}
	return strings.TrimPrefix(form(k), "a ")
}

// defaultText describes what an absent key means.
func defaultText(k *key, bl *block) string {
	switch {
	case bl.goType == "Pipeline" && contract().find("defaults").block.find(k.name) != nil:
		return "from `defaults`"
	case k.required:
		return "required"
	case k.def != "":
		return "`" + k.def + "`"
	case k.shown != "":
		return k.shown
	case k.kind == kindBlock && k.block.short != nil && k.block.short.shown != "":
		return "`" + k.block.short.shown + "`"
	}
	return ""
}
