//go:build itest

package itest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// poison is a record that cannot be applied to poisonTypes, and why.
type poison struct {
	name, key, value, class, column string
}

const poisonTypes = `create: { types: { id: INT, n: TINYINT, s: VARCHAR(3), d: "DECIMAL(4,2)", t: TIMESTAMP(3), must: "INT NOT NULL" } }`

func poisons() []poison {
	return []poison{
		{"no JSON", "", `{"id":1,`, "syntax", ""},
		{"no object", "", `[1,2]`, "envelope", ""},
		{"no key", "", `{"n":1,"must":1}`, "key", "id"},
		{"NULL key", "", `{"id":null,"must":1}`, "null_key", "id"},
		{"too large a number", "", `{"id":1,"n":128,"must":1}`, "range", "n"},
		{"a text for a number", "", `{"id":1,"n":"abc","must":1}`, "type", "n"},
		{"too long a text", "", `{"id":1,"s":"abcd","must":1}`, "length", "s"},
		{"too many digits", "", `{"id":1,"d":"123.45","must":1}`, "range", "d"},
		{"no time", "", `{"id":1,"t":"2026-13-01T00:00:00","must":1}`, "range", "t"},
		{"NULL for NOT NULL", "", `{"id":1,"must":null}`, "not_null", "must"},
		{"a new row without its NOT NULL column", "", `{"id":777,"n":1}`, "not_null", "must"}, // known only when the table is asked
		{"a broken record key", `{"id":`, `{"id":1,"must":1}`, "key", ""},
		{"bytes that are no UTF-8", "", "{\"id\":1,\"s\":\"\xff\",\"must\":1}", "syntax", ""},
		{"larger than allowed", "", `{"id":1,"must":1,"s":"` + strings.Repeat("x", 2000) + `"}`, "length", ""},
	}
}

func (p poison) record(topic string, partition int32) *kgo.Record {
	r := put(topic, partition, p.value)
	if p.key != "" {
		r.Key = []byte(p.key)
	}
	r.Headers = []kgo.RecordHeader{{Key: "trace", Value: []byte("abc")}}
	return r
}

// poisonStream puts each poison between good records.
func poisonStream(topic string) (recs []*kgo.Record, m *model) {
	m = newModel([]string{"id", "n", "s", "d", "t", "must"}, []string{"id"})
	for i, p := range poisons() {
		good := put(topic, 0, fmt.Sprintf(`{"id":%d,"must":%d}`, 100+i, i))
		m.apply(good)
		recs = append(recs, good, p.record(topic, 0))
	}
	return recs, m
}

func TestFault_F2_SkipCountsAndGoesOn(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: poisonTypes + "\non_error: skip\nmax_record_bytes: 1KiB"})
	recs, m := poisonStream(topic)
	r.kafka.Produce(t, recs...)
	p := r.start()
	r.waitApplied(p)
	r.metricIs(float64(len(poisons())), "applier_records_dropped_total", `reason="skipped_error"`)
	harness.MustStop(t, p)
	r.holds(m)
	require.Equal(t, len(poisons()), strings.Count(p.Output.String(), "skipped"), "each is named in the log")
}

func TestFault_F2_DeadLettersHoldTheRecordAndSayWhy(t *testing.T) {
	topic := newTopic(t, 1)
	dlq := topic + ".dlq"
	r := newRig(t, "", pipe{Topic: topic, More: poisonTypes + "\non_error: dead_letter\ndead_letter: { topic: " + dlq + " }\nmax_record_bytes: 1KiB"})
	r.kafka.CreateTopic(t, harness.Topic{Name: dlq})
	recs, m := poisonStream(topic)
	r.kafka.Produce(t, recs...)
	p := r.start()
	r.waitApplied(p)
	classes := map[string]float64{}
	for _, po := range poisons() {
		classes[po.class]++
	}
	for class, n := range classes {
		r.metricIs(n, "applier_dead_letters_total", fmt.Sprintf("class=%q", class))
	}
	harness.MustStop(t, p)
	r.holds(m)

	letters := map[string]*kgo.Record{}
	for _, l := range consume(t, r.kafka, dlq, kgo.NewOffset().AtStart(), len(poisons())) {
		require.Nil(t, letters[string(l.Key)], "one letter a record")
		letters[string(l.Key)] = l
	}
	for i, po := range poisons() {
		offset := 2*i + 1
		l := letters[fmt.Sprintf("%s/0/%d", topic, offset)]
		require.NotNil(t, l, po.name)
		require.Equal(t, po.value, string(l.Value), po.name)
		h := map[string]string{}
		for _, x := range l.Headers {
			h[x.Key] = string(x.Value)
		}
		require.Equal(t, po.class, h["applier.error.class"], po.name)
		require.Equal(t, po.column, h["applier.error.column"], po.name)
		require.NotEmpty(t, h["applier.error.message"])
		require.Equal(t, []string{"p", topic, "0", fmt.Sprint(offset), "abc"},
			[]string{h["applier.pipeline"], h["applier.topic"], h["applier.partition"], h["applier.offset"], h["trace"]}, po.name)
		key, has := h["applier.key"]
		require.Equal(t, po.key != "", has)
		require.Equal(t, po.key, key)
	}
}

