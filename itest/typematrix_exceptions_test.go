//go:build itest

package itest

import (
	"slices"
	"strings"
)

// pypaimonDefaults is about rows that leave columns out; other rows of pypaimon's have
// a value there.
var pypaimonDefaults = &typeException{
	engine: "pypaimon", writes: true, reason: "NULL where a column is left out that has a default", says: "null instead of",
	in: func(typeCell) bool { return false }, // see typeTable.leaveOut
}

// typeExceptions is everything that the matrix knows not to work.
var typeExceptions = []*typeException{
	{
		engine: "pypaimon", reason: "row tracking in tables with nested columns, once Java has changed a row", says: "KeyError: '_ROW_ID'",
		in: func(c typeCell) bool {
			return strings.HasPrefix(c.mode, "row tracking") && (c.group == "nested" || c.group == "variants" || slices.Contains([]string{"add nested field", "rename", "drop"}, c.step))
		},
	},
	{
		engine: "pypaimon", reason: "TIMESTAMP(7…9) before 1677 and after 2262", says: "reads",
		in: func(c typeCell) bool {
			return c.group == "nanoseconds" && c.step == "widen" && strings.Contains(c.typ, "to TIMESTAMP(9)") && !strings.HasPrefix(c.typ, "TIMESTAMP(7)")
		},
	},
	{
		engine: "pypaimon", reason: "CHAR and BINARY that were made longer are not filled up", says: "reads",
		in:      func(c typeCell) bool { return c.typ == "CHAR(5) to CHAR(8)" || c.typ == "BINARY(4) to BINARY(8)" },
		perhaps: rewrittenByJava,
	},
	{
		engine: "pypaimon", reason: "FLOAT, DOUBLE and times that became STRING are spelled otherwise than by Java", says: "reads",
		in: func(c typeCell) bool {
			return slices.Contains([]string{"FLOAT to STRING", "DOUBLE to STRING", "TIMESTAMP(0) to STRING", "TIMESTAMP(3) WITH LOCAL TIME ZONE to STRING"}, c.typ)
		},
		perhaps: rewrittenByJava,
	},
	{
		engine: "Flink", reason: "TIME without its fraction of a second", says: "reads",
		in: func(c typeCell) bool { return strings.Contains(c.typ, "TIME(3)") },
	},
	{
		engine: "applier sql", writes: true, reason: "MULTISET and VARIANT in statements", says: "UNSUPPORTED_DATATYPE",
		in: func(c typeCell) bool { return c.group == "multisets" || c.group == "variants" },
	},
	{
		engine: "pypaimon", reason: "64-bit deletion vectors", says: "Invalid magic number",
		in: func(c typeCell) bool { return c.mode == "64-bit vectors" },
	},
	{
		engine: "pypaimon", reason: "tables with MULTISET", says: "Unsupported data type: MULTISET",
		in: func(c typeCell) bool { return c.group == "multisets" },
	},
	{
		engine: "pypaimon", writes: true, reason: "tables with MULTISET", says: "Unsupported data type: MULTISET",
		in: func(c typeCell) bool { return c.group == "multisets" },
	},
	{
		engine: "pypaimon", writes: true, reason: "TIMESTAMP(7…9) as INT64, which Java 1.4.2 cannot read", says: "HeapTimestampVector",
		in: func(c typeCell) bool { return c.group == "nanoseconds" },
	},
	{
		engine: "applier", writes: true, reason: "values of VARIANT columns are not made from records", says: "VARIANT",
		in: func(c typeCell) bool { return c.group == "variants" },
	},
	{
		engine: "Flink", reason: "Flink 1.20 has no VARIANT", says: "",
		in: func(c typeCell) bool { return c.group == "variants" },
	},
	{
		engine: "Flink", writes: true, reason: "Flink 1.20 has no VARIANT", says: "",
		in: func(c typeCell) bool { return c.group == "variants" },
	},
}

// rewrittenByJava: its writers join the files of a bucket when they add one, so that
// older rows may stand in files of the new type.
func rewrittenByJava(c typeCell) bool { return strings.HasPrefix(c.mode, "buckets") }
