//go:build synctests

package app

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"applier/merger"
	"applier/metrics"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// alarmsOf are the alarms a member shows, by code.
func alarmsOf(m *member) map[string]string {
	out := map[string]string{}
	for _, a := range m.app.Status().Pipelines[0].Alarms {
		out[a.Code] = a.Message
	}
	return out
}

// TestFault_E17_AnOpenTransactionIsAnAlarm and never stepped over.
func TestFault_E17_AnOpenTransactionIsAnAlarm(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		before := b.want.texts()
		txn := b.client(kgo.TransactionalID("slow"), kgo.TransactionTimeout(10*time.Minute))
		defer txn.Close()
		require.NoError(t, txn.BeginTransaction())
		open := keyed{0, 2, "in the transaction"}
		require.NoError(t, txn.ProduceSync(context.Background(), open.record()).FirstErr())
		behind := keyed{0, 3, "behind it"}
		b.put(keyed{1, 4, "in another partition"})
		cl := b.client()
		require.NoError(t, cl.ProduceSync(context.Background(), behind.record()).FirstErr())
		cl.Close()
		time.Sleep(time.Minute)
		require.Empty(t, alarmsOf(m), "a minute is nothing yet")
		b.eventually(2*time.Minute, "the alarm", func() bool { return alarmsOf(m)["K-LSO"] != "" })
		require.Contains(t, alarmsOf(m)["K-LSO"], "shop.orders/0: 2 records wait behind offset 1 since")
		require.Contains(t, alarmsOf(m)["K-LSO"], "producer id ")
		require.Equal(t, 1, m.log.count("ERROR", "alarm", "code=K-LSO"), "%s", m.log)
		require.EqualValues(t, 1, testutil.ToFloat64(m.app.metrics.Ingest.Alarms.WithLabelValues("p", "shop.orders", "K-LSO")))
		code, _ := m.ready()
		require.Equal(t, 200, code, "an alarm stops nothing")
		require.Equal(t, append(before, "4 in another partition"), b.rows())
		require.EqualValues(t, 1, b.next()[0])
		require.NoError(t, txn.EndTransaction(context.Background(), kgo.TryAbort))
		b.want.apply(behind)
		b.holds(time.Minute)
		b.eventually(time.Minute, "its end", func() bool { return len(alarmsOf(m)) == 0 })
		require.True(t, m.log.has("the alarm is over", "K-LSO"))
	})
}

// compacted makes the topic a compacted one.
func (b *bubble) compacted(deleteRetention string) {
	b.t.Helper()
	cl := b.client()
	defer cl.Close()
	_, err := kadm.NewClient(cl).AlterTopicConfigs(context.Background(), []kadm.AlterConfig{
		{Name: "cleanup.policy", Value: kadm.StringPtr("compact")}, {Name: "delete.retention.ms", Value: &deleteRetention},
	}, topic)
	require.NoError(b.t, err)
}

// TestFault_E19_TheGapsOfACompactedLogAreNormal.
func TestFault_E19_TheGapsOfACompactedLogAreNormal(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		b.compacted("86400000")
		for _, note := range []string{"a", "b", "c", "d"} {
			b.put(keyed{0, 1, note}, keyed{0, 2, note}, keyed{1, 3, note})
			time.Sleep(time.Minute)
		}
		b.put(keyed{0, 2, ""})
		b.brokers.Compact()
		m := b.join()
		b.holds(time.Minute)
		require.Less(t, m.app.Status().Pipelines[0].Rows.Inserted+m.app.Status().Pipelines[0].Rows.Updated+m.app.Status().Pipelines[0].Rows.Collapsed, int64(12), "nothing was compacted: the test shows nothing")
		require.Empty(t, m.code())
		require.Empty(t, alarmsOf(m))
	})
}

// TestFault_E20_TombstonesThatMayBeGoneAreAnAlarm that stays.
func TestFault_E20_TombstonesThatMayBeGoneAreAnAlarm(t *testing.T) {
	for name, away := range map[string]time.Duration{"in time": 20 * time.Second, "late": 40 * time.Second, "too late": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, mirror, func(b *bubble) {
				b.compacted("60000")
				m := b.join()
				b.put(keyed{0, 1, "a"}, keyed{0, 2, "b"})
				b.holds(time.Minute)
				m.drain()
				b.put(keyed{0, 1, ""})
				time.Sleep(away)
				b.put(keyed{0, 3, "c"})
				m = b.join()
				b.holds(time.Minute)
				time.Sleep(10 * time.Second)
				late := m.log.has("WARN", "tombstones may soon be removed unread", "partition=shop.orders/0")
				require.Equal(t, name == "late", late, "%s", m.log)
				if name != "too late" {
					require.Empty(t, alarmsOf(m))
					return
				}
				require.Contains(t, alarmsOf(m)["K-TOMBSTONES"], "shop.orders/0: 1 offsets from 2 on are older than delete.retention.ms (1m0s)")
				time.Sleep(10 * time.Minute)
				require.NotEmpty(t, alarmsOf(m), "what was missed does not come back")
				require.Equal(t, 1, m.log.count("ERROR", "alarm", "code=K-TOMBSTONES"), "%s", m.log)
			})
		})
	}
}

