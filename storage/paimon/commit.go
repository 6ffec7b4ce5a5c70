package paimon

import (
	"context"
	"errors"
	"fmt"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
)

// ErrSchemaChanged: the table has a newer schema than the one it was opened at.
var ErrSchemaChanged = errors.New("the table has a newer schema")

// Changes are what a commit does to a table.
type Changes struct {
	// Add are new data files, Delete the entries (as added) of files that go.
	// That those are live is for the caller to know; see conflict detection.
	Add    []manifest.Entry
	Delete []manifest.Entry
	// Index are the changed index files.
	Index *IndexChange
	// Compact: the content stays the same.
	Compact bool
	// Overwrite: the statement replaces what is there, even if that is nothing.
	Overwrite bool
}

// CommitInfo is what a snapshot says of itself.
type CommitInfo struct {
	UUID       string
	User       string
	Identifier int64
	Operation  Operation // "" for compactions and empty commits
	Properties map[string]string
	// SchemaID is the table's newest schema if that is newer than the one that the
	// changes were made with, which it must be able to read; 0 is none.
	SchemaID int64
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
	// Added are the entries of Changes.Add as the snapshot has them: with row
	// tracking, ids and sequence numbers follow from the snapshot.
	Added []manifest.Entry
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
// content, never from the operation (paimon-format.md §4.1). Errors: ErrNewer if
// the lists hold what this program cannot write again, ErrSchemaChanged if base
// was made under a later schema, a *Refusal if row tracking was switched on or off
// since base, manifest.ErrInconsistent or ErrCorrupt if the
// changes contradict each other or base.
func (t *Table) BuildCommit(ctx context.Context, base *State, ch Changes, info CommitInfo) (*Commit, error) {
	if !base.complete {
		return nil, fmt.Errorf("%w: a manifest list or index manifest holds members of a newer Paimon version", ErrNewer)
	}
	if p := base.Snapshot; p != nil && p.SchemaID > t.schema.ID {
		return nil, fmt.Errorf("%w: snapshot %d has schema %d, the table was opened at %d", ErrSchemaChanged, p.ID, p.SchemaID, t.schema.ID)
	}
	if err := t.checkTracking(ctx, base); err != nil {
		return nil, err
	}
	b := &commitBuilder{t: t, base: base, ch: ch, info: info, c: &Commit{State: &State{complete: true}}}
	if p := base.Snapshot; p != nil && p.NextRowID != nil {
		b.next = *p.NextRowID
	}
	if err := b.lists(ctx); err != nil {
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
	base  *State
	ch    Changes
	info  CommitInfo
	c     *Commit
	names manifestNames
	list  [2]string // base, delta
	size  [2]int64
	index *string
	rows  int64 // change of the row count
	next  int64 // row id
}

// manifestNames gives out names of new data manifests.
type manifestNames struct {
	uuid string
	n    int
}

func (m *manifestNames) next() string {
	m.n++
	return ManifestName(m.uuid, m.n-1)
}

func (b *commitBuilder) put(name string, data []byte) error {
	key, err := b.t.paths.Manifest(name)
	if err != nil {
		return err
	}
	b.c.Objects = append(b.c.Objects, objstore.Object{Key: key, Data: data})
	return nil
}

// lists writes the delta manifest, merged manifests, and both lists.
func (b *commitBuilder) lists(ctx context.Context) error {
	b.names.uuid = b.info.NewUUID()
	kept, err := b.mergeBase(ctx)
	if err != nil {
		return err
	}
	entries, err := b.delta()
	if err != nil {
		return err
	}
	var delta []manifest.Meta
	if len(entries) > 0 {
		m, err := b.writeManifest(entries)
		if err != nil {
			return err
		}
		delta = append(delta, m)
	}
	uuid := b.info.NewUUID()
	for i, metas := range [][]manifest.Meta{kept, delta} {
		data, err := b.t.codec.EncodeList(metas)
		if err != nil {
			return fmt.Errorf("encoding a manifest list: %w", err)
		}
		b.list[i], b.size[i] = ManifestListName(uuid, i), int64(len(data))
		if err := b.put(b.list[i], data); err != nil {
			return err
		}
	}
	b.c.State.Manifests = append(append([]manifest.Meta(nil), kept...), delta...)
	return nil
}

// delta returns the entries of the commit, all ADDs before all DELETEs, and counts
// their rows.
func (b *commitBuilder) delta() ([]manifest.Entry, error) {
	entries := make([]manifest.Entry, 0, len(b.ch.Add)+len(b.ch.Delete))
	for _, e := range b.ch.Add {
		e.Kind = manifest.Add
		b.rows += e.File.Rows
		entries = append(entries, e)
	}
	for _, e := range b.ch.Delete {
		b.rows -= e.File.Rows
		entries = append(entries, e.NewDelete())
	}
	merged, err := manifest.Merge(entries)
	if err == nil && len(merged) != len(entries) {
		err = fmt.Errorf("%w: a file is added and deleted at once", manifest.ErrInconsistent)
	}
	if err != nil {
		return nil, fmt.Errorf("changes of a commit: %w", err)
	}
	if b.t.options.RowTracking {
		return b.track(entries)
	}
	b.c.Added = entries[:len(b.ch.Add)]
	return entries, nil
}

// track numbers new rows.
func (b *commitBuilder) track(entries []manifest.Entry) ([]manifest.Entry, error) {
	if b.t.options.RowTrackingGroups {
		entries = groupByPartition(entries)
	}
	var err error
	if b.next, err = assignRowIDs(entries, b.id(), b.next); err != nil {
		return nil, fmt.Errorf("changes of a commit: %w", err)
	}
	at := map[manifest.ID]int{}
	for i := range entries {
		at[entries[i].ID()] = i
	}
	for i := range b.ch.Add {
		b.c.Added = append(b.c.Added, entries[at[b.ch.Add[i].ID()]])
	}
	return entries, nil
}

// id is that of the new snapshot.
func (b *commitBuilder) id() int64 {
	if b.base.Snapshot == nil {
		return 1
	}
	return b.base.Snapshot.ID + 1
}

// writeManifest makes a manifest. The entries must not be changed afterwards.
func (b *commitBuilder) writeManifest(entries []manifest.Entry) (manifest.Meta, error) {
	name := b.names.next()
	data, err := b.t.codec.EncodeEntries(entries)
	if err != nil {
		return manifest.Meta{}, fmt.Errorf("encoding a manifest: %w", err)
	}
	m, err := manifest.Summarise(name, int64(len(data)), entries, b.t.partitionTypes)
	if err != nil {
		return manifest.Meta{}, err
	}
	b.t.entries.put(name, entries, true)
	return m, b.put(name, data)
}

// indexManifest writes a whole new one if an index file changed, else the old
// one is named again.
func (b *commitBuilder) indexManifest() error {
	b.c.State.Index = b.base.Index
	if b.base.Snapshot != nil {
		b.index = b.base.Snapshot.IndexManifest
	}
	entries := b.base.Index
	if b.changesIndex() {
		var err error
		if entries, err = combineIndex(b.base.Index, b.ch.Index); err != nil {
			return err
		}
	}
	if err := b.checkVectors(entries); err != nil || !b.changesIndex() {
		return err
	}
	data, err := b.t.codec.EncodeIndex(entries)
	if err != nil {
		return fmt.Errorf("encoding an index manifest: %w", err)
	}
	name := IndexManifestName(b.info.NewUUID(), 0)
	b.index, b.c.State.Index = &name, entries
	return b.put(name, data)
}

func (b *commitBuilder) changesIndex() bool {
	return b.ch.Index != nil && len(b.ch.Index.Add)+len(b.ch.Index.Delete) > 0
}

// indexFile is the identity of an index entry.
type indexFile struct {
	partition, kind, name string
	bucket                int32
}

func indexFileOf(e *manifest.IndexEntry) indexFile {
	return indexFile{string(e.Partition), e.Type, e.Name, e.Bucket}
}

// combineIndex applies a change, the deletes first (paimon-format.md §7.6).
// Entries of other types are carried over as they are.
func combineIndex(base []manifest.IndexEntry, ch *IndexChange) ([]manifest.IndexEntry, error) {
	gone := map[indexFile]bool{}
	for i := range ch.Delete {
		gone[indexFileOf(&ch.Delete[i])] = true
	}
	entries := make([]manifest.IndexEntry, 0, len(base)+len(ch.Add))
	live := map[indexFile]bool{}
	for _, e := range base {
		id := indexFileOf(&e)
		if gone[id] {
			delete(gone, id)
			continue
		}
		live[id] = true
		entries = append(entries, e)
	}
	if len(gone) > 0 {
		return nil, fmt.Errorf("%w: %d index files to remove are not there", manifest.ErrInconsistent, len(gone))
	}
	for _, e := range ch.Add {
		if live[indexFileOf(&e)] {
			return nil, fmt.Errorf("%w: index file %s is there already", manifest.ErrInconsistent, e.Name)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// checkVectors says whether every data file has one deletion vector at most, and
// those that go have none.
func (b *commitBuilder) checkVectors(index []manifest.IndexEntry) error {
	if !b.changesIndex() && len(b.ch.Delete) == 0 {
		return nil
	}
	refs, err := VectorRefs(index)
	if err != nil {
		return err
	}
	for i := range b.ch.Delete {
		if _, ok := refs[KeyOf(&b.ch.Delete[i])]; ok {
			return fmt.Errorf("%w: data file %s goes and its deletion vector stays", manifest.ErrInconsistent, b.ch.Delete[i].File.Name)
		}
	}
	return nil
}

func (b *commitBuilder) snapshot() error {
	s := &Snapshot{
		Version: SnapshotVersion, UUID: b.info.UUID, ID: b.id(), SchemaID: max(b.t.schema.ID, b.info.SchemaID),
		BaseManifestList: b.list[0], BaseManifestListSize: &b.size[0],
		DeltaManifestList: b.list[1], DeltaManifestListSize: &b.size[1],
		IndexManifest: b.index, CommitUser: b.info.User, CommitIdentifier: b.info.Identifier, CommitKind: b.kind(),
		TimeMillis: b.info.TimeMillis, TotalRecordCount: b.rows, DeltaRecordCount: b.rows,
		Properties: b.info.Properties, NextRowID: new(b.next), Operation: b.info.Operation,
	}
	if p := b.base.Snapshot; p != nil {
		s.TotalRecordCount += p.TotalRecordCount
		s.TimeMillis = max(s.TimeMillis, p.TimeMillis)
		s.Watermark = p.Watermark
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
	b.c.Snapshot, b.c.Bytes, b.c.State.Snapshot = s, data, s
	return nil
}

func (b *commitBuilder) kind() CommitKind {
	switch {
	case b.ch.Compact:
		return CommitCompact
	case b.ch.Overwrite || len(b.ch.Delete) > 0 || b.changesIndex():
		return CommitOverwrite
	}
	return CommitAppend
}
