package ingest

import (
	"testing"
	"time"

	"applier/ingest/decode"

	"github.com/stretchr/testify/require"
)

// A table made because "no record carries a schema" keeps its columns for good,
// so nothing else may look like that.
func TestDeriveColumns_NoSchemaOnlyIfKafkaAnswered(t *testing.T) {
	c := newCluster(t, 1)
	const quiet = 50 * time.Millisecond

	_, _, err := DeriveColumns(testContext(t), options(c), topic, quiet)
	require.ErrorIs(t, err, decode.ErrNoSchema)
	require.ErrorContains(t, err, "topic t holds no records yet")

	_, _, err = DeriveColumns(testContext(t), options(c), "missing", quiet)
	requireProblem(t, err, "K-NO-TOPIC")
	require.NotErrorIs(t, err, decode.ErrNoSchema)

	o := options(c)
	o.Brokers = []string{"127.0.0.1:1"}
	_, _, err = DeriveColumns(testContext(t), o, topic, quiet)
	require.ErrorContains(t, err, "reading Kafka metadata")
	require.NotErrorIs(t, err, decode.ErrNoSchema)
}
