package compact

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// texts fills a table on a disk with files of random texts, which do not compress.
func texts(t *testing.T, files, rows int, options map[string]string) *paimon.Table {
	b, err := objstore.NewLocal(t.TempDir(), objstore.LocalOptions{})
	require.NoError(t, err)
	fields := []types.Field{{ID: 0, Name: "id", Type: types.BigIntType()}}
	for _, name := range []string{"a", "b", "c", "d"} {
		fields = append(fields, types.Field{ID: len(fields), Name: name, Type: types.StringType()})
	}
	all := map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true", "file.compression": "none"}
	for k, v := range options {
		all[k] = v
	}
	s, err := paimon.NewSchema(fields, nil, all, nil, 1)
	require.NoError(t, err)
	require.NoError(t, paimon.CreateTable(bg, b, s))
	table, err := paimon.OpenTable(bg, b, paimon.Write)
	require.NoError(t, err)
	w, err := table.NewDataFileWriter(paimon.WriterSettings{NewUUID: uuid.NewString})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	ch, batch, sel, text := paimon.Changes{}, types.NewBatch(fields), make([]uint32, rows), make([]byte, 100)
	for i := range sel {
		sel[i] = uint32(i)
	}
	for f := range files {
		batch.Reset()
		for i := range rows {
			batch.Cols[0].AppendInt64(int64(f*rows + i))
			for _, c := range batch.Cols[1:] {
				for k := range text {
					text[k] = 'a' + byte(rng.Uint32()%26)
				}
				c.AppendBytes(text)
			}
		}
		partition, err := table.PartitionOf(batch, 0)
		require.NoError(t, err)
		written, err := w.Write(partition, batch, sel)
		require.NoError(t, err)
		for _, x := range written {
			require.NoError(t, b.PutAll(bg, x.Objects()))
			ch.Add = append(ch.Add, x.Entry)
		}
	}
	_, st, err := table.Version(bg, paimon.Version{})
	require.NoError(t, err)
	c, err := table.BuildCommit(bg, st, ch, paimon.CommitInfo{UUID: uuid.NewString(), User: "w", Identifier: 1, TimeMillis: 1, NewUUID: uuid.NewString})
	require.NoError(t, err)
	require.NoError(t, b.PutAll(bg, c.Objects))
	require.NoError(t, table.Publish(bg, c))
	return table
}

// A join holds no more than it may, however large the row groups are that the table
// asks for; without a bound it holds one of those.
func TestRun_AJoinStaysWithinItsMemory(t *testing.T) {
	const files, rows = 100, 500 // of some 200 kB: too small to be copied as they are
	for name, c := range map[string]struct{ bytes, least, most int64 }{
		"bounded":   {4 << 20, 1 << 20, 4 << 20},
		"unbounded": {0, 20 << 20, 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			table := texts(t, files, rows, nil)
			peak, inside, joins := int64(0), false, 0
			o := Options{
				Policy: Policy{Full: true, TargetBytes: 1 << 30, SmallRatio: 1, MinFiles: 2}, MemoryBytes: c.bytes,
				Enter: func(context.Context) (func(int64), func(), error) {
					require.False(t, inside)
					inside = true
					joins++
					return func(n int64) { peak = max(peak, n) }, func() { inside = false }, nil
				},
				User: "c", NewUUID: uuid.NewString, Now: time.Now,
			}
			r, err := Run(bg, table, o)
			require.NoError(t, err)
			require.False(t, inside)
			require.Equal(t, 1, joins)
			require.Equal(t, files, r.FilesBefore)
			require.Equal(t, 1, r.FilesAfter)
			require.Greater(t, peak, c.least)
			require.LessOrEqual(t, peak, c.most)
			_, live, err := Survey(bg, table)
			require.NoError(t, err)
			require.EqualValues(t, files*rows, live[0].Entry.File.Rows)
			seen := int64(0)
			require.NoError(t, table.ReadFile(bg, &live[0].Entry, []int{0, 4}, func(start int64, b *types.Batch) error {
				for i := range b.Len() {
					require.Equal(t, start+int64(i), b.Cols[0].I64[i])
				}
				seen += int64(b.Len())
				return nil
			}))
			require.EqualValues(t, files*rows, seen)
		})
	}
}

// Whatever ends a join, its turn ends with it; and a join that may not begin leaves what
// was joined before it committed.
func TestRun_LeavesWhateverHappens(t *testing.T) {
	w := newWorld(t, 1, modes["deletion vectors"]) // two partitions, so two joins
	for range 5 {
		w.insert(6)
	}
	inside, entered := 0, 0
	o := w.options(Policy{Full: true, TargetBytes: 1 << 20, SmallRatio: 1, MinFiles: 2})
	o.Enter = func(context.Context) (func(int64), func(), error) {
		inside++
		entered++
		return func(int64) {}, func() { inside-- }, nil
	}
	uuids := o.NewUUID
	o.NewUUID = func() string { panic("in a join") }
	require.Panics(t, func() { _, _ = Run(bg, w.table, o) })
	require.Equal(t, 1, entered)
	require.Zero(t, inside)

	o.NewUUID = uuids
	full, enter := errors.New("no memory"), o.Enter
	o.Enter = func(c context.Context) (func(int64), func(), error) {
		if entered == 2 {
			return nil, nil, full
		}
		return enter(c)
	}
	r, err := Run(bg, w.table, o)
	require.ErrorIs(t, err, full)
	require.Equal(t, 1, r.Commits)
	require.Zero(t, inside)
	w.holds()
}
