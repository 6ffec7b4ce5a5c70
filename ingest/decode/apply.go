package decode

import (
	"bytes"
	"fmt"
	"slices"

	"applier/ingest/change"
)

// apply turns an envelope with an op into changes.
func (d *debezium) apply(out *change.Batch, row int) (Result, *RowError) {
	var kind change.Kind
	switch d.env.op {
	case 'c':
		kind = change.Insert
	case 'u':
		kind = change.Update
	case 'r':
		kind = change.Read
	case 'd':
		out.Truncate(row)
		return d.remove(out)
	case 't', 'm':
		out.Truncate(row)
		if d.env.op == 't' {
			return d.truncation(out)
		}
		return Result{Skip: SkipMessage}, nil
	default:
		return Result{}, &RowError{Class: ClassEnvelope, Msg: "unknown op" + d.opName()}
	}
	if d.env.after < 0 {
		return Result{}, &RowError{Class: ClassEnvelope, Msg: fmt.Sprintf("op %c without an after image", d.env.op)}
	}
	if err := d.key.brokenError(); err != nil {
		return Result{}, err
	}
	if !d.opts.Append {
		d.deletes.forget(d.ev.rec)
		if kind == change.Update && d.keyChanged(out, row) {
			return d.moveKey(out, row)
		}
	}
	if err := d.finish(out, kind, &d.ev); err != nil {
		return Result{}, err
	}
	if !d.opts.Append {
		d.linkHeader(out)
	}
	return Result{Rows: 1}, nil
}

// truncation reads op t. The cells that its place is made of are taken back.
func (d *debezium) truncation(out *change.Batch) (Result, *RowError) {
	t := &change.Truncation{Part: d.ev.rec.Part, Offset: d.ev.rec.Offset, Time: d.ev.time}
	if d.opts.Truncates {
		row := out.Len()
		defer out.Truncate(row)
		for _, c := range d.opts.OrderBy {
			at := slices.IndexFunc(d.metas, func(m meta) bool { return m.column == c })
			if at < 0 {
				return Result{}, &RowError{Class: ClassKey, Column: d.fields[c].Name, Msg: "op t carries no value for this order_by column; fill it from metadata (columns.add)"}
			}
			if err := d.fillMeta(&d.metas[at], out, change.Delete, &d.ev); err != nil {
				return Result{}, err
			}
			place := out.Cols[c].Datum(row)
			if place.Null {
				return Result{}, &RowError{Class: ClassKey, Column: d.fields[c].Name, Msg: "op t carries no value for this order_by column"}
			}
			place.B = slices.Clone(place.B)
			t.Order = append(t.Order, place)
		}
	}
	return Result{Skip: SkipTruncate, Truncation: t, Note: "op t: the source table was truncated"}, nil
}

// remove applies op d.
func (d *debezium) remove(out *change.Batch) (Result, *RowError) {
	if err := d.key.brokenError(); err != nil {
		return Result{}, err
	}
	if d.opts.IgnoreDeletes {
		d.deletes.remember(d.ev.rec)
		return Result{Skip: SkipDelete}, nil
	}
	if !d.opts.Append {
		if err := d.deletionWithImage(out); err != nil {
			return Result{}, err
		}
		d.deletes.remember(d.ev.rec)
		return Result{Rows: 1}, nil
	}
	if err := d.beforeImage(out); err != nil {
		return Result{}, err
	}
	if err := d.finish(out, change.Delete, &d.ev); err != nil {
		return Result{}, err
	}
	return Result{Rows: 1}, nil
}

// deletionWithImage appends op d: with BeforeImages the before image as far as there
// is one, whose merge key must be that of the record key. It may lack values for NOT
// NULL columns: connectors send what the database logs.
func (d *debezium) deletionWithImage(out *change.Batch) *RowError {
	if !d.opts.BeforeImages || d.env.before < 0 {
		return d.deletion(out, &d.ev, true)
	}
	clear(d.imageKey)
	if err := d.reread(d.env.before, d.env.old, out); err != nil {
		return err
	}
	for i := range d.metas {
		if err := d.fillMeta(&d.metas[i], out, change.Delete, &d.ev); err != nil {
			return err
		}
	}
	if err := d.checkKey(out, out.Len()); err != nil {
		return err
	}
	return d.endDeletion(out, &d.ev)
}

// beforeImage begins the row of an appended delete: the before image as far as
// there is one, the record key, NULL for the rest.
func (d *debezium) beforeImage(out *change.Batch) *RowError {
	row := out.Len()
	if d.env.before >= 0 {
		if err := d.reread(d.env.before, d.env.old, out); err != nil {
			return err
		}
	} else if err := d.fillAbsent(out, row); err != nil {
		return err
	}
	absent := 0
	for i := range out.Cols {
		if out.Cols[i].Absent.Get(row) {
			out.Cols[i].Absent.Clear(row)
			absent++
		}
	}
	if absent+len(d.metas) == len(d.fields) {
		return &RowError{Class: ClassEnvelope, Msg: "op d without a before image and without a record key"}
	}
	return nil
}

// reread converts an image that the pass over the value skipped.
func (d *debezium) reread(at int, pl *plan, out *change.Batch) *RowError {
	d.again.reset(d.ev.rec.Value)
	d.again.p, d.again.depth = at, d.env.depth
	return d.image(&d.again, pl, out)
}

// keyChanged reports whether the merge key before an update is known and
// differs from the one after it. Debezium itself splits changes of the primary
// key; a merge key of other columns can change in a plain update.
func (d *debezium) keyChanged(out *change.Batch, row int) bool {
	changed := false
	for at, i := range d.opts.Key {
		old := &d.beforeKey[at]
		if d.skip[i] || old.raw != nil && bytes.Equal(old.raw, d.imageKey[at]) {
			continue
		}
		if old.raw == nil || bytes.Equal(old.raw, literalNull) || out.Cols[i].Hole(row) || out.Cols[i].IsNull(row) {
			return false
		}
		same, f := d.sameCell(old, at, out.Cols[i].Vector, row)
		if f != nil {
			return false
		}
		changed = changed || !same
	}
	return changed
}

// moveKey applies an update that changes the merge key: a delete of the old key
// and an insert of the new one that knows where its values were.
func (d *debezium) moveKey(out *change.Batch, row int) (Result, *RowError) {
	out.Truncate(row)
	rows := 1
	if !d.opts.IgnoreDeletes {
		if err := d.deletion(out, &d.ev, false); err != nil {
			return Result{}, err
		}
		rows = 2
	}
	if err := d.reread(d.env.after, d.env.plan, out); err != nil {
		return Result{}, err
	}
	if err := d.finish(out, change.Insert, &d.ev); err != nil {
		return Result{}, err
	}
	copy(d.oldKey, d.beforeKey)
	d.linkOldKey(out)
	return Result{Rows: rows}, nil
}
