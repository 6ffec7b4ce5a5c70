package verify

import (
	"slices"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger"
	"applier/merger/defaults"
	"applier/merger/expr"
	"applier/storage/paimon"
	"applier/storage/types"
)

// model is what the records make of a table, one row and one change at a time: it
// is written to be read beside the documentation of the presets, not to be fast,
// and shares nothing with the planner it checks.
type model struct {
	fields    []types.Field
	keyFields []types.Field
	key       []int
	order     batcher.Order
	remembers bool // deletes keep their place in the order
	preset    batcher.Apply
	defaults  []*types.Datum
	timed     []bool   // by column: the default is the time of the batch
	clauses   *clauses // in the place of a preset
	deletedAt int      // column that soft deletes set, -1 for other presets
	rows      map[string][][]types.Datum
	// timedCells are, by key, the columns of its rows that hold the time of a batch:
	// no record says it.
	timedCells map[string][]bool
	deleted    map[string][]types.Datum // by key: the last delete's place in the order
	emptied    []types.Datum            // the last truncation's place in the order, nil for none
	// unknown are keys whose rows the records alone do not decide.
	unknown map[string]bool
	// Of the batch at hand: rows that deletes ended, and where keys were seen.
	past map[string][]types.Datum
	seen map[string]change.Partition
}

func newModel(v *verifier) (*model, error) {
	m := &model{
		fields: v.Table.Schema().Fields, key: v.Key, order: v.Order, remembers: v.Remembers, preset: v.Apply, deletedAt: -1,
		rows: map[string][][]types.Datum{}, deleted: map[string][]types.Datum{}, unknown: map[string]bool{}, timedCells: map[string][]bool{},
	}
	if err := m.readDefaults(v.Table.Schema()); err != nil {
		return nil, err
	}
	for i, f := range m.fields {
		if v.Apply == batcher.SoftDelete && f.Name == merger.DeletedAt {
			m.deletedAt, m.defaults[i], m.timed[i] = i, nil, false
		}
	}
	for _, c := range v.Key {
		m.keyFields = append(m.keyFields, m.fields[c])
	}
	if v.Merge == nil {
		return m, nil
	}
	var err error
	m.clauses, err = newClauses(v, m)
	return m, err
}

// readDefaults takes the defaults of the columns, and which of them are the time.
func (m *model) readDefaults(s *paimon.Schema) error {
	m.timed = make([]bool, len(m.fields))
	for i, f := range m.fields {
		one := *s
		one.Fields = []types.Field{f}
		list, err := defaults.Values(&one, &expr.Env{Now: time.Now(), ReadTime: func() { m.timed[i] = true }})
		if err != nil {
			return err
		}
		m.defaults = append(m.defaults, list[0])
	}
	return nil
}

func (m *model) newBatch() *change.Batch { return change.NewBatch(m.fields, m.keyFields) }

// text is a row, equal exactly if SQL says so.
func (m *model) text(row []types.Datum) string { return keyText(m.fields, row) }

// comparable is the text of a row of a key without the times that no record says.
func (m *model) comparable(key string, row []types.Datum) string {
	return m.text(without(row, m.timedCells[key]))
}

// appended is the text of a row that was appended, without what may be such times.
func (m *model) appended(row []types.Datum) string { return m.text(without(row, m.timed)) }

func without(row []types.Datum, cells []bool) []types.Datum {
	row = slices.Clone(row)
	for c, out := range cells {
		if out {
			row[c] = types.Null
		}
	}
	return row
}

// copyTimed marks the cells of a key that hold the time of a batch.
func (m *model) copyTimed(to []bool, key string) {
	for c, timed := range m.timedCells[key] {
		to[c] = to[c] || timed
	}
}

func (m *model) keyOfRow(row []types.Datum) string {
	key := make([]types.Datum, len(m.key))
	for i, c := range m.key {
		key[i] = row[c]
	}
	return keyText(m.keyFields, key)
}

// keyOf is the key of a change; false if a part of it is NULL.
func (m *model) keyOf(b *change.Batch, i int) (string, bool) {
	key := make([]types.Datum, len(m.key))
	for j, c := range m.key {
		if key[j] = b.Cols[c].Datum(i); key[j].Null {
			return "", false
		}
	}
	return keyText(m.keyFields, key), true
}

