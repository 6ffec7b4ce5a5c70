package merger

import (
	"context"

	"applier/storage/paimon"
)

// knownBuckets are the states of a table's buckets at one snapshot. It is kept
// apart from the index: append needs it too.
type knownBuckets struct {
	ref    SnapRef
	states *paimon.BucketStates
}

// bucketStates returns the states of the buckets at the snapshot that an attempt
// is built on.
func (v *view) bucketStates(ctx context.Context, base *paimon.State) (*paimon.BucketStates, error) {
	if v.buckets.states != nil && v.buckets.ref == v.ref && v.ref != (SnapRef{}) && base == v.state {
		return v.buckets.states, nil
	}
	files, err := v.table.Files(ctx, base, nil)
	if err != nil {
		return nil, err
	}
	states := paimon.NewBucketStates(files)
	if base == v.state {
		v.buckets = knownBuckets{v.ref, states}
	}
	return states, nil
}

// bucketsCommitted follows our own commit, if what it was built on is known.
func (v *view) bucketsCommitted(ref SnapRef, at *attempt) {
	if v.buckets.states == nil || v.buckets.ref != at.base {
		v.buckets = knownBuckets{}
		return
	}
	v.buckets.states.Add(at.commit.Added)
	v.buckets.ref = ref
}
