package tombstones

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"applier/storage/objstore"
)

// What Load can say besides errors of the bucket.
var (
	// ErrLost: the set that an id stands for cannot be read any more: an object on
	// its way is missing, damaged, or of another layout.
	ErrLost = errors.New("the remembered deletes are lost")
	// ErrMemory: the set does not fit.
	ErrMemory = errors.New("the remembered deletes do not fit the memory they may use")
)

// Log keeps the sets of one pipeline in a folder of a bucket. Several processes
// may use the folder at once: objects are never changed, and their names are
// unique. A Log holds no state; it is as safe for concurrent use as its bucket.
type Log struct {
	Bucket objstore.Bucket
	Folder string
	// Layout says what keys and orders mean; objects of another one are lost.
	Layout string
}

// Path is what a set was made of: a base (or nothing) and the deltas after it.
type Path struct {
	Base       string // id, "" for none
	BaseBytes  int64
	Deltas     []string // ids, oldest first
	DeltaBytes int64
}

// Add appends a delta that was written.
func (p *Path) Add(id string, size int64) {
	p.Deltas = append(p.Deltas, id)
	p.DeltaBytes += size
}

// Head returns the id that the path leads to, "" for an empty one.
func (p *Path) Head() string {
	if n := len(p.Deltas); n > 0 {
		return p.Deltas[n-1]
	}
	return p.Base
}

// The sizes that make a new base worth its cost: as many bytes of deltas as the
// base has, or so many deltas that a start would be slow.
const (
	minDeltas = 16
	maxDeltas = 512
)

// Long reports whether a new base should be written.
func (p *Path) Long() bool {
	n := len(p.Deltas)
	return n >= maxDeltas || n >= minDeltas && p.DeltaBytes >= p.BaseBytes
}

func (l *Log) name(id, kind string) string { return l.Folder + "/" + id + "." + kind }

// validID: what this package names objects by. Others come from outside.
func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz-") == ""
}

// Write makes a delta durable under a new id and returns the size of its object.
// After an error the id must not be used again.
func (l *Log) Write(ctx context.Context, id, parent string, at int64, d *Delta) (size int64, err error) {
	b, err := encodeDelta(header{Kind: objectDelta, ID: id, Parent: parent, Layout: l.Layout, At: at}, d)
	if err == nil {
		err = l.Bucket.PutAll(ctx, []objstore.Object{{Key: l.name(id, objectDelta), Data: b}})
	}
	if err != nil {
		return 0, fmt.Errorf("remembering %d deletes: %w", d.Len(), err)
	}
	return int64(len(b)), nil
}

