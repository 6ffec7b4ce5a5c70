package paimon

import (
	"context"
	"fmt"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
)

// Changes are what a commit does to a table.
type Changes struct {
	// Add are new data files, Delete the entries (as added) of files that go.
	Add    []manifest.Entry
	Delete []manifest.Entry
	// Index are the changed index files.
	Index *IndexChange
	// Compact: the content stays the same.
	Compact bool
}

// CommitInfo is what a snapshot says of itself.
type CommitInfo struct {
	UUID       string
	User       string
	Identifier int64
	Operation  Operation // "" for compactions and empty commits
	Properties map[string]string
	// TimeMillis is the wall clock; a snapshot is never older than the one before.
	TimeMillis int64
	// NewUUID makes names for manifests and lists.
	NewUUID func() string
}

// Commit is a snapshot ready to be published, with the files it names.
type Commit struct {
	Snapshot *Snapshot
	// Bytes is the snapshot file.
	Bytes []byte
	// Objects are the manifests and lists, to be written before the snapshot.
	Objects []objstore.Object
	// State is the table's state once the snapshot is published.
	State *State
}

// MetadataBytes is the size of everything the commit writes but data and
// index files.
func (c *Commit) MetadataBytes() int64 {
	n := int64(len(c.Bytes))
	for _, o := range c.Objects {
		n += int64(len(o.Data))
	}
	return n
}

// BuildCommit makes the snapshot that follows base. It writes nothing: the
// caller puts the data and index files and Commit.Objects, in any order, then
// publishes. It reads manifests only to merge them. The kind follows from the
// content, never from the operation (paimon-format.md §4.1).
func (t *Table) BuildCommit(ctx context.Context, base *State, ch Changes, info CommitInfo) (*Commit, error) {
	if !base.complete {
		return nil, fmt.Errorf("%w: a manifest list or index manifest holds members of a newer Paimon version", ErrNewer)
	}
	b := &commitBuilder{t: t, ctx: ctx, base: base, ch: ch, info: info, c: &Commit{}}
	if err := b.manifests(); err != nil {
		return nil, err
	}
	if err := b.indexManifest(); err != nil {
		return nil, err
	}
	return b.c, b.snapshot()
}

// Publish creates the snapshot's file: the commit itself. Errors as for
// objstore.Bucket.PutIfAbsent: anything but nil and ErrExist is unknown.
func (t *Table) Publish(ctx context.Context, c *Commit) error {
	return t.bucket.PutIfAbsent(ctx, t.paths.Snapshot(c.Snapshot.ID), c.Bytes)
}

type commitBuilder struct {
	t     *Table
	ctx   context.Context
	base  *State
	ch    Changes
	info  CommitInfo
	c     *Commit
	index *string
	lists [2]string
	sizes [2]int64
	delta int64
	next  State
}

func (b *commitBuilder) put(name string, data []byte) error {
	key, err := b.t.paths.Manifest(name)
	if err != nil {
		return err
	}
	b.c.Objects = append(b.c.Objects, objstore.Object{Key: key, Data: data})
	return nil
}

// manifests writes the delta manifest and both lists.
func (b *commitBuilder) manifests() error {
	uuid := b.info.NewUUID()
	kept, n, err := b.mergeBase(uuid)
	if err != nil {
		return err
	}
	var delta []manifest.Meta
	entries := append([]manifest.Entry(nil), b.ch.Add...)
	for _, e := range b.ch.Add {
		b.delta += e.File.Rows
	}
	for _, e := range b.ch.Delete {
		b.delta -= e.File.Rows
		entries = append(entries, e.NewDelete())
	}
	if len(entries) > 0 {
		m, err := b.writeManifest(ManifestName(uuid, n), entries)
		if err != nil {
			return err
		}
		delta = append(delta, m)
	}
	lists := b.info.NewUUID()
	for i, metas := range [][]manifest.Meta{kept, delta} {
		data, err := b.t.codec.EncodeList(metas)
		if err != nil {
			return fmt.Errorf("encoding a manifest list: %w", err)
		}
		b.lists[i], b.sizes[i] = ManifestListName(lists, i), int64(len(data))
		if err := b.put(b.lists[i], data); err != nil {
			return err
		}
	}
	b.next.Manifests = append(append([]manifest.Meta(nil), kept...), delta...)
	return nil
}