// oldKeyOf is the key that the row of a change had before it.
func (m *model) oldKeyOf(b *change.Batch, i int) (string, bool) {
	at := b.OldKeyOf(i)
	if at < 0 {
		return "", false
	}
	return keyText(m.keyFields, b.OldKeys.Row(at)), true
}

func (m *model) beginBatch() {
	m.past, m.seen = map[string][]types.Datum{}, map[string]change.Partition{}
}

// outcome says what became of a change of a key.
type outcome string

// The outcomes.
const (
	applied     outcome = "applied"
	ignored     outcome = "ignored: the preset does not follow deletes"
	exists      outcome = "ignored: the key has a row already (insert_only)"
	tooLate     outcome = "late: the row is newer by order_by"
	afterward   outcome = "late: a remembered delete of the key is newer by order_by"
	tied        outcome = "tied: the row, or a remembered delete, has the same place by order_by and was first"
	noRow       outcome = "no effect: the key has no row"
	unfillable  outcome = "refused: it leaves a value open that nothing fills"
	noClause    outcome = "no effect: no clause of merge.when acts"
	unevaluable outcome = "refused: the clauses of merge.when cannot be evaluated for it"
	otherKey    outcome = ""
)

// apply does what change i of b says, if its key is one of those compared.
func (m *model) apply(b *change.Batch, i int, partition int32, topic string, compared map[string]bool) outcome {
	key, ok := m.keyOf(b, i)
	if !ok || !compared[key] {
		return otherKey
	}
	here := change.Partition{Topic: topic, Partition: partition}
	if at, before := m.seen[key]; before && at != here {
		m.unknown[key] = true
	}
	m.seen[key] = here
	if m.clauses != nil {
		return m.clauses.put(key, b, i, here)
	}
	deletes, has := b.Kind[i] == change.Delete, len(m.rows[key]) > 0
	if deletes && (m.preset == batcher.Upsert || m.preset == batcher.InsertOnly) {
		return ignored
	}
	if why := m.place(key, b, i, deletes); why != applied {
		return why
	}
	switch {
	case deletes && !has:
		return noRow
	case deletes && m.preset == batcher.Mirror:
		m.past[key] = m.rows[key][0]
		delete(m.rows, key)
	case deletes:
		m.softDelete(key, b, i)
	case m.preset == batcher.InsertOnly && has:
		return exists
	case !m.put(key, b, i):
		return unfillable
	}
	return applied
}

// truncate deletes the rows of all keys that are compared, each as the order says.
func (m *model) truncate(at []types.Datum) outcome {
	if len(m.order.By) == 0 {
		any := len(m.rows) > 0
		clear(m.rows)
		if !any {
			return noRow
		}
		return applied
	}
	takes := func(other []types.Datum) bool {
		d := m.comparePlaces(at, func(k int) types.Datum { return other[k] })
		return d > 0 || d == 0 && m.order.Tie == batcher.TieLast || d < 0 && m.order.Late == batcher.LateApply
	}
	if m.emptied != nil && !takes(m.emptied) {
		return afterward
	}
	m.emptied = at
	o := noRow
	for key, rows := range m.rows {
		m.rows[key] = slices.DeleteFunc(rows, func(row []types.Datum) bool {
			place := make([]types.Datum, len(m.order.By))
			for k, c := range m.order.By {
				place[k] = row[c]
			}
			if !takes(place) {
				return false
			}
			o = applied
			return true
		})
	}
	for key, place := range m.deleted {
		if takes(place) {
			delete(m.deleted, key)
		}
	}
	return o
}

// place says whether the order lets a change take effect, and remembers where a
// delete stood. What deletes from before the records at hand, memory that was lost
// or that has expired decide, these records do not: such a key is unknown.
func (m *model) place(key string, b *change.Batch, i int, deletes bool) outcome {
	if len(m.order.By) == 0 {
		return applied
	}
	at := make([]types.Datum, len(m.order.By))
	for k, c := range m.order.By {
		at[k] = clone(b.Cols[c].Datum(i))
	}
	older, equal := false, false
	against := func(d int) { older, equal = older || d < 0, equal || d == 0 }
	for _, row := range m.rows[key] {
		against(m.comparePlaces(at, func(k int) types.Datum { return row[m.order.By[k]] }))
	}
	if m.remembers && len(m.rows[key]) == 0 {
		place, known := m.deleted[key]
		if !known {
			m.unknown[key] = true
			place = m.emptied
		}
		if place != nil {
			if d := m.comparePlaces(at, func(k int) types.Datum { return place[k] }); d <= 0 {
				against(d)
				m.unknown[key] = true
			}
		}
	}
	switch {
	case older && m.order.Late != batcher.LateApply && len(m.rows[key]) == 0:
		return afterward
	case older && m.order.Late != batcher.LateApply:
		return tooLate
	case !older && equal && m.order.Tie != batcher.TieLast:
		return tied
	}
	if deletes && m.remembers {
		m.deleted[key] = at
	}
	return applied
}

