package merger

import (
	"slices"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/types"

	"pgregory.net/rapid"
)

// The table of the split test. a carries a default, b takes no NULL, c takes no
// NULL but has a default, d is plain, ord is what order_by looks at.
const (
	colK = iota
	colA
	colB
	colC
	colD
	colOrd
	colDeleted
	splitColumns
)

func splitFields() []types.Field {
	def := func(s string) *string { return &s }
	return []types.Field{
		{ID: 0, Name: "k", Type: types.IntType().NonNull()},
		{ID: 1, Name: "a", Type: types.IntType(), Default: def("7")},
		{ID: 2, Name: "b", Type: types.StringType().NonNull()},
		{ID: 3, Name: "c", Type: types.IntType().NonNull(), Default: def("5")},
		{ID: 4, Name: "d", Type: types.StringType()},
		{ID: 5, Name: "ord", Type: types.BigIntType()},
		{ID: 6, Name: "deleted_at", Type: types.TimestampLTZType(3)},
	}
}

// hole says what a change knows of a column.
type hole uint8

const (
	known hole = iota
	null
	absent
	unavailable
)

// splitChange is one change of the stream. What a row that moved was before is
// in old; both halves of a move come from one record.
type splitChange struct {
	key, old int64 // old -1: none
	delete   bool
	holes    [splitColumns]hole
	value    int64 // of all columns that are known
	ord      int64
	time     int64
	moved    bool // the second half of a move
	truncate bool // no change: the source's table was emptied
}

// splitRow is a row of the model: NULL is nil.
type splitRow [splitColumns]*int64

// splitModel applies changes one by one: forty lines that say what the presets
// mean (row-level.md §2.3, §6.7, cdc-formats.md §18.6).
type splitModel struct {
	apply   batcher.Apply
	clauses bool // that mean the same
	ordered bool
	order   batcher.Order // how ties and late changes are treated
	rows    map[int64][]splitRow
	letters []int // changes that cannot be applied

	remembers bool
	deleted   map[int64]int64 // by key: the place of the delete that left no row
	emptied   *int64          // the place of the last truncation
	sent      []splitLetter   // to the dead letters, for their place in the order
	taken     int64           // changes applied although they were late
}

// splitLetter is a change that the order sends away.
type splitLetter struct {
	change int
	class  string
}

// passes says whether the order lets a change take effect.
func (m *splitModel) passes(i int, c splitChange) bool {
	if !m.ordered {
		return true
	}
	var older, equal bool
	at, remembered := m.deleted[c.key]
	if m.emptied != nil && !remembered && len(m.rows[c.key]) == 0 {
		at, remembered = *m.emptied, true
	}
	older, equal = remembered && c.ord < at, remembered && c.ord == at
	for _, r := range m.rows[c.key] {
		if r[colOrd] != nil {
			older, equal = older || c.ord < *r[colOrd], equal || c.ord == *r[colOrd]
		}
	}
	switch {
	case older && m.order.Late == batcher.LateApply:
		m.taken++
		return true
	case older:
		if m.order.Late == batcher.LateDeadLetter {
			m.sent = append(m.sent, splitLetter{i, "late"})
		}
		return false
	case equal && m.order.Tie == batcher.TieDeadLetter:
		m.sent = append(m.sent, splitLetter{i, "tie"})
		return false
	}
	return !equal || m.order.Tie == batcher.TieLast
}

// judge says whether something at a place takes effect on what is at another.
func (m *splitModel) judge(at, other int64) bool {
	return at > other || at == other && m.order.Tie == batcher.TieLast || at < other && m.order.Late == batcher.LateApply
}

// truncate is the delete of every row, each for itself.
func (m *splitModel) truncate(at int64) {
	if !m.ordered {
		m.rows = map[int64][]splitRow{}
		return
	}
	if m.emptied != nil {
		if !m.judge(at, *m.emptied) {
			return
		}
		if at < *m.emptied {
			m.taken++
		}
	}
	for k := range m.rows {
		m.rows[k] = slices.DeleteFunc(m.rows[k], func(r splitRow) bool { return r[colOrd] == nil || m.judge(at, *r[colOrd]) })
	}
	for k, deleted := range m.deleted {
		if m.judge(at, deleted) {
			delete(m.deleted, k)
		}
	}
	m.emptied = &at
}

func num(n int64) *int64 { return &n }

