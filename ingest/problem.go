package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Problem is something about Kafka that a pipeline must not step over. Codes
// are those of the operations manual (K-…, D-ROW, D-DLQ).
type Problem struct {
	Code  string
	Facts string
}

// Error implements error.
func (p *Problem) Error() string { return p.Code + ": " + p.Facts }

func problem(code, format string, a ...any) *Problem {
	return &Problem{code, fmt.Sprintf(format, a...)}
}

// classify turns a client error into a Problem; nil for errors that pass by
// themselves (the client retries them).
func classify(err error, what string) *Problem {
	var dial interface{ Timeout() bool }
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		return problem("K-AUTH", "%s: %v", what, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return problem("K-ACL", "%s: %v", what, err)
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		return problem("K-NO-TOPIC", "%s: %v", what, err)
	case errors.Is(err, kerr.CorruptMessage):
		return problem("K-CORRUPT", "%s: %v", what, err)
	case errors.As(err, &dial) && dial.Timeout():
		return nil
	}
	return nil
}
