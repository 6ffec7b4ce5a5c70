package objstore

import (
	"fmt"
	"strings"
)

// OpKind is a primitive operation of the file system under a Mem.
type OpKind string

// The operations.
const (
	OpCreate    OpKind = "create"     // make an empty file
	OpWrite     OpKind = "write"      // append to a file
	OpSync      OpKind = "sync"       // make a file's contents and length durable
	OpLink      OpKind = "link"       // second name, refused if taken: the moment of publishing
	OpRenameNew OpKind = "rename_new" // rename, refused if taken: publishing without hard links
	OpRename    OpKind = "rename"     // rename over whatever is there
	OpUnlink    OpKind = "unlink"     // remove a name
	OpMkdir     OpKind = "mkdir"      // make a folder
	OpSyncDir   OpKind = "sync_dir"   // make a folder's entries durable
	OpOpen      OpKind = "open"       // open for reading
	OpRead      OpKind = "read"       // read from an open file
	OpStat      OpKind = "stat"
	OpList      OpKind = "list"
)

// Op is one primitive operation about to happen.
type Op struct {
	N    int64 // running number at this user, from 1
	Kind OpKind
	Path string
	To   string // new name of link and renames
	Size int    // bytes of write and read
}

// String returns the operation as one line of a trace.
func (o Op) String() string {
	path := o.Path
	if path == "" {
		path = "(root)"
	}
	s := string(o.Kind) + " " + path
	if o.To != "" {
		s += " -> " + o.To
	}
	if o.Kind == OpWrite || o.Kind == OpRead {
		s += fmt.Sprintf(" %d", o.Size)
	}
	return s
}

// Fault is what becomes of an operation. The zero Fault lets it happen.
type Fault struct {
	// Err is returned instead of doing the operation. A syscall.Errno (EIO,
	// ENOSPC, EROFS, EMFILE, …) comes out as it would from a disk. A file whose
	// sync failed stays as it was on disk, and later syncs of it lie, as on Linux.
	Err error
	// Applied does the operation all the same before Err is returned, or before Crash.
	Applied bool
	// Written is how many bytes of a write that fails with Err got through.
	Written int
	// Lie lets a sync of a file or folder answer yes without doing anything.
	Lie bool
	// Delay takes a link or rename_new on its way: the caller gets an error, Err
	// or a general one, and the simulation lets the object appear later through
	// Mem.Delayed, or never.
	Delay bool
	// Crash ends this user: this and all later operations say ErrCrashed and do
	// nothing. Other users of the same disk go on (Attach); Mem.Crash cuts the power.
	Crash bool
}

// String describes a Fault in a trace.
func (f Fault) String() string {
	var s []string
	add := func(on bool, text string) {
		if on {
			s = append(s, text)
		}
	}
	add(f.Applied, "applied")
	add(f.Lie, "lie")
	add(f.Delay, "delay")
	add(f.Crash, "crash")
	add(f.Err != nil, fmt.Sprint(f.Err))
	return strings.Join(s, " ")
}
