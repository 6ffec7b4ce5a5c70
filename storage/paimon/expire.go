package paimon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
)

// ErrChangelog: the table keeps changelogs apart from its snapshots, whose files
// nobody here knows.
var ErrChangelog = errors.New("the table has a changelog folder")

// ExpireOptions say which snapshots may go.
type ExpireOptions struct {
	// RetainMin and RetainMax are how many snapshots stay at least and at most;
	// RetainTime is how long a snapshot stays after it was followed by another one.
	RetainMin, RetainMax int
	RetainTime           time.Duration
	// Limit bounds the snapshots of one run.
	Limit int
	// KeepFrom, if above 0, is the first snapshot that must stay, KeptFor the reason.
	KeepFrom int64
	KeptFor  string
	Now      time.Time
}

// ExpireOptions returns what the table's options say.
func (o *Options) ExpireOptions(now time.Time) ExpireOptions {
	return ExpireOptions{
		RetainMin: o.SnapshotRetainMin, RetainMax: o.SnapshotRetainMax, RetainTime: o.SnapshotRetainTime,
		Limit: o.SnapshotExpireLimit, Now: now,
	}
}

// ExpirePlan is what an expiry removes: the snapshots [From, To) and files that
// nothing else names.
type ExpirePlan struct {
	From, To int64
	// HeldBy says what keeps snapshot To.
	HeldBy string
	// DataFiles and Metadata are the keys of files, sorted; Bytes the size of those
	// whose size is known.
	DataFiles, Metadata []string
	Bytes               int64
}

// Snapshots is the number of snapshots that go.
func (p *ExpirePlan) Snapshots() int64 { return p.To - p.From }

// PlanExpire finds out which snapshots expire, and which files only they name
// (paimon-format.md §11.3). It deletes nothing. Other snapshots, tags, branches
// and consumers keep what they name or wait for; anything of theirs that cannot
// be read is an error, as nobody knows then what must stay.
func (t *Table) PlanExpire(ctx context.Context, o ExpireOptions) (*ExpirePlan, error) {
	ids, err := ListSnapshotIDs(ctx, t.bucket, t.paths)
	if err != nil || len(ids) == 0 {
		return &ExpirePlan{}, err
	}
	if err := CheckContiguous(ids); err != nil {
		return nil, err
	}
	if err := t.refuseChangelog(ctx); err != nil {
		return nil, err
	}
	x := expiry{t: t, o: o, from: ids[0], latest: ids[len(ids)-1]}
	if err := x.end(ctx); err != nil || x.to <= x.from {
		return &ExpirePlan{From: x.from, To: x.from, HeldBy: x.heldBy}, err
	}
	if err := x.candidates(ctx); err != nil {
		return nil, fmt.Errorf("what snapshots %d to %d name: %w", x.from, x.to-1, err)
	}
	if err := x.spare(ctx); err != nil {
		return nil, fmt.Errorf("what other snapshots name: %w", err)
	}
	return x.plan(), nil
}

// refuseChangelog: tables of this package have no decoupled changelog.
func (t *Table) refuseChangelog(ctx context.Context) error {
	return t.bucket.List(ctx, "changelog", func(i objstore.Info) error {
		return fmt.Errorf("%w (%s): expire its snapshots with Flink or Spark", ErrChangelog, i.Key)
	})
}

type expiry struct {
	t        *Table
	o        ExpireOptions
	from, to int64
	latest   int64
	heldBy   string
	data     map[string]int64 // candidates: key to size, -1 if not known
	meta     map[string]int64
}

// end finds the first snapshot that stays.
func (x *expiry) end(ctx context.Context) error {
	x.to, x.heldBy = x.latest-int64(max(x.o.RetainMin, 1))+1, fmt.Sprintf("the %d newest snapshots stay", max(x.o.RetainMin, 1))
	lower := func(id int64, why string) {
		if id < x.to {
			x.to, x.heldBy = id, why
		}
	}
	consumers, err := ListConsumers(ctx, x.t.bucket, x.t.paths)
	if err != nil {
		return err
	}
	for _, c := range consumers {
		lower(c.Next, fmt.Sprintf("consumer %s waits for it", c.ID))
	}
	if x.o.KeepFrom > 0 {
		lower(x.o.KeepFrom, x.o.KeptFor)
	}
	if x.o.Limit > 0 {
		lower(x.from+int64(x.o.Limit), fmt.Sprintf("one run removes %d snapshots", x.o.Limit))
	}
	// Snapshots beyond the most that are retained go whatever their age.
	old := x.latest - int64(x.o.RetainMax) + 1
	for id := max(old, x.from); id < x.to; id++ {
		next, err := ReadSnapshot(ctx, x.t.bucket, x.t.paths, id+1)
		if err != nil {
			return err
		}
		if at := time.UnixMilli(next.TimeMillis); x.o.Now.Sub(at) < x.o.RetainTime {
			lower(id, fmt.Sprintf("it was the newest less than %s ago", x.o.RetainTime))
		}
	}
	return nil
}

