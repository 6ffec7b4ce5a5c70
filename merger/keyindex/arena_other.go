//go:build !linux

package keyindex

import "golang.org/x/sys/unix"

const (
	reserveFlags = unix.MAP_ANON | unix.MAP_PRIVATE
	populate     = 0
)

func adviseHuge([]byte) {}

func collapse([]byte, int, int) {}

// discard frees pages and makes them inaccessible; they read as zero when they
// are made accessible again, whether or not the system took them.
func discard(b []byte) error {
	clear(b)
	if err := unix.Madvise(b, unix.MADV_FREE); err != nil {
		return err
	}
	return unix.Mprotect(b, unix.PROT_NONE)
}
