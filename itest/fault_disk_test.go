//go:build itest

package itest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// corrupt damages a file while the daemon is stopped, expects it to halt with
// T-CORRUPT naming the file and to write nothing, and repairs it under the halted daemon.
func (f *faulty) corrupt(file string, damage func(b []byte) []byte) {
	f.t.Helper()
	sound, err := os.ReadFile(file)
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(file, damage(slices.Clone(sound)), 0o644))
	before := len(snapshotIDs(f.ref()))
	f.produce(20)
	p := f.start()
	s := f.waitHalt(p, "T-CORRUPT")
	require.Contains(f.t, s.Halt.Message, filepath.Base(file))
	require.Contains(f.t, s.Halt.Remedy, "roll the table back to a snapshot that reads fully")
	require.Len(f.t, snapshotIDs(f.ref()), before, "nothing was written")
	require.NoError(f.t, os.WriteFile(file, sound, 0o644))
	f.must("resume", "p")
	f.healed(p)
	f.exact(p)
}

// foreignInsert has Java add rows that no change of ours touches.
func (f *faulty) foreignInsert(ids ...int) {
	f.t.Helper()
	var rows []any
	for _, id := range ids {
		text := row(id, "theirs")
		rows = append(rows, text)
		f.m.insert(text)
	}
	_, err := harness.Java(f.t).Do(f.t.Context(), f.ref(), harness.InsertRows(rows...))
	require.NoError(f.t, err)
}

// newest is the file of a folder that came last.
func (f *faulty) newest(folder, prefix string) string {
	f.t.Helper()
	var out string
	for _, file := range f.filesIn(folder) {
		if strings.HasPrefix(filepath.Base(file), prefix) {
			out = file
		}
	}
	require.NotEmpty(f.t, out)
	return out
}

func TestFault_B2(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.foreignInsert(1000)
	ids := snapshotIDs(f.ref())
	torn := filepath.Join(tableDir(f.ref()), "snapshot", fmt.Sprintf("snapshot-%d", ids[len(ids)-1]))
	f.corrupt(torn, func(b []byte) []byte { return b[:len(b)/2] })
}

// B3: what a power cut leaves of a writer that does not sync: files of the right
// length with blocks of zeros.
func TestFault_B3(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.foreignInsert(1000, 1001)
	zero := func(b []byte) []byte { clear(b); return b }
	for _, file := range []string{f.newest("manifest", "manifest-list-"), f.newest("bucket-0", "data-")} {
		f.corrupt(file, zero)
	}
}

func TestFault_B4(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	once := harness.Inject(t, p, "-e", "inject=fsync:error=EIO:when=1") // of each thread
	f.produce(50)
	f.healed(p)
	once.Stop()
	harness.MustSay(t, p, "input/output error")
	always := harness.Inject(t, p, "-e", "inject=fsync:error=EIO")
	before := len(snapshotIDs(f.ref()))
	f.produce(50)
	f.haltRetries(p, "D-IO", []string{"input/output error"}, func() {
		require.Len(t, snapshotIDs(f.ref()), before, "what is not durable is not published")
		always.Stop()
	})
	f.exact(p)
}

func TestFault_B5(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.produce(100)
	p := f.armed("objstore/put_all/half/bucket-0=error@1,objstore/put_all/half/manifest=error@3")
	f.healed(p)
	f.exact(p)
	for _, folder := range []string{"bucket-0", "manifest"} {
		harness.MustSay(t, p, "failpoint objstore/put_all/half/"+folder+": error")
	}
	f.produce(50)
	p = f.armed("objstore/put_all/half/bucket-0=error")
	f.waitHalt(p, "D-IO")
	_, err := p.Stop(patience)
	require.NoError(t, err)
	f.again()
}

func TestFault_B6(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	for i, class := range []struct{ folder, prefix string }{{"bucket-0", "data-"}, {"manifest", "manifest-"}} {
		f.must("pause", "p") // so that nothing is read before the disk is broken
		f.foreignInsert(1000 + i)
		file := f.newest(class.folder, class.prefix)
		broken := harness.Inject(t, p, "-e", "inject=pread64:error=EIO", "-P", file)
		f.produce(20)
		f.must("resume", "p")
		f.haltRetries(p, "D-IO", []string{"input/output error", filepath.Base(file)}, broken.Stop)
	}
	f.exact(p)
}

// B7: one wrong byte in each kind of file. TestFault_B7 of storage/paimon tries
// every place.
func TestFault_B7(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	f.produce(30) // marks rows of the first file
	f.waitApplied(p)
	f.exact(p)
	at := func(n int) func([]byte) []byte {
		return func(b []byte) []byte {
			if n < 0 {
				b[len(b)+n] ^= 0xff
			} else {
				b[n] ^= 0xff
			}
			return b
		}
	}
	f.corrupt(f.newest("index", "index-"), at(-10))
	f.corrupt(f.newest("bucket-0", "data-"), at(60)) // in the first page: the key
	f.corrupt(f.newest("manifest", "manifest-"), at(-30))
}

