package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports are taken below the range that the kernel hands out to outgoing
// connections, so that a broker that is stopped for a while finds its port free.
const (
	firstPort = 20000
	lastPort  = 32000
)

var taken sync.Map // ports given out by this process

// FreePort returns a loopback port that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	p, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func freePort() (int, error) {
	for range 1000 {
		p := firstPort + rand.IntN(lastPort-firstPort)
		if _, used := taken.LoadOrStore(p, true); used {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
		if err == nil {
			return p, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}
