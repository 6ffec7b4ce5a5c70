package verify

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"applier/batcher"
	"applier/ingest"
	"applier/ingest/decode"
	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/dv"
	"applier/storage/paimon/manifest"
)

// Target is a pipeline and its table.
type Target struct {
	Pipeline string
	ID       string // of the position record
	Name     string // DATABASE.TABLE
	Table    *paimon.Table
	Apply    batcher.Apply
	Merge    *merger.Merge // the clauses, where Apply is batcher.Merge
	// Key are columns of the table; Order says which changes are newer, and Remembers
	// that deletes keep their place in it. Topics are the sources.
	Key       []int
	Order     batcher.Order
	Remembers bool
	Topics    []string
	// Config is the digest of the present settings (merger.ConfigDigest).
	Config string
	// NewDecoder makes a decoder of the records.
	NewDecoder func() (decode.Decoder, error)
	// MaxRecordBytes refuses larger records, as the pipeline does.
	MaxRecordBytes int
	// Marked: a marker outside of the table says that the pipeline has committed.
	Marked bool
	// Kafka is where the records come from; nil leaves them out for the reason
	// Offline.
	Kafka   *ingest.ClientOptions
	Offline string
	// Running is what a running process says of its index; nil for none.
	Running *Running
}

// Running is the index of a running process.
type Running struct {
	Snapshot int64
	Keys     int64
}

// Options say how much is checked.
type Options struct {
	// Full reads every row of every retained data file.
	Full bool
	// MaxKeys bounds the keys that are compared with Kafka's records; of more, a
	// sample is taken. 0 is a million.
	MaxKeys int64
}

// Run checks a table. The error is about not being able to begin; everything
// else is in the report.
func Run(ctx context.Context, t Target, o Options) (*Report, error) {
	from := time.Now()
	if o.MaxKeys <= 0 {
		o.MaxKeys = 1_000_000
	}
	r := &Report{Pipeline: t.Pipeline, Table: t.Name, Full: o.Full}
	v := &verifier{Target: t, o: o, r: r}
	if err := v.snapshots(ctx); err != nil {
		return nil, err
	}
	v.positions(ctx)
	v.files(ctx)
	v.vectors(ctx)
	if o.Full {
		v.rows(ctx)
	} else {
		r.section("rows").skip("only with --full: row counts and statistics of every data file")
	}
	v.keys(ctx)
	v.records(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.finish(from)
	return r, nil
}

// verifier is one run.
type verifier struct {
	Target
	o     Options
	r     *Report
	chain []*snapshot // ascending; those that could be read
	walk  *walker
	last  *content // of the latest snapshot, nil if it cannot be read
}

// outOfReach tells errors of reading at all from what says that bytes are wrong.
func outOfReach(err error) bool {
	var errno syscall.Errno
	var pathErr *fs.PathError
	switch {
	case errors.Is(err, objstore.ErrNotExist), errors.Is(err, fs.ErrNotExist):
		return false
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, objstore.ErrPermission),
		errors.Is(err, paimon.ErrNewer), errors.Is(err, merger.ErrRecordVersion):
		return true
	}
	return errors.As(err, &errno) || errors.As(err, &pathErr)
}

// corrupt tells bytes of the table that are wrong from all other errors.
func corrupt(err error) bool {
	return errors.Is(err, paimon.ErrCorrupt) || errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, datafile.ErrCorrupt) || errors.Is(err, dv.ErrCorrupt) ||
		errors.Is(err, objstore.ErrSize)
}

// gone reports whether a snapshot has expired since the run began: what only it
// named may be gone with it.
func (v *verifier) gone(ctx context.Context, snapshot int64) bool {
	ids, err := paimon.ListSnapshotIDs(ctx, v.Table.Bucket(), v.Table.Paths())
	return err == nil && len(ids) > 0 && ids[0] > snapshot
}
