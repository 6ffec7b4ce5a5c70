package verify

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"

	"golang.org/x/sync/errgroup"
)

// content is what a snapshot consists of.
type content struct {
	snap  *snapshot
	state *paimon.State
	files []manifest.Entry // live
	refs  map[paimon.FileKey]paimon.VectorRef
	rows  int64 // of the live files, deleted ones included
	dead  int64 // of them, from the vectors' recorded cardinalities; -1 unknown
}

// stored is a file that some retained snapshot needs.
type stored struct {
	size     int64 // recorded; -1 unknown
	snapshot int64 // the newest one that names it
	entry    *manifest.Entry
	by       string // the metadata file that names it
	sealed   bool   // a data file that has a seal, by who added it
}

// namedBy says where a file is named, if that is known: what is wrong may be the name.
func (f *stored) namedBy() string {
	if f.by == "" {
		return ""
	}
	return "; " + f.by + " names it"
}

// walker goes through the retained snapshots in order.
type walker struct {
	v      *verifier
	sec    *Section // files
	counts *Section
	vec    *Section
	needed map[string]*stored
	read   map[string]bool           // manifests that were looked at
	by     map[paimon.FileKey]string // the manifest that adds a data file
	// vectors that are referred to, by place: the rows of their data files.
	vectors map[vectorPlace]vectorUse
}

// files reads the metadata of every retained snapshot and looks every file up
// that they name (I4, I6, I7, I8).
func (v *verifier) files(ctx context.Context) {
	w := &walker{v: v, needed: map[string]*stored{}, read: map[string]bool{}, by: map[paimon.FileKey]string{}, vectors: map[vectorPlace]vectorUse{}}
	w.sec, w.counts = v.r.section("files"), v.r.section("counts")
	w.vec = &Section{Name: "vectors", Status: OK}
	v.walk = w
	var before *content
	for i, s := range v.chain {
		if before != nil && before.snap.id != s.id-1 {
			before = nil
		}
		c := w.content(ctx, s)
		if c != nil {
			w.check(ctx, before, c)
			if i == len(v.chain)-1 && s.id == v.r.Latest {
				v.last = c
			}
		}
		before = c
		if ctx.Err() != nil {
			return
		}
	}
	if len(v.chain) == 0 {
		w.sec.skip("there is no snapshot")
		w.counts.skip("there is no snapshot")
	}
	w.tags(ctx)
	w.stat(ctx)
}

// content reads a snapshot's lists, manifests and index manifest; nil if one of
// them cannot be read.
func (w *walker) content(ctx context.Context, s *snapshot) *content {
	c := &content{snap: s, state: &paimon.State{Snapshot: s.s}}
	t, whole := w.v.Table, true
	var lists [][]manifest.Entry
	for _, l := range []struct {
		name string
		size *int64
	}{{s.s.BaseManifestList, s.s.BaseManifestListSize}, {s.s.DeltaManifestList, s.s.DeltaManifestListSize}} {
		w.need("manifest/"+l.name, l.size, s)
		metas, err := t.ManifestList(ctx, l.name, l.size)
		if err != nil {
			w.bad(ctx, s, "manifest/"+l.name, err)
			whole = false
			continue
		}
		for _, m := range metas {
			entries, ok := w.manifest(ctx, s, l.name, m)
			lists, whole = append(lists, entries), whole && ok
		}
		c.state.Manifests = append(c.state.Manifests, metas...)
	}
	if s.s.Statistics != nil {
		if key, err := t.Paths().Statistics(*s.s.Statistics); err != nil {
			w.bad(ctx, s, s.key, err)
		} else {
			w.need(key, nil, s)
		}
	}
	if s.s.IndexManifest != nil {
		w.need("manifest/"+*s.s.IndexManifest, nil, s)
		index, err := t.Index(ctx, s.s)
		if err == nil {
			c.refs, err = paimon.VectorRefs(index)
		}
		if err != nil {
			w.bad(ctx, s, "manifest/"+*s.s.IndexManifest, err)
			whole = false
		}
		c.state.Index = index
	}
	w.sec.count("snapshots", 1)
	if !whole {
		return nil
	}
	var err error
	if c.files, err = manifest.Live(lists...); err != nil {
		// A new contradiction comes from the list of the snapshot's own changes.
		w.bad(ctx, s, "manifest/"+s.s.DeltaManifestList, err)
		return nil
	}
	return c
}

// manifest reads one data manifest.
func (w *walker) manifest(ctx context.Context, s *snapshot, list string, m manifest.Meta) ([]manifest.Entry, bool) {
	size := m.Size
	w.need("manifest/"+m.Name, &size, s)
	entries, err := w.v.Table.Entries(ctx, m)
	if err != nil {
		w.bad(ctx, s, "manifest/"+m.Name, err)
		return nil, false
	}
	if at := list + "/" + m.Name; !w.read[at] {
		w.read[at] = true
		for i := range entries {
			if entries[i].Kind == manifest.Add {
				w.by[paimon.KeyOf(&entries[i])] = "manifest/" + m.Name
			}
		}
		if err := w.v.Table.CheckSummary(m, entries); err != nil {
			w.bad(ctx, s, "manifest/"+list, fmt.Errorf("its entry of manifest %s: %w", m.Name, err))
		}
	}
	return entries, true
}

