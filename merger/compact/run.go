package compact

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"applier/merger/publish"
	"applier/storage/failpoint"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"

	"github.com/RoaringBitmap/roaring/v2"
)

// Options are the surroundings of a run.
type Options struct {
	Policy Policy
	// CommitBytes: what was read before it is committed; 0 is 512 MiB.
	CommitBytes int64
	// MemoryBytes is about how much memory a join may hold (paimon.WriterSettings,
	// CopyBytes); 0 leaves it to the table's options.
	MemoryBytes int64
	// Enter, if not nil, is called before a join takes memory and may wait; leave is
	// called when it holds none any more, and held meanwhile with what it holds.
	Enter func(ctx context.Context) (held func(bytes int64), leave func(), err error)
	// Throttle, if not nil, is called before bytes are read and may wait.
	Throttle func(ctx context.Context, bytes int64) error
	User     string // commit user
	NewUUID  func() string
	Now      func() time.Time
	Log      *slog.Logger
}

// Result says what a run has done.
type Result struct {
	Commits                 int
	Snapshot                int64 // of the last commit, 0 if there was none
	FilesBefore, FilesAfter int
	RowsPurged              int64
	BytesRead, BytesWritten int64
	// Abandoned are joins whose files somebody else had replaced meanwhile.
	Abandoned int
}

// ErrUnknown: nobody knows whether the last commit took place. The next run finds
// out; nothing was lost either way.
var ErrUnknown = publish.ErrUnknown

// Survey reads the newest snapshot and its live files.
func Survey(ctx context.Context, t *paimon.Table) (*paimon.State, []File, error) {
	_, st, err := t.Version(ctx, paimon.Version{})
	if err != nil || st.Snapshot == nil {
		return st, nil, err
	}
	entries, err := t.Files(ctx, st, nil)
	if err != nil {
		return nil, nil, err
	}
	refs, err := t.LiveVectors(st.Index)
	if err != nil {
		return nil, nil, err
	}
	files := make([]File, len(entries))
	for i := range entries {
		files[i].Entry = entries[i]
		ref, ok := refs[paimon.KeyOf(&entries[i])]
		if !ok {
			continue
		}
		if files[i].Deleted = ref.At.Cardinality; files[i].Deleted < 0 {
			m, err := t.ReadVector(ctx, ref, entries[i].File.Rows)
			if err != nil {
				return nil, nil, err
			}
			files[i].Deleted = int64(m.GetCardinality())
		}
	}
	return st, files, nil
}

// Run joins what the policy chooses of the newest snapshot's files and commits it.
// An error leaves what was committed before; nothing else was changed. Errors:
// paimon.ErrSchemaChanged if the table must be opened again, ErrUnknown, and those
// of the store.
func Run(ctx context.Context, t *paimon.Table, o Options) (Result, error) {
	r := runner{t: t, o: o}
	if o.CommitBytes == 0 {
		r.o.CommitBytes = 512 << 20
	}
	st, files, err := Survey(ctx, t)
	if err != nil || st.Snapshot == nil {
		return r.result, err
	}
	read := int64(0)
	for _, g := range Plan(files, o.Policy) {
		n := int64(0)
		for i := range g {
			n += g[i].Entry.File.Size
		}
		leave, err := r.enter(ctx, n)
		if err != nil {
			if e := r.commit(ctx); e != nil { // what is joined is not thrown away
				err = errors.Join(err, e)
			}
			return r.result, err
		}
		err = func() error {
			defer leave() // a panic, which the Keeper survives, must not keep the turn
			return r.join(ctx, st, g)
		}()
		if err != nil {
			return r.result, err
		}
		r.result.BytesRead += n
		if read += n; read >= r.o.CommitBytes {
			if err := r.commit(ctx); err != nil {
				return r.result, err
			}
			read = 0
		}
	}
	return r.result, r.commit(ctx)
}

type runner struct {
	t      *paimon.Table
	o      Options
	writer *paimon.DataFileWriter
	joins  []*join // not committed yet
	result Result
}

// join is a group of files and what it became.
type join struct {
	parts []part
	// file is the new one; nil if no row was left.
	file *manifest.Entry
}

// part is a file that goes, with the vector it had when it was copied.
type part struct {
	entry manifest.Entry
	drop  *roaring.Bitmap // nil: none
	ref   paimon.VectorRef
	start uint32 // the place of its first row in the new file
}

