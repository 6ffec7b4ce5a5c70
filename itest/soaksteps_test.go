//go:build itest

package itest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// The turns that the daemon and others take, and what the daemon does in its own.

const (
	soakKeys       = 80
	soakPartitions = 2
)

// soakStep is one kind of step. do carries it out on the table and on the model, and
// says what it was.
type soakStep struct {
	name   string
	weight int
	do     func(s *soak) string
}

func soakSteps() []soakStep {
	steps := []soakStep{
		{"batch", 30, (*soak).batch},
		{"race", 4, (*soak).race},
		{"sql", 9, (*soak).sql},
		{"insert", 8, (*soak).insert},
		{"double", 2, (*soak).double},
		{"delete", 6, (*soak).deleteRows},
		{"update", 5, (*soak).updateRows},
		{"overwrite", 1, (*soak).overwrite},
		{"compact", 5, (*soak).compact},
		{"our compact", 4, (*soak).ourCompact},
		{"manifests", 2, (*soak).manifests},
		{"expire", 3, (*soak).expire},
		{"our expire", 3, (*soak).ourExpire},
		{"orphans", 2, (*soak).orphans},
		{"alter", 9, (*soak).alter},
		{"mistake", 1, (*soak).mistake},
		{"tag", 5, (*soak).tag},
		{"rollback", 5, (*soak).rollback},
		{"siege", 6, (*soak).siege},
		{"restart", 3, (*soak).restart},
		{"kill", 3, (*soak).kill},
	}
	if fullMatrix {
		steps = append(steps, soakStep{"flink insert", 3, (*soak).flinkInsert}, soakStep{"flink compact", 2, (*soak).flinkCompact},
			soakStep{"flink alter", 1, (*soak).flinkAlter}, soakStep{"flink tag", 1, (*soak).flinkTag})
	}
	return steps
}

// cells draws values for columns, those of the model or some of them.
func (s *soak) cells(key int, all bool) map[string]string {
	out := map[string]string{}
	for _, c := range s.m.columns {
		if c.name != "id" && (all || s.rnd.IntN(2) == 0) {
			out[c.name] = s.value(c.name, key)
		}
	}
	out["id"] = fmt.Sprint(key)
	return out
}

func (s *soak) value(column string, key int) string {
	switch {
	case column == "p":
		return fmt.Sprintf("%q", s.somePartition())
	case column != "v" && s.rnd.IntN(5) == 0:
		return "null"
	case column == "n", column == "x1", column == "x2":
		return fmt.Sprint(s.rnd.IntN(2_000_000) - 1_000_000)
	}
	return fmt.Sprintf("%q", fmt.Sprintf("%s of %d in step %d", column, key, s.step))
}

func (s *soak) somePartition() string { return fmt.Sprintf("p%d", s.rnd.IntN(3)) }

