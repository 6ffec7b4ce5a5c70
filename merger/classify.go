package merger

import (
	"errors"
	"syscall"

	"applier/merger/keyindex"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/dv"
	"applier/storage/paimon/manifest"
)

// ErrSource: the source of the batches does not answer; it may later.
var ErrSource = errors.New("the source does not answer")

// classify names the code of an error: the one place where errors of the rooms
// below become decisions.
func classify(err error) Code {
	switch {
	case errors.Is(err, errPanic):
		return CodePanic
	case errors.Is(err, ErrSource):
		return CodeUnavailable
	case errors.Is(err, keyindex.ErrSidecar):
		return CodeIndexDisk
	case errors.Is(err, objstore.ErrFull):
		return CodeFull
	case errors.Is(err, objstore.ErrReadOnly):
		return CodeReadOnly
	case errors.Is(err, objstore.ErrPermission):
		return CodePermission
	case errors.Is(err, objstore.ErrClock):
		return CodeClock
	case errors.Is(err, objstore.ErrCertificate):
		return CodeStoreTLS
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return CodeFiles
	case errors.Is(err, keyindex.ErrMemory), errors.Is(err, syscall.ENOMEM):
		return CodeMemory
	case errors.Is(err, paimon.ErrNewer), errors.Is(err, ErrRecordVersion), errors.Is(err, manifest.ErrUnsupported):
		return CodeVersion
	case errors.Is(err, paimon.ErrRefused), errors.Is(err, paimon.ErrNoRowIDs), errors.Is(err, datafile.ErrUnsupported):
		return CodeOptions
	case errors.Is(err, paimon.ErrTypeChanged):
		return CodeSchema
	case errors.Is(err, ErrRecord), errors.Is(err, paimon.ErrCorrupt), errors.Is(err, manifest.ErrCorrupt), errors.Is(err, manifest.ErrInconsistent),
		errors.Is(err, datafile.ErrCorrupt), errors.Is(err, datafile.ErrSchema), errors.Is(err, dv.ErrCorrupt), errors.Is(err, paimon.ErrHole),
		errors.Is(err, objstore.ErrSize):
		return CodeCorrupt
	}
	return CodeIO
}
