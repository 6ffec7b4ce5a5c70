package objstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"applier/storage/failpoint"
	"applier/storage/mutant"
)

// maxOpen bounds the files that one PutAll holds open.
const maxOpen = 64

// PutAll implements Bucket. The files are written under their final names: until
// the caller publishes something that names them, nobody looks there. All
// contents are written first; then all files and all folders are synced side by
// side, so that a call costs about one flush of the disk and not one a file.
// Entries may become durable before contents: that shows only after a crash in
// the middle, when the caller has no answer and nothing refers to the objects.
func (b *files) PutAll(ctx context.Context, objects []Object) (err error) {
	if len(objects) == 0 {
		return ctx.Err()
	}
	var bytes int64
	done := b.watch("put_all", objects[0].Key)
	defer func() { done(bytes, err) }()
	// In order, so that a simulation sees the same operations every time.
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(x, y Object) int { return strings.Compare(x.Key, y.Key) })
	for i, o := range objects {
		if err := CheckKey(o.Key); err != nil {
			return err
		}
		if i > 0 && o.Key == objects[i-1].Key {
			return fmt.Errorf("%w: %q is there twice", ErrBadKey, o.Key)
		}
		bytes += int64(len(o.Data))
	}
	var created []string
	for chunk := range slices.Chunk(objects, maxOpen) {
		p := put{b: b, ctx: ctx, objects: chunk, files: make([]file, len(chunk))}
		err = p.run()
		for i, o := range chunk {
			if p.files[i] != nil {
				created = append(created, o.Key)
			}
		}
		if err != nil {
			b.drop(created)
			return err
		}
	}
	return nil
}

// drop removes files that a failed call has made: nobody was told of them, and on
// a full disk their space is needed.
func (b *files) drop(keys []string) {
	for _, key := range keys {
		_ = b.fs.unlink(key)
	}
}

// put is the work of one PutAll, or of one chunk of it.
type put struct {
	b       *files
	ctx     context.Context
	objects []Object
	files   []file // those created
}

func (p *put) run() error {
	err := p.b.each(len(p.objects), p.write)
	if err == nil {
		err = failpoint.Hit("objstore/put_all/written")
	}
	if err != nil {
		for _, f := range p.files {
			if f != nil {
				_ = f.close()
			}
		}
		return err
	}
	var folders []string
	for _, o := range p.objects {
		folders = append(folders, folderOf(o.Key))
	}
	plan := p.b.planSync(unique(folders))
	// Every file is closed, whatever happens: closing is part of its sync.
	n := len(p.objects)
	closed := make([]bool, n)
	err = p.b.each(n+len(plan.dirs), func(i int) error {
		if i < n {
			closed[i] = true
			return p.sync(i)
		}
		return p.b.syncOne(plan.dirs[i-n])
	})
	for i, f := range p.files {
		if !closed[i] {
			_ = f.close()
		}
	}
	if err != nil {
		return err
	}
	p.b.synced(plan)
	return failpoint.Hit("objstore/put_all/synced")
}

func (p *put) write(i int) error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	o := p.objects[i]
	f, err := p.b.createFile(o.Key)
	if err != nil {
		return failed("creating", o.Key, err)
	}
	p.files[i] = f
	data := o.Data
	// In two pieces if a test wants to end the program in the middle of a file.
	if half, point := len(data)/2, halfOf(o.Key); failpoint.Armed(point) {
		if _, err := f.Write(data[:half]); err != nil {
			return failed("writing", o.Key, err)
		}
		if err := failpoint.Hit(point); err != nil {
			return err
		}
		data = data[half:]
	}
	if _, err := f.Write(data); err != nil {
		return failed("writing", o.Key, err)
	}
	return nil
}

// halfOf names the failpoint in the middle of a file, by the file's top folder.
func halfOf(key string) string {
	if !failpoint.Enabled {
		return ""
	}
	top, _, _ := strings.Cut(key, "/")
	return "objstore/put_all/half/" + top
}

func (p *put) sync(i int) error {
	if mutant.On(mutant.SyncFiles) {
		return p.files[i].close()
	}
	if err := syncClose(p.files[i]); err != nil {
		return failed("syncing", p.objects[i].Key, err)
	}
	return nil
}

// syncClose syncs a file once and closes it.
func syncClose(f file) error {
	err := f.sync()
	if e := f.close(); err == nil {
		err = e
	}
	return err
}
