package batcher

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// op is one thing that happens to a batcher.
type op struct {
	what   string // record, advance, seal
	part   int32
	gap    int64 // offsets left out before it (compaction, aborted records)
	epoch  int32
	rows   int
	value  byte
	passed time.Duration
}

func drawOps(t *rapid.T) []op {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{
			what:   rapid.SampledFrom([]string{"record", "record", "record", "advance", "seal"}).Draw(t, "what"),
			part:   rapid.Int32Range(0, 1).Draw(t, "part"),
			gap:    int64(rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(t, "gap")),
			epoch:  rapid.Int32Range(0, 3).Draw(t, "epoch"),
			rows:   rapid.IntRange(0, 2).Draw(t, "rows"),
			value:  rapid.Byte().Draw(t, "value"),
			passed: time.Duration(rapid.IntRange(0, 5).Draw(t, "seconds")) * time.Second,
		}
	}), 1, 60).Draw(t, "ops")
}

// driver plays ops and keeps the model: plain positions and clocks.
type driver struct {
	b       *Batcher
	now     time.Time
	pos     change.Positions
	start   change.Positions
	since   time.Time // positions moved first
	last    time.Time // newest record
	rows    int
	batches []*Batch
}

func newDriver(t require.TestingT) *driver {
	o := Options{
		Fields: testFields(types.BigIntType()), Key: []int{0}, Apply: Mirror,
		Limits: Limits{Rows: 7, Bytes: 1 << 30, Interval: 10 * time.Second, IdleFlush: 3 * time.Second},
	}
	d := &driver{b: newBatcher(t, o), now: start}
	d.pos = change.Positions{topic0: {Next: 0, Epoch: -1}, topic1: {Next: 0, Epoch: -1}}
	d.start = d.pos.Clone()
	return d
}

func (d *driver) play(o op) {
	d.now = d.now.Add(o.passed)
	p := []change.Partition{topic0, topic1}[o.part]
	at := d.pos[p]
	next := at.Next + o.gap + 1
	switch o.what {
	case "seal":
		d.batches = append(d.batches, d.b.Seal(FlushRows))
		d.start, d.since, d.rows = d.pos.Clone(), time.Time{}, 0
		return
	case "record":
		for range o.rows {
			c := d.b.Changes()
			c.Cols[0].AppendInt64(int64(o.value))
			c.Cols[1].AppendNull()
			c.Cols[2].AppendNull()
			c.EndRow(change.Update, o.part, next-1, 1)
		}
		d.b.Record(o.part, next-1, o.epoch, []byte{o.value}, nil, d.now)
		d.rows += o.rows
		d.last = d.now
	case "advance":
		d.b.Advance(o.part, next, o.epoch, d.now)
	}
	if d.since.IsZero() {
		d.since = d.now
	}
	d.pos[p] = change.Position{Next: next, Epoch: max(at.Epoch, o.epoch)}
}

func TestBatches_JoinWithoutGapOrOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDriver(t)
		end := change.Positions{topic0: {Next: 0, Epoch: -1}, topic1: {Next: 0, Epoch: -1}}
		for _, o := range drawOps(t) {
			d.play(o)
			for part, p := range []change.Partition{topic0, topic1} {
				at, ok := d.b.Position(int32(part))
				require.True(t, ok)
				require.Equal(t, d.pos[p], at)
			}
			require.Equal(t, d.since.IsZero(), d.b.Empty())
			checkDeadline(t, d)
			if o.what == "seal" {
				batch := d.batches[len(d.batches)-1]
				require.Equal(t, end, batch.Start, "a batch starts where the last one ended")
				require.Equal(t, d.pos, batch.Next)
				end = batch.Next.Clone()
			}
		}
		// A batch's vectors are its own: later records do not move them.
		for i := 1; i < len(d.batches); i++ {
			require.Equal(t, d.batches[i-1].Next, d.batches[i].Start)
		}
	})
}