func (m *splitModel) step(i int, c splitChange, origin []splitRow) {
	if c.delete && !m.apply.Deletes() {
		return // ignored, whatever its place
	}
	rows := m.rows[c.key]
	late := m.taken
	if !m.passes(i, c) {
		return
	}
	switch {
	case c.delete && m.remembers && (m.apply == batcher.Mirror || len(rows) == 0):
		delete(m.rows, c.key)
		m.deleted[c.key] = c.ord
		return
	case c.delete && m.apply == batcher.Mirror:
		delete(m.rows, c.key)
	case c.delete && m.apply == batcher.SoftDelete:
		for j := range rows {
			rows[j][colDeleted] = num(c.time)
			if m.ordered {
				rows[j][colOrd] = num(c.ord)
			}
		}
	case m.apply == batcher.InsertOnly && len(rows) > 0: // ignored
	case m.apply == batcher.Append || len(rows) == 0:
		row := splitRow{colA: num(7), colC: num(5)} // defaults
		if len(origin) > 0 {
			row = origin[0]
		}
		for col := range splitColumns {
			if len(origin) == 0 && (c.holes[col] == unavailable || c.holes[col] == absent && col == colB) {
				m.letters = append(m.letters, i)
				m.taken = late // it was not applied after all
				return
			}
		}
		m.rows[c.key] = append(m.rows[c.key], m.patch(row, c))
	default:
		for j := range rows {
			if len(origin) > 0 && (m.apply != batcher.Mirror || m.clauses) {
				r := origin[0]
				for col := range splitColumns {
					if c.holes[col] >= absent {
						rows[j][col] = r[col]
					}
				}
			}
			rows[j] = m.patch(rows[j], c)
		}
	}
	if !c.delete {
		delete(m.deleted, c.key) // the row says it now
	}
}

// patch writes what a change knows over a row; a NULL becomes the default.
func (m *splitModel) patch(r splitRow, c splitChange) splitRow {
	for col := range splitColumns {
		switch {
		case col == colK:
			r[col] = num(c.key)
		case col == colOrd:
			r[col] = num(c.ord)
		case col == colDeleted:
			r[col] = nil
		case c.holes[col] == known:
			r[col] = num(c.value)
		case c.holes[col] == null && col == colA:
			r[col] = num(7)
		case c.holes[col] == null:
			r[col] = nil
		}
	}
	return r
}

// run applies a stream. A move is a delete and a put that knows what was deleted.
// Under mirror a put whose old row is not there is made complete: what an earlier
// delete of the same batch took away is still known, but not that of a batch before.
func (m *splitModel) run(stream []splitChange) {
	var origin []splitRow
	for i := range stream {
		c := &stream[i]
		switch {
		case c.truncate:
			m.truncate(c.ord)
		case c.moved:
			if len(origin) == 0 && m.apply == batcher.Mirror {
				c.holes = [splitColumns]hole{}
			}
			m.step(i, *c, origin)
		case c.old >= 0:
			m.step(i, *c, slices.Clone(m.rows[c.old]))
		default:
			origin = slices.Clone(m.rows[c.key])
			m.step(i, *c, nil)
		}
	}
}

// drawStream draws changes of a preset: keys 0..3 meet often, key 9 has several
// rows in the table and moves nowhere. truncates: the source's table may be emptied.
func drawStream(t *rapid.T, a batcher.Apply, ordered, truncates bool) []splitChange {
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []splitChange {
		c := splitChange{key: rapid.SampledFrom([]int64{0, 1, 2, 3, 9}).Draw(t, "key"), old: -1}
		if ordered {
			c.ord = rapid.Int64Range(0, 6).Draw(t, "ord")
		}
		if truncates && rapid.IntRange(0, 7).Draw(t, "truncate") == 0 {
			c.truncate = true
			return []splitChange{c}
		}
		switch x := rapid.IntRange(0, 9).Draw(t, "what"); {
		case x >= 7 && a != batcher.Append:
			c.delete = true
			return []splitChange{c}
		case x >= 4 && a != batcher.Append && c.key != 9:
			return drawMove(t, a, c)
		}
		c.holes = drawHoles(t)
		return []splitChange{c}
	}), 1, 25).Draw(t, "stream")
	var out []splitChange
	for _, s := range steps {
		for _, c := range s {
			i := int64(len(out))
			c.value, c.time = 100+i, 1000*i
			if !ordered {
				c.ord = i
			}
			out = append(out, c)
		}
	}
	return out
}

func drawMove(t *rapid.T, a batcher.Apply, c splitChange) []splitChange {
	to := rapid.Int64Range(0, 3).Draw(t, "to")
	if to == c.key {
		to = (to + 1) % 4
	}
	put := c
	put.key, put.old, put.holes = to, c.key, drawHoles(t)
	if a == batcher.Upsert || a == batcher.InsertOnly { // decoders leave the delete out
		return []splitChange{put}
	}
	del := c
	del.delete, put.moved = true, true
	return []splitChange{del, put}
}

func drawHoles(t *rapid.T) (h [splitColumns]hole) {
	for _, col := range []int{colA, colB, colC, colD} {
		h[col] = rapid.SampledFrom([]hole{known, known, null, absent, unavailable}).Draw(t, "hole")
		if h[col] == null && (col == colB || col == colC) {
			h[col] = known // the decoder refuses it
		}
	}
	return h
}

// drawCuts says after which changes a batch ends: never inside of a record.
func drawCuts(t *rapid.T, stream []splitChange) []bool {
	cuts := rapid.SliceOfN(rapid.Bool(), len(stream), len(stream)).Draw(t, "cuts")
	for i := range stream {
		if i+1 < len(stream) && stream[i+1].moved {
			cuts[i] = false
		}
	}
	return cuts
}

func kindOf(c splitChange) change.Kind {
	if c.delete {
		return change.Delete
	}
	return change.Update
}
