package objstore

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // the checksum that the protocol asks for
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"applier/storage/failpoint"

	"github.com/minio/minio-go/v7"
)

// put sends one object with its checksum; absent asks that the name be free.
func (b *S3Bucket) put(ctx context.Context, key string, data []byte, absent bool) error {
	defer b.written(key)
	o := b.s.putOptions()
	if absent {
		o.SetMatchETagExcept("*") // If-None-Match: *
	}
	_, err := b.s.core.PutObject(ctx, b.s.o.Bucket, b.full(key), bytes.NewReader(data), int64(len(data)), checksum(data), "", o)
	return err
}

func checksum(data []byte) string {
	sum := md5.Sum(data) //nolint:gosec // see the import
	return base64.StdEncoding.EncodeToString(sum[:])
}

// putOptions sign no content: Content-MD5 is signed and covers it.
func (s *S3) putOptions() minio.PutObjectOptions {
	return minio.PutObjectOptions{DisableMultipart: true, DisableContentSha256: true, ServerSideEncryption: s.sse}
}

// PutIfAbsent implements Bucket. It is one request, never repeated here: the second
// one would be refused for what the first one has put there.
func (b *S3Bucket) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := failpoint.Hit("objstore/publish/staged"); err != nil {
		return err
	}
	err := b.do(ctx, request{op: "put_if_absent", key: key, bytes: int64(len(data)), once: true}, func(ctx context.Context, _ int) error {
		return b.put(ctx, key, data, true)
	})
	if err != nil {
		return err
	}
	return failpoint.Hit("objstore/publish/linked")
}

// Replace implements Bucket.
func (b *S3Bucket) Replace(ctx context.Context, key string, data []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return b.do(ctx, request{op: "replace", key: key, bytes: int64(len(data))}, func(ctx context.Context, _ int) error {
		return b.put(ctx, key, data, false)
	})
}

// PutAll implements Bucket.
func (b *S3Bucket) PutAll(ctx context.Context, objects []Object) error {
	seen := make(map[string]bool, len(objects))
	for _, o := range objects {
		if err := CheckKey(o.Key); err != nil {
			return err
		}
		if seen[o.Key] {
			return fmt.Errorf("%w: %q is written twice in one call", ErrBadKey, o.Key)
		}
		seen[o.Key] = true
	}
	err := b.each(len(objects), func(i int) error {
		if err := b.putNew(ctx, objects[i]); err != nil {
			return err
		}
		return failpoint.Hit("objstore/put_all/written")
	})
	if err != nil {
		return err
	}
	return failpoint.Hit("objstore/put_all/synced")
}

// putNew writes an object whose name is free. If the first request had no answer the
// name may be taken by what it has written: then that is read back.
func (b *S3Bucket) putNew(ctx context.Context, o Object) error {
	tries := 0
	err := b.do(ctx, request{op: "put_all", key: o.Key, bytes: int64(len(o.Data))}, func(ctx context.Context, try int) error {
		tries = try
		return b.put(ctx, o.Key, o.Data, true)
	})
	if !errors.Is(err, ErrExist) || tries == 0 {
		return err
	}
	there, e := b.Get(ctx, o.Key)
	switch {
	case e != nil:
		return errors.Join(err, e)
	case bytes.Equal(there, o.Data):
		return nil
	}
	return err
}

// Delete implements Bucket.
func (b *S3Bucket) Delete(ctx context.Context, keys ...string) error {
	return b.each(len(keys), func(i int) error {
		if err := CheckKey(keys[i]); err != nil {
			return err
		}
		defer b.written(keys[i])
		err := b.do(ctx, request{op: "delete", key: keys[i]}, func(ctx context.Context, _ int) error {
			return b.s.core.RemoveObject(ctx, b.s.o.Bucket, b.full(keys[i]), minio.RemoveObjectOptions{})
		})
		if errors.Is(err, ErrNotExist) {
			return nil
		}
		return err
	})
}

// s3PartSize is what a Writer sends at a time; an object of up to it is one request.
const s3PartSize = 8 << 20

// s3Writer streams an object: one conditional PUT, or a multipart upload whose end is
// conditional.
type s3Writer struct {
	ctx    context.Context
	b      *S3Bucket
	key    string
	buf    []byte
	upload string
	parts  []minio.CompletePart
	sent   int64 // bytes of the parts
	err    error
	done   bool
}

// Create implements Bucket.
func (b *S3Bucket) Create(ctx context.Context, key string) (Writer, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create %s: %w", key, err)
	}
	return &s3Writer{ctx: ctx, b: b, key: key}, nil
}

var errWriterClosed = errors.New("the writer is closed")

// Write implements io.Writer.
func (w *s3Writer) Write(p []byte) (int, error) {
	if w.done {
		return 0, errWriterClosed
	}
	if w.err != nil {
		return 0, w.err
	}
	n := len(p)
	for len(p) > 0 {
		take := min(len(p), s3PartSize-len(w.buf))
		w.buf = append(w.buf, p[:take]...)
		p = p[take:]
		if len(w.buf) == s3PartSize && len(p) > 0 {
			if w.err = w.send(); w.err != nil {
				return 0, w.err
			}
		}
	}
	return n, nil
}

