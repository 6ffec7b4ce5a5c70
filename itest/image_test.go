//go:build itest

package itest

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

const dockerfile = "../cmd/applier/Dockerfile"

// nobody is who the image runs as.
const nobody = 65532

// buildStage does what the Dockerfile's first stage does, on this machine: its RUN
// lines are run as they are, with another folder in place of /out.
func buildStage(t *testing.T) (files string) {
	t.Helper()
	text, err := os.ReadFile(dockerfile)
	require.NoError(t, err)
	files = t.TempDir()
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	var script []string
	for _, run := range regexp.MustCompile(`(?m)^RUN (.*)$`).FindAllStringSubmatch(joined, -1) {
		script = append(script, strings.ReplaceAll(run[1], "/out", files+"/out"))
	}
	require.Len(t, script, 3, "go mod download, go build, folders and users")
	cmd := exec.Command("sh", "-ec", "umask 022\n"+strings.Join(script, "\n"))
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH=", "VERSION=itest")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{"etc/ssl/certs/ca-certificates.crt", "usr/share/zoneinfo"} {
		to := filepath.Join(files, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		out, err := exec.Command("cp", "-rL", "/"+name, to).CombinedOutput()
		require.NoError(t, err, "Debian: apt-get install ca-certificates tzdata\n%s", out)
	}
	return files
}

// tree describes everything below a folder: names, modes, owners by number, sizes, times.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
		case d.IsDir(): // buildah makes the places of mounts, and takes them away
			out[strings.TrimPrefix(path, root)] = info.Mode().String()
		default:
			out[strings.TrimPrefix(path, root)] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	}))
	return out
}

// descendant finds the process of a name below another one.
func descendant(t *testing.T, pid int, name string) int {
	t.Helper()
	for below := []int{pid}; len(below) > 0; below = below[1:] {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", below[0]))
		if err == nil && strings.TrimSpace(string(comm)) == name {
			return below[0]
		}
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", below[0]))
		require.NoError(t, err)
		for _, list := range lists {
			children, _ := os.ReadFile(list)
			for _, child := range strings.Fields(string(children)) {
				n, err := strconv.Atoi(child)
				require.NoError(t, err)
				below = append(below, n)
			}
		}
	}
	t.Fatalf("no process %s runs below %d", name, pid)
	return 0
}

// The image of the Dockerfile, built by buildah, holds a static program and little else.
// As nobody in particular, and without writing to its root, it mirrors a topic.
func TestImage_RunsAsNobodyAndWritesOnlyToItsVolumes(t *testing.T) {
	t.Parallel()
	image := harness.BuildImage(t, dockerfile, buildStage(t))
	c := image.Config(t)
	require.Equal(t, fmt.Sprintf("%d:%[1]d", nobody), c.User)
	require.Equal(t, []string{"/applier"}, c.Entrypoint)
	require.Equal(t, []string{"CMD", "/applier", "healthcheck", "--listen", ":9464"}, c.Healthcheck.Test)
	require.Equal(t, "applier", c.Labels["org.opencontainers.image.title"])
	require.Equal(t, "Apache-2.0", c.Labels["org.opencontainers.image.licenses"])
	require.Equal(t, map[string]any{"9464/tcp": map[string]any{}}, c.ExposedPorts)

	root := image.Root(t)
	program, err := elf.Open(filepath.Join(root, "applier"))
	require.NoError(t, err)
	libs, err := program.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libs)
	for _, p := range program.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "it is not static: it asks for a loader")
	}
	require.NoError(t, program.Close())

	output := func(args ...string) (int, string) {
		p, err := harness.Start(image.Run(nil, append([]string{"/applier"}, args...)...))
		require.NoError(t, err)
		code, err := p.Wait(t.Context())
		require.NoError(t, err)
		return code, p.Output.String()
	}
	code, text := output("version")
	require.Zero(t, code, text)
	require.Contains(t, text, "applier itest (")
	code, text = output("healthcheck", "--listen", ":1")
	require.NotZero(t, code, "nobody is at home: %s", text)

	// What is tried is the image: a broker in memory will do.
	brokers, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "rows"))
	require.NoError(t, err)
	defer brokers.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers.ListenAddrs()...))
	require.NoError(t, err)
	defer cl.Close()
	require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "rows", Value: []byte(`{"id":1,"v":"from the image"}`)}).FirstErr())
	dir := t.TempDir()
	state, warehouse, file := filepath.Join(dir, "state"), filepath.Join(dir, "warehouse"), filepath.Join(dir, "applier.yml")
	for _, d := range []string{state, warehouse} {
		require.NoError(t, os.Mkdir(d, 0o700))
		require.NoError(t, os.Chown(d, nobody, nobody))
	}
	listen := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `version: 1
kafka: { brokers: [%q] }
warehouse: /data
server: { listen: %q, admin: { listen: "127.0.0.1:%d" } }
pipelines:
  p:
    source: { topic: rows, format: json }
    target: db.t
    key: [id]
    create: { types: { id: BIGINT, v: STRING } }
`, brokers.ListenAddrs()[0], listen, harness.FreePort(t)), 0o644))
	before := tree(t, root)
	p, err := harness.Start(image.Run([]string{state + ":/var/lib/applier", warehouse + ":/data", file + ":/etc/applier/applier.yml:ro"},
		append(c.Entrypoint, c.Cmd...)...))
	require.NoError(t, err)
	defer p.Kill()
	require.NoError(t, p.WaitHTTP(t.Context(), "http://"+listen+"/readyz", http.StatusOK), p.Output.Tail(20))
	ref := harness.Ref{Warehouse: warehouse, Table: "db.t"}
	harness.Until(t, patience, "the row", func() (bool, error) {
		if p.Exited() {
			return false, fmt.Errorf("it ended:\n%s", p.Output.Tail(30))
		}
		return len(snapshotIDs(ref)) >= 2, nil
	})
	code, text = output("healthcheck", "--listen", listen)
	require.Zero(t, code, text)
	// buildah, asked to end, would kill it: it is asked itself, as an engine would.
	pid := descendant(t, p.PID(), "applier")
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	code, err = p.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, code, p.Output.Tail(20))
	code, text = harness.ApplierOutput(t.Context(), t, "cat", "db.t", "--warehouse", warehouse, "--format", "jsonl")
	require.Zero(t, code, text)
	require.Contains(t, text, `"v":"from the image"`)
	after := tree(t, root)
	for path, what := range before {
		require.Equal(t, what, after[path], "%s was changed: the image does not run on a read-only root", path)
	}
	places := []string{"/etc/applier", "/etc/applier/applier.yml"} // of a mount
	for path := range after {
		require.True(t, before[path] != "" || slices.Contains(places, path), "%s is new: the image does not run on a read-only root", path)
	}
}
