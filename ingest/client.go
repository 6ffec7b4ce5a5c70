package ingest

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// ClientOptions say how to reach the brokers. All clients of a process share them.
type ClientOptions struct {
	Brokers  []string
	ClientID string
	TLS      *tls.Config // nil: plaintext
	SASL     SASL
	// MaxBatchBytes is what a fetched record batch may decompress to: what a producer
	// packs is not trusted. 0 is DefaultMaxBatchBytes.
	MaxBatchBytes int
	// Dial replaces the network in tests; nil is the ordinary one.
	Dial func(ctx context.Context, network, host string) (net.Conn, error)
	Log  *slog.Logger
}

// DefaultMaxBatchBytes is far above what producers pack into a batch (Kafka's own
// limit is 1 MiB of packed bytes) and far below what hurts.
const DefaultMaxBatchBytes = 64 << 20

// SASL are credentials; an empty Mechanism means none.
type SASL struct {
	Mechanism string // plain, scram-sha-256, scram-sha-512
	Username  string
	// Password is asked for at every login, so that it may be replaced.
	Password func() string
}

func (s SASL) mechanism() (sasl.Mechanism, error) {
	login := func(context.Context) (scram.Auth, error) {
		return scram.Auth{User: s.Username, Pass: s.Password()}, nil
	}
	switch s.Mechanism {
	case "plain":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			return plain.Auth{User: s.Username, Pass: s.Password()}, nil
		}), nil
	case "scram-sha-256":
		return scram.Sha256(login), nil
	case "scram-sha-512":
		return scram.Sha512(login), nil
	}
	return nil, fmt.Errorf("sasl mechanism %q is not known; use plain, scram-sha-256 or scram-sha-512", s.Mechanism)
}

// kgo returns the options every client starts from.
func (o ClientOptions) kgo() ([]kgo.Opt, error) {
	limit := o.MaxBatchBytes
	if limit <= 0 {
		limit = DefaultMaxBatchBytes
	}
	opts := []kgo.Opt{kgo.SeedBrokers(o.Brokers...), kgo.ClientID(o.ClientID), kgo.MaxDecompressBatchBytes(limit)}
	if o.Log != nil {
		opts = append(opts, kgo.WithLogger(&logger{o.Log}))
	}
	if o.SASL.Mechanism != "" {
		m, err := o.SASL.mechanism()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	switch {
	case o.Dial != nil:
		opts = append(opts, kgo.Dialer(o.Dial))
	case o.TLS != nil:
		opts = append(opts, kgo.DialTLSConfig(o.TLS))
	}
	return opts, nil
}

// NewClient returns a client for administration and production.
func NewClient(o ClientOptions, extra ...kgo.Opt) (*kgo.Client, error) {
	opts, err := o.kgo()
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(append(opts, extra...)...)
	if err != nil {
		return nil, fmt.Errorf("creating a Kafka client: %w", err)
	}
	return cl, nil
}

// newReader returns a client that reads once, without a group. It has no fetch
// session: one bears fruit over many fetches, and Close races with a fetch that the
// client's own metadata update has just begun (in franz-go 1.22.3: Close looks at the
// session while that fetch, of which it knows nothing, writes to it).
func newReader(o ClientOptions, extra ...kgo.Opt) (*kgo.Client, error) {
	return NewClient(o, append(extra, kgo.DisableFetchSessions())...)
}

// logger hands the client's messages to slog one level lower: what matters to an
// operator is logged by this package itself.
type logger struct{ log *slog.Logger }

func (l *logger) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelWarn
}

func (l *logger) Log(level kgo.LogLevel, msg string, kv ...any) {
	to := slog.LevelDebug
	if level == kgo.LogLevelError {
		to = slog.LevelWarn
	}
	l.log.Log(context.Background(), to, "kafka: "+msg, kv...)
}
