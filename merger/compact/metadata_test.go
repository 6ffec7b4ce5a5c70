package compact

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// commits are what `make test` allows under the race detector; `make itest-full` takes more.
var commits = flag.Int("commits", 400, "commits of TestMetadata_ACommitsOwnStaysFlat")

// counting counts the bytes of metadata that reach the store.
type counting struct {
	objstore.Bucket
	bytes atomic.Int64
}

func (c *counting) count(key string, data []byte) {
	if strings.HasPrefix(key, "manifest/") || strings.HasPrefix(key, "snapshot/") {
		c.bytes.Add(int64(len(data)))
	}
}

func (c *counting) PutAll(ctx context.Context, objects []objstore.Object) error {
	for _, o := range objects {
		c.count(o.Key, o.Data)
	}
	return c.Bucket.PutAll(ctx, objects)
}

func (c *counting) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	c.count(key, data)
	return c.Bucket.PutIfAbsent(ctx, key, data)
}

func (c *counting) Replace(ctx context.Context, key string, data []byte) error {
	c.count(key, data)
	return c.Bucket.Replace(ctx, key, data)
}

// topicSource is Kafka for a commit loop: one partition, whose batches the test makes.
type topicSource struct {
	part       change.Partition
	b          *batcher.Batcher
	generation uint64
}

func (s *topicSource) ResolveStart(context.Context) (change.Positions, map[string]string, string, error) {
	return change.Positions{s.part: {Next: 0, Epoch: -1}}, map[string]string{s.part.Topic: "id"}, "cluster", nil
}

func (s *topicSource) Resume(_ context.Context, pos change.Positions, _ map[string]string, _ string) (uint64, error) {
	s.generation++
	s.b.Reset(pos, []change.Partition{s.part}, s.generation)
	return s.generation, nil
}
func (s *topicSource) Refuse(change.Partition, int64, *change.RowError) {}
func (s *topicSource) Stop()                                            {}
func (s *topicSource) Owned() bool                                      { return true }
func (s *topicSource) Committed(change.Positions)                       {}
func (s *topicSource) Release(b *batcher.Batch)                         { s.b.Recycle(b) }

// silent is nobody who listens to a commit loop.
type silent struct{}

func (silent) Noticed(merger.Notice)        {}
func (silent) Committed(merger.Commit)      {}
func (silent) Halted(*merger.Halt)          {}
func (silent) TwoPartitions(int64)          {}
func (silent) DeadLetter(string)            {}
func (silent) Rebuilt(int64, time.Duration) {}
func (silent) Stage(string, time.Duration)  {}

// What a commit of the daemon writes as metadata does not grow with the commits before
// it: its own loop, 90 % updates of uniform keys, with maintenance at its defaults
// beside it, whose metadata counts too.
func TestMetadata_ACommitsOwnStaysFlat(t *testing.T) {
	const rows, every = 50, 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		disk := &counting{Bucket: objstore.NewMem(objstore.MemOptions{Now: time.Now})}
		fields := []types.Field{{ID: 0, Name: "id", Type: types.BigIntType().NonNull()}, {ID: 1, Name: "s", Type: types.StringType()}}
		schema, err := paimon.NewSchema(fields, nil, map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}, nil, 1)
		require.NoError(t, err)
		require.NoError(t, paimon.CreateTable(bg, disk, schema))
		table, err := paimon.OpenTable(bg, disk, paimon.Write)
		require.NoError(t, err)
		src := &topicSource{part: change.Partition{Topic: "t"}}
		src.b, err = batcher.New(batcher.Options{Fields: fields, Key: []int{0}, Apply: batcher.Mirror, Limits: batcher.Limits{Rows: 1 << 20}})
		require.NoError(t, err)
		loop, err := merger.New(bg, merger.Settings{
			ID: "p", Apply: batcher.Mirror, Key: []int{0}, Topics: []string{"t"}, Instance: "i", Pin: true, VerifySample: 1, Marks: objstore.NewMem(objstore.MemOptions{}),
			EncodeConcurrency: 1, CommitUserPrefix: "applier-", Log: slog.New(slog.DiscardHandler), Now: time.Now, UUID: uuid.NewString,
		}, merger.Deps{Name: "db.t", Table: table, Source: src, Observer: silent{}})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error, 2)
		go func() { over <- loop.Run(ctx) }()
		loop.Post(merger.Assigned{})
		require.True(t, loop.Await(ctx, func(s merger.Status) bool { return s.Phase == merger.PhaseIdle }))
		var done []Done
		keeper := &Keeper{
			Upkeep: Upkeep{Compact: true, Expire: true, Every: 10 * time.Minute, Young: 15 * time.Minute}, Mine: func() bool { return true },
			CommitRows: func() int64 { return rows }, Tell: func(d Done) { done = append(done, d) },
			Open:    func(ctx context.Context) (*paimon.Table, error) { return paimon.OpenTable(ctx, disk, paimon.Write) },
			Options: Options{User: "c", NewUUID: uuid.NewString, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, Log: slog.New(slog.DiscardHandler),
		}
		go func() { keeper.Run(ctx); over <- nil }()

		rng := rand.New(rand.NewPCG(1, 1))
		next, offset := int64(0), int64(0)
		var written []int64 // metadata until each commit
		for range *commits {
			for i := range rows {
				id := next
				if next >= rows && i < rows*9/10 {
					id = rng.Int64N(next)
				} else {
					next++
				}
				c := src.b.Changes()
				c.Cols[0].AppendInt64(id)
				c.Cols[1].AppendString(fmt.Sprintf("row %d of commit %d", id, len(written)))
				c.EndRow(change.Update, 0, offset, time.Now().UnixMilli())
				src.b.Record(0, offset, 3, nil, nil, time.Now())
				offset++
			}
			require.NoError(t, loop.Submit(ctx, src.b.Seal(batcher.FlushRows)))
			require.True(t, loop.Await(ctx, func(s merger.Status) bool { return s.Positions[src.part].Next == offset }))
			written = append(written, disk.bytes.Load())
			time.Sleep(every)
		}
		stop()
		require.NoError(t, <-over)
		require.NoError(t, <-over)
		purged, expired := int64(0), int64(0)
		for _, d := range done {
			require.NoError(t, d.Err)
			purged, expired = purged+d.Compaction.RowsPurged, expired+d.Expired
		}
		require.Positive(t, purged, "maintenance was at work")
		if *commits > 1000 { // an hour, the least that snapshots stay, has 720
			require.Positive(t, expired)
		}
		mean := func(from, to int) float64 { return float64(written[to-1]-written[from-1]) / float64(to-from) }
		early, late := mean(100, 200), mean(*commits-100, *commits)
		t.Logf("%.0f bytes a commit for commits 100 to 200, %.0f for %d to %d", early, late, *commits-100, *commits)
		require.LessOrEqual(t, late, early*1.25)
		require.LessOrEqual(t, late, 64.0*1024)
		_, files, err := Survey(bg, table)
		require.NoError(t, err)
		live := int64(0)
		for _, f := range files {
			live += f.Entry.File.Rows - f.Deleted
		}
		require.Equal(t, next, live)
	})
}