// send uploads the buffer as the next part.
func (w *s3Writer) send() error {
	bucket, object := w.b.s.o.Bucket, w.b.full(w.key)
	if w.upload == "" {
		err := w.b.do(w.ctx, request{op: "create", key: w.key}, func(ctx context.Context, _ int) (err error) {
			w.upload, err = w.b.s.core.NewMultipartUpload(ctx, bucket, object, w.b.s.putOptions())
			return err
		})
		if err != nil {
			return err
		}
	}
	number := len(w.parts) + 1
	return w.b.do(w.ctx, request{op: "create", key: w.key, bytes: int64(len(w.buf))}, func(ctx context.Context, _ int) error {
		part, err := w.b.s.core.PutObjectPart(ctx, bucket, object, w.upload, number, bytes.NewReader(w.buf), int64(len(w.buf)),
			minio.PutObjectPartOptions{Md5Base64: checksum(w.buf), DisableContentSha256: true})
		if err != nil {
			return err
		}
		w.parts = append(w.parts, minio.CompletePart{PartNumber: number, ETag: part.ETag})
		w.sent += int64(len(w.buf))
		w.buf = w.buf[:0]
		return nil
	})
}

// Close implements Writer.
func (w *s3Writer) Close() error {
	if w.done {
		return w.err
	}
	w.done = true
	if w.err == nil {
		w.err = w.finish()
	}
	if w.err != nil {
		w.drop()
	}
	w.buf = nil
	return w.err
}

func (w *s3Writer) finish() error {
	if w.upload == "" {
		return w.b.putNew(w.ctx, Object{w.key, w.buf})
	}
	if err := w.send(); err != nil {
		return err
	}
	// Not every store knows a condition here: the name is looked for first, too. Names
	// of streamed objects are unique by construction, so nobody races for one.
	switch _, err := w.b.head(w.ctx, w.key); {
	case err == nil:
		return fmt.Errorf("create %s: %w", w.key, ErrExist)
	case !errors.Is(err, ErrNotExist):
		return err
	}
	tries := 0
	err := w.b.do(w.ctx, request{op: "create", key: w.key}, func(ctx context.Context, try int) error {
		tries = try
		o := w.b.s.putOptions()
		o.ServerSideEncryption = nil // it was said at the upload's start, and is refused here
		o.SetMatchETagExcept("*")
		_, err := w.b.s.core.CompleteMultipartUpload(ctx, w.b.s.o.Bucket, w.b.full(w.key), w.upload, w.parts, o)
		return err
	})
	if tries > 0 && (errors.Is(err, ErrExist) || errors.Is(err, ErrNotExist)) {
		// An earlier try, whose answer did not come, may have completed the upload.
		if info, e := w.b.head(w.ctx, w.key); e == nil && info.Size == w.sent {
			return nil
		}
	}
	return err
}

// Abort implements Writer.
func (w *s3Writer) Abort() {
	if w.done {
		return
	}
	w.done, w.err, w.buf = true, errWriterClosed, nil
	w.drop()
}

// drop gives the parts back; what stays is for Uploads.
func (w *s3Writer) drop() {
	if w.upload == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 10*time.Second)
	defer cancel()
	_ = w.b.s.core.AbortMultipartUpload(ctx, w.b.s.o.Bucket, w.b.full(w.key), w.upload)
}

// Uploads counts, and ends if so wanted, the uploads below the bucket's folder that
// began before a time: their writers have died, and their parts take space that no
// listing shows.
func (b *S3Bucket) Uploads(ctx context.Context, before time.Time, abort bool) (int, error) {
	n := 0
	for u := range b.s.core.ListIncompleteUploads(ctx, b.s.o.Bucket, b.prefix, true) {
		if u.Err != nil {
			return n, s3Error(request{op: "list", key: "uploads"}, u.Err)
		}
		if !u.Initiated.Before(before) {
			continue
		}
		n++
		if !abort {
			continue
		}
		if err := b.s.core.AbortMultipartUpload(ctx, b.s.o.Bucket, u.Key, u.UploadID); err != nil {
			return n, s3Error(request{op: "delete", key: u.Key}, err)
		}
	}
	return n, ctx.Err()
}

// Exists reports whether there is anything in the bucket's folder, be it a marker.
func (b *S3Bucket) Exists(ctx context.Context) (any bool, err error) {
	err = b.do(ctx, request{op: "list", key: ""}, func(ctx context.Context, _ int) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range b.s.core.ListObjectsIter(ctx, b.s.o.Bucket, minio.ListObjectsOptions{Prefix: b.prefix, MaxKeys: 1}) {
			any = o.Err == nil
			return o.Err
		}
		return ctx.Err()
	})
	return any, err
}

// Mark makes the bucket's folder exist without objects, by the marker that Hadoop's
// file systems write: an empty object with a slash at its end.
func (b *S3Bucket) Mark(ctx context.Context) error {
	if b.prefix == "" {
		return nil
	}
	return b.do(ctx, request{op: "replace", key: "/"}, func(ctx context.Context, _ int) error {
		return b.put(ctx, "", nil, false)
	})
}

// RemoveAll deletes everything in a folder of the bucket, "" for all of it, markers
// included.
func (b *S3Bucket) RemoveAll(ctx context.Context, folder string) error {
	below := b.prefix
	if folder != "" {
		if err := CheckKey(folder); err != nil {
			return err
		}
		below = b.full(folder) + "/"
	}
	var names []string
	err := b.do(ctx, request{op: "list", key: folder}, func(ctx context.Context, _ int) error {
		names = names[:0]
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for o := range b.s.core.ListObjectsIter(ctx, b.s.o.Bucket, minio.ListObjectsOptions{Prefix: below, Recursive: true}) {
			if o.Err != nil {
				return o.Err
			}
			names = append(names, o.Key)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return b.each(len(names), func(i int) error {
		return b.do(ctx, request{op: "delete", key: names[i]}, func(ctx context.Context, _ int) error {
			return b.s.core.RemoveObject(ctx, b.s.o.Bucket, names[i], minio.RemoveObjectOptions{})
		})
	})
}
