package compact

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"applier/merger/publish"
	"applier/storage/failpoint"
	"applier/storage/paimon"

	"github.com/RoaringBitmap/roaring/v2"
)

// attempts bounds how often a commit that others keep overtaking is tried. Each
// try is short: only vectors and manifests are written again.
const attempts = 50

// commit publishes the joins that are not committed yet.
func (r *runner) commit(ctx context.Context) error {
	joins := r.joins
	r.joins = nil
	if len(joins) == 0 {
		return nil
	}
	for range attempts {
		done, err := r.attempt(ctx, joins)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("a compaction was overtaken %d times by other commits: it is tried again later", attempts)
}

// attempt builds on the newest snapshot. It is done if it won, or if nothing is
// left to do.
func (r *runner) attempt(ctx context.Context, joins []*join) (done bool, err error) {
	_, st, err := r.t.Version(ctx, paimon.Version{})
	if err != nil {
		return false, err
	}
	ch, fit, err := r.changes(ctx, st, joins)
	if err != nil {
		return false, err
	}
	if fit == 0 {
		r.result.Abandoned += len(joins)
		return true, nil
	}
	if err := publish.Secure(ctx, r.t, st.Snapshot, r.o.Now()); err != nil {
		return false, err
	}
	c, err := r.t.BuildCommit(ctx, st, ch, paimon.CommitInfo{
		UUID: r.o.NewUUID(), User: r.o.User, Identifier: paimon.BatchCommitIdentifier,
		TimeMillis: r.o.Now().UnixMilli(), NewUUID: r.o.NewUUID,
	})
	if err != nil {
		return false, err
	}
	objects := c.Objects
	if ch.Index != nil {
		objects = append(slices.Clip(objects), ch.Index.Objects...)
	}
	if err := r.t.Bucket().PutAll(ctx, objects); err != nil {
		return false, fmt.Errorf("writing the metadata of snapshot %d: %w", c.Snapshot.ID, err)
	}
	if err := failpoint.Hit("compact/publish"); err != nil {
		return false, err
	}
	won, err := publish.Snapshot(ctx, r.t, c)
	if err != nil || !won {
		return false, err
	}
	r.result.Commits++
	r.result.Snapshot = c.Snapshot.ID
	r.result.FilesBefore += len(ch.Delete)
	r.result.FilesAfter += len(ch.Add)
	r.result.Abandoned += len(joins) - fit
	if err := paimon.WriteLatestHint(ctx, r.t.Bucket(), r.t.Paths(), c.Snapshot.ID); err != nil {
		r.o.Log.Warn("moving the hint to the newest snapshot", "err", err)
	}
	return true, nil
}

// changes brings the joins to a state; those that do not fit it any more are left
// out. n is how many are left.
func (r *runner) changes(ctx context.Context, st *paimon.State, joins []*join) (ch paimon.Changes, n int, err error) {
	ch.Compact = true
	files, err := r.t.Files(ctx, st, nil)
	if err != nil {
		return ch, 0, err
	}
	live, rows := map[paimon.FileKey]bool{}, map[paimon.FileKey]int64{}
	for i := range files {
		k := paimon.KeyOf(&files[i])
		live[k], rows[k] = true, files[i].File.Rows
	}
	refs, err := r.t.LiveVectors(st.Index)
	if err != nil {
		return ch, 0, err
	}
	var vectors []paimon.VectorChange
	for _, j := range joins {
		late, ok, err := r.fits(ctx, j, live, refs)
		if err != nil {
			return ch, 0, err
		}
		if !ok {
			continue
		}
		n++
		vectors = append(vectors, r.add(&ch, j, late, refs)...)
	}
	if len(vectors) == 0 {
		return ch, n, nil
	}
	slices.SortStableFunc(vectors, func(a, b paimon.VectorChange) int {
		if c := strings.Compare(a.File.Partition, b.File.Partition); c != 0 {
			return c
		}
		return int(a.File.Bucket) - int(b.File.Bucket)
	})
	ch.Index, err = r.t.BuildVectors(st, vectors, func(k paimon.FileKey) (*roaring.Bitmap, error) {
		return r.t.ReadVector(ctx, refs[k], rows[k])
	}, r.o.NewUUID)
	return ch, n, err
}

// add adds what a join changes.
func (r *runner) add(ch *paimon.Changes, j *join, late *roaring.Bitmap, refs map[paimon.FileKey]paimon.VectorRef) []paimon.VectorChange {
	var vectors []paimon.VectorChange
	for i := range j.parts {
		e := j.parts[i].entry
		ch.Delete = append(ch.Delete, e)
		if _, has := refs[paimon.KeyOf(&e)]; has {
			vectors = append(vectors, paimon.VectorChange{File: paimon.KeyOf(&e)})
		}
	}
	if j.file == nil || int64(late.GetCardinality()) == j.file.File.Rows {
		return vectors // no row is left
	}
	ch.Add = append(ch.Add, *j.file)
	if !late.IsEmpty() {
		vectors = append(vectors, paimon.VectorChange{File: paimon.KeyOf(j.file), Vector: late})
	}
	return vectors
}
