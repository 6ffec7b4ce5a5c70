package objstore

import (
	"context"
	"errors"
)

// Get implements Bucket.
func (f *Faulty) Get(ctx context.Context, key string) (data []byte, err error) {
	err = f.do(ctx, "get", key, func() (err error) {
		data, err = f.b.Get(ctx, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Open implements Bucket.
func (f *Faulty) Open(ctx context.Context, key string, size int64) (Reader, error) {
	var r Reader
	err := f.do(ctx, "open", key, func() (err error) {
		r, err = f.b.Open(ctx, key, size)
		return err
	})
	if err != nil {
		if r != nil {
			_ = r.Close()
		}
		return nil, err
	}
	return &faultyReader{Reader: r, f: f, ctx: ctx, key: key}, nil
}

type faultyReader struct {
	Reader
	f   *Faulty
	ctx context.Context
	key string
}

// ReadAt implements io.ReaderAt.
func (r *faultyReader) ReadAt(p []byte, off int64) (n int, err error) {
	err = r.f.do(r.ctx, "read", r.key, func() (err error) {
		n, err = r.Reader.ReadAt(p, off)
		return err
	})
	return n, err
}

// PutAll implements Bucket.
func (f *Faulty) PutAll(ctx context.Context, objects []Object) error {
	keys := make([]string, len(objects))
	for i, o := range objects {
		keys[i] = o.Key
	}
	return f.many(ctx, "put_all", keys, func(keep []bool) error {
		var kept []Object
		for i, o := range objects {
			if keep[i] {
				kept = append(kept, o)
			}
		}
		return f.b.PutAll(ctx, kept)
	})
}

// Delete implements Bucket.
func (f *Faulty) Delete(ctx context.Context, keys ...string) error {
	return f.many(ctx, "delete", keys, func(keep []bool) error {
		var kept []string
		for i, key := range keys {
			if keep[i] {
				kept = append(kept, key)
			}
		}
		return f.b.Delete(ctx, kept...)
	})
}

// many passes a call with several keys on, without those that rules keep back.
func (f *Faulty) many(ctx context.Context, op string, keys []string, call func(keep []bool) error) error {
	keep := make([]bool, len(keys))
	var errs []error
	for i, key := range keys {
		r, err := f.hit(ctx, op, key)
		if err != nil {
			return err
		}
		keep[i] = r.Err == nil || r.After
		if r.Err != nil {
			errs = append(errs, r.Err)
		}
	}
	return errors.Join(append(errs, call(keep))...)
}

// Create implements Bucket.
func (f *Faulty) Create(ctx context.Context, key string) (Writer, error) {
	var w Writer
	err := f.do(ctx, "create", key, func() (err error) {
		w, err = f.b.Create(ctx, key)
		return err
	})
	if err != nil {
		if w != nil {
			w.Abort()
		}
		return nil, err
	}
	return &faultyWriter{w: w, f: f, ctx: ctx, key: key}, nil
}

type faultyWriter struct {
	w   Writer
	f   *Faulty
	ctx context.Context
	key string
	err error // of a failed Write: the object must not appear
}

// Write implements io.Writer.
func (w *faultyWriter) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	w.err = w.f.do(w.ctx, "write", w.key, func() (err error) {
		n, err = w.w.Write(p)
		return err
	})
	return n, w.err
}

// Close implements Writer.
func (w *faultyWriter) Close() error {
	if w.err == nil {
		w.err = w.f.do(w.ctx, "close", w.key, w.w.Close)
	}
	w.w.Abort()
	return w.err
}

// Abort implements Writer.
func (w *faultyWriter) Abort() { w.w.Abort() }

// PutIfAbsent implements Bucket.
func (f *Faulty) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return f.do(ctx, "put_if_absent", key, func() error { return f.b.PutIfAbsent(ctx, key, data) })
}

// Sync implements Bucket.
func (f *Faulty) Sync(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		return ctx.Err()
	}
	return f.do(ctx, "sync", keys[0], func() error { return f.b.Sync(ctx, keys...) })
}

// Replace implements Bucket.
func (f *Faulty) Replace(ctx context.Context, key string, data []byte) error {
	return f.do(ctx, "replace", key, func() error { return f.b.Replace(ctx, key, data) })
}

// Stat implements Bucket.
func (f *Faulty) Stat(ctx context.Context, key string) (info Info, err error) {
	err = f.do(ctx, "stat", key, func() (err error) {
		info, err = f.b.Stat(ctx, key)
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return info, nil
}

// List implements Bucket.
func (f *Faulty) List(ctx context.Context, prefix string, fn func(Info) error) error {
	return f.do(ctx, "list", prefix, func() error { return f.b.List(ctx, prefix, fn) })
}
