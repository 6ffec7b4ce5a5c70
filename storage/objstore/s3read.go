package objstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// Get implements Bucket.
func (b *S3Bucket) Get(ctx context.Context, key string) ([]byte, error) {
	if r := b.asked(ctx, Ask{AskGet, key}); r != nil {
		return r.data, r.err
	}
	return b.get(ctx, key)
}

func (b *S3Bucket) get(ctx context.Context, key string) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	var data []byte
	err := b.do(ctx, request{op: "get", key: key}, func(ctx context.Context, _ int) (err error) {
		data, err = b.fetch(ctx, key, minio.GetObjectOptions{}, -1)
		return err
	})
	return data, err
}

// fetch reads the body of one answer; want is its length if known.
func (b *S3Bucket) fetch(ctx context.Context, key string, o minio.GetObjectOptions, want int64) ([]byte, error) {
	body, info, _, err := b.s.core.GetObject(ctx, b.s.o.Bucket, b.full(key), o)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if want < 0 {
		want = info.Size
	}
	if info.Size >= 0 && info.Size < want { // all there is: not an answer that was cut
		return nil, fmt.Errorf("%w: %d of %d bytes are there", ErrSize, info.Size, want)
	}
	if want < 0 {
		return nil, fmt.Errorf("the answer has no length")
	}
	data := make([]byte, want)
	n, err := io.ReadFull(body, data)
	b.readBytes.Add(int64(n))
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, short(int64(n), want)
	}
	return data, err
}

// Stat implements Bucket.
func (b *S3Bucket) Stat(ctx context.Context, key string) (Info, error) {
	if r := b.asked(ctx, Ask{AskStat, key}); r != nil {
		return r.info, r.err
	}
	return b.stat(ctx, key)
}

func (b *S3Bucket) stat(ctx context.Context, key string) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	info, err := b.head(ctx, key)
	return Info{Key: key, Size: info.Size, Modified: wholeSecond(info.LastModified)}, err
}

func (b *S3Bucket) head(ctx context.Context, key string) (info minio.ObjectInfo, err error) {
	err = b.do(ctx, request{op: "stat", key: key}, func(ctx context.Context, _ int) (err error) {
		info, err = b.s.core.StatObject(ctx, b.s.o.Bucket, b.full(key), minio.StatObjectOptions{})
		return err
	})
	return info, err
}