func checkDeadline(t require.TestingT, d *driver) {
	var want time.Time
	if !d.since.IsZero() {
		want = d.since.Add(10 * time.Second)
		if idle := d.last.Add(3 * time.Second); d.rows > 0 && idle.Before(want) {
			want = idle
		}
	}
	require.Equal(t, want, d.b.Deadline())
	_, due := d.b.Due(d.now)
	require.Equal(t, !d.since.IsZero() && (d.rows >= 7 || !d.now.Before(want)), due)
}

func digests(t require.TestingT, ops []op) [][]byte {
	d := newDriver(t)
	for _, o := range append(ops, op{what: "seal"}) {
		d.play(o)
	}
	var out [][]byte
	for _, b := range d.batches {
		out = append(out, b.Digest)
	}
	return out
}

func TestDigest_SameRecordsSameDigestAndEveryChangeShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := drawOps(t)
		want := digests(t, ops)
		for _, d := range want {
			require.Len(t, d, 32)
		}
		require.Equal(t, want, digests(t, ops))

		i := rapid.IntRange(0, len(ops)-1).Draw(t, "changed op")
		if ops[i].what == "seal" {
			return
		}
		changed := slices.Clone(ops)
		if ops[i].what == "record" && rapid.Bool().Draw(t, "change the bytes") {
			changed[i].value++
		} else {
			changed[i].gap++
		}
		require.NotEqual(t, want, digests(t, changed))
	})
}

func TestDigest_DependsOnWhereBytesEnd(t *testing.T) {
	digest := func(key, value string) []byte {
		b := limited(&testing.T{}, Limits{Rows: 10})
		b.Record(0, 0, 0, []byte(key), []byte(value), start)
		return b.Seal(FlushRows).Digest
	}
	require.NotEqual(t, digest("ab", "c"), digest("a", "bc"))
	require.True(t, bytes.Equal(digest("ab", "c"), digest("ab", "c")))
}

func TestDigest_PartitionsDoNotMixByArrival(t *testing.T) {
	// The same records of two partitions, interleaved otherwise, are the same
	// batch: what arrives first between partitions is chance.
	digest := func(parts ...int32) []byte {
		b := limited(t, Limits{Rows: 10})
		next := [2]int64{}
		for _, p := range parts {
			b.Record(p, next[p], 0, nil, []byte{byte(p), byte(next[p])}, start)
			next[p]++
		}
		return b.Seal(FlushRows).Digest
	}
	require.Equal(t, digest(0, 1, 0, 1), digest(1, 1, 0, 0))
	require.NotEqual(t, digest(0, 1, 0, 1), digest(0, 0, 0, 1))
}

// An auditor knows the ranges by the partitions' names, not in which order they came
// to the pipeline: a new partition of an early topic is added behind the others.
func TestDigest_DoesNotDependOnTheOrderOfPartitions(t *testing.T) {
	digest := func(names ...string) []byte {
		b, err := New(Options{Apply: Append, Fields: []types.Field{{Name: "k", Type: types.IntType()}}})
		require.NoError(t, err)
		var parts []change.Partition
		at := change.Positions{}
		for _, n := range names {
			p := change.Partition{Topic: n}
			parts = append(parts, p)
			at[p] = change.Position{Epoch: -1}
		}
		b.Reset(at, parts, 1)
		for i, n := range names {
			b.Record(int32(i), 0, 0, []byte(n), []byte("v"), time.Now())
		}
		return b.Seal(FlushRows).Digest
	}
	require.Equal(t, digest("a", "b", "c"), digest("c", "a", "b"))
	require.NotEqual(t, digest("a", "b", "c"), digest("a", "b", "d"))
}

// BenchmarkRecord is the cost of a record's position and digest: what the hash chain
// of applied ranges takes of the hot path.
func BenchmarkRecord(b *testing.B) {
	for _, size := range []int{100, 500, 2000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			bat, err := New(Options{Apply: Append, Fields: []types.Field{{Name: "k", Type: types.IntType()}}})
			require.NoError(b, err)
			p := change.Partition{Topic: "t"}
			bat.Reset(change.Positions{p: {Epoch: -1}}, []change.Partition{p}, 1)
			key, value, now := make([]byte, 20), make([]byte, size), time.Now()
			b.SetBytes(int64(size))
			for i := range b.N {
				bat.Record(0, int64(i), 0, key, value, now)
			}
		})
	}
}
