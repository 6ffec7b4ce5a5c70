package objstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// S3Options say where an S3 store is and how it is spoken to.
type S3Options struct {
	// Bucket is the S3 bucket, Prefix the folder in it that is the warehouse ("" for
	// the whole bucket).
	Bucket, Prefix string
	// Endpoint is the store's URL, empty for Amazon's own of the region.
	Endpoint string
	Region   string
	// PathStyle puts the bucket into the path (endpoint/bucket/key) instead of the
	// host name.
	PathStyle bool
	// AccessKey, SecretKey and SessionToken are the credentials. Without an access key
	// they come from where Amazon's tools find them: the environment, the shared
	// credentials file, the container's or the machine's role.
	AccessKey, SecretKey, SessionToken string
	// Encryption of new objects: "" is the bucket's own, "AES256", or "aws:kms" with
	// KMSKey.
	Encryption, KMSKey string
	// TLS is for https endpoints; nil is the system's.
	TLS *tls.Config
	// Parallel bounds the requests of one call; 0 means 16.
	Parallel int
	// Retries is how often a request that may be repeated is tried; 0 means 6.
	Retries int
	// Observe is told of every request when it ends; see LocalOptions.Observe.
	Observe func(op, key string, bytes int64, err error, d time.Duration)
	// Transport replaces the HTTP transport, in tests.
	Transport http.RoundTripper
	// Sleep replaces waiting between tries, in tests.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Errors of an S3 store that are the machine's or the network's own.
var (
	// ErrClock: the store refuses requests because this machine's clock is wrong.
	ErrClock = errors.New("the clock differs too much from the store's")
	// ErrCertificate: the store's TLS certificate is refused.
	ErrCertificate = errors.New("the store's certificate is refused")
)

// S3 is a store that speaks Amazon's S3 protocol and can create objects exclusively
// (If-None-Match: *). It is safe for concurrent use. Its buckets (At) are folders.
//
// A client of minio-go makes the requests, with its own retries switched off: what
// may be repeated, and what an answer to a repetition means, is decided here.
type S3 struct {
	o     S3Options
	core  *minio.Core
	creds *credentials.Credentials
	sse   encrypt.ServerSide
}

// NewS3 prepares a store; no request is made.
func NewS3(o S3Options) (*S3, error) {
	host, secure, err := s3Host(o)
	if err != nil {
		return nil, fmt.Errorf("opening the S3 store: %w", err)
	}
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	if o.Retries <= 0 {
		o.Retries = 6
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Transport == nil {
		o.Transport = s3Transport(o.TLS, o.Parallel)
	}
	s := &S3{o: o, creds: s3Credentials(o)}
	switch o.Encryption {
	case "":
	case "AES256":
		s.sse = encrypt.NewSSE()
	case "aws:kms":
		if s.sse, err = encrypt.NewSSEKMS(o.KMSKey, nil); err != nil {
			return nil, fmt.Errorf("opening the S3 store: encryption: %w", err)
		}
	default:
		return nil, fmt.Errorf("opening the S3 store: encryption %q is not known", o.Encryption)
	}
	lookup := minio.BucketLookupDNS
	if o.PathStyle || isAddress(host) { // an address has no names below it
		lookup = minio.BucketLookupPath
	}
	s.core, err = minio.NewCore(host, &minio.Options{
		Creds: s.creds, Secure: secure, Region: o.Region, Transport: o.Transport, BucketLookup: lookup, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("opening the S3 store: %w", err)
	}
	return s, nil
}

// s3Host splits the endpoint into what the client wants.
func s3Host(o S3Options) (host string, secure bool, err error) {
	if o.Endpoint == "" {
		if o.Region == "" {
			return "", false, errors.New("neither an endpoint nor a region is set")
		}
		return "s3." + o.Region + ".amazonaws.com", true, nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return "", false, fmt.Errorf("endpoint %q is no URL like https://HOST:PORT", o.Endpoint)
	}
	return u.Host, u.Scheme == "https", nil
}

func isAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return net.ParseIP(strings.Trim(host, "[]")) != nil
}

func s3Credentials(o S3Options) *credentials.Credentials {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken)
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}},
	})
}

// s3Transport keeps a connection for each parallel request. A server that accepts a
// request and then says nothing is given up by the request's own deadline.
func s3Transport(t *tls.Config, parallel int) http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		MaxIdleConns:          8 * parallel,
		MaxIdleConnsPerHost:   4 * parallel,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		TLSClientConfig:       t,
		DisableCompression:    true,
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// At returns the bucket of a folder of the store. Nothing has to be there: a folder
// is where objects are.
func (s *S3) At(folder string) (*S3Bucket, error) {
	prefix := strings.Trim(join(strings.Trim(s.o.Prefix, "/"), strings.Trim(folder, "/")), "/")
	if prefix != "" {
		if err := CheckKey(prefix); err != nil {
			return nil, err
		}
		prefix += "/"
	}
	return &S3Bucket{s: s, prefix: prefix}, nil
}

// S3Bucket is a Bucket in a folder of an S3 store. Every write is durable when it was
// acknowledged, so Sync does nothing; a folder that is not there looks empty.
type S3Bucket struct {
	meter
	s      *S3
	prefix string // "" or with a slash at its end
	ahead  ahead
}

// String names the folder, for people.
func (b *S3Bucket) String() string { return "s3://" + b.s.o.Bucket + "/" + b.prefix }

func (b *S3Bucket) full(key string) string { return b.prefix + key }

// Sync implements Bucket.
func (b *S3Bucket) Sync(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// each runs fn for all of n, some at a time, and returns all errors.
func (b *S3Bucket) each(n int, fn func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, b.s.o.Parallel)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = fn(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
