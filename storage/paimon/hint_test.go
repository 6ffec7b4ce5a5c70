package paimon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
)

func put(t require.TestingT, b objstore.Bucket, key, data string) {
	require.NoError(t, b.Replace(ctxOf(t), key, []byte(data)))
}

// snapshots puts snapshot files of the given ids.
func snapshots(t require.TestingT, b objstore.Bucket, ids ...int64) {
	for _, id := range ids {
		put(t, b, Paths{}.Snapshot(id), strings.Replace(minimalSnapshot, `"id":7`, fmt.Sprintf(`"id":%d`, id), 1))
	}
}

func TestLatestSnapshotID_BelievesHintsOnlyAsFarAsFilesGo(t *testing.T) {
	for name, c := range map[string]struct {
		ids    []int64
		hint   string // "-" is none
		latest int64
	}{
		"no table":             {nil, "-", 0},
		"hint without files":   {nil, "3", 0},
		"right":                {[]int64{1, 2, 3}, "3", 3},
		"with newline":         {[]int64{1, 2, 3}, "3\n", 3},
		"missing":              {[]int64{1, 2, 3}, "-", 3},
		"empty":                {[]int64{1, 2, 3}, "", 3},
		"torn":                 {[]int64{9, 10, 11}, "1", 11},
		"junk":                 {[]int64{1, 2, 3}, "three", 3},
		"long junk":            {[]int64{1, 2, 3}, strings.Repeat("3", 1000), 3},
		"negative":             {[]int64{1, 2, 3}, "-2", 3},
		"zero":                 {[]int64{1, 2, 3}, "0", 3},
		"sign":                 {[]int64{1, 2, 3}, "+2", 3},
		"stale by one":         {[]int64{1, 2, 3}, "2", 3},
		"stale by many":        {[]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, "1", 14},
		"stale up to a hole":   {[]int64{1, 2, 4}, "4", 4},
		"too high":             {[]int64{1, 2, 3}, "7", 3},
		"largest number":       {[]int64{1, 2, 3}, "9223372036854775807", 3},
		"beyond numbers":       {[]int64{1, 2, 3}, "9223372036854775808", 3},
		"two digits and three": {[]int64{9, 10, 99, 100}, "-", 100},
	} {
		t.Run(name, func(t *testing.T) {
			b := objstore.NewMem(objstore.MemOptions{})
			snapshots(t, b, c.ids...)
			if c.hint != "-" {
				put(t, b, "snapshot/LATEST", c.hint)
				put(t, b, "snapshot/EARLIEST", c.hint)
			}
			got, err := LatestSnapshotID(t.Context(), b, Paths{})
			require.NoError(t, err)
			require.Equal(t, c.latest, got)
			first := int64(0)
			if len(c.ids) > 0 {
				first = c.ids[0]
			}
			if name == "stale up to a hole" {
				first = 4 // the hint's snapshot is there and has none before it
			}
			got, err = EarliestSnapshotID(t.Context(), b, Paths{})
			require.NoError(t, err)
			require.Equal(t, first, got)
		})
	}
}

func TestListSnapshotIDs_PassesOverNamesThatAreNone(t *testing.T) {
	b := objstore.NewMem(objstore.MemOptions{})
	snapshots(t, b, 10, 9, 2)
	for _, name := range []string{
		"snapshot-", "snapshot-x", "snapshot-3x", "snapshot-03", "snapshot-+4", "snapshot--5", "snapshot-0", "snapshot-99999999999999999999",
		"snapshot-11abc.tmp", "other-12", "snapshot-13/nested", "EARLIEST",
	} {
		put(t, b, "snapshot/"+name, "junk")
	}
	ids, err := ListSnapshotIDs(t.Context(), b, Paths{})
	require.NoError(t, err)
	require.Equal(t, []int64{2, 9, 10}, ids)
	require.ErrorIs(t, CheckContiguous(ids), ErrHole)
	require.NoError(t, CheckContiguous(ids[1:]))
	require.NoError(t, CheckContiguous(nil))
}

// Whatever the hints hold, the ends are those of the files.
func TestSnapshotIDs_AreRightUnderAnyHint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := objstore.NewMem(objstore.MemOptions{})
		first, n := rapid.Int64Range(1, 30).Draw(t, "first"), rapid.Int64Range(1, 20).Draw(t, "n")
		for id := first; id < first+n; id++ {
			snapshots(t, b, id)
		}
		hint := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.Map(rapid.Int64Range(-1, 60), func(v int64) string { return fmt.Sprint(v) }))
		put(t, b, "snapshot/LATEST", hint.Draw(t, "latest"))
		put(t, b, "snapshot/EARLIEST", hint.Draw(t, "earliest"))
		latest, err := LatestSnapshotID(ctxOf(t), b, Paths{})
		require.NoError(t, err)
		require.Equal(t, first+n-1, latest)
		earliest, err := EarliestSnapshotID(ctxOf(t), b, Paths{})
		require.NoError(t, err)
		require.Equal(t, first, earliest)
	})
}

