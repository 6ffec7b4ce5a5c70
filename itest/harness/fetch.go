package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// itestDir is the folder of fetch.sh, java and py in the source tree.
func itestDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// repoDir is the root of the source tree.
func repoDir() string { return filepath.Dir(itestDir()) }

// part is what fetch.sh says of one part: names such as "lib", "classes",
// "python" to paths.
type part map[string]string

var (
	partsMu sync.Mutex
	parts   = map[string]part{} // fetched and verified by this process
)

// fetch makes a part complete in the cache. The first call verifies it, or
// brings it, which takes up to some minutes on a new machine.
func fetch(name string) (part, error) {
	partsMu.Lock()
	defer partsMu.Unlock()
	if p, ok := parts[name]; ok {
		return p, nil
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(itestDir(), "fetch.sh"), name)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("fetching %s: %w\n%s", name, err, stderr.String())
	}
	p := part{}
	for _, line := range strings.Split(stdout.String(), "\n") {
		key, value, ok := strings.Cut(strings.TrimPrefix(line, name+"."), "=")
		if ok {
			p[key] = value
		}
	}
	parts[name] = p
	return p, nil
}

// java returns a part's Java command: JVM flags first, then the class path.
func (p part) java(flags ...string) (path string, args []string) {
	path = "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		path = filepath.Join(home, "bin", "java")
	}
	return path, append(flags, "-cp", p["classes"]+":"+filepath.Join(p["lib"], "*"))
}