// wholeSecond: listings know fractions, answers to HEAD do not.
func wholeSecond(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// List implements Bucket. The whole folder is read before the first call of fn: a
// listing that fails half way begins again, and folders have their place among
// objects by their names without the slash.
func (b *S3Bucket) List(ctx context.Context, prefix string, fn func(Info) error) error {
	var infos []Info
	var err error
	if r := b.asked(ctx, Ask{AskList, prefix}); r != nil {
		infos, err = r.infos, r.err
	} else {
		infos, err = b.list(ctx, prefix)
	}
	if err != nil {
		return err
	}
	for _, info := range infos {
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

// list returns the children of a folder in the order of their keys.
func (b *S3Bucket) list(ctx context.Context, prefix string) (infos []Info, err error) {
	dir, err := checkPrefix(prefix)
	if err != nil {
		return nil, err
	}
	below := b.prefix
	if dir != "" {
		below = b.full(dir) + "/"
	}
	err = b.do(ctx, request{op: "list", key: dir}, func(ctx context.Context, _ int) error {
		infos = infos[:0]
		ctx, cancel := context.WithCancel(ctx) // ends the client's goroutine on an error
		defer cancel()
		for o := range b.s.core.ListObjectsIter(ctx, b.s.o.Bucket, minio.ListObjectsOptions{Prefix: below}) {
			if o.Err != nil {
				return o.Err
			}
			key, folder := strings.CutSuffix(strings.TrimPrefix(o.Key, b.prefix), "/")
			if o.Key == below || CheckKey(key) != nil {
				continue // the folder's own marker, or a name that no call can reach
			}
			info := Info{Key: key, Folder: folder}
			if !folder {
				info.Size, info.Modified = o.Size, wholeSecond(o.LastModified)
			}
			infos = append(infos, info)
		}
		return ctx.Err()
	})
	slices.SortFunc(infos, func(x, y Info) int { return cmp.Compare(x.Key, y.Key) })
	return infos, err
}

// Open implements Bucket. With the size known no request is made before the first
// read.
func (b *S3Bucket) Open(ctx context.Context, key string, size int64) (Reader, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if r := b.asked(ctx, Ask{AskGet, key}); r != nil && r.err != nil {
		return nil, r.err
	} else if r != nil {
		return wholeReader{bytes.NewReader(r.data)}, nil
	}
	r := &s3Reader{ctx: ctx, b: b, key: key, size: size}
	if size < 0 {
		info, err := b.head(ctx, key)
		if err != nil {
			return nil, err
		}
		r.size, r.etag = info.Size, info.ETag
	}
	return r, ctx.Err()
}

// wholeReader reads an object that is in memory.
type wholeReader struct{ *bytes.Reader }

func (wholeReader) Close() error { return nil }

// Blocks that an s3Reader keeps: readers of Parquet ask for a few kilobytes here and
// there, and each request has the latency of the store.
const (
	s3Block  = 1 << 20
	s3Blocks = 4
)

// s3Reader reads parts of one object. Objects are never changed, so whatever answers
// belongs together; where the ETag is known the store is asked to see to it.
type s3Reader struct {
	ctx  context.Context
	b    *S3Bucket
	key  string
	size int64
	etag string

	mu     sync.Mutex
	blocks []*s3Part // the newest one last
}

// s3Part is a block, or one that is being read.
type s3Part struct {
	start int64
	once  sync.Once
	data  []byte
	err   error
}

func (r *s3Reader) Size() int64 { return r.size }

func (r *s3Reader) Close() error { return nil }

// ReadAt implements io.ReaderAt.
func (r *s3Reader) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case off < 0:
		return 0, fmt.Errorf("reading %s: negative offset %d", r.key, off)
	case off >= r.size:
		return 0, io.EOF
	}
	want := min(int64(len(p)), r.size-off)
	n, err := r.read(p[:want], off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// read fills p: long reads in one request, short ones from blocks.
func (r *s3Reader) read(p []byte, off int64) (int, error) {
	if len(p) >= s3Block {
		data, err := r.fetch(off, int64(len(p)))
		return copy(p, data), err
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		part := r.block(at - at%s3Block)
		part.once.Do(func() { part.data, part.err = r.fetch(part.start, min(s3Block, r.size-part.start)) })
		if part.err != nil {
			r.forget(part)
			return n, part.err
		}
		n += copy(p[n:], part.data[at-part.start:])
	}
	return n, nil
}

func (r *s3Reader) block(start int64) *s3Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.blocks, func(p *s3Part) bool { return p.start == start })
	part := &s3Part{start: start}
	if i >= 0 {
		part = r.blocks[i]
		r.blocks = slices.Delete(r.blocks, i, i+1)
	} else if len(r.blocks) >= s3Blocks {
		r.blocks = slices.Delete(r.blocks, 0, 1)
	}
	r.blocks = append(r.blocks, part)
	return part
}

func (r *s3Reader) forget(part *s3Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocks = slices.DeleteFunc(r.blocks, func(p *s3Part) bool { return p == part })
}

func (r *s3Reader) fetch(off, n int64) (data []byte, err error) {
	err = r.b.do(r.ctx, request{op: "read", key: r.key, bytes: n}, func(ctx context.Context, _ int) (err error) {
		o := minio.GetObjectOptions{}
		if err := o.SetRange(off, off+n-1); err != nil {
			return err
		}
		if r.etag != "" {
			if err := o.SetMatchETag(r.etag); err != nil {
				return err
			}
		}
		data, err = r.b.fetch(ctx, r.key, o, n)
		return err
	})
	return data, err
}