// object makes a JSON object of cells; it is the same for the same cells.
func object(cells map[string]string) string {
	var parts []string
	for name, v := range cells {
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// feedRecords has the daemon apply changes.
func (s *soak) feedRecords(n int, spare ...int) {
	s.t.Helper()
	from := len(s.m.records)
	s.produce(n, spare...)
	s.follow(from)
}

// produce makes changes, several of some keys, none of those to spare. The model does not
// know them before it follows.
func (s *soak) produce(n int, spare ...int) {
	s.t.Helper()
	var recs []*kgo.Record
	for range n {
		r := soakRecord{key: s.rnd.IntN(soakKeys)}
		if slices.Contains(spare, r.key) {
			continue
		}
		part := int32(r.key % soakPartitions)
		if s.rnd.IntN(4) == 0 {
			recs = append(recs, del(s.pipes[0].Topic, part, fmt.Sprintf(`{"id":%d}`, r.key)))
		} else {
			r.cells = s.cells(r.key, s.rnd.IntN(3) > 0)
			recs = append(recs, put(s.pipes[0].Topic, part, object(r.cells)))
		}
		s.m.records = append(s.m.records, r)
	}
	s.kafka.Produce(s.t, recs...)
}

// follow applies the records from a number on to the model.
func (s *soak) follow(from int) {
	for _, r := range s.m.records[from:] {
		s.touch(r.key, r.cells != nil && len(s.m.rows[r.key]) > 0)
		s.m.apply(r)
	}
}

// touch notes that rows of a key change: updated says that they all stay what they are
// but for values.
func (s *soak) touch(key int, updated bool) {
	before, there := s.touched[key]
	s.touched[key] = updated && (before || !there)
}

func (s *soak) batch() string {
	n := 1 + s.rnd.IntN(25)
	s.feedRecords(n)
	s.waitApplied(s.p)
	return fmt.Sprintf("%d records", n)
}

// race has Java insert other keys while a batch is under way.
func (s *soak) race() string {
	keys := s.absent(3)
	if s.upkeep || len(keys) == 0 {
		return s.batch()
	}
	s.feedRecords(25, keys...)
	wait := time.Duration(s.rnd.Int64N(int64(100 * time.Millisecond)))
	<-time.After(wait) // the random time is the point
	do(s.t, s.java, s.ref(), harness.InsertRows(s.fresh(keys)...))
	s.waitApplied(s.p)
	return fmt.Sprintf("about 25 records, %v inserted by Java after %v", keys, wait.Round(time.Millisecond))
}

func (s *soak) restart() string {
	harness.MustStop(s.t, s.p)
	return s.launched()
}

// kill is a kill -9 with a batch under way.
func (s *soak) kill() string {
	n := 1 + s.rnd.IntN(25)
	s.feedRecords(n)
	wait := time.Duration(s.rnd.Int64N(int64(200 * time.Millisecond)))
	<-time.After(wait) // the random time is the point
	s.p.Kill()
	return fmt.Sprintf("%v after %d records, ", wait.Round(time.Millisecond), n) + s.launched()
}

func (s *soak) launched() string {
	upkeep, rows := s.rnd.IntN(3) == 0, []int{4, 1000}[s.rnd.IntN(2)]
	s.launch(upkeep, rows)
	s.waitApplied(s.p)
	return fmt.Sprintf("started with upkeep %v, batches of %d", upkeep, rows)
}

// beside lets others work on the table: the daemon waits for records, is paused, as the
// manual asks for, or is stopped.
func (s *soak) beside(work func()) string {
	s.t.Helper()
	if s.held {
		work()
		return "too"
	}
	how := []string{asIdle, asIdle, asLooking, asLooking, asPaused, asPaused, asPaused, asStopped}[s.rnd.IntN(8)]
	how = s.hold(how)
	work()
	s.release(how)
	return how
}

// What the daemon does while others write, and what ends it.
const (
	asIdle    = "idle"    // it waits for records
	asLooking = "looked"  // the same, and is made to look at the table then
	asPaused  = "paused"  // until applier resume
	asStopped = "stopped" // until it is started again
)

// hold makes the daemon leave the table to others. One that keeps house may commit at
// any moment if it is not paused.
func (s *soak) hold(how string) string {
	s.t.Helper()
	if s.upkeep && how != asStopped {
		how = asPaused
	}
	switch how {
	case asPaused:
		s.must("pause", "p")
	case asStopped:
		harness.MustStop(s.t, s.p)
	}
	s.behind = len(s.m.records)
	return how
}

// release ends what hold began. The records that wait, those that a rollback took back
// among them, are applied to what others have left.
func (s *soak) release(how string) {
	s.t.Helper()
	record, err := lastRecord(s.ref(), s.pipes[0].ID)
	require.NoError(s.t, err)
	switch how {
	case asLooking, asPaused:
		s.command("resume", "p")
	case asStopped:
		s.p = s.start()
	}
	if record == nil && s.step > 1 {
		s.restate(s.behind)
	}
	if s.behind < len(s.m.records) || how == asStopped {
		s.follow(s.behind)
		s.waitApplied(s.p)
	}
}

// siege has others do several things while the daemon may not, with records that wait.
func (s *soak) siege() string {
	how := s.hold([]string{asPaused, asStopped}[s.rnd.IntN(2)])
	s.held = true
	what := []string{how}
	if n := s.rnd.IntN(20); n > 8 {
		s.produce(n)
		what = append(what, fmt.Sprintf("%d records", n))
	}
	others := []soakStep{
		{"insert", 0, (*soak).insert},
		{"delete", 0, (*soak).deleteRows},
		{"update", 0, (*soak).updateRows},
		{"compact", 0, (*soak).compact},
		{"our compact", 0, (*soak).ourCompact},
		{"expire", 0, (*soak).expire},
		{"alter", 0, (*soak).alter},
		{"alter", 0, (*soak).alter},
		{"sql", 0, (*soak).sql},
		{"rollback", 0, (*soak).rollback},
	}
	for range 2 + s.rnd.IntN(4) {
		st := others[s.rnd.IntN(len(others))]
		what = append(what, st.name+": "+st.do(s))
		s.doing = strings.Join(what, "; ")
		s.compare()
	}
	s.held = false
	s.release(how)
	return strings.Join(what, "; ")
}
