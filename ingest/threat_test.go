package ingest

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A batch that is small in Kafka and large in memory stops the pipeline; what it
// would take is never allocated.
func TestThreat_DecompressionBomb(t *testing.T) {
	t.Run("zstd", func(t *testing.T) { bomb(t, kgo.ZstdCompression(), 64<<20) })
	t.Run("gzip", func(t *testing.T) { bomb(t, kgo.GzipCompression(), 64<<20) })
	t.Run("snappy", func(t *testing.T) { bomb(t, kgo.SnappyCompression(), 16<<20) })
}

func TestFault_E23_ADecompressionBombHaltsWithItsOffset(t *testing.T) {
	bomb(t, kgo.Lz4Compression(), 64<<20)
}

// bomb reads a batch of size bytes: as much as fits into a packed batch of 1 MiB,
// Kafka's own limit.
func bomb(t *testing.T, codec kgo.CompressionCodec, size int) {
	const limit = 1 << 20
	c := newCluster(t, 1)
	produce(t, c, 0, "before")
	cl := newTestClient(t, options(c), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(int32(size+1024)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic), kgo.BrokerMaxWriteBytes(int32(size+4096)))
	require.NoError(t, cl.ProduceSync(testContext(t), &kgo.Record{Value: bytes.Repeat([]byte("a"), size)}).FirstErr())
	cl.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := read(t, c, newSink(1), func(o *Options) { o.Client.MaxBatchBytes = limit })
	r.resume(at(0))
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records, "what came before it is applied")
	h := take(t, r.halts)
	runtime.ReadMemStats(&after)
	require.Equal(t, "K-CORRUPT", h.problem.Code)
	require.Contains(t, h.problem.Facts, "the record batch at offset 1 would decompress to more")
	require.Contains(t, h.problem.Facts, "it ends before offset 2", "what to skip to")
	if size > 32<<20 { // far above what fetching itself takes
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size*3/4), "it was unpacked")
	}
}

// Records within the limit are read, whatever their ratio.
func TestThreat_DecompressionBomb_LeavesHonestBatchesAlone(t *testing.T) {
	c := newCluster(t, 1)
	cl := newTestClient(t, options(c), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.DefaultProduceTopic(topic))
	require.NoError(t, cl.ProduceSync(testContext(t), &kgo.Record{Value: bytes.Repeat([]byte("a"), 900<<10)}).FirstErr())
	r := read(t, c, newSink(1), nil)
	r.resume(at(0))
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
}