func (b *commitBuilder) writeManifest(name string, entries []manifest.Entry) (manifest.Meta, error) {
	data, err := b.t.codec.EncodeEntries(entries)
	if err != nil {
		return manifest.Meta{}, fmt.Errorf("encoding a manifest: %w", err)
	}
	if err := b.put(name, data); err != nil {
		return manifest.Meta{}, err
	}
	b.t.entries.put(name, entries, true)
	return manifest.Summarise(name, int64(len(data)), entries, b.t.schema.PartitionTypes())
}

// indexManifest writes a whole new one if an index file changed, else the old
// one is named again.
func (b *commitBuilder) indexManifest() error {
	b.next.Index = b.base.Index
	if b.base.Snapshot != nil {
		b.index = b.base.Snapshot.IndexManifest
	}
	ch := b.ch.Index
	if ch == nil || len(ch.Add) == 0 && len(ch.Delete) == 0 {
		return nil
	}
	gone := map[string]bool{}
	for _, e := range ch.Delete {
		gone[e.Name] = true
	}
	entries := make([]manifest.IndexEntry, 0, len(b.base.Index)+len(ch.Add))
	for _, e := range b.base.Index {
		if gone[e.Name] {
			delete(gone, e.Name)
			continue
		}
		entries = append(entries, e)
	}
	if len(gone) > 0 {
		return fmt.Errorf("%w: %d index files to remove are not there", manifest.ErrInconsistent, len(gone))
	}
	entries = append(entries, ch.Add...)
	if _, err := VectorRefs(entries); err != nil {
		return err
	}
	data, err := b.t.codec.EncodeIndex(entries)
	if err != nil {
		return fmt.Errorf("encoding an index manifest: %w", err)
	}
	name := IndexManifestName(b.info.NewUUID(), 0)
	b.index, b.next.Index = &name, entries
	return b.put(name, data)
}

func (b *commitBuilder) snapshot() error {
	zero := int64(0)
	s := &Snapshot{Version: SnapshotVersion, UUID: b.info.UUID, ID: 1, SchemaID: b.t.schema.ID,
		BaseManifestList: b.lists[0], BaseManifestListSize: &b.sizes[0],
		DeltaManifestList: b.lists[1], DeltaManifestListSize: &b.sizes[1],
		IndexManifest: b.index, CommitUser: b.info.User, CommitIdentifier: b.info.Identifier, CommitKind: b.kind(),
		TimeMillis: b.info.TimeMillis, TotalRecordCount: b.delta, DeltaRecordCount: b.delta,
		Properties: b.info.Properties, NextRowID: &zero, Operation: b.info.Operation}
	if p := b.base.Snapshot; p != nil {
		s.ID = p.ID + 1
		s.TotalRecordCount += p.TotalRecordCount
		s.TimeMillis = max(s.TimeMillis, p.TimeMillis)
		s.Watermark = p.Watermark
		if p.NextRowID != nil {
			s.NextRowID = p.NextRowID
		}
		if p.SchemaID == s.SchemaID {
			s.Statistics = p.Statistics
		}
	}
	if s.CommitKind == CommitCompact {
		s.Operation = ""
	}
	data, err := s.Encode()
	if err != nil {
		return fmt.Errorf("encoding snapshot %d: %w", s.ID, err)
	}
	b.next.Snapshot, b.next.complete = s, true
	b.c.Snapshot, b.c.Bytes, b.c.State = s, data, &b.next
	return nil
}

func (b *commitBuilder) kind() CommitKind {
	switch {
	case b.ch.Compact:
		return CommitCompact
	case len(b.ch.Delete) > 0 || b.ch.Index != nil && len(b.ch.Index.Add)+len(b.ch.Index.Delete) > 0:
		return CommitOverwrite
	}
	return CommitAppend
}
