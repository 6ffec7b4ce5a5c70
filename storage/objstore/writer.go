package objstore

import (
	"bufio"
	"context"
	"errors"
)

// writeBuffer gathers small writes; larger ones pass it by.
const writeBuffer = 64 << 10

// Create implements Bucket: the object grows under a hidden name and is published
// by Close as in PutIfAbsent. The context bounds Write and Close too.
func (b *files) Create(ctx context.Context, key string) (Writer, error) {
	if err := start(ctx, key); err != nil {
		return nil, err
	}
	done := b.watch("create", key)
	temp, f, err := b.createTemp(key)
	if err != nil {
		done(0, err)
		return nil, err
	}
	return &fileWriter{b: b, ctx: ctx, key: key, temp: temp, f: f, buf: bufio.NewWriterSize(f, writeBuffer), done: done}, nil
}

var (
	errAborted = errors.New("the writer was aborted")
	errClosed  = errors.New("the writer is closed")
)

type fileWriter struct {
	b         *files
	ctx       context.Context
	key, temp string
	f         file
	buf       *bufio.Writer
	n         int64
	ended     bool
	err       error // what ended it, or the first error
	done      func(int64, error)
}

// Write implements io.Writer.
func (w *fileWriter) Write(p []byte) (int, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.ended:
		return 0, errClosed
	}
	if w.err = w.ctx.Err(); w.err != nil {
		return 0, w.err
	}
	n, err := w.buf.Write(p)
	w.n += int64(n)
	if err != nil {
		w.err = failed("writing", w.key, err)
	}
	return n, w.err
}

// Close implements Writer.
func (w *fileWriter) Close() error {
	if w.ended {
		return w.err
	}
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err == nil {
		if err := w.buf.Flush(); err != nil {
			w.err = failed("writing", w.key, err)
		}
	}
	if w.err != nil {
		w.drop()
		return w.err
	}
	w.ended = true
	if err := syncClose(w.f); err != nil {
		_ = w.b.fs.unlink(w.temp)
		w.err = failed("syncing", w.key, err)
	} else {
		w.err = w.b.publish(w.temp, w.key)
	}
	w.done(w.n, w.err)
	return w.err
}

// Abort implements Writer.
func (w *fileWriter) Abort() {
	if w.ended {
		return
	}
	if w.err == nil {
		w.err = errAborted
	}
	w.drop()
}

// drop ends the writer and removes what it has written.
func (w *fileWriter) drop() {
	w.ended = true
	_ = w.f.close()
	_ = w.b.fs.unlink(w.temp)
	w.done(w.n, w.err)
}
