package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// ErrNotExclusive is what Probe says of a store that lets a second writer take a
// name that is taken: two writers of a table would overwrite each other's commits.
var ErrNotExclusive = errors.New("store does not refuse a name that is taken")

// Probe shows that a bucket can publish commits in a folder (where commits are
// published, or the root): it creates an object, tries to create it again, which
// must say ErrExist and change nothing, reads it back, and removes it. It also
// sees that a missing object is told from a forbidden one. Any error means that
// the bucket must not be used for writing.
func Probe(ctx context.Context, b Bucket, folder string) (err error) {
	dir, err := checkPrefix(folder)
	if err != nil {
		return fmt.Errorf("probing the store: %w", err)
	}
	key := join(dir, ".applier-probe-"+uuid.NewString())
	defer func() {
		// Also when the caller has given up meanwhile: leave nothing behind.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if e := b.Delete(ctx, key); err == nil && e != nil {
			err = fmt.Errorf("probing the store: removing the probe: %w", e)
		}
	}()
	switch _, err := b.Stat(ctx, key); {
	case errors.Is(err, ErrPermission):
		return fmt.Errorf("probing the store: asking for a missing object is refused as if it were there; on S3 this user needs s3:ListBucket on the bucket: %w", err)
	case !errors.Is(err, ErrNotExist):
		return fmt.Errorf("probing the store: asking for a missing object must say that it does not exist, but: %w", orNil(err))
	}
	first, second := []byte("first"), []byte("second")
	if err := b.PutIfAbsent(ctx, key, first); err != nil {
		return fmt.Errorf("probing the store: creating an object: %w", err)
	}
	if err := b.PutIfAbsent(ctx, key, second); !errors.Is(err, ErrExist) {
		if err == nil {
			err = ErrNotExclusive
		}
		return fmt.Errorf("probing the store: creating an object twice: %w", err)
	}
	got, err := b.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("probing the store: reading back: %w", err)
	}
	if !bytes.Equal(got, first) {
		return fmt.Errorf("probing the store: reading back gave %q for %q: %w", got, first, ErrNotExclusive)
	}
	return nil
}

var errNoError = errors.New("no error")

func orNil(err error) error {
	if err == nil {
		return errNoError
	}
	return err
}
