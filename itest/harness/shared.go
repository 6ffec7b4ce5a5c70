package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// startTimeout bounds a judge's start, on a machine that is busy with others.
const startTimeout = 3 * time.Minute

// warm holds what a test binary shares among its tests.
var warm struct {
	mu      sync.Mutex
	dir     string
	closers []func()
	peers   map[string]*client
	kafka   *Cluster
}

// Main runs the tests and then ends everything that they shared. Use it as
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
func Main(m *testing.M) int {
	defer Close()
	return m.Run()
}

// Close ends everything shared; a later use starts it anew.
func Close() {
	warm.mu.Lock()
	defer warm.mu.Unlock()
	for i := len(warm.closers) - 1; i >= 0; i-- {
		warm.closers[i]()
	}
	if warm.dir != "" && os.Getenv("ITEST_LOGS") == "" {
		os.RemoveAll(warm.dir)
	}
	warm.closers, warm.peers, warm.kafka, warm.dir = nil, nil, nil, ""
}

// workDir is the test binary's own folder for logs and builds. ITEST_LOGS names
// one that is kept. Callers hold warm.mu.
func workDir() (string, error) {
	if warm.dir != "" {
		return warm.dir, nil
	}
	dir, err := os.Getenv("ITEST_LOGS"), error(nil)
	if dir == "" {
		dir, err = os.MkdirTemp("", "applier-itest-")
	} else {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("making a folder for logs: %w", err)
	}
	warm.dir = dir
	return dir, nil
}

// sharedPeer returns the warm judge of that name, starting it when there is none
// or the last one died.
func sharedPeer(t testing.TB, name string, spec func(dir string) (Spec, error)) Peer {
	t.Helper()
	warm.mu.Lock()
	defer warm.mu.Unlock()
	if c := warm.peers[name]; c != nil && c.alive() {
		return Peer{c}
	}
	c, err := startPeer(name, spec)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if warm.peers == nil {
		warm.peers = map[string]*client{}
	}
	warm.peers[name] = c
	warm.closers = append(warm.closers, c.close)
	return Peer{c}
}

func startPeer(name string, spec func(dir string) (Spec, error)) (*client, error) {
	dir, err := workDir()
	if err != nil {
		return nil, err
	}
	s, err := spec(dir)
	if err != nil {
		return nil, err
	}
	s.Name, s.Log = name, filepath.Join(dir, name+".log")
	s.Env = append(s.Env, "TMPDIR="+dir) // what it spills goes with the folder
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return dial(ctx, s)
}