func TestWriteHints_WriteJavasForm(t *testing.T) {
	b := objstore.NewMem(objstore.MemOptions{})
	p, err := NewPaths(&Schema{}, Options{}, "dev")
	require.NoError(t, err)
	require.NoError(t, WriteLatestHint(t.Context(), b, p, 12))
	require.NoError(t, WriteEarliestHint(t.Context(), b, p, 3))
	data, err := b.Get(t.Context(), "branch/branch-dev/snapshot/LATEST")
	require.NoError(t, err)
	require.Equal(t, "12", string(data))
	data, err = b.Get(t.Context(), "branch/branch-dev/snapshot/EARLIEST")
	require.NoError(t, err)
	require.Equal(t, "3", string(data))
}

func TestReadSnapshotAndSchema_CheckTheIDs(t *testing.T) {
	b := objstore.NewMem(objstore.MemOptions{})
	put(t, b, "snapshot/snapshot-7", minimalSnapshot)
	put(t, b, "snapshot/snapshot-8", minimalSnapshot)
	put(t, b, "snapshot/snapshot-9", "{")
	s, err := ReadSnapshot(t.Context(), b, Paths{}, 7)
	require.NoError(t, err)
	require.EqualValues(t, 7, s.ID)
	for _, id := range []int64{8, 9} {
		_, err = ReadSnapshot(t.Context(), b, Paths{}, id)
		require.ErrorIs(t, err, ErrCorrupt)
	}
	_, err = ReadSnapshot(t.Context(), b, Paths{}, 10)
	require.ErrorIs(t, err, objstore.ErrNotExist)

	_, err = LatestSchema(t.Context(), b, Paths{})
	require.ErrorIs(t, err, objstore.ErrNotExist, "no table")
	put(t, b, "schema/schema-0", minimalSchema)
	put(t, b, "schema/schema-00", "junk")
	put(t, b, "schema/.schema-1.x.tmp", "junk")
	schema, err := LatestSchema(t.Context(), b, Paths{})
	require.NoError(t, err)
	require.EqualValues(t, 0, schema.ID)
	put(t, b, "schema/schema-10", strings.Replace(minimalSchema, `"id":0,"fields"`, `"id":10,"fields"`, 1))
	put(t, b, "schema/schema-9", "junk")
	schema, err = LatestSchema(t.Context(), b, Paths{})
	require.NoError(t, err)
	require.EqualValues(t, 10, schema.ID)
	put(t, b, "schema/schema-11", minimalSchema)
	_, err = LatestSchema(t.Context(), b, Paths{})
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = ReadSchema(t.Context(), b, Paths{}, 9)
	require.ErrorIs(t, err, ErrCorrupt)
}

// brokenBucket fails every call of one kind.
type brokenBucket struct {
	objstore.Bucket
	call string
}

var errBroken = errors.New("store is broken")

func (b brokenBucket) fail(call string) error {
	if call == b.call {
		return errBroken
	}
	return nil
}

func (b brokenBucket) Open(ctx context.Context, key string, size int64) (objstore.Reader, error) {
	if err := b.fail("open"); err != nil {
		return nil, err
	}
	return b.Bucket.Open(ctx, key, size)
}

func (b brokenBucket) Stat(ctx context.Context, key string) (objstore.Info, error) {
	if err := b.fail("stat"); err != nil {
		return objstore.Info{}, err
	}
	return b.Bucket.Stat(ctx, key)
}

func (b brokenBucket) List(ctx context.Context, prefix string, fn func(objstore.Info) error) error {
	if err := b.fail("list"); err != nil {
		return err
	}
	return b.Bucket.List(ctx, prefix, fn)
}

// A store that does not answer is no table without snapshots.
func TestSnapshotIDs_PassOnErrorsOfTheStore(t *testing.T) {
	mem := objstore.NewMem(objstore.MemOptions{})
	snapshots(t, mem, 3, 4)
	put(t, mem, "snapshot/LATEST", "4")
	put(t, mem, "snapshot/EARLIEST", "3")
	for _, call := range []string{"open", "stat"} {
		_, err := LatestSnapshotID(t.Context(), brokenBucket{mem, call}, Paths{})
		require.ErrorIs(t, err, errBroken, call)
		_, err = EarliestSnapshotID(t.Context(), brokenBucket{mem, call}, Paths{})
		require.ErrorIs(t, err, errBroken, call)
	}
	require.NoError(t, mem.Delete(t.Context(), "snapshot/LATEST", "snapshot/EARLIEST"))
	broken := brokenBucket{mem, "list"}
	_, err := LatestSnapshotID(t.Context(), broken, Paths{})
	require.ErrorIs(t, err, errBroken)
	_, err = EarliestSnapshotID(t.Context(), broken, Paths{})
	require.ErrorIs(t, err, errBroken)
	_, err = LatestSchema(t.Context(), broken, Paths{})
	require.ErrorIs(t, err, errBroken)
	_, err = ListTags(t.Context(), broken, Paths{})
	require.ErrorIs(t, err, errBroken)
	_, err = ListConsumers(t.Context(), broken, Paths{})
	require.ErrorIs(t, err, errBroken)
}

// ctxOf returns the test's context, also of a rapid test.
func ctxOf(t require.TestingT) context.Context {
	if c, ok := t.(interface{ Context() context.Context }); ok {
		return c.Context()
	}
	return context.Background()
}
