package paimon

import (
	"context"
	"fmt"

	"applier/storage/paimon/manifest"
)

// Manifests are merged in tiers, like the runs of an LSM tree. A manifest's class
// is the number of digits of its entry count, up to that of full ones. The list's
// tiers, from its end: first manifests of class 0, before them those up to class
// 1, and so on. As soon as a tier has mergeFanIn manifests they become one, which
// then stands in a higher tier. So a list holds fewer than mergeFanIn manifests a
// tier, an entry is written again once a class, and what a commit writes does not
// grow with the table (performance.md §8); Java's rule of 30 manifests up to 8 MB
// rewrites everything below that each time.
//
// What is next to each other is merged, so an ADD stays before the DELETE that
// cancels it.
const (
	mergeFanIn = 10
	// mergeBytes is about how much merging adds to one commit; what exceeds it
	// waits for the next ones. A manifest of fullBytes is left alone until there
	// are fullFanIn of them in a row, which become one that is left alone for
	// good, as is all of hugeBytes.
	mergeBytes = 32 << 10
	fullBytes  = 16 << 10
	fullFanIn  = 100
	fullMerge  = 8 << 20 // instead of mergeBytes
	hugeBytes  = 1 << 20
	// manifestHeader is what a manifest without entries has.
	manifestHeader = 2300
	// manifestEntries is how many entries a merged manifest holds at most: about
	// 8 MB, Java's manifest.target-file-size.
	manifestEntries = 100_000
	// Once there are staleDeletes DELETEs, and one for each staleShare entries,
	// everything is merged, so that both sides go.
	staleDeletes = 1000
	staleShare   = 4
)

// Classes of manifests beside their digits.
const (
	classFull = 5
	classHuge = 6
)

// listItem is a manifest of the new base list. One that was merged in this commit
// has entries and is not written yet.
type listItem struct {
	meta    manifest.Meta
	entries []manifest.Entry
}

func (i *listItem) class() int {
	if i.entries == nil {
		return sizeClass(i.meta.Added+i.meta.Deleted, i.meta.Size)
	}
	return sizeClass(int64(len(i.entries)), i.meta.Size)
}

// weight is about what a manifest adds to a merged one.
func (i *listItem) weight() int64 { return max(i.meta.Size-manifestHeader, 1) }

func sizeClass(entries, bytes int64) int {
	switch {
	case bytes >= hugeBytes:
		return classHuge
	case bytes >= fullBytes:
		return classFull
	}
	class := 0
	for ; entries >= mergeFanIn && class < classFull-1; class++ {
		entries /= mergeFanIn
	}
	return class
}

// merger merges manifests of a list in memory.
type merger struct {
	ctx   context.Context
	t     *Table
	items []listItem
	// open is the first manifest that may be merged: those before hold what this
	// program does not know, or stand before such a one.
	open int
	// budget is what is left of mergeBytes.
	budget int64
}

// mergeBase returns the manifests of the new base list, of which some may be
// newly written.
func (b *commitBuilder) mergeBase(ctx context.Context) ([]manifest.Meta, error) {
	m := &merger{ctx: ctx, t: b.t, budget: mergeBytes}
	for i, meta := range b.base.Manifests {
		m.items = append(m.items, listItem{meta: meta})
		if b.t.entries.isLossy(meta.Name) {
			m.open = i + 1
		}
	}
	var err error
	if m.stale() {
		err = m.merge(0, len(m.items))
	}
	for class := 0; class <= classFull && err == nil; class++ {
		err = m.mergeTier(class)
	}
	if err != nil {
		return nil, err
	}
	var metas []manifest.Meta
	for _, item := range m.items {
		if item.entries == nil {
			metas = append(metas, item.meta)
			continue
		}
		for rest := item.entries; len(rest) > 0; {
			n := min(len(rest), manifestEntries)
			meta, err := b.writeManifest(rest[:n:n])
			if err != nil {
				return nil, err
			}
			metas, rest = append(metas, meta), rest[n:]
		}
	}
	return metas, nil
}

// stale says whether DELETEs have piled up. With a manifest that must stay as it
// is their ADDs may be in there, and merging would not help.
func (m *merger) stale() bool {
	var deleted, all int64
	for _, i := range m.items {
		deleted += i.meta.Deleted
		all += i.meta.Added + i.meta.Deleted
	}
	return m.open == 0 && deleted >= staleDeletes && deleted*staleShare >= all
}

// tier returns the manifests of a class's tier, [from, to).
func (m *merger) tier(class int) (from, to int) {
	to = len(m.items)
	for to > m.open && m.items[to-1].class() < class {
		to--
	}
	for from = to; from > m.open && m.items[from-1].class() <= class; {
		from--
	}
	return from, to
}

// mergeTier merges a class's tier, or as much of its beginning as the budget
// allows, if there are enough manifests.
func (m *merger) mergeTier(class int) error {
	fanIn, budget := mergeFanIn, m.budget
	if class == classFull {
		fanIn, budget = fullFanIn, fullMerge
	}
	for {
		from, to := m.tier(class)
		if to-from < fanIn {
			return nil
		}
		size := int64(0)
		for n := from; n < to; n++ {
			if size += m.items[n].weight(); size > budget {
				size -= m.items[n].weight()
				to = n
			}
		}
		if to-from < 2 {
			return nil
		}
		open := m.open
		if err := m.merge(from, to); err != nil {
			return err
		}
		if m.open == open {
			m.budget -= size
			return nil
		}
	}
}

// merge makes one of the manifests [from, to). If one of them turns out to hold
// what this program does not know, nothing is merged and open lies behind it.
func (m *merger) merge(from, to int) error {
	lists := make([][]manifest.Entry, 0, to-from)
	size := int64(manifestHeader)
	for i := from; i < to; i++ {
		item := &m.items[i]
		entries, complete := item.entries, true
		if entries == nil {
			var err error
			if entries, complete, err = m.t.readEntries(m.ctx, item.meta); err != nil {
				return err
			}
		}
		if !complete {
			m.open = i + 1
			return nil
		}
		lists, size = append(lists, entries), size+item.weight()
	}
	merged, err := manifest.Merge(lists...)
	if err != nil {
		return fmt.Errorf("merging manifests: %w", err)
	}
	for i := from; i < to; i++ {
		m.t.entries.forget(m.items[i].meta.Name)
	}
	rest := append([]listItem(nil), m.items[to:]...)
	m.items = m.items[:from]
	if len(merged) > 0 {
		m.items = append(m.items, listItem{manifest.Meta{Size: size}, merged})
	}
	m.items = append(m.items, rest...)
	return nil
}
