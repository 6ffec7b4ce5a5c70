package objstore_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
)

// wire answers every request well and notes it.
type wire struct {
	mu   sync.Mutex
	seen []*http.Request
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	w.mu.Lock()
	w.seen = append(w.seen, r)
	w.mu.Unlock()
	status, body := http.StatusOK, ""
	switch {
	case r.Method == http.MethodHead:
		status = http.StatusNotFound
	case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
		body = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
	case r.Method == http.MethodPost:
		body = "<CompleteMultipartUploadResult><Bucket>lake</Bucket><ETag>e</ETag></CompleteMultipartUploadResult>"
	}
	return &http.Response{
		StatusCode: status, Request: r, Header: http.Header{"Etag": {`"e"`}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// twoParts is the size of an object that is uploaded in two parts.
const twoParts = 9 << 20

// write writes objects in every way there is; large is the size of a streamed one.
func (w *wire) write(t *testing.T, o objstore.S3Options, large int) {
	t.Helper()
	ctx := context.Background()
	o.Bucket, o.Transport = "lake", w
	s, err := objstore.NewS3(o)
	require.NoError(t, err)
	b, err := s.At("db.db/t")
	require.NoError(t, err)
	require.NoError(t, b.PutIfAbsent(ctx, "snapshot-1", []byte("x")))
	require.NoError(t, b.Replace(ctx, "LATEST", []byte("1")))
	require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "data", Data: []byte("x")}}))
	out, err := b.Create(ctx, "large")
	require.NoError(t, err)
	_, err = out.Write(make([]byte, large))
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

func (w *wire) count(match func(*http.Request) bool) (n int) {
	for _, r := range w.seen {
		if match(r) {
			n++
		}
	}
	return n
}

func TestS3_TheBucketIsInTheHostOrInThePath(t *testing.T) {
	keys := func(o objstore.S3Options) objstore.S3Options {
		o.AccessKey, o.SecretKey = "key", "secret"
		return o
	}
	for name, c := range map[string]struct {
		o   objstore.S3Options
		url string // of an object
	}{
		"a virtual host":               {keys(objstore.S3Options{Endpoint: "https://store.example", Region: "r"}), "https://lake.store.example/db.db/t/"},
		"… with a port":                {keys(objstore.S3Options{Endpoint: "http://store.example:9000", Region: "r"}), "http://lake.store.example:9000/db.db/t/"},
		"Amazon's own, of the region":  {keys(objstore.S3Options{Region: "eu-west-1"}), "https://lake.s3.dualstack.eu-west-1.amazonaws.com/db.db/t/"},
		"the path":                     {keys(objstore.S3Options{Endpoint: "https://store.example", Region: "r", PathStyle: true}), "https://store.example/lake/db.db/t/"},
		"the path, below an address":   {keys(objstore.S3Options{Endpoint: "http://127.0.0.1:9000", Region: "r"}), "http://127.0.0.1:9000/lake/db.db/t/"},
		"the path, below an address 6": {keys(objstore.S3Options{Endpoint: "http://[::1]:9000", Region: "r"}), "http://[::1]:9000/lake/db.db/t/"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{}
			w.write(t, c.o, 1)
			for _, r := range w.seen {
				require.True(t, strings.HasPrefix(r.URL.String(), c.url), r.URL)
				require.Contains(t, r.Header.Get("Authorization"), "Credential=key/")
			}
		})
	}
}

func TestS3_EncryptionIsAskedForWithEveryNewObject(t *testing.T) {
	for name, c := range map[string]struct {
		o        objstore.S3Options
		how, key string
	}{
		"the bucket's own": {objstore.S3Options{}, "", ""},
		"AES256":           {objstore.S3Options{Encryption: "AES256"}, "AES256", ""},
		"KMS":              {objstore.S3Options{Encryption: "aws:kms", KMSKey: "arn:aws:kms:r:1:key/k"}, "aws:kms", "arn:aws:kms:r:1:key/k"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{}
			c.o.Endpoint, c.o.Region, c.o.AccessKey, c.o.SecretKey = "https://store.example", "r", "key", "secret"
			w.write(t, c.o, twoParts)
			creates := func(r *http.Request) bool {
				return r.Method == http.MethodPut && !r.URL.Query().Has("partNumber") || r.Method == http.MethodPost && r.URL.Query().Has("uploads")
			}
			require.Equal(t, 4, w.count(creates), "three objects and an upload of parts")
			for _, r := range w.seen {
				how, key := "", ""
				if creates(r) {
					how, key = c.how, c.key
				}
				require.Equal(t, how, r.Header.Get("X-Amz-Server-Side-Encryption"), "%s %s", r.Method, r.URL)
				require.Equal(t, key, r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"), "%s %s", r.Method, r.URL)
			}
		})
	}
	_, err := objstore.NewS3(objstore.S3Options{Bucket: "lake", Region: "r", Encryption: "rot13"})
	require.ErrorContains(t, err, "rot13")
}

// Without keys in the configuration they come from where Amazon's tools find them.
func TestS3_CredentialsComeFromTheDefaultChain(t *testing.T) {
	role := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"AccessKeyId":"of-the-role","SecretAccessKey":"secret","Token":"token","Expiration":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer role.Close()
	file := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(file, []byte("[default]\naws_access_key_id = of-the-file\naws_secret_access_key = secret\n[other]\naws_access_key_id = of-a-profile\naws_secret_access_key = secret\n"), 0o600))
	for name, c := range map[string]struct {
		o          objstore.S3Options
		env        map[string]string
		key, token string
	}{
		"the configuration comes first": {objstore.S3Options{AccessKey: "of-the-configuration", SecretKey: "secret"}, map[string]string{"AWS_ACCESS_KEY_ID": "of-the-environment", "AWS_SECRET_ACCESS_KEY": "secret"}, "of-the-configuration", ""},
		"… with a session":              {objstore.S3Options{AccessKey: "of-the-configuration", SecretKey: "secret", SessionToken: "token"}, nil, "of-the-configuration", "token"},
		"the environment":               {objstore.S3Options{}, map[string]string{"AWS_ACCESS_KEY_ID": "of-the-environment", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}, "of-the-environment", "token"},
		"the shared file":               {objstore.S3Options{}, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file}, "of-the-file", ""},
		"… and a profile of it":         {objstore.S3Options{}, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_PROFILE": "other"}, "of-a-profile", ""},
		"the role of a container":       {objstore.S3Options{}, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": role.URL}, "of-the-role", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range os.Environ() {
				if k, _, _ := strings.Cut(v, "="); strings.HasPrefix(k, "AWS_") || strings.HasPrefix(k, "MINIO_") {
					t.Setenv(k, "")
				}
			}
			t.Setenv("HOME", t.TempDir()) // no shared file of whoever runs this
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			w := &wire{}
			c.o.Endpoint, c.o.Region = "https://store.example", "r"
			w.write(t, c.o, 1)
			for _, r := range w.seen {
				require.Contains(t, r.Header.Get("Authorization"), "Credential="+c.key+"/")
				require.Equal(t, c.token, r.Header.Get("X-Amz-Security-Token"))
			}
		})
	}
}
