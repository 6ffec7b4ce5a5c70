package merger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBatches_TheCutDoesNotMatter: the same stream, cut into batches in any way,
// leaves the table that the model of single changes leaves.
func TestBatches_TheCutDoesNotMatter(t *testing.T) {
	for _, c := range []splitCase{
		{apply: batcher.Mirror},
		{apply: batcher.Upsert},
		{apply: batcher.Upsert, ordered: true},
		{apply: batcher.InsertOnly},
		{apply: batcher.SoftDelete},
		{apply: batcher.SoftDelete, ordered: true},
		{apply: batcher.Append},
		{apply: batcher.Mirror, ordered: true, remembers: true},
		{apply: batcher.SoftDelete, ordered: true, remembers: true},
		{apply: batcher.Mirror, clauses: mirrorClauses},
		{apply: batcher.Upsert, clauses: upsertClauses},
		{apply: batcher.InsertOnly, clauses: insertOnlyClauses},
		{apply: batcher.SoftDelete, clauses: softDeleteClauses},
	} {
		name := c.apply.String()
		if c.ordered {
			name += " order_by"
		}
		if c.remembers {
			name += " remember_deletes"
		}
		if c.clauses != nil {
			name = "clauses that mean " + name
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkSplit(t, c) })
		})
	}
}

type splitCase struct {
	apply              batcher.Apply
	ordered, remembers bool
	clauses            []string // in place of the preset
}

// The presets as clauses.
var (
	mirrorClauses = []string{
		"MATCHED AND s.__op = 'd' THEN DELETE",
		"MATCHED THEN UPDATE SET *",
		"NOT MATCHED AND s.__op <> 'd' THEN INSERT *",
	}
	upsertClauses = []string{
		"MATCHED AND s.__op <> 'd' THEN UPDATE SET *",
		"NOT MATCHED AND s.__op <> 'd' THEN INSERT *",
	}
	insertOnlyClauses = []string{"NOT MATCHED AND s.__op IN ('c', 'u', 'r') THEN INSERT *"}
	softDeleteClauses = []string{
		"MATCHED AND s.__op = 'd' THEN UPDATE SET deleted_at = s.__ts",
		"MATCHED THEN UPDATE SET *",
		"NOT MATCHED AND s.__op <> 'd' THEN INSERT *",
	}
)

func checkSplit(t *rapid.T, sc splitCase) {
	o := rigOptions{fields: splitFields(), apply: sc.apply, onError: "skip"}
	if rapid.Bool().Draw(t, "partitioned") {
		o.partition = []string{"d"} // rows move between partitions
	}
	if sc.apply != batcher.Append {
		o.key = []int{colK}
	}
	o.options = maps.Clone(tableModes[rapid.SampledFrom(slices.Sorted(maps.Keys(tableModes))).Draw(t, "mode")])
	if o.options["bucket"] != "" { // a has a default, d moves rows between buckets
		o.options["bucket-key"] = rapid.SampledFrom([]string{"k", "a,k", "ord,a"}).Draw(t, "bucket key")
	}
	if sc.clauses != nil {
		skip := rapid.Bool().Draw(t, "skip unchanged")
		o.apply = batcher.Merge
		o.settings = func(s *Settings) { s.Merge = mergeOf(t, skip, sc.clauses...) }
	}
	m := &splitModel{apply: sc.apply, clauses: sc.clauses != nil, ordered: sc.ordered, remembers: sc.remembers, rows: map[int64][]splitRow{}, deleted: map[int64]int64{}}
	if sc.ordered {
		o.orderBy = []int{colOrd}
		m.order.Tie = rapid.SampledFrom([]batcher.Tie{batcher.TieLast, batcher.TieLast, batcher.TieFirst, batcher.TieDeadLetter}).Draw(t, "tie")
		m.order.Late = rapid.SampledFrom([]batcher.Late{batcher.LateDrop, batcher.LateDrop, batcher.LateApply, batcher.LateDeadLetter}).Draw(t, "late")
		o.settings = func(s *Settings) {
			s.Order.Tie, s.Order.Late = m.order.Tie, m.order.Late
			if sc.remembers {
				s.RememberDeletes = time.Hour
			}
		}
	}
	r := newRig(t, o)
	defer func() { r.close() }()
	seedTable(t, r, m)
	seeded := len(r.rows())
	r.begin()

	other := &otherInstance{}
	defer other.close()

	stream := drawStream(t, sc.apply, sc.ordered, o.apply.Truncates())
	cuts := drawCuts(t, stream)
	m.run(stream)
	var offsets []int64
	for i, c := range stream {
		offsets = append(offsets, r.offsets[0])
		if !c.truncate {
			r.appendSplit(c)
		} else if !r.truncate(c.ord, c.time) {
			r.commit() // as the consumer does
			other.draw(t, r)
			require.True(t, r.truncate(c.ord, c.time))
		}
		if i+1 == len(stream) || !stream[i+1].moved {
			r.record(0)
		}
		if cuts[i] || i+1 == len(stream) {
			r.commit()
			other.draw(t, r)
		}
	}
	require.Equal(t, m.text(), r.rows(), "stream %+v", stream)
	r.checkIndex()
	r.checkBuckets()
	r.checkFigures()
	require.Equal(t, m.letterTexts(offsets), r.letterTexts(), "stream %+v", stream)
	checkCounts(t, r, seeded)
	var taken int64
	for _, c := range r.committed {
		taken += c.Counts.LateTaken
	}
	require.Equal(t, m.taken, taken)
}

