package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gate is a writer that waits until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	buf  bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.Write(b)
}

func TestLogWriter_NeverWaitsAndTellsWhatItDropped(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	w := newLogWriter(g)
	line := []byte(strings.Repeat("x", 1023) + "\n")
	for range 4 * logBuffer / len(line) {
		n, err := w.Write(line) // returns although nobody reads
		require.NoError(t, err)
		require.Equal(t, len(line), n)
	}
	close(g.open)
	w.close()
	text := g.buf.String()
	require.Contains(t, text, "log lines were dropped")
	var dropped int
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "applier: ") {
			var n int
			_, err := fmt.Sscanf(l, "applier: %d log lines", &n)
			require.NoError(t, err)
			dropped += n
		}
	}
	require.Equal(t, 4*logBuffer/len(line), dropped+strings.Count(text, "x\n"))
}

func TestLogWriter_KeepsOrderAndTheLastLines(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	w := newLogWriter(g)
	want := ""
	for i := range 1000 {
		fmt.Fprintf(w, "line %d\n", i)
		want += fmt.Sprintf("line %d\n", i)
	}
	w.close()
	require.Equal(t, want, g.buf.String())
}

func TestLogWriter_ADeadReaderDoesNotHoldUpTheEnd(t *testing.T) {
	w := newLogWriter(&gate{open: make(chan struct{})})
	fmt.Fprintln(w, "nobody reads this")
	from := time.Now()
	w.close()
	require.Less(t, time.Since(from), 5*time.Second)
}
