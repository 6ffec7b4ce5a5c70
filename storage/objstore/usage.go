package objstore

import "sync/atomic"

// Usage is what calls of a bucket have asked of its store since it was opened: requests
// of an object store, tries that failed included; on a disk each call counts as one.
type Usage struct {
	Reads, Writes           int64 // requests that look (get, read, stat, list), and the others
	ReadBytes, WrittenBytes int64 // of objects
}

// Since returns what was asked after an earlier Usage of the same bucket.
func (u Usage) Since(before Usage) Usage {
	return Usage{u.Reads - before.Reads, u.Writes - before.Writes, u.ReadBytes - before.ReadBytes, u.WrittenBytes - before.WrittenBytes}
}

// meter counts the usage of a bucket. It is safe for concurrent use.
type meter struct {
	reads, writes, readBytes, writtenBytes atomic.Int64
}

// Usage returns what the bucket's calls have asked of its store so far.
func (m *meter) Usage() Usage {
	return Usage{m.reads.Load(), m.writes.Load(), m.readBytes.Load(), m.writtenBytes.Load()}
}

// count counts a request that moved so many bytes of objects.
func (m *meter) count(op string, bytes int64) {
	if reads(op) {
		m.reads.Add(1)
		m.readBytes.Add(bytes)
		return
	}
	m.writes.Add(1)
	m.writtenBytes.Add(bytes)
}

// reads reports whether an operation, by its name in Observe, only looks.
func reads(op string) bool {
	switch op {
	case "get", "open", "read", "stat", "list":
		return true
	}
	return false
}
