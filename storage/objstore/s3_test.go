package objstore_test

import (
	"cmp"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/objstore/objstoretest"
)

// s3Bucket says what is different in an object store. versitygw says of names of 255
// bytes that are there that they are directories.
type s3Bucket struct {
	objstore.Bucket
	maxName int
}

func (b s3Bucket) Traits() objstoretest.Traits {
	return objstoretest.Traits{Flat: true, MaxName: b.maxName}
}

// fakeS3 starts an S3 server in this process, with one bucket.
func fakeS3(t *testing.T) (endpoint string) {
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("lake"))
	fake := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.StdLog(log.New(testLog{t}, "", 0))))
	server := httptest.NewServer(fake.Server())
	t.Cleanup(server.Close)
	return server.URL
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) { return len(p), nil }

func s3Options(endpoint string) objstore.S3Options {
	return objstore.S3Options{Bucket: "lake", Endpoint: endpoint, Region: "us-east-1", PathStyle: true, AccessKey: cmp.Or(os.Getenv("APPLIER_TEST_S3_USER"), "user"), SecretKey: cmp.Or(os.Getenv("APPLIER_TEST_S3_SECRET"), "secret")}
}

// TestS3_IsABucket runs on a fake in this process, and under APPLIER_TEST_S3 (the
// endpoint of a server with a bucket lake, _USER and _SECRET) on a real one: itest does so.
func TestS3_IsABucket(t *testing.T) {
	endpoint, maxName := os.Getenv("APPLIER_TEST_S3"), 240
	if endpoint == "" {
		endpoint, maxName = fakeS3(t), 0
	}
	for _, prefix := range []string{"", "a warehouse/of tables"} {
		t.Run(fmt.Sprintf("prefix=%q", prefix), func(t *testing.T) {
			var n atomic.Int64
			o := s3Options(endpoint)
			o.Prefix = prefix
			store, err := objstore.NewS3(o)
			require.NoError(t, err)
			objstoretest.Run(t, func(t *testing.T) objstore.Bucket {
				b, err := store.At(fmt.Sprintf("db.db/table%d-%d", time.Now().UnixNano(), n.Add(1)))
				require.NoError(t, err)
				return s3Bucket{b, maxName}
			})
		})
	}
}