// enter waits until a group may be joined, and makes the writer ready. Where memory
// is counted, the writer, which keeps buffers, is given up by leave.
func (r *runner) enter(ctx context.Context, bytes int64) (leave func(), err error) {
	if err := r.throttle(ctx, bytes); err != nil {
		return nil, err
	}
	s := paimon.WriterSettings{Now: r.o.Now, NewUUID: r.o.NewUUID, CopyBytes: r.o.MemoryBytes}
	leave = func() {}
	if r.o.Enter != nil {
		var left func()
		if s.Held, left, err = r.o.Enter(ctx); err != nil {
			return nil, err
		}
		leave = func() { r.writer = nil; left() }
	}
	if r.writer == nil {
		if r.writer, err = r.t.NewDataFileWriter(s); err != nil {
			leave()
			return nil, err
		}
	}
	return leave, nil
}

func (r *runner) throttle(ctx context.Context, bytes int64) error {
	if r.o.Throttle == nil {
		return ctx.Err()
	}
	return r.o.Throttle(ctx, bytes)
}

// join writes the new file of a group. A file that has gone since, as it happens
// in a busy table, gives the group up.
func (r *runner) join(ctx context.Context, st *paimon.State, g []File) error {
	refs, err := r.t.LiveVectors(st.Index)
	if err != nil {
		return err
	}
	j := &join{}
	var parts []paimon.Part
	rows := int64(0)
	for i := range g {
		p := part{entry: g[i].Entry, start: uint32(rows)}
		if ref, ok := refs[paimon.KeyOf(&p.entry)]; ok {
			p.ref = ref
			if p.drop, err = r.t.ReadVector(ctx, ref, p.entry.File.Rows); err != nil {
				return r.gone(err)
			}
			r.result.RowsPurged += int64(p.drop.GetCardinality())
		}
		rows += p.left()
		j.parts = append(j.parts, p)
	}
	for i := range j.parts {
		if p := &j.parts[i]; p.left() > 0 {
			parts = append(parts, paimon.Part{Entry: &p.entry, Drop: p.drop})
		}
	}
	if len(parts) > 0 {
		if j.file, err = r.writer.Join(ctx, parts); err != nil {
			return r.gone(err)
		}
		r.result.BytesWritten += j.file.File.Size
	}
	if err := failpoint.Hit("compact/joined"); err != nil {
		return err
	}
	r.joins = append(r.joins, j)
	return nil
}

// gone forgives a file that an expiry has taken away meanwhile.
func (r *runner) gone(err error) error {
	if !errors.Is(err, objstore.ErrNotExist) {
		return err
	}
	r.o.Log.Info("a file was replaced while it was to be joined", "err", err)
	r.result.Abandoned++
	return nil
}

func (p *part) left() int64 {
	if p.drop == nil {
		return p.entry.File.Rows
	}
	return p.entry.File.Rows - int64(p.drop.GetCardinality())
}

// moved returns where rows of the old file stand in the new one: as many places
// earlier as rows before them were dropped.
func (p *part) moved(positions *roaring.Bitmap) *roaring.Bitmap {
	out := roaring.New()
	for it := positions.Iterator(); it.HasNext(); {
		pos := it.Next()
		at := p.start + pos
		if p.drop != nil {
			at -= uint32(p.drop.Rank(pos)) // pos itself is not dropped
		}
		out.Add(at)
	}
	return out
}

// fits brings a join to a newer state. late are the rows of the new file that were
// deleted meanwhile; ok is false if a file was replaced.
func (r *runner) fits(ctx context.Context, j *join, live map[paimon.FileKey]bool, refs map[paimon.FileKey]paimon.VectorRef) (late *roaring.Bitmap, ok bool, err error) {
	late = roaring.New()
	for i := range j.parts {
		p := &j.parts[i]
		k := paimon.KeyOf(&p.entry)
		ref, has := refs[k]
		switch {
		case !live[k], !has && p.drop != nil:
			return nil, false, nil
		case !has, ref.Same(p.ref):
			continue
		}
		now, err := r.t.ReadVector(ctx, ref, p.entry.File.Rows)
		if err != nil {
			return nil, false, err
		}
		if p.drop != nil {
			if p.drop.AndCardinality(now) != p.drop.GetCardinality() {
				return nil, false, nil // rows came back: not a vector that grew
			}
			now.AndNot(p.drop)
		}
		late.Or(p.moved(now))
	}
	return late, true, nil
}