// bad records that something a snapshot names cannot be read, unless the snapshot
// has expired meanwhile.
func (w *walker) bad(ctx context.Context, s *snapshot, file string, err error) {
	if errors.Is(err, objstore.ErrNotExist) && w.v.gone(ctx, s.id) {
		return
	}
	w.sec.readError(file, fmt.Errorf("snapshot %d: %w", s.id, err))
}

// need notes that a snapshot needs a file.
func (w *walker) need(key string, size *int64, s *snapshot) *stored {
	f := w.needed[key]
	if f == nil {
		f = &stored{size: -1}
		w.needed[key] = f
	}
	f.snapshot = max(f.snapshot, s.id)
	if size == nil {
		return f
	}
	if f.size >= 0 && f.size != *size {
		w.sec.fail(key, "", "it is recorded with %d bytes and with %d", f.size, *size)
	}
	f.size = *size
	return f
}

// check compares a snapshot with itself and with the one before it, nil if that
// is unknown.
func (w *walker) check(ctx context.Context, before, c *content) {
	s, t := c.snap, w.v.Table
	live := make(map[paimon.FileKey]*manifest.Entry, len(c.files))
	for i := range c.files {
		e := &c.files[i]
		c.rows += e.File.Rows
		live[paimon.KeyOf(e)] = e
		key, err := t.Paths().Location(e)
		if err != nil {
			w.bad(ctx, s, "manifest/"+s.s.DeltaManifestList, fmt.Errorf("data file %s: %w", e.File.Name, err))
			continue
		}
		f := w.need(key, &e.File.Size, s)
		f.entry, f.by = e, w.by[paimon.KeyOf(e)]
		companions, err := t.CompanionKeys(e)
		if err != nil {
			w.bad(ctx, s, key, err)
		}
		for _, k := range companions {
			w.need(k, nil, s)
		}
	}
	for i := range c.state.Index {
		e := &c.state.Index[i]
		key, err := t.Paths().Index(e)
		if err != nil {
			w.bad(ctx, s, "manifest/"+*s.s.IndexManifest, err)
			continue
		}
		w.need(key, &e.Size, s).by = "manifest/" + *s.s.IndexManifest
	}
	w.checkVectors(before, c, live)
	w.checkCounts(before, c)
	w.markSealed(ctx, c)
}

// markSealed notes the data files that a sealed snapshot of ours has added.
func (w *walker) markSealed(ctx context.Context, c *content) {
	if r := c.snap.ours(); r == nil || r.Seal == "" {
		return
	}
	delta, err := w.v.Table.Delta(ctx, c.snap.s)
	if err != nil {
		return // found before
	}
	for i := range delta {
		if delta[i].Kind != manifest.Add {
			continue
		}
		if key, err := w.v.Table.Paths().Location(&delta[i]); err == nil && w.needed[key] != nil {
			w.needed[key].sealed = true
		}
	}
}

// checkCounts: the numbers of a snapshot follow from its files and from the
// snapshot before (I4, I7).
func (w *walker) checkCounts(before, c *content) {
	s := c.snap
	w.counts.count("snapshots", 1)
	if c.rows != s.s.TotalRecordCount {
		w.counts.fail(s.key, "", "its files have %d rows by its manifests, it says %d in all", c.rows, s.s.TotalRecordCount)
	}
	if before == nil {
		return
	}
	if d := c.rows - before.rows; d != s.s.DeltaRecordCount {
		w.counts.fail(s.key, "", "its files have %d rows more than those of %s, it says %d", d, before.snap.key, s.s.DeltaRecordCount)
	}
	if !s.genuine || c.dead < 0 || before.dead < 0 {
		return
	}
	if got, want := (c.rows-c.dead)-(before.rows-before.dead), liveChange(s.own, w.v.Apply); got != want && s.own.Config == w.v.Config {
		w.counts.fail(s.key, "", "the live rows changed by %d, by the record's own counts it is %d (%d inserted, %d deleted)", got, want, s.own.Inserted, s.own.Deleted)
	}
}

// statFile describes a file that a snapshot needs, in the table's store or outside.
func (v *verifier) statFile(ctx context.Context, key string, f *stored) (objstore.Info, error) {
	if f.entry != nil {
		return v.Table.StatData(ctx, f.entry)
	}
	return v.Table.Bucket().Stat(ctx, key)
}

// stat compares every needed file with its recorded size.
func (w *walker) stat(ctx context.Context) {
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(16)
	for _, key := range sortedKeys(w.needed) {
		f := w.needed[key]
		g.Go(func() error {
			info, err := w.v.statFile(ctx, key, f)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, objstore.ErrNotExist) && w.v.gone(ctx, f.snapshot):
			case errors.Is(err, objstore.ErrNotExist):
				w.sec.fail(key, "", "the file is missing; snapshot %d needs it%s", f.snapshot, f.namedBy())
			case err != nil:
				w.sec.readError(key, err)
			case f.size >= 0 && info.Size != f.size:
				w.sec.fail(key, "", "it has %d bytes, %d were written%s", info.Size, f.size, f.namedBy())
			}
			return nil
		})
	}
	_ = g.Wait()
	w.sec.count("files", int64(len(w.needed)))
	sortFindings(w.sec)
}
