package metrics

import (
	"fmt"
	"strings"
)

const referenceHead = `# Metrics

This page is generated from the code (package metrics); a test keeps it true.

` + "`GET /metrics` on `server.listen` (`:9464`" + `) answers in the Prometheus text
format, OpenMetrics, or protobuf with native histograms, as the scraper asks. The
standard ` + "`go_*` and `process_*`" + ` metrics are there too.

The labels ` + "`pipeline` and `table`" + ` (database.table) are on every metric of a
pipeline. Keys, file names and snapshot ids are never labels. Series whose labels
are known beforehand exist with 0 from the start of a pipeline.
`

// Reference returns the page docs/metrics.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	room := ""
	for _, d := range Table() {
		if d.Room != room {
			room = d.Room
			fmt.Fprintf(&b, "\n## %s\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n", room)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Type, d.Unit, labelText(d.Labels), d.Help)
	}
	return b.String()
}

// labelText lists labels with their known values.
func labelText(labels []Label) string {
	var parts []string
	for _, l := range labels {
		text := "`" + l.Name + "`"
		if len(l.Values) > 0 {
			text += " (" + strings.Join(l.Values, ", ") + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