func (m *model) comparePlaces(at []types.Datum, other func(k int) types.Datum) int {
	for k, c := range m.order.By {
		if d := types.CompareDatums(m.fields[c].Type, at[k], other(k)); d != 0 {
			return d
		}
	}
	return 0
}

func (m *model) softDelete(key string, b *change.Batch, i int) {
	for _, row := range m.rows[key] {
		for _, c := range m.order.By {
			row[c] = m.value(b, i, c)
		}
		unit := int64(1)
		for p := m.fields[m.deletedAt].Type.Precision; p < 3; p++ {
			unit *= 10
		}
		ms := types.FloorDiv(b.Time[i], unit) * unit
		row[m.deletedAt] = types.Datum{I: ms * 1000}
	}
}

// value is what a change says about a column: NULL becomes the default.
func (m *model) value(b *change.Batch, i, c int) types.Datum {
	d := clone(b.Cols[c].Datum(i))
	if d.Null && m.defaults[c] != nil {
		return *m.defaults[c]
	}
	return d
}

// put writes an image: over the rows of the key, or as a new one; false if that
// cannot be made.
func (m *model) put(key string, b *change.Batch, i int) bool {
	from := m.origin(key, b, i)
	timed := make([]bool, len(m.fields))
	if len(m.rows[key]) == 0 {
		row, ok := m.newRow(b, i, from, timed)
		if ok {
			m.rows[key], m.timedCells[key] = [][]types.Datum{row}, timed
		}
		return ok
	}
	m.copyTimed(timed, key)
	m.timedCells[key] = timed
	for _, row := range m.rows[key] {
		for c := range m.fields {
			switch {
			case !b.Cols[c].Hole(i):
				row[c] = m.value(b, i, c)
				timed[c] = m.timed[c] && b.Cols[c].IsNull(i)
			case from != nil && m.preset != batcher.Mirror:
				row[c] = from[c]
			}
		}
	}
	return true
}

// origin is the row that a key change moved here, if the change leaves something
// open that it may hold.
func (m *model) origin(key string, b *change.Batch, i int) []types.Datum {
	old, ok := m.oldKeyOf(b, i)
	if !ok || !b.Holes.Get(i) {
		return nil
	}
	if at, before := m.seen[old]; m.unknown[old] || before && at != m.seen[key] || slices.Contains(m.timedCells[old], true) {
		m.unknown[key] = true
	}
	if rows := m.rows[old]; len(rows) > 0 {
		return cloneRow(rows[0])
	}
	return m.past[old]
}

// newRow makes a row of a change whose key has none; false if it leaves open what
// nothing can fill, which refuses the record. timed gets the cells that hold the time of
// the batch.
func (m *model) newRow(b *change.Batch, i int, from []types.Datum, timed []bool) ([]types.Datum, bool) {
	row := make([]types.Datum, len(m.fields))
	for c, f := range m.fields {
		col := &b.Cols[c]
		switch {
		case !col.Hole(i):
			row[c] = m.value(b, i, c)
			timed[c] = m.timed[c] && col.IsNull(i)
		case from != nil:
			row[c] = from[c]
		case col.Unavailable.Get(i), f.Type.NotNull && m.defaults[c] == nil:
			return nil, false
		case m.defaults[c] != nil:
			row[c], timed[c] = *m.defaults[c], m.timed[c]
		default:
			row[c] = types.Null
		}
	}
	return row, true
}

// image is the row that a change appends.
func (m *model) image(b *change.Batch, i int) ([]types.Datum, bool) {
	return m.newRow(b, i, nil, make([]bool, len(m.fields)))
}

// remove takes one row away that equals the given one.
func (m *model) remove(row []types.Datum) bool {
	key := m.keyOfRow(row)
	text := m.comparable(key, row)
	at := slices.IndexFunc(m.rows[key], func(r []types.Datum) bool { return m.comparable(key, r) == text })
	if at < 0 {
		return m.unknown[key]
	}
	m.rows[key] = slices.Delete(m.rows[key], at, at+1)
	return true
}
