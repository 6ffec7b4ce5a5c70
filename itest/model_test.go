//go:build itest

package itest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// model is what a mirrored table must hold, in the plainest way: cells by column
// as JSON texts, rows by the text of their key. A key of a table that others
// filled may have several rows; a change makes each a new version.
type model struct {
	columns, key []string
	rows         map[string][]map[string]string
}

func newModel(columns, key []string) *model {
	return &model{columns: columns, key: key, rows: map[string][]map[string]string{}}
}

// parseRow reads a JSON object; its cells stay as they were written.
func parseRow(text string) map[string]string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(fmt.Sprintf("the test's row %q: %v", text, err))
	}
	out := map[string]string{}
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

func (m *model) keyOf(row map[string]string) string {
	var b strings.Builder
	for _, k := range m.key {
		b.WriteString(row[k] + "\x00")
	}
	return b.String()
}

// insert adds a row beside others of its key, as an INSERT does.
func (m *model) insert(texts ...string) {
	for _, text := range texts {
		row := parseRow(text)
		m.rows[m.keyOf(row)] = append(m.rows[m.keyOf(row)], row)
	}
}

// upsert applies a change of a mirror: cells it does not name keep their values.
func (m *model) upsert(texts ...string) {
	for _, text := range texts {
		row := parseRow(text)
		k := m.keyOf(row)
		if len(m.rows[k]) == 0 {
			m.rows[k] = []map[string]string{{}}
		}
		for _, old := range m.rows[k] {
			for c, v := range row {
				old[c] = v
			}
		}
	}
}

// remove deletes the rows of keys, given as objects.
func (m *model) remove(keys ...string) {
	for _, k := range keys {
		delete(m.rows, m.keyOf(parseRow(k)))
	}
}

// apply follows one record of the format json: a value upserts, none deletes.
func (m *model) apply(r *kgo.Record) {
	if r.Value == nil {
		m.remove(string(r.Key))
		return
	}
	m.upsert(string(r.Value))
}

// texts are the rows as judges print them.
func (m *model) texts() []string {
	out := []string{}
	for _, k := range slices.Sorted(keysOf(m.rows)) {
		for _, row := range m.rows[k] {
			var b bytes.Buffer
			for i, c := range m.columns {
				cell, ok := row[c]
				if !ok {
					cell = "null"
				}
				sep := ","
				if i == 0 {
					sep = "{"
				}
				fmt.Fprintf(&b, "%s%q:%s", sep, c, cell)
			}
			out = append(out, b.String()+"}")
		}
	}
	return out
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// put and del make records of the format json.
func put(topic string, partition int32, value string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
}

func del(topic string, partition int32, key string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key)}
}
