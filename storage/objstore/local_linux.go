package objstore

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameNew is renameat2(2) with RENAME_NOREPLACE.
func renameNew(from, to string) error {
	for {
		err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &os.LinkError{Op: "renameat2", Old: from, New: to, Err: err}
		}
		return nil
	}
}

// ownerOf names the owner of a file in a message.
func ownerOf(info os.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf(" and belongs to uid %d", st.Uid)
	}
	return ""
}

// identityOf tells a folder by its device, inode and time of birth; without the
// last it says no, since inode numbers are used again. The kernel's clock for
// births ticks only every few milliseconds, so a folder has no identity before
// it is so old that another of its name must have been born at another tick.
func identityOf(path string, now time.Time) (folderID, bool) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_SYNC_AS_STAT, unix.STATX_INO|unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 || st.Mask&unix.STATX_INO == 0 {
		return folderID{}, false
	}
	birth := time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
	if now.Sub(birth) < time.Second {
		return folderID{}, false
	}
	return folderID{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino, birth: birth.UnixNano()}, true
}

// fileSystems are the types that a warehouse may be found on, by statfs(2)'s magic
// numbers (linux/magic.h and the file systems' own headers).
var fileSystems = map[uint32]struct {
	name    string
	network bool
}{
	unix.EXT4_SUPER_MAGIC:      {"ext4", false},
	unix.XFS_SUPER_MAGIC:       {"xfs", false},
	unix.BTRFS_SUPER_MAGIC:     {"btrfs", false},
	unix.F2FS_SUPER_MAGIC:      {"f2fs", false},
	0x2fc12fc1:                 {"zfs", false},
	0xca451a4e:                 {"bcachefs", false},
	unix.TMPFS_MAGIC:           {"tmpfs", false},
	unix.RAMFS_MAGIC:           {"ramfs", false},
	unix.OVERLAYFS_SUPER_MAGIC: {"overlayfs", false},
	unix.MSDOS_SUPER_MAGIC:     {"vfat", false},
	unix.EXFAT_SUPER_MAGIC:     {"exfat", false},
	unix.NFS_SUPER_MAGIC:       {"nfs", true},
	unix.SMB_SUPER_MAGIC:       {"smb", true},
	unix.SMB2_SUPER_MAGIC:      {"smb2", true},
	unix.CIFS_SUPER_MAGIC:      {"cifs", true},
	unix.CEPH_SUPER_MAGIC:      {"ceph", true},
	unix.AFS_SUPER_MAGIC:       {"afs", true},
	unix.AFS_FS_MAGIC:          {"afs", true},
	unix.CODA_SUPER_MAGIC:      {"coda", true},
	unix.OCFS2_SUPER_MAGIC:     {"ocfs2", true},
	0x01161970:                 {"gfs2", true},
	0x0bd00bd0:                 {"lustre", true},
	0x47504653:                 {"gpfs", true},
	unix.V9FS_MAGIC:            {"9p", true},
	unix.FUSE_SUPER_MAGIC:      {"fuse", true}, // sshfs, s3fs and the like; a local one cannot be told apart
}

func fileSystemOf(path string) (string, bool, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", false, &os.PathError{Op: "statfs", Path: path, Err: err}
		}
		break
	}
	if fs, ok := fileSystems[uint32(st.Type)]; ok {
		return fs.name, fs.network, nil
	}
	return "unknown", false, nil
}
