package paimon

import (
	"fmt"

	"applier/storage/paimon/manifest"
)

// Manifests are merged in tiers: as soon as mergeFanIn manifests of one size
// class (by powers of mergeFanIn entries) stand at the end of the list, they
// become one. An entry is rewritten O(log n) times, a list holds at most
// (mergeFanIn-1) manifests a class, and no commit rewrites much at once, as
// Java's rule of 30 small files does (performance.md §8). Only runs at the end
// merge, so an ADD stays before the DELETE that cancels it.
const (
	mergeFanIn   = 10
	mergeClasses = 5 // 10^5 entries are about 8 MB, Java's manifest.target-file-size
	// staleDeletes is how many DELETEs without their ADD a merged manifest may
	// hold before everything is merged, so that both sides go.
	staleDeletes = 1000
)

func sizeClass(m manifest.Meta) int {
	n, class := m.Added+m.Deleted, 0
	for n >= mergeFanIn && class < mergeClasses {
		n /= mergeFanIn
		class++
	}
	return class
}

// mergeBase returns the manifests of the new base list, of which some may be
// newly written under uuid, and the number of the next free name.
func (b *commitBuilder) mergeBase(uuid string) ([]manifest.Meta, int, error) {
	metas, n := b.base.Manifests, 0
	for class := range mergeClasses {
		from := len(metas)
		for from > 0 && sizeClass(metas[from-1]) <= class {
			from--
		}
		if len(metas)-from < mergeFanIn {
			continue
		}
		merged, ok, err := b.mergeRun(metas[from:], ManifestName(uuid, n))
		if err != nil {
			return nil, 0, err
		}
		if !ok {
			break
		}
		n++
		if merged != nil && merged.Deleted >= staleDeletes && from > 0 {
			all, ok, err := b.mergeRun(append(append([]manifest.Meta(nil), metas[:from]...), *merged), ManifestName(uuid, n))
			if err != nil {
				return nil, 0, err
			}
			if ok {
				n++
				b.dropObject(merged.Name)
				merged, from = all, 0
			}
		}
		metas = append([]manifest.Meta(nil), metas[:from]...)
		if merged != nil {
			metas = append(metas, *merged)
		}
	}
	return metas, n, nil
}

// mergeRun writes the merged entries of a run; ok is false if one of its
// manifests holds what this program does not know and must not be rewritten.
// merged is nil if everything cancels.
func (b *commitBuilder) mergeRun(run []manifest.Meta, name string) (merged *manifest.Meta, ok bool, err error) {
	lists := make([][]manifest.Entry, len(run))
	for i, m := range run {
		entries, complete, err := b.t.readEntries(b.ctx, m)
		if err != nil {
			return nil, false, err
		}
		if !complete {
			return nil, false, nil
		}
		lists[i] = entries
	}
	entries, err := manifest.Merge(lists...)
	if err != nil {
		return nil, false, fmt.Errorf("merging manifests: %w", err)
	}
	for _, m := range run {
		b.dropObject(m.Name) // merged again before it was ever written
	}
	if len(entries) == 0 {
		return nil, true, nil
	}
	meta, err := b.writeManifest(name, entries)
	return &meta, true, err
}

// dropObject takes back an object of this commit that nothing names any more.
func (b *commitBuilder) dropObject(name string) {
	key, err := b.t.paths.Manifest(name)
	if err != nil {
		return
	}
	for i, o := range b.c.Objects {
		if o.Key == key {
			b.c.Objects = append(b.c.Objects[:i], b.c.Objects[i+1:]...)
			return
		}
	}
}
