package objstore

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// createFile makes a new file and the folders it needs.
func (b *files) createFile(key string) (file, error) {
	for try := 0; ; try++ {
		f, err := b.fs.create(key)
		// Another engine may remove a folder that it sees empty between our
		// mkdir and our create: try again, but not for ever.
		if err == nil || !errors.Is(err, syscall.ENOENT) || try == 3 {
			return f, err
		}
		if err := b.mkdirs(folderOf(key)); err != nil {
			return nil, err
		}
	}
}

// mkdirs makes a folder and its missing parents, but never the root: a missing
// root means that somebody dropped the table or unmounted the disk.
func (b *files) mkdirs(dir string) error {
	if dir == "" {
		return fmt.Errorf("the root is missing: %w", syscall.ENOENT)
	}
	err := b.fs.mkdir(dir)
	if errors.Is(err, syscall.ENOENT) {
		if err := b.mkdirs(folderOf(dir)); err != nil {
			return err
		}
		err = b.fs.mkdir(dir)
	}
	if errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// folderSync lists the folders to sync so that new entries in some folders are
// durable.
type folderSync struct {
	dirs []string            // in the order of their names
	ids  map[string]folderID // identities as of before the sync
}

// planSync looks which folders must be synced so that new entries in dirs
// survive a power cut. The entry of a folder in its parent counts too: it may
// have been made just now, by a call that has not synced it yet, or by a process
// that was killed before it could. So all parents are synced too, unless this
// process has done so since this very folder was made.
func (b *files) planSync(dirs []string) folderSync {
	plan := folderSync{ids: map[string]folderID{}}
	for _, dir := range dirs {
		plan.dirs = append(plan.dirs, dir)
		if b.isKnown(dir) {
			continue
		}
		for d := dir; d != ""; d = folderOf(d) {
			if id, ok := b.fs.identity(d); ok {
				plan.ids[d] = id
			}
			plan.dirs = append(plan.dirs, folderOf(d))
		}
	}
	plan.dirs = unique(plan.dirs)
	return plan
}

func (b *files) isKnown(dir string) bool {
	if dir == "" {
		return true // its own entry is not ours
	}
	b.mu.Lock()
	known, ok := b.known[dir]
	b.mu.Unlock()
	if !ok {
		return false
	}
	id, ok := b.fs.identity(dir)
	return ok && id == known
}

// maxKnown bounds the memory for folders; forgetting them only costs some syncs.
const maxKnown = 100_000

// synced notes that the plan was carried out.
func (b *files) synced(plan folderSync) {
	if len(plan.ids) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil || len(b.known) > maxKnown {
		b.known = map[string]folderID{}
	}
	for dir, id := range plan.ids {
		b.known[dir] = id
	}
}

// syncFolder makes new entries in a folder durable.
func (b *files) syncFolder(dir string) error {
	plan := b.planSync([]string{dir})
	err := b.each(len(plan.dirs), func(i int) error { return b.syncOne(plan.dirs[i]) })
	if err == nil {
		b.synced(plan)
	}
	return err
}

func (b *files) syncOne(dir string) error {
	if err := b.fs.syncDir(dir); err != nil {
		return failed("syncing folder", dir, err)
	}
	return nil
}

// unique sorts s and drops repeated items, in place.
func unique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
