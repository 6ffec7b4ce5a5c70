package verify

import (
	"context"

	"applier/storage/paimon"
)

// tags checks the states that tags keep: their files stay when their snapshots expire.
func (w *walker) tags(ctx context.Context) {
	t := w.v.Table
	names, err := paimon.ListTags(ctx, t.Bucket(), t.Paths())
	if err != nil {
		w.sec.readError(t.Paths().TagDir(), err)
		return
	}
	for _, name := range names {
		key, err := t.Paths().Tag(name)
		if err != nil {
			w.sec.readError(t.Paths().TagDir(), err)
			continue
		}
		tag, err := paimon.ReadTag(ctx, t.Bucket(), t.Paths(), name)
		if err != nil {
			w.sec.readError(key, err)
			continue
		}
		// It goes with the newest snapshot here, which does not expire meanwhile.
		s := &snapshot{id: w.v.r.Latest, key: key, s: &tag.Snapshot}
		if c := w.content(ctx, s); c != nil {
			w.check(ctx, nil, c)
		}
		w.sec.count("tags", 1)
	}
}
