//go:build itest

package itest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"applier/itest/harness"
)

// guarded is a broker with a login and access lists: alice has to be allowed
// everything. The password is in a file.
func guarded(t *testing.T) (j *journal, password string) {
	t.Helper()
	s := harness.NewSecureListener(t, harness.SecureListener{Mechanism: "PLAIN", User: "alice", Password: "right"})
	k := harness.Kafka(t, harness.KafkaOptions{Secure: s, Properties: map[string]string{
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":           "User:ANONYMOUS",
	}})
	j = journalOn(t, k, harness.Topic{Name: "t", Partitions: 2})
	password = filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("right\n"), 0o600))
	text, err := os.ReadFile(j.r.File)
	require.NoError(t, err)
	brokers := func(addrs []string) string { return `brokers: ["` + strings.Join(addrs, `", "`) + `"]` }
	require.Contains(t, string(text), brokers(k.Addrs()))
	with := brokers(k.SecureAddrs()) + `, sasl: { mechanism: plain, username: alice, password: "${file:` + password + `}", allow_plaintext: true }`
	require.NoError(t, os.WriteFile(j.r.File, []byte(strings.Replace(string(text), brokers(k.Addrs()), with, 1)), 0o600))
	return j, password
}

// allow grants alice what a list says, or takes it back.
func (j *journal) allow(grant bool, acl *kadm.ACLBuilder) {
	j.r.t.Helper()
	admin := j.r.kafka.Admin(j.r.t)
	if grant {
		done, err := admin.CreateACLs(j.r.t.Context(), acl)
		require.NoError(j.r.t, err)
		for _, d := range done {
			require.NoError(j.r.t, d.Err)
		}
		return
	}
	done, err := admin.DeleteACLs(j.r.t.Context(), acl)
	require.NoError(j.r.t, err)
	for _, d := range done {
		require.NoError(j.r.t, d.Err)
		require.NotEmpty(j.r.t, d.Deleted)
	}
}

func (j *journal) topicACL() *kadm.ACLBuilder {
	return kadm.NewACLs().Allow("User:alice").AllowHosts("*").Topics(j.topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpRead, kadm.OpDescribe, kadm.OpDescribeConfigs)
}

func (j *journal) groupACL() *kadm.ACLBuilder {
	return kadm.NewACLs().Allow("User:alice").AllowHosts("*").Groups("applier." + j.r.pipes[0].ID).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpRead)
}

// TestFault_E14_E15_ThePasswordIsReplacedAndAccessRevoked share a broker.
func TestFault_E14_E15_ThePasswordIsReplacedAndAccessRevoked(t *testing.T) {
	j, password := guarded(t)
	j.allow(true, j.topicACL())
	j.allow(true, j.groupACL())
	p := j.r.start()
	j.put(20, 0, 1)
	j.r.waitApplied(p)

	for what, acl := range map[string]*kadm.ACLBuilder{"TOPIC_AUTHORIZATION_FAILED": j.topicACL(), "GROUP_AUTHORIZATION_FAILED": j.groupACL()} {
		j.allow(false, acl)
		j.put(10, 0, 1)
		s := j.r.waitHalt(p, "K-ACL")
		require.Contains(t, s.Halt.Message, what)
		if strings.HasPrefix(what, "TOPIC") {
			require.Contains(t, s.Halt.Message, "t")
		} else {
			require.Contains(t, s.Halt.Message, "applier."+j.r.pipes[0].ID)
		}
		require.Contains(t, s.Halt.Remedy, "the pipeline keeps trying")
		j.allow(true, acl)
		j.r.waitRecovered(p)
	}
	harness.MustStop(t, p)

	require.NoError(t, os.WriteFile(password, []byte("canary-wrong\n"), 0o600))
	j.put(10, 0, 1)
	p = j.r.start()
	s := j.r.waitHalt(p, "K-AUTH")
	require.Contains(t, s.Halt.Remedy, "the pipeline keeps trying")
	require.NoError(t, p.WaitHTTP(t.Context(), j.r.Public+"/readyz", 503))
	require.NoError(t, os.WriteFile(password, []byte("right\n"), 0o600))
	j.r.waitRecovered(p)
	harness.MustStop(t, p)
	require.NotContains(t, p.Output.String(), "canary-wrong")
	j.holds()
}
