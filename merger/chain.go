package merger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"applier/storage/mutant"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// link is one snapshot as the commit loop sees it.
type link struct {
	ref    SnapRef
	snap   *paimon.Snapshot
	raw    []byte // the file: what reads the same is the same
	own    *Record
	others map[string]*Record
	// restores is the older snapshot whose content this one has, 0 for none; nil:
	// nobody has looked yet.
	restores *int64
}

// ours reports whether this pipeline made the snapshot. A record alone does not say
// so: Java copies a snapshot's properties when it compacts manifests or rolls back by
// adding a snapshot, and then the record still holds and its base does not.
func (l *link) ours() bool { return l.own != nil && l.own.Txn == l.ref.Ident }

// chain reads snapshots and remembers those it has seen. Ids are re-used after
// a rollback, so what is remembered counts only as long as the file is the same:
// the latest snapshot is always read again, and its links lead back.
type chain struct {
	bucket objstore.Bucket
	paths  paimon.Paths
	id     string
	seen   map[int64]*link
	top    int64 // highest id in seen
}

func newChain(b objstore.Bucket, p paimon.Paths, id string) *chain {
	return &chain{bucket: b, paths: p, id: id, seen: map[int64]*link{}}
}

// identify returns the identity of a snapshot file: its uuid, or a hash of its
// bytes where the writer gave none.
func identify(s *paimon.Snapshot, raw []byte) string {
	if s.UUID != "" {
		return s.UUID
	}
	h := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(h[:16])
}

// fresh reads a snapshot from the store, and remembers it; objstore.ErrNotExist if
// it is not there.
func (c *chain) fresh(ctx context.Context, id int64) (*link, error) {
	l, err := c.read(ctx, id)
	if err == nil && c.seen[id] != l {
		c.remember(l)
	}
	return l, err
}

// read reads a snapshot from the store; it returns what is remembered of it if
// that is the same.
func (c *chain) read(ctx context.Context, id int64) (*link, error) {
	key := c.paths.Snapshot(id)
	raw, err := c.bucket.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	old := c.seen[id]
	if old != nil && bytes.Equal(old.raw, raw) {
		return old, nil
	}
	s, err := paimon.ParseSnapshot(raw)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	l := &link{ref: SnapRef{id, identify(s, raw)}, snap: s, raw: raw}
	if l.own, l.others, err = RecordIn(s.Properties, c.id); err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return l, nil
}

// doubt forgets everything if the newest snapshot that is remembered is not there
// any more, or is another one: ids are used again after a rollback, and what was
// below may be others too. A rollback removes from the top, so what is below one
// that is there still stands as well.
//
// It returns what it has read, nil for nothing that still stands.
func (c *chain) doubt(ctx context.Context) (*link, error) {
	old := c.seen[c.top]
	if old == nil {
		c.forget(0)
		return nil, nil
	}
	l, err := c.read(ctx, c.top)
	switch {
	case errors.Is(err, objstore.ErrNotExist), err == nil && l.ref != old.ref:
		c.forget(0)
		return nil, nil
	}
	return l, err
}

// chainMemory is how many snapshots below the newest one are remembered.
const chainMemory = 256

// remember keeps a snapshot. A walk down a long history must not push out its
// top, on which everything that follows is built.
func (c *chain) remember(l *link) {
	c.seen[l.ref.ID] = l
	c.top = max(c.top, l.ref.ID)
	if len(c.seen) <= chainMemory {
		return
	}
	for id := range c.seen {
		if id <= c.top-chainMemory {
			delete(c.seen, id)
		}
	}
}

// at returns a snapshot, remembered or read.
func (c *chain) at(ctx context.Context, id int64) (*link, error) {
	if l := c.seen[id]; l != nil {
		return l, nil
	}
	return c.fresh(ctx, id)
}

// forget drops everything remembered from a snapshot on.
func (c *chain) forget(from int64) {
	for id := range c.seen {
		if id >= from {
			delete(c.seen, id)
		}
	}
	c.top = min(c.top, from-1)
}

// walk is what a look along the chain found.
type walk struct {
	latest   *link // nil: no snapshot yet
	earliest int64
	record   *link   // newest snapshot with a record of ours, nil for none
	foreign  []*link // above the record
	others   map[string]*Record
}

// follow walks back from the latest snapshot to the newest commit of ours, whose
// record is the newest one unless a copy of one stands above it, and checks every
// link it passes, plus the one below the commit. With a halt it returns what it has
// seen so far.
func (c *chain) follow(ctx context.Context, latest, earliest int64) (*walk, *Halt, error) {
	w := &walk{earliest: earliest}
	if latest == 0 {
		return w, nil, nil
	}
	top, err := c.doubt(ctx)
	if err == nil && (top == nil || top.ref.ID != latest) {
		top, err = c.fresh(ctx, latest)
	}
	if err != nil {
		return nil, nil, err
	}
	w.latest = top
	for l := top; ; {
		for id, r := range l.others {
			if w.others == nil {
				w.others = map[string]*Record{}
			}
			if w.others[id] == nil {
				w.others[id] = r
			}
		}
		below, halt, err := c.below(ctx, l, earliest)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case w.record != nil: // a copy of it, and now the commits below
		case l.own != nil:
			w.record = l
		default:
			w.foreign = append(w.foreign, l)
		}
		if halt != nil {
			return w, halt, nil
		}
		if l.ours() || below == nil {
			return w, nil, nil
		}
		l = below
	}
}

// below returns the snapshot before l, nil if it has expired, and checks that l
// really stands on it if l is ours, and not a copy.
func (c *chain) below(ctx context.Context, l *link, earliest int64) (*link, *Halt, error) {
	if l.ref.ID <= earliest {
		return nil, nil, nil
	}
	b, err := c.at(ctx, l.ref.ID-1)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, c.missing(ctx, l.ref.ID-1), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if l.ours() && l.own.Base != b.ref.Ident && !mutant.On(mutant.BaseLink) {
		// Perhaps it is what we remember that is old.
		if b, err = c.fresh(ctx, l.ref.ID-1); err != nil {
			return nil, nil, err
		}
		if l.own.Base != b.ref.Ident {
			return nil, &Halt{CodeChain, fmt.Sprintf("snapshot %d was built on another snapshot %d than the one that is there", l.ref.ID, b.ref.ID)}, nil
		}
	}
	return b, nil, nil
}

// missing tells expiry, which moves the earliest snapshot up, from a hole.
func (c *chain) missing(ctx context.Context, id int64) *Halt {
	ids, err := paimon.ListSnapshotIDs(ctx, c.bucket, c.paths)
	if err != nil || len(ids) == 0 || ids[0] > id {
		return nil
	}
	return &Halt{CodeHole, fmt.Sprintf("snapshot %d is missing, although snapshot %d is there", id, ids[0])}
}
