//go:build failpoints

package failpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Enabled says whether failpoints are compiled in.
const Enabled = true

type point struct {
	action  string
	nth     int // fire at this hit only; 0 = by percent
	percent int
	hits    int
}

var points = sync.OnceValue(func() map[string]*point {
	m := map[string]*point{}
	for spec := range strings.SplitSeq(os.Getenv("APPLIER_FAILPOINTS"), ",") {
		name, action, ok := strings.Cut(strings.TrimSpace(spec), "=")
		if !ok {
			continue
		}
		p := &point{action: action, percent: 100}
		if a, n, ok := strings.Cut(action, "@"); ok {
			p.action = a
			p.nth, _ = strconv.Atoi(n)
		} else if a, n, ok := strings.Cut(action, "%"); ok {
			p.action = a
			p.percent, _ = strconv.Atoi(n)
		}
		m[name] = p
	}
	return m
})

var mu sync.Mutex

func (p *point) fires() bool {
	mu.Lock()
	defer mu.Unlock()
	p.hits++
	if p.nth > 0 {
		return p.hits == p.nth
	}
	return rand.IntN(100) < p.percent
}

// Hit passes the named point.
func Hit(name string) error {
	p := points()[name]
	if p == nil || !p.fires() {
		return nil
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", name, p.action)
	action, arg, _ := strings.Cut(p.action, ":")
	switch action {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "exit":
		os.Exit(86)
	case "sleep":
		if d, err := time.ParseDuration(arg); err == nil {
			time.Sleep(d)
		}
	case "panic":
		panic("failpoint " + name)
	case "error":
		return fmt.Errorf("%w at %s", ErrInjected, name)
	}
	return nil
}