// TestFault_F2_PauseHaltsAtTheRecordAndSkipStepsOverIt is done with the daemon
// running, which takes the statement at once.
func TestFault_F2_PauseHaltsAtTheRecordAndSkipStepsOverIt(t *testing.T) {
	topic := newTopic(t, 2)
	r := newRig(t, "", pipe{Topic: topic, More: poisonTypes + "\nmax_record_bytes: 1KiB"})
	recs, m := poisonStream(topic)
	other := put(topic, 1, `{"id":5,"must":5}`)
	m.apply(other)
	r.kafka.Produce(t, append(recs, other)...)
	p := r.start()
	for i, po := range poisons() {
		offset := 2*i + 1
		s := r.waitStatus(p, "p", po.name, func(s pipelineStatus) bool {
			return s.code() == "D-ROW" && strings.Contains(s.Halt.Message, fmt.Sprintf("%s/0 offset %d:", topic, offset))
		})
		require.Contains(t, s.Halt.Message, po.class+":", po.name)
		if po.column != "" {
			require.Contains(t, s.Halt.Message, "column "+po.column+":", po.name)
		}
		require.Contains(t, s.Halt.Remedy, "applier offsets skip PIPELINE")
		rec, err := lastRecord(r.ref(), r.pipes[0].ID)
		require.NoError(t, err)
		require.EqualValues(t, offset, rec.positions(topic)[0], "everything before it is in the table")
		if i == 0 {
			require.NoError(t, p.WaitHTTP(t.Context(), r.Public+"/readyz", 503))
			got, err := harness.Metrics(t.Context(), r.Public+"/metrics")
			require.NoError(t, err)
			require.EqualValues(t, 1, got[`applier_pipeline_halted{code="D-ROW",pipeline="p",table="db.t"}`])
			r.must("resume", "p") // without a change it comes to stand at the same record
			r.waitHalt(p, "D-ROW")
		}
		out := r.must("offsets", "skip", "p", "--to", fmt.Sprintf("%s/0=%d", topic, offset+1))
		require.Contains(t, out, "1 offsets are skipped")
	}
	r.waitApplied(p)
	require.NoError(t, p.WaitHTTP(t.Context(), r.Public+"/readyz", 200))
	rec, err := lastRecord(r.ref(), r.pipes[0].ID)
	require.NoError(t, err)
	require.EqualValues(t, len(poisons()), rec.Gaps, "the table says how many records were skipped")
	harness.MustStop(t, p)
	r.holds(m)
}

// TestFault_F2_HaltsSurviveARestartAndExitSaysSo: exit code 3, and the command works
// without a daemon.
func TestFault_F2_HaltsSurviveARestartAndExitSaysSo(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: poisonTypes})
	r.kafka.Produce(t, put(topic, 0, `{"id":1,"must":1}`), put(topic, 0, `oops`), put(topic, 0, `{"id":2,"must":2}`))
	for range 2 {
		p := r.start()
		r.waitHalt(p, "D-ROW")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		require.NoError(t, p.Signal(15))
		code, err := p.Wait(ctx)
		cancel()
		require.NoError(t, err)
		require.Equal(t, 3, code, "every pipeline was halted")
	}
	r.must("offsets", "skip", "p", "--to", topic+"/0=2")
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	m := newModel([]string{"id", "n", "s", "d", "t", "must"}, []string{"id"})
	m.upsert(`{"id":1,"must":1}`, `{"id":2,"must":2}`)
	r.holds(m)
}
