package objstore_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
)

const errIO = syscall.EIO

// failAt fails one kind of operation at one path.
func failAt(kind objstore.OpKind, path string, err error) func(objstore.Op) objstore.Fault {
	return func(op objstore.Op) objstore.Fault {
		if op.Kind == kind && (path == "*" || op.Path == path) {
			return objstore.Fault{Err: err}
		}
		return objstore.Fault{}
	}
}

var errnos = map[string]error{
	"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EDQUOT": syscall.EDQUOT, "EROFS": syscall.EROFS, "EACCES": syscall.EACCES,
	"EPERM": syscall.EPERM, "EMFILE": syscall.EMFILE, "ENOTSUP": syscall.ENOTSUP, "EINVAL": syscall.EINVAL,
	"EEXIST": syscall.EEXIST, "ENOENT": syscall.ENOENT,
}

// story runs the calls of a testdata file on one Mem and prints the primitive
// operations of each, its answer, and, on request, the disk.
type story struct {
	disk   *objstore.Mem
	faults []string // "KIND PATH ERRNO [applied] [written=n] [lie] [delay] [crash]"
	trace  *strings.Builder
}

func (s *story) fault(op objstore.Op) objstore.Fault {
	fmt.Fprintf(s.trace, "%s", op)
	var f objstore.Fault
	for i, line := range s.faults {
		w := strings.Fields(line)
		if w[0] != string(op.Kind) || w[1] != "*" && w[1] != op.Path && w[1] != op.To {
			continue
		}
		for _, word := range w[2:] {
			switch word {
			case "applied":
				f.Applied = true
			case "lie":
				f.Lie = true
			case "delay":
				f.Delay = true
			case "crash":
				f.Crash = true
			default:
				if _, err := fmt.Sscanf(word, "written=%d", &f.Written); err != nil {
					f.Err = errnos[word]
				}
			}
		}
		fmt.Fprintf(s.trace, "   FAULT: %s", f)
		s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		break
	}
	s.trace.WriteByte('\n')
	return f
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	s.trace = &strings.Builder{}
	s.faults = nil
	var keys []string
	for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
		if rest, ok := strings.CutPrefix(line, "fault "); ok {
			s.faults = append(s.faults, rest)
		} else if line != "" {
			keys = append(keys, line)
		}
	}
	var err error
	switch d.Cmd {
	case "new":
		s.disk = objstore.NewMem(objstore.MemOptions{})
		s.disk = s.disk.Attach(objstore.MemOptions{Fault: s.fault})
		return ""
	case "put_all":
		var objects []objstore.Object
		for i, key := range keys {
			objects = append(objects, objstore.Object{Key: key, Data: block(byte('a'+i), 5000)})
		}
		err = s.disk.PutAll(ctx, objects)
	case "put_if_absent":
		err = s.disk.PutIfAbsent(ctx, keys[0], block('p', 5000))
	case "replace":
		err = s.disk.Replace(ctx, keys[0], block('r', 10))
	case "create":
		err = s.create(keys[0])
	case "delete":
		err = s.disk.Delete(ctx, keys...)
	case "get":
		_, err = s.disk.Get(ctx, keys[0])
	case "disk":
		return show(s.disk) + "after a power cut:\n" + show(s.disk.Crash(nil, 0))
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	require.Empty(t, s.faults, "%s: these faults were never met", d.Pos)
	return s.trace.String() + answer(err)
}

func (s *story) create(key string) error {
	w, err := s.disk.Create(ctx, key)
	if err != nil {
		return err
	}
	defer w.Abort()
	for range 2 {
		if _, err := w.Write(block('c', 40_000)); err != nil {
			return err
		}
	}
	return w.Close()
}

func answer(err error) string {
	if err == nil {
		return "= done\n"
	}
	s := "= " + err.Error()
	for name, kind := range map[string]error{
		"ErrExist": objstore.ErrExist, "ErrFull": objstore.ErrFull, "ErrReadOnly": objstore.ErrReadOnly,
		"ErrPermission": objstore.ErrPermission, "ErrNotExist": objstore.ErrNotExist, "ErrCrashed": objstore.ErrCrashed,
	} {
		if errors.Is(err, kind) {
			s += " [" + name + "]"
		}
	}
	return s + "\n"
}

func show(m *objstore.Mem) string {
	var b strings.Builder
	m.Walk(func(key string, data []byte) {
		zeros := strings.Count(string(data), "\x00")
		fmt.Fprintf(&b, "  %s: %d bytes", key, len(data))
		if zeros > 0 {
			fmt.Fprintf(&b, ", %d of them lost", zeros)
		}
		b.WriteByte('\n')
	})
	if b.Len() == 0 {
		return "  nothing\n"
	}
	return b.String()
}

func TestOps_Stories(t *testing.T) {
	datadriven.Walk(t, "testdata/ops", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, s.run)
	})
}
