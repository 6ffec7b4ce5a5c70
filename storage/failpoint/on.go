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

// Variable is the environment variable that arms failpoints.
const Variable = "APPLIER_FAILPOINTS"

// point is one armed failpoint.
type point struct {
	action  string        // kill, exit, stop, error, sleep, panic
	sleep   time.Duration // sleep only
	nth     int           // fire at this hit only; 0 = by percent
	percent int

	mu   sync.Mutex
	hits int
}

var points = sync.OnceValue(func() map[string]*point {
	m, err := parse(os.Getenv(Variable))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Variable, err)
		os.Exit(2)
	}
	return m
})

// parse reads the value of the environment variable.
func parse(text string) (map[string]*point, error) {
	m := map[string]*point{}
	for spec := range strings.SplitSeq(text, ",") {
		if spec = strings.TrimSpace(spec); spec == "" {
			continue
		}
		name, rule, ok := strings.Cut(spec, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not of the form name=action", spec)
		}
		if m[name] != nil {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		p, err := parseRule(rule)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", spec, err)
		}
		m[name] = p
	}
	return m, nil
}

func parseRule(rule string) (*point, error) {
	p := &point{percent: 100}
	action, n, ok := strings.Cut(rule, "@")
	if ok {
		var err error
		if p.nth, err = strconv.Atoi(n); err != nil || p.nth < 1 {
			return nil, fmt.Errorf("%q is no number of a hit", n)
		}
	} else if action, n, ok = strings.Cut(rule, "%"); ok {
		var err error
		if p.percent, err = strconv.Atoi(n); err != nil || p.percent < 0 || p.percent > 100 {
			return nil, fmt.Errorf("%q is no percentage", n)
		}
	}
	if d, ok := strings.CutPrefix(action, "sleep:"); ok {
		var err error
		if p.sleep, err = time.ParseDuration(d); err != nil {
			return nil, err
		}
		action = "sleep"
	} else if action == "sleep" {
		return nil, fmt.Errorf("sleep needs a duration, as in sleep:100ms")
	}
	switch action {
	case "kill", "exit", "stop", "error", "panic", "sleep":
		p.action = action
		return p, nil
	}
	return nil, fmt.Errorf("%q is none of kill, exit, stop, error, sleep:DURATION, panic", action)
}

func (p *point) fires() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hits++
	if p.nth > 0 {
		return p.hits == p.nth
	}
	return rand.IntN(100) < p.percent
}

// stopGrace is how long this thread may run on until the signal, which any thread
// may be the one to take, stops all of them.
const stopGrace = 50 * time.Millisecond

// Armed reports whether a fault is set up at the named point.
func Armed(name string) bool { return points()[name] != nil }

// Hit passes the named point.
func Hit(name string) error {
	p := points()[name]
	if p == nil || !p.fires() {
		return nil
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", name, p.action)
	switch p.action {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "exit":
		os.Exit(86)
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(stopGrace)
	case "sleep":
		time.Sleep(p.sleep)
	case "panic":
		panic("failpoint " + name)
	case "error":
		return fmt.Errorf("%w at %s", ErrInjected, name)
	}
	return nil
}
