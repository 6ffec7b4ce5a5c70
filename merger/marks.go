package merger

import (
	"context"
	"encoding/json"
	"errors"

	"applier/storage/objstore"
	"applier/storage/paimon"
)

// Two marks stand outside of the snapshots. The consumer file pins the newest
// record against foreign expiry and says that this pipeline has committed here;
// the marker in the state folder says the latter again, should the consumer file
// be removed together with the records. Records are written first, marks second:
// a mark without a record then always means that a record was lost.

// consumerID names the pipeline's consumer file.
func (a *Applier) consumerID() string { return "applier-" + a.set.ID }

func (a *Applier) markerKey() string { return markerKey(a.set.ID) }

func markerKey(id string) string { return id + ".marker" }

// marks reports whether a marker says that we committed before, and whether the
// pin names the record's snapshot.
func (a *Applier) marks(ctx context.Context, record SnapRef) (marked, pinned bool) {
	next, err := paimon.ReadConsumer(ctx, a.table.Bucket(), a.table.Paths(), a.consumerID())
	consumer := err == nil
	marked = consumer || a.markedLocally()
	a.pinned = a.pinned && consumer
	a.pinnedAt = next
	pinned = !a.set.Pin || consumer && next == record.ID
	if err != nil && !errors.Is(err, objstore.ErrNotExist) {
		a.set.Log.Warn("cannot read the consumer pin", "err", err)
	}
	return marked, pinned
}

func (a *Applier) markedLocally() bool { return a.localMarker().Table == a.identity }

// replaced reports whether the state folder knows another table of this name: it
// was dropped and created again while nobody looked.
func (a *Applier) replaced() bool {
	m := a.localMarker()
	return m.Name == a.name && m.Table != a.identity
}

// localMarker reads the marker in the state folder; the zero marker if there is none.
func (a *Applier) localMarker() (m marker) {
	if a.set.Marks == nil {
		return m
	}
	b, err := a.set.Marks.Get(context.Background(), a.markerKey())
	if err != nil || json.Unmarshal(b, &m) != nil {
		return marker{}
	}
	return m
}

// mark writes both marks for the record at a snapshot, best effort: a missing
// one is written again at the next look. The first time they are made durable;
// after that an older pin protects more, not less.
func (a *Applier) mark(at SnapRef) {
	ctx := context.Background()
	if a.set.Pin {
		key, err := a.table.Paths().Consumer(a.consumerID())
		if err == nil {
			err = a.replace(ctx, a.table.Bucket(), key, paimon.EncodeConsumer(at.ID), &a.pinned)
		}
		if err != nil {
			a.set.Log.Warn("cannot move the consumer pin; foreign expiry could remove the position record", "err", err)
		} else {
			a.pinnedAt = at.ID
		}
	}
	if a.set.Marks == nil || a.marked {
		return
	}
	if err := a.replace(ctx, a.set.Marks, a.markerKey(), marker{Name: a.name, Table: a.identity, Snapshot: at.ID}.encode(), &a.marked); err != nil {
		a.set.Log.Warn("cannot write the marker in the state folder", "err", err)
	}
}

// replace creates an object durably, or moves one that is there.
func (a *Applier) replace(ctx context.Context, b objstore.Bucket, key string, data []byte, durable *bool) error {
	if !*durable {
		err := b.PutIfAbsent(ctx, key, data)
		if err != nil && !errors.Is(err, objstore.ErrExist) {
			return err
		}
		*durable = true
		if err == nil {
			return nil
		}
	}
	return b.Replace(ctx, key, data)
}

// marker is the state folder's memory of past commits.
type marker struct {
	Name     string `json:"name"`  // db.table
	Table    string `json:"table"` // identity
	Snapshot int64  `json:"snapshot"`
}

func (m marker) encode() []byte {
	b, _ := json.Marshal(m)
	return b
}
