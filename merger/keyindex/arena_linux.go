package keyindex

import "golang.org/x/sys/unix"

const (
	reserveFlags = unix.MAP_ANON | unix.MAP_PRIVATE | unix.MAP_NORESERVE
	populate     = unix.MAP_POPULATE
)

// adviseHuge asks for huge pages wherever a whole one fits. It is advice: a
// kernel without them says no, and nothing changes but speed.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

// collapse turns the huge page that became complete when a range grew from old
// to size bytes, until then small pages, into a real one. Later ones are huge
// from their first touch. Kernels before 6.1 refuse, which is fine.
func collapse(mem []byte, old, size int) {
	at := old &^ (hugePage - 1)
	if at != old && at+hugePage <= size {
		_ = unix.Madvise(mem[at:at+hugePage], unix.MADV_COLLAPSE)
	}
}

// discard frees pages and makes them inaccessible; they read as zero when they
// are made accessible again.
func discard(b []byte) error {
	if err := unix.Madvise(b, unix.MADV_DONTNEED); err != nil {
		return err
	}
	return unix.Mprotect(b, unix.PROT_NONE)
}
