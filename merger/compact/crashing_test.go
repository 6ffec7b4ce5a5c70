package compact

import (
	"context"
	"errors"

	"applier/storage/objstore"
)

type ctx = context.Context

var errCut = errors.New("power cut")

// crashing lets a number of writing operations through; after them nothing works.
type crashing struct {
	objstore.Bucket
	left int
}

func (c *crashing) step() error {
	if c.left == 0 {
		return errCut
	}
	c.left--
	return nil
}

func (c *crashing) PutAll(ctx ctx, o []objstore.Object) error {
	for i := range o {
		if err := c.step(); err != nil {
			return err
		}
		if err := c.Bucket.PutAll(ctx, o[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (c *crashing) PutIfAbsent(ctx ctx, key string, data []byte) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Bucket.PutIfAbsent(ctx, key, data)
}

func (c *crashing) Replace(ctx ctx, key string, data []byte) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Bucket.Replace(ctx, key, data)
}

func (c *crashing) Delete(ctx ctx, keys ...string) error {
	for _, k := range keys {
		if err := c.step(); err != nil {
			return err
		}
		if err := c.Bucket.Delete(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func (c *crashing) Sync(ctx ctx, keys ...string) error {
	if err := c.step(); err != nil {
		return err
	}
	return c.Bucket.Sync(ctx, keys...)
}

func (c *crashing) Create(ctx ctx, key string) (objstore.Writer, error) {
	if err := c.step(); err != nil {
		return nil, err
	}
	w, err := c.Bucket.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &crashingWriter{w, c}, nil
}

type crashingWriter struct {
	objstore.Writer
	c *crashing
}

func (w *crashingWriter) Close() error {
	if err := w.c.step(); err != nil {
		w.Abort()
		return err
	}
	return w.Writer.Close()
}
