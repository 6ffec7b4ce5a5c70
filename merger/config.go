package merger

import (
	"fmt"
	"slices"
	"strings"

	"applier/storage/paimon"
)

// configDigest covers the settings that the applied data depends on: another
// key or preset on the same positions would mean other rows. Each setting has a
// hash of its own, so that a change can be named.
func configDigest(s Settings, schema *paimon.Schema) string {
	names := func(cols []int) (names []string) {
		for _, c := range cols {
			names = append(names, schema.Fields[c].Name)
		}
		return names
	}
	var parts []string
	add := func(setting, value string) {
		parts = append(parts, setting+":"+chainHash("", []byte(value))[:12])
	}
	add("apply", s.Apply.String())
	if s.Merge != nil {
		add("merge", s.Merge.text())
	}
	add("key", fmt.Sprintf("%q", names(s.Key)))
	add("order_by", fmt.Sprintf("%q", names(s.Order.By)))
	add("topics", fmt.Sprintf("%q", slices.Sorted(slices.Values(s.Topics))))
	return strings.Join(parts, ",")
}

// configChange names the settings that differ between two digests.
func configChange(old, now string) string {
	before := strings.Split(old, ",")
	var changed []string
	for _, part := range strings.Split(now, ",") {
		if !slices.Contains(before, part) {
			name, _, _ := strings.Cut(part, ":")
			changed = append(changed, name)
		}
	}
	return strings.Join(changed, ", ")
}