// otherInstance is a process beside the rig's, on the same table and state folder.
type otherInstance struct {
	a *Applier
	b *batcher.Batcher
}

// draw lets the process go on, be restarted, or lose the table to another one that
// starts beside it, or that had it before and believes it still has.
func (o *otherInstance) draw(t *rapid.T, r *rig) {
	switch rapid.IntRange(0, 5).Draw(t, "instance") {
	case 0:
		r.close()
		r.open(nil)
		r.begin()
	case 1:
		o.close()
		o.a, o.b = r.a, r.b
		r.open(nil)
		r.begin()
	case 2:
		if o.a != nil {
			o.a, o.b, r.a, r.b = r.a, r.b, o.a, o.b
			r.post(Tick{}) // its next look at the table, if no batch comes before
			require.Equal(t, PhaseIdle, r.a.state.Phase)
		}
	}
}

func (o *otherInstance) close() {
	if o.a != nil {
		o.a.view.drop()
	}
}

// letterTexts are the dead letters as the rig notes them: one a record, about its
// first change that is sent away.
func (m *splitModel) letterTexts(offsets []int64) (out []string) {
	last := int64(-1)
	for _, l := range m.sent {
		if at := offsets[l.change]; at != last {
			out = append(out, fmt.Sprintf("%d %s", at, l.class))
			last = at
		}
	}
	return out
}

func (r *rig) letterTexts() (out []string) {
	for _, l := range r.letters { // partition@offset "value" class: ...
		words := strings.Fields(l)
		_, offset, _ := strings.Cut(words[0], "@")
		out = append(out, offset+" "+strings.TrimSuffix(words[2], ":"))
	}
	return out
}

// seedTable lets another engine write rows first, several of one key and some
// that NULLs stand in for defaults.
func seedTable(t *rapid.T, r *rig, m *splitModel) {
	var rows [][]types.Datum
	for _, k := range []int64{9, 9, 1} {
		if !rapid.Bool().Draw(t, "seeded") {
			continue
		}
		n := int64(len(rows) + 1)
		row := splitRow{colK: num(k), colB: num(n), colC: num(n), colD: num(n), colOrd: num(2)}
		m.rows[k] = append(m.rows[k], row)
		rows = append(rows, row.datums())
	}
	if len(rows) > 0 {
		r.foreign(rows...)
	}
}

func (s splitRow) datums() []types.Datum {
	var out []types.Datum
	for col, p := range s {
		d := types.Null
		if p != nil {
			d = types.IntDatum(*p)
			switch col {
			case colB, colD:
				d = types.StringDatum(fmt.Sprint(*p))
			case colDeleted:
				d.I *= 1000
			}
		}
		out = append(out, d)
	}
	return out
}

func (m *splitModel) text() []string {
	out := []string{}
	for _, rows := range m.rows {
		for _, row := range rows {
			out = append(out, rowText(splitFields(), row.datums()))
		}
	}
	slices.Sort(out)
	return out
}

// truncate lets the open batch begin with a truncation.
func (r *rig) truncate(ord, time int64) bool {
	t := &change.Truncation{Offset: r.offsets[0], Time: time}
	if len(r.set.Order.By) > 0 {
		t.Order = []types.Datum{types.IntDatum(ord)}
	}
	return r.b.Truncate(t)
}

// appendSplit decodes a change, as it were.
func (r *rig) appendSplit(c splitChange) {
	out := r.b.Changes()
	row := out.Len()
	for col := range splitColumns {
		v := &out.Cols[col]
		var d types.Datum
		switch {
		case col == colK:
			d = types.IntDatum(c.key)
		case col == colOrd && (!c.delete || len(r.set.Order.By) > 0):
			d = types.IntDatum(c.ord)
		case c.delete, col == colDeleted, c.holes[col] != known:
			d = types.Null
		case col == colB, col == colD:
			d = types.StringDatum(fmt.Sprint(c.value))
		default:
			d = types.IntDatum(c.value)
		}
		v.AppendDatum(d)
		if c.holes[col] == absent {
			v.Absent.Set(row)
		} else if c.holes[col] == unavailable {
			v.Unavailable.Set(row)
		}
	}
	out.EndRow(kindOf(c), 0, r.offsets[0], c.time)
	if r.set.Order.Late == batcher.LateDeadLetter || r.set.Order.Tie == batcher.TieDeadLetter {
		out.KeepRaw(change.RawRecord{Value: fmt.Append(nil, r.offsets[0])})
	}
	if c.old >= 0 {
		out.LinkOldKey([]types.Datum{types.IntDatum(c.old)})
	}
}

// checkCounts: what commits say they did is what became of the number of rows.
func checkCounts(t require.TestingT, r *rig, rows int) {
	want := int64(rows)
	for _, c := range r.committed {
		if c.Batch == nil {
			continue
		}
		want += c.Counts.Inserted
		if r.set.Apply == batcher.Mirror || r.set.Apply == batcher.Merge {
			want -= c.Counts.Deleted
		}
		b := c.Batch.Counts
		require.EqualValues(t, b.Changes, b.Ignored+b.Collapsed+b.Late+b.Tied+int64(len(c.Batch.Winners)))
	}
	require.Len(t, r.rows(), int(want))
}
