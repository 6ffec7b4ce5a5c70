package paimon

import (
	"sync"

	"applier/storage/paimon/manifest"
)

// entryCache keeps the decoded entries of small manifests: those that merging
// reads again soon. What is in it is shared and never changed.
type entryCache struct {
	mu    sync.Mutex
	names []string // oldest first; those of forgotten items too
	items map[string]cachedEntries
	size  int // entries in all items
	// lossy are manifests that hold more than this program knows.
	lossy map[string]bool
}

type cachedEntries struct {
	entries  []manifest.Entry
	complete bool
}

// Manifests of more entries are not cached, nor more entries in all (about half
// a KiB each).
const (
	cachedManifestEntries = 1000
	cachedEntriesInAll    = 16_000
	// rememberedLossy bounds the names of lossy manifests.
	rememberedLossy = 10_000
)

func newEntryCache() *entryCache {
	return &entryCache{items: map[string]cachedEntries{}, lossy: map[string]bool{}}
}

func (c *entryCache) get(name string) (cachedEntries, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[name]
	return e, ok
}

// isLossy reports whether a manifest is known to be.
func (c *entryCache) isLossy(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lossy[name]
}

func (c *entryCache) put(name string, entries []manifest.Entry, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !complete && len(c.lossy) < rememberedLossy {
		c.lossy[name] = true
	}
	if _, ok := c.items[name]; ok || len(entries) > cachedManifestEntries {
		return
	}
	c.names = append(c.names, name)
	c.items[name] = cachedEntries{entries, complete}
	c.size += len(entries)
	for c.size > cachedEntriesInAll || len(c.names) > cachedEntriesInAll {
		c.drop(c.names[0])
		c.names = c.names[1:]
	}
}

// forget makes room: a manifest has been merged into another one.
func (c *entryCache) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(name)
}

func (c *entryCache) drop(name string) {
	c.size -= len(c.items[name].entries)
	delete(c.items, name)
}