// WriteBase makes a whole set durable as what id stands for.
func (l *Log) WriteBase(ctx context.Context, id string, at int64, s *Set) (size int64, err error) {
	w, err := l.Bucket.Create(ctx, l.name(id, objectBase))
	if err != nil {
		return 0, fmt.Errorf("writing %d remembered deletes: %w", s.Len(), err)
	}
	defer w.Abort()
	buffered := bufio.NewWriterSize(w, blockBytes)
	e, err := newEncoder(buffered, header{Kind: objectBase, ID: id, Layout: l.Layout, At: at})
	if err == nil {
		err = s.Each(func(key, order []byte, at int64) error { return e.add(key, order, at, true) })
	}
	if err == nil {
		err = e.end()
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil && !errors.Is(err, objstore.ErrExist) { // by us, before a restart: the same set
		return 0, fmt.Errorf("writing %d remembered deletes: %w", s.Len(), err)
	}
	return e.bytes, nil
}

// Load reads the set that head stands for. limit bounds its memory in bytes, 0
// does not. ErrLost says that it is gone for good, ErrMemory that it is there but
// too large; any other error that it could not be read now.
func (l *Log) Load(ctx context.Context, head string, limit int64) (*Set, *Path, error) {
	s, p := &Set{}, &Path{}
	var deltas []*Delta
	seen := map[string]bool{}
	for id := head; id != ""; {
		if !validID(id) || seen[id] {
			return nil, nil, fmt.Errorf("%w: %q is not the name of one", ErrLost, id)
		}
		seen[id] = true
		size, baseErr := l.readBase(ctx, id, s, limit)
		if baseErr == nil {
			p.Base, p.BaseBytes = id, size
			break
		}
		if !gone(baseErr) {
			return nil, nil, baseErr
		}
		*s = Set{}
		d, parent, size, err := l.readDelta(ctx, id)
		if gone(err) {
			return nil, nil, fmt.Errorf("%w: %w", ErrLost, lostBy(baseErr, err))
		}
		if err != nil {
			return nil, nil, err
		}
		deltas = append(deltas, d)
		p.Add(id, size)
		id = parent
	}
	slices.Reverse(p.Deltas)
	for _, d := range slices.Backward(deltas) {
		if err := fits(s.Bytes()+d.Bytes(), limit); err != nil {
			return nil, nil, err
		}
		s.Apply(d)
	}
	return s, p, nil
}

// fits compares a need with a limit; 0 is none.
func fits(need, limit int64) error {
	if limit > 0 && need > limit {
		return fmt.Errorf("%w: %d MiB are needed, %d MiB are left", ErrMemory, need>>20+1, limit>>20)
	}
	return nil
}

// gone reports whether an object is missing or useless, as against one that
// cannot be read now.
func gone(err error) bool {
	return errors.Is(err, objstore.ErrNotExist) || errors.Is(err, errCorrupt)
}

// lostBy tells the more telling of two errors: damage before absence.
func lostBy(base, delta error) error {
	if errors.Is(base, errCorrupt) {
		return base
	}
	return delta
}

// readBase puts the entries of a base into s.
func (l *Log) readBase(ctx context.Context, id string, s *Set, limit int64) (size int64, err error) {
	n := 0
	return l.read(ctx, id, objectBase, func(header) {}, func(key, order []byte, at int64, deleted bool) error {
		if !deleted {
			return fmt.Errorf("%w: a base forgets a delete", errCorrupt)
		}
		if n++; n%1024 == 0 {
			if err := fits(s.Bytes(), limit); err != nil {
				return err
			}
		}
		s.Put(key, order, at)
		return nil
	})
}

func (l *Log) readDelta(ctx context.Context, id string) (d *Delta, parent string, size int64, err error) {
	d = &Delta{}
	size, err = l.read(ctx, id, objectDelta, func(h header) { parent = h.Parent }, func(key, order []byte, at int64, deleted bool) error {
		if deleted {
			d.Put(key, order, at)
		} else {
			d.Remove(key)
		}
		return nil
	})
	return d, parent, size, err
}

// read decodes an object and returns its size.
func (l *Log) read(ctx context.Context, id, kind string, head func(header), fn func(key, order []byte, at int64, deleted bool) error) (int64, error) {
	name := l.name(id, kind)
	r, err := l.Bucket.Open(ctx, name, -1)
	if err != nil {
		return 0, fmt.Errorf("reading remembered deletes: %w", err)
	}
	defer r.Close()
	size := r.Size()
	check := func(h header) error {
		switch {
		case h.Kind != kind || h.ID != id:
			return fmt.Errorf("%w: it is %s %s", errCorrupt, h.Kind, h.ID)
		case h.Layout != l.Layout:
			return fmt.Errorf("%w: its keys or orders are of another kind", errCorrupt)
		}
		head(h)
		return nil
	}
	if err := decode(bufio.NewReaderSize(io.NewSectionReader(r, 0, size), blockBytes), size, check, fn); err != nil {
		return 0, fmt.Errorf("reading remembered deletes from %s: %w", name, err)
	}
	return size, nil
}

// Compact writes the set at the end of a path as a base and returns the path that
// begins there. The objects of the path before stay: a rollback of the table may
// lead back to them.
func (l *Log) Compact(ctx context.Context, p *Path, at int64, s *Set) (*Path, error) {
	size, err := l.WriteBase(ctx, p.Head(), at, s)
	if err != nil {
		return nil, err
	}
	return &Path{Base: p.Head(), BaseBytes: size}, nil
}

// Sweep deletes objects that no path of keep names: those of superseded paths at
// once, others (of attempts that came to nothing, or of an instance that works
// beside this one) when they are older than a time. It tries all and returns the
// first error.
func (l *Log) Sweep(ctx context.Context, superseded *Path, keep []*Path, before time.Time) error {
	kept, old := map[string]bool{}, map[string]bool{}
	for _, p := range keep {
		l.names(p, kept)
	}
	l.names(superseded, old)
	var names []string
	err := l.Bucket.List(ctx, l.Folder, func(i objstore.Info) error {
		if !i.Folder && !kept[i.Key] && (old[i.Key] || i.Modified.Before(before)) {
			names = append(names, i.Key)
		}
		return nil
	})
	if err == nil {
		err = l.Bucket.Delete(ctx, names...)
	}
	if err != nil {
		return fmt.Errorf("removing superseded deletes: %w", err)
	}
	return nil
}

// names adds the objects of a path.
func (l *Log) names(p *Path, to map[string]bool) {
	if p == nil {
		return
	}
	if p.Base != "" {
		to[l.name(p.Base, objectBase)] = true
	}
	for _, id := range p.Deltas {
		to[l.name(id, objectDelta)] = true
	}
}
