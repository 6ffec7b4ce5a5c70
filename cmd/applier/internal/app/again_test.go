package app

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/merger"
	"applier/storage/types"
)

// Connect was killed and sends
// an update again whose row a later record deleted. The update lacks the value that
// had not changed. docs/formats.md says what to set.
func TestApp_WhatAProducerSendsAgainIsLateInTheSourcesOrder(t *testing.T) {
	envelope := func(op string, lsn int, row string) string {
		image := `"before":null,"after":` + row
		if op == "d" {
			image = `"before":` + row + `,"after":null`
		}
		return fmt.Sprintf(`{%s,"source":{"lsn":%d},"op":%q}`, image, lsn, op)
	}
	update := envelope("u", 11, `{"id":1,"note":"__debezium_unavailable_value"}`)
	remove := envelope("d", 12, `{"id":1,"note":null}`)
	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered %t", ordered), func(t *testing.T) {
			more := ""
			if ordered {
				more = "    order_by: { by: [lsn], remember_deletes: 7d }\n"
			}
			w := newWorld(t, "    key: [id]\n")
			w.format = "debezium-json"
			w.configure("    key: [id]\n    columns: { add: { lsn: source.lsn } }\n    batch: { interval: 1s, idle_flush: 50ms }\n" + more)
			w.create(append(orders(), types.Field{Name: "lsn", Type: types.BigIntType()}), nil)
			r := w.run()
			w.produce(0, envelope("c", 9, `{"id":2,"note":"stays"}`), envelope("c", 10, `{"id":1,"note":"long"}`), update)
			r.records(t, 3)
			require.Equal(t, []string{"1 long 11", "2 stays 9"}, w.texts())
			w.produce(0, remove)
			r.records(t, 1)
			w.produce(0, update)
			if ordered {
				r.records(t, 1)
				require.Equal(t, []string{"2 stays 9"}, w.texts())
				return
			}
			require.True(t, r.pipeline().applier.Await(testContext(t), func(s merger.Status) bool { return s.Halt != nil }))
			require.Contains(t, r.pipeline().status().Halt.Message, "the producer did not send the value")
		})
	}
}
