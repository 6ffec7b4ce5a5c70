package objstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"applier/storage/failpoint"
	"applier/storage/mutant"
)

// PutIfAbsent implements Bucket. The object is staged under a hidden name and
// synced, then linked to its own name, which fails if that is taken, then the
// folder is synced. From the link on the outcome of an error is unknown.
func (b *files) PutIfAbsent(ctx context.Context, key string, data []byte) (err error) {
	done := b.watch("put_if_absent", key)
	defer func() { done(int64(len(data)), err) }()
	if err := start(ctx, key); err != nil {
		return err
	}
	temp, err := b.stage(key, data)
	if err != nil {
		return err
	}
	return b.publish(temp, key)
}

// Replace implements Bucket: readers see the old object or the new one. The
// contents are synced before the rename, so that a power cut leaves the old or
// the new object and never half of one; the name itself is not.
func (b *files) Replace(ctx context.Context, key string, data []byte) (err error) {
	done := b.watch("replace", key)
	defer func() { done(int64(len(data)), err) }()
	if err := start(ctx, key); err != nil {
		return err
	}
	temp, err := b.stage(key, data)
	if err != nil {
		return err
	}
	if err := b.fs.rename(temp, key); err != nil {
		_ = b.fs.unlink(temp)
		return failed("replacing", key, err)
	}
	return nil
}

// Sync implements Bucket.
func (b *files) Sync(ctx context.Context, keys ...string) (err error) {
	if len(keys) == 0 {
		return ctx.Err()
	}
	done := b.watch("sync", keys[0])
	defer func() { done(0, err) }()
	folders := map[string]bool{}
	for _, key := range keys {
		if err := start(ctx, key); err != nil {
			return err
		}
		if err := b.syncObject(key); err != nil {
			return failed("syncing", key, err)
		}
		folders[folderOf(key)] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if err := b.syncFolder(dir); err != nil {
			return fmt.Errorf("syncing %q: %w", dir, err)
		}
	}
	return nil
}

// syncObject makes the contents of an object durable. After a failed fsync the
// system may hold the pages for clean, and the next one would succeed without
// having written them: only contents written anew can still become durable.
func (b *files) syncObject(key string) error {
	b.mu.Lock()
	unsynced := b.unsynced[key]
	b.mu.Unlock()
	var err error
	if !unsynced || mutant.On(mutant.FreshAfterFailedSync) {
		if err = b.fs.syncFile(key); err == nil || mutant.On(mutant.FreshAfterFailedSync) {
			return err
		}
		b.mu.Lock()
		if b.unsynced == nil {
			b.unsynced = map[string]bool{}
		}
		b.unsynced[key] = true
		b.mu.Unlock()
	}
	if e := b.renew(key); e != nil {
		return errors.Join(err, e)
	}
	b.mu.Lock()
	delete(b.unsynced, key)
	b.mu.Unlock()
	return nil
}

// renew puts a durable copy of an object in its place.
func (b *files) renew(key string) error {
	data, err := b.Get(context.Background(), key)
	if err != nil {
		return err
	}
	temp, err := b.stage(key, data)
	if err != nil {
		return err
	}
	if err := b.fs.rename(temp, key); err != nil {
		_ = b.fs.unlink(temp)
		return err
	}
	return nil
}

// stage writes and syncs an object under a hidden name in the same folder.
func (b *files) stage(key string, data []byte) (temp string, err error) {
	temp, f, err := b.createTemp(key)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil && !mutant.On(mutant.SyncStaged) {
		err = f.sync()
	}
	if e := f.close(); err == nil {
		err = e
	}
	if err != nil {
		_ = b.fs.unlink(temp)
		return "", failed("staging", key, err)
	}
	return temp, nil
}

// createTemp makes the hidden file for an object.
func (b *files) createTemp(key string) (temp string, f file, err error) {
	temp = tempKey(key, b.tempID())
	f, err = b.createFile(temp)
	if errors.Is(err, syscall.EEXIST) {
		// A second file of a unique name: somebody plays tricks. It must not look
		// like the answer that the object itself exists.
		return "", nil, fmt.Errorf("staging %q: %v", key, err)
	}
	if err != nil {
		return "", nil, failed("staging", key, err)
	}
	return temp, f, nil
}

// publish gives a staged and synced file its own name unless that is taken, and
// makes the name durable. The temporary name goes before the folder is synced, so
// that a power cut does not leave one behind for every commit.
func (b *files) publish(temp, key string) error {
	if err := failpoint.Hit("objstore/publish/staged"); err != nil {
		return err
	}
	linkErr := b.linkNew(temp, key)
	if err := failpoint.Hit("objstore/publish/linked"); err != nil {
		return err
	}
	_ = b.fs.unlink(temp)
	if linkErr != nil && !errors.Is(linkErr, syscall.EEXIST) {
		return failed("publishing", key, linkErr)
	}
	// Also when the name was taken: it may be by our own earlier try whose sync
	// failed, and the caller who finds itself there counts it as durable.
	if mutant.On(mutant.SyncName) && linkErr == nil {
		return nil
	}
	if err := b.syncFolder(folderOf(key)); err != nil {
		return fmt.Errorf("publishing %q: %w", key, err)
	}
	if linkErr != nil {
		return failed("publishing", key, linkErr)
	}
	return nil
}

// linkNew gives a file a new name that must be free. Where the file system has no
// hard links, an exclusive rename does; where it has neither, nothing is written:
// checking first and renaming then would let two writers overwrite each other.
func (b *files) linkNew(temp, key string) error {
	linkErr := b.fs.link(temp, key)
	if !noLinks(linkErr) {
		return linkErr
	}
	err := b.fs.renameNew(temp, key)
	if err != nil && unsupported(err) {
		return fmt.Errorf("this file system has neither hard links (%v) nor exclusive renames (%v): it cannot hold tables",
			linkErr, err)
	}
	return err
}

// noLinks reports whether link failed because the file system has none; EPERM is
// what link(2) documents for that.
func noLinks(err error) bool { return errors.Is(err, syscall.EPERM) || unsupported(err) }

func unsupported(err error) bool {
	return errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) ||
		errors.Is(err, syscall.EINVAL)
}
