package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"applier/storage/failpoint"

	"golang.org/x/sync/errgroup"
)

// files is a Bucket over a tree of files. What makes its writes durable and its
// publishing exclusive is the order of primitive operations in put.go,
// publish.go, writer.go and folders.go.
type files struct {
	meter
	fs       fsys
	parallel int           // primitive operations at a time inside one call; 1 = in order, no goroutines
	tempID   func() string // unique part of a temporary name
	observe  func(op, key string, bytes int64, err error, d time.Duration)

	mu    sync.Mutex
	known map[string]folderID // folders whose entries up to the root are known durable
	// unsynced are objects whose fsync failed: another one proves nothing.
	unsynced map[string]bool
}

// watch starts the clock of one call; the returned function counts and reports it.
func (b *files) watch(op, key string) func(bytes int64, err error) {
	if b.observe == nil {
		return func(bytes int64, _ error) { b.count(op, bytes) }
	}
	start := time.Now()
	return func(bytes int64, err error) {
		b.count(op, bytes)
		b.observe(op, key, bytes, err, time.Since(start))
	}
}

// each calls do for 0 to n-1, several at a time if the bucket may. After an error
// it starts no more; it returns the first one when all have ended.
func (b *files) each(n int, do func(i int) error) error {
	if n == 1 || b.parallel == 1 {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	}
	var (
		g    errgroup.Group
		stop atomic.Bool
	)
	g.SetLimit(b.parallel)
	for i := range n {
		g.Go(func() error {
			if stop.Load() {
				return nil
			}
			err := do(i)
			if err != nil {
				stop.Store(true)
			}
			return err
		})
	}
	return g.Wait()
}

// start checks what every call checks first.
func start(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return CheckKey(key)
}

// Get implements Bucket.
func (b *files) Get(ctx context.Context, key string) (data []byte, err error) {
	done := b.watch("get", key)
	defer func() { done(int64(len(data)), err) }()
	if err := start(ctx, key); err != nil {
		return nil, err
	}
	r, err := b.fs.open(key)
	if err != nil {
		return nil, failedRead("reading", key, err)
	}
	defer r.Close()
	data = make([]byte, r.Size())
	switch n, err := r.ReadAt(data, 0); {
	case n == len(data):
		return data, nil
	case err == nil || errors.Is(err, io.EOF):
		return nil, fmt.Errorf("reading %q: %d of %d bytes: %w", key, n, len(data), io.ErrUnexpectedEOF)
	default:
		return nil, failedRead("reading", key, err)
	}
}

// Open implements Bucket. The size of a file is always known: the caller's is
// not needed.
func (b *files) Open(ctx context.Context, key string, _ int64) (r Reader, err error) {
	done := b.watch("open", key)
	defer func() { done(0, err) }()
	if err := start(ctx, key); err != nil {
		return nil, err
	}
	if r, err = b.fs.open(key); err != nil {
		return nil, failedRead("opening", key, err)
	}
	if b.observe != nil {
		r = &watchedReader{Reader: r, b: b, key: key}
	}
	return r, nil
}

type watchedReader struct {
	Reader
	b   *files
	key string
}

func (r *watchedReader) ReadAt(p []byte, off int64) (int, error) {
	done := r.b.watch("read", r.key)
	n, err := r.Reader.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		done(int64(n), nil)
	} else {
		done(int64(n), err)
	}
	return n, err
}

// Stat implements Bucket.
func (b *files) Stat(ctx context.Context, key string) (info Info, err error) {
	done := b.watch("stat", key)
	defer func() { done(0, err) }()
	if err := start(ctx, key); err != nil {
		return Info{}, err
	}
	info, err = b.fs.stat(key)
	if err == nil && info.Folder {
		err = syscall.EISDIR
	}
	if err != nil {
		return Info{}, failedRead("looking at", key, err)
	}
	return info, nil
}

// List implements Bucket.
func (b *files) List(ctx context.Context, prefix string, fn func(Info) error) (err error) {
	done := b.watch("list", prefix)
	defer func() { done(0, err) }()
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, err := checkPrefix(prefix)
	if err != nil {
		return err
	}
	infos, err := b.fs.list(dir)
	if absent(err) {
		// No folder: no children. No root: the whole table is gone, which must
		// never look like an empty one.
		if _, err := b.fs.stat(""); err != nil {
			return fmt.Errorf("listing %q: the root is missing: %w", prefix, classify(err))
		}
		return nil
	}
	if err != nil {
		return failed("listing", prefix, err)
	}
	for _, info := range infos {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements Bucket. The folders are synced, so that a caller can order
// deletions: what one call removed never comes back after the next has removed more.
func (b *files) Delete(ctx context.Context, keys ...string) (err error) {
	first := ""
	if len(keys) > 0 {
		first = keys[0]
	}
	done := b.watch("delete", first)
	defer func() { done(0, err) }()
	var errs []error
	var folders []string
	for _, key := range keys {
		err := start(ctx, key)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := b.fs.unlink(key); err != nil && !absent(err) {
			errs = append(errs, failed("deleting", key, err))
			continue
		}
		if err := failpoint.Hit("objstore/delete/unlinked"); err != nil {
			errs = append(errs, err)
			continue
		}
		// Also if it was missing: it may have been deleted just now by a process
		// that was killed before it could sync.
		folders = append(folders, folderOf(key))
	}
	folders = unique(folders)
	err = b.each(len(folders), func(i int) error {
		if err := b.fs.syncDir(folders[i]); err != nil && !absent(err) {
			return failed("syncing folder", folders[i], err)
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}
