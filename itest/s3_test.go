//go:build itest

package itest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// onS3 moves a rig's warehouse into a real S3 server; judges read the server's files.
// endpoint is where the daemon goes, "" the server itself.
func (r *rig) onS3(s *harness.S3Server, endpoint string) {
	r.t.Helper()
	if endpoint == "" {
		endpoint = s.Endpoint
	}
	r.Warehouse = filepath.Join(s.Root, "lake", "warehouse")
	require.NoError(r.t, os.MkdirAll(r.Warehouse, 0o755))
	r.store = fmt.Sprintf("{ path: s3://lake/warehouse, s3: { endpoint: %q, path_style: true, access_key: %s, secret_key: %s } }", endpoint, harness.S3User, harness.S3Secret)
	r.configure(r.top)
}

// TestS3_TheRealServerIsABucket runs what every store must do on a real server.
func TestS3_TheRealServerIsABucket(t *testing.T) {
	s := harness.S3(t, "lake")
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestS3_", "../storage/objstore")
	cmd.Env = append(os.Environ(), "APPLIER_TEST_S3="+s.Endpoint, "APPLIER_TEST_S3_USER="+harness.S3User, "APPLIER_TEST_S3_SECRET="+harness.S3Secret)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestS3_ATableInAnObjectStoreIsTheSameForEveryEngine: all kinds of tables, with
// restarts, kills, commands and SQL on it.
func TestS3_ATableInAnObjectStoreIsTheSameForEveryEngine(t *testing.T) {
	s := harness.S3(t, "lake")
	for name, options := range map[string]string{
		"vectors":                     "{}",
		"copy on write":               "{ deletion-vectors.enabled: false }",
		"row tracking, with vectors":  "{ row-tracking.enabled: true }",
		"buckets, with small targets": "{ bucket: 2, bucket-key: id, target-file-size: 1mb }",
	} {
		t.Run(name, func(t *testing.T) {
			topic := newTopic(t, 1)
			r := newRig(t, "", pipe{Topic: topic, Table: "db." + strings.ReplaceAll(topicName(name), "-", "_"), More: "create: { types: { id: BIGINT, v: STRING }, options: " + options + " }"})
			r.onS3(s, "")
			r.session = "2s"
			r.configure("")
			m := newModel([]string{"id", "v"}, []string{"id"})
			for i := range 200 {
				r.feed(m, put(topic, 0, row(i%150, fmt.Sprint("first ", i))))
			}
			p := r.start()
			r.waitApplied(p)
			r.equals(m)
			p.Kill()
			for i := range 50 {
				r.feed(m, del(topic, 0, fmt.Sprintf(`{"id":%d}`, i*2)), put(topic, 0, row(i*3, "second")))
			}
			r.once()
			r.equals(m)
			out := r.must("compact", r.pipes[0].Table, "--full")
			require.NotContains(t, out, "nothing to do")
			r.equals(m)
			_ = r.must("sql", "-e", fmt.Sprintf("UPDATE %s SET v = 'by hand' WHERE id = 148", r.pipes[0].Table))
			m.upsert(row(148, "by hand"))
			r.equals(m)
			r.feed(m, put(topic, 0, row(148, "third")))
			r.once()
			r.equals(m)
			r.proven()
		})
	}
}

// TestCrash_OnAnObjectStore is the crash test on S3.
func TestCrash_OnAnObjectStore(t *testing.T) {
	t.Parallel()
	s := harness.S3(t, "lake")
	seed := uint64(intVariable(t, "CRASH_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	plan := crashPlan(rnd, intVariable(t, "CRASH_CYCLES", 2))
	crashTable(t, rnd, seed, 1_000*len(plan), plan, "{}", func(r *rig) { r.onS3(s, "") })
}