// smallDisk is a warehouse on a file system of its own.
func smallDisk(t *testing.T, options string) (mount, warehouse string) {
	t.Helper()
	mount = harness.Tmpfs(t, options)
	warehouse = filepath.Join(mount, "warehouse")
	require.NoError(t, os.Mkdir(warehouse, 0o755))
	return mount, warehouse
}

func TestFault_B8(t *testing.T) {
	disk, warehouse := smallDisk(t, "size=4m")
	f := newFaulty(t, warehouse, "")
	p := f.filled(100)
	files := f.filesIn("bucket-0")
	free := harness.Fill(t, disk)
	f.produce(50)
	f.haltRetries(p, "D-FULL", []string{"no space left on device"}, func() {
		require.Equal(t, files, f.filesIn("bucket-0"), "a partial file takes no space")
		free()
	})
	f.exact(p)
}

// B9: the disk is full at the last moment, when only the snapshot is left to write.
func TestFault_B9(t *testing.T) {
	disk, warehouse := smallDisk(t, "size=4m")
	f := newFaulty(t, warehouse, "")
	f.session = "30s" // it stands still longer than a session of tests
	f.configure("")
	harness.MustStop(t, f.filled(100))
	before := len(snapshotIDs(f.ref()))
	f.produce(50)
	p := f.armed("objstore/put_all/synced=stop@1")
	stopped(t, p, 1)
	free := harness.Fill(t, disk)
	proceed(t, p)
	f.haltRetries(p, "D-FULL", []string{"no space left on device", "snapshot-"}, func() {
		require.Len(t, snapshotIDs(f.ref()), before)
		free()
	})
	f.exact(p)
}

func TestFault_B10(t *testing.T) {
	disk, warehouse := smallDisk(t, "size=16m,nr_inodes=200")
	f := newFaulty(t, warehouse, "")
	p := f.filled(100)
	var ballast []string
	for {
		name := filepath.Join(disk, fmt.Sprint("inode", len(ballast)))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			break
		}
		ballast = append(ballast, name)
	}
	f.produce(50)
	f.haltRetries(p, "D-FULL", []string{"no space left on device"}, func() {
		for _, name := range ballast {
			require.NoError(t, os.Remove(name))
		}
	})
	f.exact(p)
}

// The quota is met when a commit is published: the only links are those.
func TestFault_B10_Quota(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	quota := harness.Inject(t, p, "-e", "inject=linkat:error=EDQUOT")
	f.produce(50)
	f.haltRetries(p, "D-FULL", []string{"disk quota exceeded"}, quota.Stop)
	f.exact(p)
}

func TestFault_B11(t *testing.T) {
	disk, warehouse := smallDisk(t, "size=4m")
	f := newFaulty(t, warehouse, "")
	p := f.filled(100)
	harness.Remount(t, disk, true)
	f.produce(50)
	f.haltRetries(p, "D-READONLY", []string{"read-only file system"}, func() { harness.Remount(t, disk, false) })
	f.exact(p)
}

// B12: every fsync takes longer than the group's session. Heartbeats go on, so the
// table stays ours, and what comes meanwhile goes into larger batches.
func TestFault_B12(t *testing.T) {
	f := newFaulty(t, "", "create: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 1000, interval: 100ms, idle_flush: 50ms }")
	p := f.filled(10)
	slow := harness.Inject(t, p, "-e", "inject=fsync:delay_exit=1500000")
	before, _ := lastRecord(f.ref(), f.pipes[0].ID)
	for range 20 {
		f.produce(20)
		time.Sleep(100 * time.Millisecond) // the pace of the input
	}
	f.waitApplied(p)
	slow.Stop()
	last, _ := lastRecord(f.ref(), f.pipes[0].ID)
	require.LessOrEqual(t, last.Seq-before.Seq, int64(6), "20 arrivals, few commits")
	require.Equal(t, before.Epoch, last.Epoch, "nobody took the table away")
	require.NotContains(t, p.Output.String(), "what=fenced")
	f.exact(p)
}

func TestFault_B13(t *testing.T) {
	f := newFaulty(t, "", "")
	f.configure("stuck_after: 3s")
	p := f.filled(100)
	hung := harness.Inject(t, p, "-e", "inject=fsync:delay_enter=600000000")
	f.produce(50)
	said(t, p, "the process ends because a step of a commit is stuck")
	hung.Kill() // it would hold the ended threads as well
	code, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, code, p.Output.Tail(5))
	harness.MustSay(t, p, "a step of a commit is stuck")
	harness.MustSay(t, p, "os.(*File).Sync", "the dump names the call")
	f.again()
}