// candidates collects what the snapshots that go name, and the data files that
// they and the first one to stay have removed.
func (x *expiry) candidates(ctx context.Context) error {
	x.data, x.meta = map[string]int64{}, map[string]int64{}
	for id := x.from; id <= x.to; id++ {
		s, err := ReadSnapshot(ctx, x.t.bucket, x.t.paths, id)
		if err != nil {
			return err
		}
		if id < x.to {
			if err := x.named(ctx, s); err != nil {
				return err
			}
		}
		if id > x.from {
			if err := x.removed(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// named adds the metadata of a snapshot. Lists that are missing were deleted by
// an expiry that did not end: what they named is for the search for orphans.
func (x *expiry) named(ctx context.Context, s *Snapshot) error {
	keys, err := x.t.metadataKeys(ctx, s)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, k := range keys {
		x.meta[k] = -1
	}
	st, err := x.t.State(ctx, s)
	if err != nil {
		return err
	}
	for _, m := range st.Manifests {
		key, err := x.t.paths.Manifest(m.Name)
		if err != nil {
			return err
		}
		x.meta[key] = m.Size
	}
	for i := range st.Index {
		key, err := x.t.paths.Index(&st.Index[i])
		if err != nil {
			return err
		}
		x.meta[key] = st.Index[i].Size
	}
	return nil
}

// removed adds the data files that a snapshot has removed and not added again.
func (x *expiry) removed(ctx context.Context, s *Snapshot) error {
	delta, err := x.t.Delta(ctx, s)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	added := map[FileKey]bool{}
	for i := range delta {
		if delta[i].Kind == manifest.Add {
			added[KeyOf(&delta[i])] = true
		}
	}
	for i := range delta {
		e := &delta[i]
		if e.Kind != manifest.Delete || added[KeyOf(e)] {
			continue
		}
		keys, err := x.t.appendDataKeys(nil, e)
		if err != nil {
			return err
		}
		for n, k := range keys {
			x.data[k] = -1
			if n == 0 {
				x.data[k] = e.File.Size
			}
		}
	}
	return nil
}

// spare takes away what must stay. A snapshot that is built on exactly the
// manifests of the one before it has its files and those that it added. Any other
// is read as a whole: it merged manifests, or it is a rollback that brings back
// what had gone.
func (x *expiry) spare(ctx context.Context) error {
	r := newReferences(x.t)
	var before []manifest.Meta
	for id := x.to; id <= x.latest; id++ {
		s, err := ReadSnapshot(ctx, x.t.bucket, x.t.paths, id)
		if err != nil {
			return err
		}
		base, _, err := x.t.list(ctx, s.BaseManifestList, s.BaseManifestListSize)
		if err != nil {
			return err
		}
		add := r.live
		if id > x.to && sameManifests(base, before) {
			add = r.added
		}
		if err := add(ctx, s); err != nil {
			return err
		}
		delta, _, err := x.t.list(ctx, s.DeltaManifestList, s.DeltaManifestListSize)
		if err != nil {
			return err
		}
		before = append(base, delta...)
	}
	err := x.t.besides(ctx, func(what string, s *Snapshot) error {
		if err := r.live(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, set := range []map[string]int64{x.data, x.meta} {
		maps.DeleteFunc(set, func(k string, _ int64) bool { return r.keys[k] })
	}
	return nil
}

func sameManifests(a, b []manifest.Meta) bool {
	return slices.EqualFunc(a, b, func(x, y manifest.Meta) bool { return x.Name == y.Name })
}

func (x *expiry) plan() *ExpirePlan {
	p := &ExpirePlan{From: x.from, To: x.to, HeldBy: x.heldBy}
	p.DataFiles, p.Metadata = slices.Sorted(maps.Keys(x.data)), slices.Sorted(maps.Keys(x.meta))
	for _, set := range []map[string]int64{x.data, x.meta} {
		for _, n := range set {
			p.Bytes += max(n, 0)
		}
	}
	return p
}

// deleteBatch is how many files are deleted in one call.
const deleteBatch = 200

// Expire carries a plan out: data files, then metadata, then the snapshots in
// ascending order, then the hint. It may be stopped anywhere: what is left of an
// expired snapshot is expired, or found as an orphan, by a later run.
func (t *Table) Expire(ctx context.Context, p *ExpirePlan) error {
	if p.To <= p.From {
		return nil
	}
	for _, keys := range [][]string{p.DataFiles, p.Metadata} {
		for part := range slices.Chunk(keys, deleteBatch) {
			if err := t.bucket.Delete(ctx, part...); err != nil {
				return fmt.Errorf("expiring snapshots %d to %d: %w", p.From, p.To-1, err)
			}
		}
	}
	for id := p.From; id < p.To; id++ {
		if err := t.bucket.Delete(ctx, t.paths.Snapshot(id)); err != nil {
			return fmt.Errorf("expiring snapshot %d: %w", id, err)
		}
	}
	if err := WriteEarliestHint(ctx, t.bucket, t.paths, p.To); err != nil {
		return fmt.Errorf("expiring snapshots %d to %d: moving the hint: %w", p.From, p.To-1, err)
	}
	return nil
}
