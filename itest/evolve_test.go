//go:build itest

package itest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// connectRow is a row beside Connect's schema of it; fields are the schemas of its
// columns.
func connectRow(row string, fields ...string) string {
	return fmt.Sprintf(`{"schema":{"type":"struct","fields":[%s]},"payload":%s}`, strings.Join(fields, ","), row)
}

func schemaField(name, typ string) string { return fmt.Sprintf(`{"type":%q,"field":%q}`, typ, name) }

// TestEvolve_TheTableFollowsItsRecordsAndEveryEngineReadsIt: columns and fields are
// added and made wider while records come, also those of older schemas, and beside
// changes that Java makes to the schema.
func TestEvolve_TheTableFollowsItsRecordsAndEveryEngineReadsIt(t *testing.T) {
	for name, options := range map[string]string{
		"vectors":       "{}",
		"copy on write": "{ deletion-vectors.enabled: false }",
		"row tracking":  "{ row-tracking.enabled: true }",
		"buckets":       "{ bucket: 2, bucket-key: id }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := newTopic(t, 1)
			r := newRig(t, "", pipe{Topic: topic, More: "create: { options: " + options + " }\nschema: { evolve: add_and_widen }\nbatch: { idle_flush: 50ms, interval: 200ms }"})
			r.session = "30s"
			r.configure("")
			id, n, long := schemaField("id", "int64"), schemaField("n", "int32"), schemaField("n", "int64")
			part := func(fields ...string) string {
				return fmt.Sprintf(`{"type":"struct","field":"s","fields":[%s]}`, strings.Join(fields, ","))
			}
			a, b := schemaField("a", "int32"), schemaField("b", "string")
			m := newModel([]string{"id", "n", "s"}, []string{"id"})
			send := func(records ...string) {
				for _, rec := range records {
					r.kafka.Produce(t, put(topic, 0, rec))
				}
			}
			p := r.start()

			send(connectRow(`{"id":1,"n":1,"s":{"a":1}}`, id, n, part(a)), connectRow(`{"id":2,"n":2,"s":{"a":2}}`, id, n, part(a)))
			m.upsert(`{"id":1,"n":1,"s":{"a":1}}`, `{"id":2,"n":2,"s":{"a":2}}`)
			r.waitApplied(p)
			r.equals(m)

			// Newer, older and newer schemas again in one go.
			send(connectRow(`{"id":2,"n":5000000000,"s":{"a":3,"b":"x"},"new":"y"}`, id, long, part(a, b), schemaField("new", "string")),
				connectRow(`{"id":3,"n":3,"s":{"a":4}}`, id, n, part(a)),
				connectRow(`{"id":4,"n":-5000000000,"s":null,"new":"z"}`, id, long, part(a, b), schemaField("new", "string")))
			m.columns = append(m.columns, "new")
			m.upsert(`{"id":1,"s":{"a":1,"b":null}}`, `{"id":2,"n":5000000000,"s":{"a":3,"b":"x"},"new":"y"}`,
				`{"id":3,"n":3,"s":{"a":4,"b":null}}`, `{"id":4,"n":-5000000000,"s":null,"new":"z"}`)
			r.waitApplied(p)
			r.said(p, "widened n BIGINT")
			r.said(p, "added s.b STRING")
			r.equals(m)

			// Java adds what the records bring next, and something of its own.
			java := harness.Java(t)
			require.NoError(t, java.Alter(t.Context(), r.ref(), harness.Args{"op": "add_column", "name": "theirs", "type": "INT"}))
			require.NoError(t, java.Alter(t.Context(), r.ref(), harness.Args{"op": "add_column", "name": "both", "type": "BIGINT"}))
			send(connectRow(`{"id":5,"n":5,"both":6,"ours":true}`, id, long, schemaField("both", "int64"), schemaField("ours", "boolean")))
			r.kafka.Produce(t, del(topic, 0, `{"id":1}`))
			m.columns = append(m.columns, "theirs", "both", "ours")
			m.upsert(`{"id":5,"n":5,"both":6,"ours":true}`)
			m.remove(`{"id":1}`)
			r.waitApplied(p)
			r.equals(m)

			// Killed and started again it goes on as if nothing had been.
			p.Kill()
			send(connectRow(`{"id":5,"n":50}`, id, long))
			m.upsert(`{"id":5,"n":50}`)
			r.once()
			r.equals(m)
		})
	}
}
