package paimon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"applier/storage/mutant"
	"applier/storage/objstore"
)

// ErrHole: snapshot ids that do not follow each other.
var ErrHole = errors.New("hole in the snapshots")

// maxProbes is how many snapshots behind a stale hint are looked for one by one
// before the folder is listed.
const maxProbes = 8

// LatestSnapshotID returns the highest snapshot id, or 0 if there are none. The
// hint saves a listing; it is believed only as far as the files bear it out: it
// may be missing, torn, stale or too high, and names that are no snapshot's are
// passed over (source: HintFileUtils, SnapshotManager).
func LatestSnapshotID(ctx context.Context, b objstore.Bucket, p Paths) (int64, error) {
	hint, err := readHint(ctx, b, p.LatestHint())
	if err != nil {
		return 0, err
	}
	for range maxProbes {
		if hint == 0 {
			break
		}
		ok, err := exists(ctx, b, p.Snapshot(hint))
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		if mutant.On(mutant.ProbeUpwards) {
			return hint, nil
		}
		more, err := exists(ctx, b, p.Snapshot(hint+1))
		if err != nil {
			return 0, err
		}
		if !more {
			return hint, nil
		}
		hint++
	}
	ids, err := ListSnapshotIDs(ctx, b, p)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[len(ids)-1], nil
}

// EarliestSnapshotID returns the lowest snapshot id, or 0 if there are none. The
// hint is believed if its snapshot exists and the one before does not.
func EarliestSnapshotID(ctx context.Context, b objstore.Bucket, p Paths) (int64, error) {
	hint, err := readHint(ctx, b, p.EarliestHint())
	if err != nil {
		return 0, err
	}
	if ok, err := IsEarliest(ctx, b, p, hint); ok || err != nil {
		return hint, err
	}
	ids, err := ListSnapshotIDs(ctx, b, p)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}

// IsEarliest reports whether a snapshot is there and the one below it is not. Ids are
// contiguous, so it is then the earliest. Ids from 0 down are none.
func IsEarliest(ctx context.Context, b objstore.Bucket, p Paths, id int64) (bool, error) {
	if id <= 0 {
		return false, nil
	}
	if ok, err := exists(ctx, b, p.Snapshot(id)); !ok || err != nil {
		return false, err
	}
	if id == 1 {
		return true, nil
	}
	before, err := exists(ctx, b, p.Snapshot(id-1))
	return !before && err == nil, err
}

// readHint returns the id of a hint file, 0 if it holds none. Hints are written
// without care, so nothing in them is an error.
func readHint(ctx context.Context, b objstore.Bucket, key string) (int64, error) {
	r, err := b.Open(ctx, key, -1)
	if errors.Is(err, objstore.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the hint %s: %w", key, err)
	}
	defer r.Close()
	var buf [32]byte // an id has up to 19 digits
	n, err := r.ReadAt(buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, objstore.ErrNotExist) {
		return 0, fmt.Errorf("reading the hint %s: %w", key, err)
	}
	return parseID(strings.TrimSpace(string(buf[:n])), 1), nil
}

// parseID reads a decimal id as Java writes it, 0 for anything else. The largest
// ids are none: there must be a next one.
func parseID(s string, least int64) int64 {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < least || v >= 1<<62 || strconv.FormatInt(v, 10) != s {
		return 0
	}
	return v
}

func exists(ctx context.Context, b objstore.Bucket, key string) (bool, error) {
	_, err := b.Stat(ctx, key)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, objstore.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("looking for %s: %w", key, err)
}

// ListSnapshotIDs returns the ids of all snapshots, ascending.
func ListSnapshotIDs(ctx context.Context, b objstore.Bucket, p Paths) ([]int64, error) {
	return listIDs(ctx, b, p.SnapshotDir(), "snapshot-", 1)
}

// ListSchemaIDs returns the ids of all schemas, ascending.
func ListSchemaIDs(ctx context.Context, b objstore.Bucket, p Paths) ([]int64, error) {
	return listIDs(ctx, b, p.SchemaDir(), "schema-", 0)
}

func listIDs(ctx context.Context, b objstore.Bucket, dir, prefix string, least int64) ([]int64, error) {
	var ids []int64
	err := b.List(ctx, dir, func(i objstore.Info) error {
		s, ok := strings.CutPrefix(baseName(i.Key), prefix)
		if v := parseID(s, least); ok && !i.Folder && (v > 0 || s == "0" && least == 0) {
			ids = append(ids, v)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	slices.Sort(ids)
	return ids, nil
}

// CheckContiguous returns ErrHole if ascending snapshot ids leave one out.
func CheckContiguous(ids []int64) error {
	for i := 1; i < len(ids); i++ {
		if ids[i] != ids[i-1]+1 {
			return fmt.Errorf("%w: %d follows %d", ErrHole, ids[i], ids[i-1])
		}
	}
	return nil
}

// WriteLatestHint writes the hint. Failing to is harmless: readers list.
func WriteLatestHint(ctx context.Context, b objstore.Bucket, p Paths, snapshotID int64) error {
	return b.Replace(ctx, p.LatestHint(), []byte(formatID(snapshotID)))
}

// WriteEarliestHint writes the hint that expiry moves.
func WriteEarliestHint(ctx context.Context, b objstore.Bucket, p Paths, snapshotID int64) error {
	return b.Replace(ctx, p.EarliestHint(), []byte(formatID(snapshotID)))
}

// ReadSnapshot reads a snapshot, objstore.ErrNotExist if there is none.
func ReadSnapshot(ctx context.Context, b objstore.Bucket, p Paths, snapshotID int64) (*Snapshot, error) {
	data, err := b.Get(ctx, p.Snapshot(snapshotID))
	if err != nil {
		return nil, fmt.Errorf("reading snapshot %d: %w", snapshotID, err)
	}
	s, err := ParseSnapshot(data)
	if err != nil {
		return nil, fmt.Errorf("reading snapshot %d: %w", snapshotID, err)
	}
	if s.ID != snapshotID {
		return nil, fmt.Errorf("reading snapshot %d: %w: it says id %d", snapshotID, ErrCorrupt, s.ID)
	}
	return s, nil
}

// ReadSchema reads a schema, objstore.ErrNotExist if there is none.
func ReadSchema(ctx context.Context, b objstore.Bucket, p Paths, schemaID int64) (*Schema, error) {
	data, err := b.Get(ctx, p.Schema(schemaID))
	if err != nil {
		return nil, fmt.Errorf("reading schema %d: %w", schemaID, err)
	}
	s, err := ParseSchema(data)
	if err != nil {
		return nil, fmt.Errorf("reading schema %d: %w", schemaID, err)
	}
	if s.ID != schemaID {
		return nil, fmt.Errorf("reading schema %d: %w: it says id %d", schemaID, ErrCorrupt, s.ID)
	}
	return s, nil
}

// LatestSchema reads the schema of the highest id; objstore.ErrNotExist if the
// table has none, that is, does not exist. There is no hint for schemas.
func LatestSchema(ctx context.Context, b objstore.Bucket, p Paths) (*Schema, error) {
	ids, err := ListSchemaIDs(ctx, b, p)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("no schema in %s: %w", p.SchemaDir(), objstore.ErrNotExist)
	}
	return ReadSchema(ctx, b, p, ids[len(ids)-1])
}