// B14: somebody removes every folder that is empty at the moment, all the time.
func TestFault_B14(t *testing.T) {
	f := newFaulty(t, "", "create: { types: { id: BIGINT, v: STRING, d: INT }, partition_by: [d] }")
	f.pipes[0].More = "create: { types: { id: BIGINT, v: STRING, d: INT }, partition_by: [d] }\nbatch: { rows: 20, interval: 100ms, idle_flush: 20ms }"
	f.configure("")
	f.m = newModel([]string{"id", "v", "d"}, []string{"id"})
	done, cleaned := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-done:
				cleaned <- n
				return
			default:
			}
			_ = filepath.WalkDir(tableDir(f.ref()), func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() && path != tableDir(f.ref()) && os.Remove(path) == nil {
					n++
				}
				return nil
			})
			time.Sleep(200 * time.Microsecond)
		}
	}()
	p := f.start()
	for i := range 30 {
		var recs []*kgo.Record
		for j := range 20 {
			rec := put(f.topic, int32(j%2), fmt.Sprintf(`{"id":%d,"v":"x","d":%d}`, i*20+j, i))
			f.m.apply(rec)
			recs = append(recs, rec)
		}
		f.kafka.Produce(t, recs...)
		f.next += 20
	}
	f.waitApplied(p)
	close(done)
	t.Logf("%d folders were removed", <-cleaned)
	f.exact(p)
}

func TestFault_B14_TheTableIsNeverMadeAgain(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	require.NoError(t, os.RemoveAll(tableDir(f.ref())))
	f.produce(50)
	f.waitHalt(p, "T-GONE")
	_, err := p.Stop(patience)
	require.NoError(t, err)
	_, err = os.Stat(tableDir(f.ref()))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestFault_B15(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	harness.LimitFiles(t, p, 3) // all that are open stay open, nothing else opens
	f.produce(50)
	said(t, p, "code=D-FILES")
	harness.MustSay(t, p, "too many open files")
	harness.LimitFiles(t, p, 1024)
	f.healed(p)
	f.exact(p)
}

// B16: the daemon is an ordinary user, and its table is taken away from it.
func TestFault_B16(t *testing.T) {
	const uid = 65534
	dir, err := os.MkdirTemp("", "applier-b16-") // of a path that everybody may walk
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, d := range []string{"warehouse", "state"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	f := newFaulty(t, filepath.Join(dir, "warehouse"), "")
	f.State, f.File = filepath.Join(dir, "state"), filepath.Join(dir, "applier.yml")
	f.configure("")
	binary, err := os.ReadFile(harness.Build(t, "./cmd/applier"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "applier"), binary, 0o755))
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, uid, uid))
	}))
	require.NoError(t, os.Chmod(dir, 0o755))
	f.produce(100)
	p := harness.StartBinary(t, filepath.Join(dir, "applier"), harness.Run{Args: []string{"run", "-c", f.File}, Dir: dir, UID: uid})
	f.waitApplied(p)
	snapshots := filepath.Join(tableDir(f.ref()), "snapshot")
	require.NoError(t, os.Chmod(snapshots, 0o555))
	f.produce(50)
	f.haltRetries(p, "D-PERM", []string{snapshots, "uid 65534", "mode 0555"}, func() { require.NoError(t, os.Chmod(snapshots, 0o755)) })
	f.exact(p)
}

func TestFault_B17(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.produce(100)
	p := f.armed("objstore/publish/linked=error@3") // beyond the start's probe
	f.waitApplied(p)
	harness.MustSay(t, p, "what=unknown_won")
	f.exact(p)
}

// B18: without hard links an exclusive rename publishes; with neither, nothing is.
func TestFault_B18(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	links := harness.Inject(t, p, "-e", "inject=linkat:error=EPERM")
	f.produce(50)
	f.waitApplied(p)
	links.Stop()
	neither := harness.Inject(t, p, "-e", "inject=linkat:error=EOPNOTSUPP", "-e", "inject=renameat2:error=EINVAL")
	before := len(snapshotIDs(f.ref()))
	f.produce(50)
	f.haltRetries(p, "D-IO", []string{"neither hard links", "cannot hold tables"}, func() {
		require.Len(t, snapshotIDs(f.ref()), before)
		neither.Stop()
	})
	f.exact(p)
}

// A file system behind FUSE cannot be told from one behind a network.
func TestFault_B18_NetworkFileSystem(t *testing.T) {
	warehouse := harness.Fuse(t)
	f := newFaulty(t, warehouse, "")
	f.produce(50)
	p := f.start()
	s := f.waitStatus(p, "p", "the refusal", func(s pipelineStatus) bool { return s.LastError != "" })
	require.Contains(t, s.LastError, "network file system (fuse)")
	require.Contains(t, s.LastError, "network: true")
	code, err := p.Stop(patience)
	require.NoError(t, err)
	require.Equal(t, 3, code)
	require.Empty(t, snapshotIDs(f.ref()))
	f.Warehouse = "{ path: " + warehouse + ", network: true }"
	f.configure("")
	f.Warehouse = warehouse
	p = f.start()
	f.waitApplied(p)
	f.exact(p)
}

// B19: the folder of the state is full, or read-only: what is in it is a cache.
func TestFault_B19(t *testing.T) {
	f := newFaulty(t, "", "")
	disk := harness.Tmpfs(t, "size=64k")
	f.State = filepath.Join(disk, "state")
	require.NoError(t, os.Mkdir(f.State, 0o700))
	f.configure("")
	free := harness.Fill(t, disk)
	p := f.filled(100)
	f.exact(p)
	free()
	harness.MustStop(t, f.filled(20))
	harness.Remount(t, disk, true)
	p = f.filled(20)
	f.exact(p)
}
