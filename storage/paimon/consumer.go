package paimon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"applier/storage/objstore"
)

// Consumer is a reader's mark in consumer/consumer-<ID>: snapshots from Next on
// must not expire (source: Paimon Consumer, ConsumerManager).
type Consumer struct {
	ID   string
	Next int64
	// Modified is when the file was written last; consumers expire by it.
	Modified time.Time
}

// EncodeConsumer returns the bytes of a consumer file.
func EncodeConsumer(next int64) []byte {
	var w jsonWriter
	w.int("nextSnapshot", next)
	b, _ := w.end() // numbers do not fail
	return b
}

// ParseConsumer returns the next snapshot that a consumer file names.
func ParseConsumer(b []byte) (int64, error) {
	ms, err := parseObject(b)
	if err != nil {
		return 0, fmt.Errorf("%w: consumer: %w", ErrCorrupt, err)
	}
	r := newJSONReader(ms)
	var next int64
	if r.need("nextSnapshot", &next); r.err != nil {
		return 0, fmt.Errorf("%w: consumer: %w", ErrCorrupt, r.err)
	}
	return next, nil
}

// ReadConsumer returns a consumer's next snapshot, objstore.ErrNotExist if there
// is no such consumer.
func ReadConsumer(ctx context.Context, b objstore.Bucket, p Paths, consumerID string) (int64, error) {
	key, err := p.Consumer(consumerID)
	if err != nil {
		return 0, err
	}
	data, err := b.Get(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("reading consumer %q: %w", consumerID, err)
	}
	next, err := ParseConsumer(data)
	if err != nil {
		return 0, fmt.Errorf("reading consumer %q: %w", consumerID, err)
	}
	return next, nil
}

// WriteConsumer creates or moves a consumer.
func WriteConsumer(ctx context.Context, b objstore.Bucket, p Paths, consumerID string, next int64) error {
	key, err := p.Consumer(consumerID)
	if err != nil {
		return err
	}
	if err := b.Replace(ctx, key, EncodeConsumer(next)); err != nil {
		return fmt.Errorf("writing consumer %q: %w", consumerID, err)
	}
	return nil
}

// DeleteConsumer removes a consumer; a missing one is no error.
func DeleteConsumer(ctx context.Context, b objstore.Bucket, p Paths, consumerID string) error {
	key, err := p.Consumer(consumerID)
	if err != nil {
		return err
	}
	if err := b.Delete(ctx, key); err != nil {
		return fmt.Errorf("deleting consumer %q: %w", consumerID, err)
	}
	return nil
}

// ListConsumers returns all consumers, sorted by id. One whose file cannot be
// read is an error: expiry must not run over a mark it does not understand.
func ListConsumers(ctx context.Context, b objstore.Bucket, p Paths) ([]Consumer, error) {
	var cs []Consumer
	err := b.List(ctx, p.ConsumerDir(), func(i objstore.Info) error {
		if name, ok := strings.CutPrefix(baseName(i.Key), "consumer-"); ok && name != "" && !i.Folder {
			cs = append(cs, Consumer{ID: name, Modified: i.Modified})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing consumers: %w", err)
	}
	kept := cs[:0]
	for _, c := range cs {
		c.Next, err = ReadConsumer(ctx, b, p, c.ID)
		if errors.Is(err, objstore.ErrNotExist) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		kept = append(kept, c)
	}
	return kept, nil
}
