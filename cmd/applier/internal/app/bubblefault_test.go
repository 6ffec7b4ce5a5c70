//go:build synctests

package app

import (
	"testing"
	"time"
)

const mirror = "    key: [id]\n    batch: { interval: 500ms, idle_flush: 100ms }\n"

func TestBubble_Smoke(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"}, keyed{1, 2, "b"}, keyed{0, 1, "c"})
		b.holds(time.Minute)
		_ = m
	})
}
