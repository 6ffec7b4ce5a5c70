//go:build itest

package itest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// TestSecure_TheDaemonReadsThroughTLSAndSASL: client certificates with each way to
// log in, the password in the environment; a wrong one is K-AUTH, and no output
// ever shows it.
func TestSecure_TheDaemonReadsThroughTLSAndSASL(t *testing.T) {
	for _, mechanism := range []string{"", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run("SASL "+mechanism, func(t *testing.T) {
			const password = "s3cret-of-alice"
			s := harness.NewSecureListener(t, harness.SecureListener{TLS: true, ClientAuth: true, Mechanism: mechanism, User: "alice", Password: password})
			r := newRig(t, "", pipe{Topic: "t", More: "create: { types: { id: BIGINT, v: STRING } }"})
			plain := r.kafka.Addrs()
			r.kafka = harness.Kafka(t, harness.KafkaOptions{Secure: s})
			r.kafka.CreateTopic(t, harness.Topic{Name: "t", Partitions: 2})
			m := newModel([]string{"id", "v"}, []string{"id"})
			for id := 1; id <= 5; id++ {
				rec := put("t", int32(id%2), row(id, "x"))
				m.apply(rec)
				r.kafka.Produce(t, rec)
			}
			r.secure(s, plain, mechanism)
			p := r.start(harness.Run{Env: []string{"KAFKA_PASSWORD=" + password}})
			r.waitApplied(p)
			harness.MustStop(t, p)
			r.holds(m)
			require.NotContains(t, p.Output.String(), password)
			if mechanism == "" {
				return
			}
			p = r.start(harness.Run{Env: []string{"KAFKA_PASSWORD=not-" + password}})
			require.NoError(t, p.WaitOutput(t.Context(), "SASL_AUTHENTICATION_FAILED"))
			_, err := p.Stop(patience)
			require.NoError(t, err)
			require.NotContains(t, p.Output.String(), password)
		})
	}
}

// secure has the configuration use the secure listener instead of the plain one.
func (r *rig) secure(s *harness.SecureListener, plain []string, mechanism string) {
	r.t.Helper()
	text, err := os.ReadFile(r.File)
	require.NoError(r.t, err)
	brokers := func(addrs []string) string { return `brokers: ["` + strings.Join(addrs, `", "`) + `"]` }
	with := fmt.Sprintf("%s, tls: { ca: %s, cert: %s, key: %s }", brokers(r.kafka.SecureAddrs()), s.CAFile, s.CertFile, s.KeyFile)
	if mechanism != "" {
		with += fmt.Sprintf(`, sasl: { mechanism: %s, username: %s, password: "${env:KAFKA_PASSWORD}" }`, strings.ToLower(mechanism), s.User)
	}
	require.Contains(r.t, string(text), brokers(plain))
	require.NoError(r.t, os.WriteFile(r.File, []byte(strings.Replace(string(text), brokers(plain), with, 1)), 0o600))
}
