package app

import (
	"fmt"
	"os"
	"syscall"
)

// secureStateDir makes the folder for state, or checks the one that is there: it
// holds the keys of tables, and a marker that is believed, so it must be this
// user's own, and nobody else may read or write in it. A symbolic link is refused:
// in a folder that others may write to, such as /tmp, it could be made to lead
// anywhere, at any time.
func secureStateDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making state_dir: %w", err)
	}
	// Through one descriptor, so that what is checked is what is changed.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		if info, e := os.Lstat(path); e == nil && info.Mode()&os.ModeSymlink != 0 {
			return fmt.Errorf("state_dir %s is a symbolic link; name the folder it leads to", path)
		}
		return fmt.Errorf("opening state_dir: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("looking at state_dir: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("state_dir %s belongs to user %d, this process runs as user %d; use a folder of its own", path, owner.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("state_dir %s may be written by others (mode %04o); run: chmod 700 %s", path, info.Mode().Perm(), path)
	}
	if info.Mode().Perm()&0o055 != 0 {
		if err := f.Chmod(0o700); err != nil {
			return fmt.Errorf("closing state_dir to other users: %w", err)
		}
	}
	return nil
}
