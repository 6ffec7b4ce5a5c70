package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Image is a container image in a store of its own, made by Debian's buildah, which
// needs neither an engine nor user namespaces. It needs root.
type Image struct {
	program, dir string
	container    string
}

// BuildImage builds the last stage of a Dockerfile. What the stage copies from other
// stages comes from the folder files, as it would lie in those. It ends with the test.
func BuildImage(t testing.TB, dockerfile, files string) *Image {
	t.Helper()
	p, err := fetch("buildah")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	m := &Image{program: p["program"], dir: t.TempDir()}
	last := filepath.Join(m.dir, "Dockerfile")
	if err := os.WriteFile(last, text[strings.LastIndex(string(text), "\nFROM "):], 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = m.buildah("rm", "--all") })
	// Docker's own format: the other one has no health checks.
	if _, err = m.buildah("build", "--isolation", "chroot", "--format", "docker", "--build-context", "build="+files, "-f", last, "-t", "itest", files); err == nil {
		m.container, err = m.buildah("from", "--pull-never", "itest")
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *Image) store(args ...string) []string {
	return append([]string{"--root", filepath.Join(m.dir, "store"), "--runroot", filepath.Join(m.dir, "run"), "--storage-driver", "vfs"}, args...)
}

func (m *Image) buildah(args ...string) (string, error) {
	var stderr strings.Builder
	cmd := exec.Command(m.program, m.store(args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("buildah %s: %w\n%s%s", args[0], err, out, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// ImageConfig is what an image says about itself.
type ImageConfig struct {
	User            string
	Env             []string
	Labels          map[string]string
	ExposedPorts    map[string]any
	Entrypoint, Cmd []string
	Healthcheck     struct{ Test []string }
}

// Config returns it.
func (m *Image) Config(t testing.TB) ImageConfig {
	t.Helper()
	var all struct {
		Docker struct {
			Config ImageConfig `json:"config"`
		}
	}
	text, err := m.buildah("inspect", "--type", "image", "itest")
	if err == nil {
		err = json.Unmarshal([]byte(text), &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all.Docker.Config
}

// Root is the folder that is the container's root.
func (m *Image) Root(t testing.TB) string {
	t.Helper()
	root, err := m.buildah("mount", m.container)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// Run says how buildah runs a command in the image, in the network of this machine and
// with folders of it mounted (FROM:TO or FROM:TO:ro), for Start.
func (m *Image) Run(volumes []string, args ...string) Spec {
	run := m.store("run", "--isolation", "chroot")
	for _, v := range volumes {
		run = append(run, "-v", v)
	}
	return Spec{Name: "applier in its image", Path: m.program, Args: append(append(run, m.container, "--"), args...)}
}
