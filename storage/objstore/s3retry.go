package objstore

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

// Deadlines of one request: so long, and longer for each byte that it moves, so that
// a slow line is no failure.
const (
	requestTime = 30 * time.Second
	slowestLine = 8 << 10 // bytes a second
)

// Pauses between tries, doubled with each one; longer ones if the store asks for
// less.
const (
	retryFrom = 100 * time.Millisecond
	slowFrom  = time.Second
	retryMost = 20 * time.Second
)

// request is what one call asks of the store.
type request struct {
	op, key string
	bytes   int64 // that it moves, as far as known
	once    bool  // it is not repeated: what an answer would mean could not be told
}

// do makes a request as often as it takes. fn must start from the beginning each
// time; try counts from 0. The error is one of the Bucket's own where it has one.
func (b *S3Bucket) do(ctx context.Context, r request, fn func(ctx context.Context, try int) error) error {
	s := b.s
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s %s: %w", r.op, r.key, err)
		}
		from := time.Now()
		attempt, cancel := context.WithTimeout(ctx, requestTime+time.Duration(r.bytes/slowestLine)*time.Second)
		err := fn(attempt, try)
		cancel()
		if reads(r.op) {
			b.count(r.op, 0) // fetch counts the bytes that come
		} else {
			b.count(r.op, r.bytes)
		}
		if s.o.Observe != nil {
			s.o.Observe(r.op, r.key, r.bytes, s3Cause(err), time.Since(from))
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil { // whatever it said, it was because of that
			return fmt.Errorf("%s %s: %w", r.op, r.key, ctx.Err())
		}
		again, slow := s.passes(err)
		if r.once || !again || try+1 >= s.o.Retries {
			return s3Error(r, err)
		}
		if err := s.o.Sleep(ctx, pause(try, slow)); err != nil {
			return fmt.Errorf("%s %s: %w", r.op, r.key, err)
		}
	}
}

// pause is half fixed and half random, so that clients that failed together do not
// come back together.
func pause(try int, slow bool) time.Duration {
	d := retryFrom
	if slow {
		d = slowFrom
	}
	d = min(d<<min(try, 10), retryMost)
	return d/2 + rand.N(d/2+1)
}

// passes tells whether an error may pass by itself, and whether the store asked for
// fewer requests.
func (s *S3) passes(err error) (again, slow bool) {
	resp, ok := s3Answer(err)
	if !ok { // the network's
		return !isCertificate(err) && !errors.Is(err, ErrSize), false
	}
	switch resp.Code {
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable", "RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequests":
		return true, true
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
		s.creds.Expire() // the next request asks for new ones
		return true, false
	case "RequestTimeout", "InternalError", "IncompleteBody", "BadDigest", "OperationAborted":
		return true, false
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout:
		return true, false
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true, true
	}
	return resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented && resp.StatusCode != http.StatusInsufficientStorage, false
}

// s3Answer returns what the store answered; false if the error is none of its own.
func s3Answer(err error) (minio.ErrorResponse, bool) {
	var resp minio.ErrorResponse
	if errors.As(err, &resp) {
		return resp, resp.StatusCode != 0 || resp.Code != ""
	}
	return resp, false
}

func isCertificate(err error) bool {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid)
}

// s3Cause is the Bucket's own error behind what a request said, or what it said.
func s3Cause(err error) error {
	if err == nil {
		return nil
	}
	resp, ok := s3Answer(err)
	if !ok {
		if isCertificate(err) {
			return ErrCertificate
		}
		return err
	}
	switch resp.Code {
	case "NoSuchKey", "NoSuchBucket", "NoSuchUpload": // no other 404: users and policies may be missing, too
		return ErrNotExist
	case "InvalidRange": // all of it is behind the end
		return ErrSize
	case "PreconditionFailed":
		return ErrExist
	case "RequestTimeTooSkewed":
		return ErrClock
	case "AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "XAdminUserNotFound", "ExpiredToken", "ExpiredTokenException":
		return ErrPermission
	case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage":
		return ErrFull
	}
	switch resp.StatusCode {
	case http.StatusPreconditionFailed:
		return ErrExist
	case http.StatusForbidden, http.StatusUnauthorized:
		return ErrPermission
	case http.StatusInsufficientStorage:
		return ErrFull
	}
	return err
}

// s3Error says what was asked and what came of it.
func s3Error(r request, err error) error {
	cause := s3Cause(err)
	resp, answered := s3Answer(err)
	same := cause == err //nolint:errorlint // the very same
	switch {
	case same && answered && resp.Code != "":
		return fmt.Errorf("%s %s: %s: %w", r.op, r.key, resp.Code, err)
	case same:
		return fmt.Errorf("%s %s: %w", r.op, r.key, err)
	case answered && resp.Code != "":
		return fmt.Errorf("%s %s: %w (%s: %s)", r.op, r.key, cause, resp.Code, resp.Message)
	}
	return fmt.Errorf("%s %s: %w (%w)", r.op, r.key, cause, err)
}

// short is the error of a body that ended before its length.
func short(got, want int64) error {
	return fmt.Errorf("%w: %d of %d bytes came", io.ErrUnexpectedEOF, got, want)
}