// TestFault_E20_AFirstLoadOfAnOldLogIsWhole: however old its records are, a compacted
// log that is read from its start misses nothing.
func TestFault_E20_AFirstLoadOfAnOldLogIsWhole(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		b.compacted("60000")
		b.put(keyed{0, 1, "a"}, keyed{0, 2, "b"}, keyed{0, 1, ""})
		time.Sleep(time.Hour)
		m := b.join()
		b.holds(time.Minute)
		time.Sleep(5 * time.Minute)
		require.Empty(t, alarmsOf(m))
		require.False(t, m.log.has("tombstones"))
	})
}

// TestFault_E14_APasswordThatIsReplaced is taken from its file when connections are
// made anew.
func TestFault_E14_APasswordThatIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("admin\n"), 0o600))
	inBubbleAs(t, mirror, scram.Auth{User: "admin", Pass: "admin"}, func(b *bubble) {
		b.sasl = `{ mechanism: scram-sha-256, username: admin, password: "${file:` + file + `}", allow_plaintext: true }`
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		b.replacePassword("another")
		require.NoError(t, os.WriteFile(file, []byte("another\n"), 0o600))
		m.link.cut()
		m.link.repair()
		b.put(keyed{0, 1, "b"}, keyed{1, 2, "c"})
		b.holds(time.Minute)
		require.False(t, m.log.has("pipeline halted"), "%s", m.log)
	}, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "admin", "admin"))
}

// TestFault_E14_AGroupThatCannotBeJoinedShows: standing by because the login fails
// is not well. (These brokers hang up; K-AUTH is what a real one leads to.)
func TestFault_E14_AGroupThatCannotBeJoinedShows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("right\n"), 0o600))
	inBubbleAs(t, mirror, scram.Auth{User: "admin", Pass: "right"}, func(b *bubble) {
		b.sasl = `{ mechanism: scram-sha-256, username: admin, password: "${file:` + file + `}", allow_plaintext: true }`
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		require.NoError(t, os.WriteFile(file, []byte("canary-wrong\n"), 0o600))
		m.link.cut()
		m.link.repair()
		b.put(keyed{0, 1, "b"}, keyed{1, 2, "c"})
		b.eventually(5*time.Minute, "the halt", func() bool { return m.code() == merger.CodeUnavailable })
		code, text := m.ready()
		require.Equal(t, 503, code)
		require.Contains(t, text, "halted with K-UNAVAILABLE")
		require.True(t, m.log.has("pipeline halted", "K-UNAVAILABLE", "the pipeline keeps trying"), "%s", m.log)
		time.Sleep(10 * time.Minute)
		require.Equal(t, merger.CodeUnavailable, m.code())
		require.False(t, m.log.has("canary-wrong"))
		require.NoError(t, os.WriteFile(file, []byte("right\n"), 0o600))
		b.holds(2 * time.Minute)
		b.eventually(time.Minute, "running", func() bool { return m.app.Status().Pipelines[0].State == metrics.StateRunning })
	}, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "admin", "right"))
}

// TestFault_E14_AStartWithAWrongPasswordShows: the client does not come as far as
// the group, which would tell.
func TestFault_E14_AStartWithAWrongPasswordShows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("canary-wrong\n"), 0o600))
	inBubbleAs(t, mirror, scram.Auth{User: "admin", Pass: "right"}, func(b *bubble) {
		b.sasl = `{ mechanism: scram-sha-256, username: admin, password: "${file:` + file + `}", allow_plaintext: true }`
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.eventually(2*time.Minute, "the halt", func() bool { return m.code() == merger.CodeUnavailable })
		code, _ := m.ready()
		require.Equal(t, 503, code)
		require.NoError(t, os.WriteFile(file, []byte("right\n"), 0o600))
		b.holds(2 * time.Minute)
		b.eventually(time.Minute, "running", func() bool { return m.app.Status().Pipelines[0].State == metrics.StateRunning })
		second := b.join() // whose brokers are away for a while, while it stands by
		time.Sleep(10 * time.Second)
		second.link.cut()
		b.eventually(2*time.Minute, "the halt", func() bool { return second.code() == merger.CodeUnavailable })
		second.link.repair()
		b.eventually(2*time.Minute, "standing by", func() bool { return second.app.Status().Pipelines[0].State == metrics.StateStandby })
	}, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "admin", "right"))
}

// replacePassword has the brokers take another password from admin.
func (b *bubble) replacePassword(password string) {
	b.t.Helper()
	cl := b.client()
	defer cl.Close()
	r, err := kadm.NewClient(cl).AlterUserSCRAMs(context.Background(), nil, []kadm.UpsertSCRAM{{User: "admin", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: password}})
	require.NoError(b.t, err)
	require.NoError(b.t, r.Error())
	b.login = scram.Auth{User: "admin", Pass: password}
}
