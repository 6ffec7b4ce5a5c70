package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"

	"applier/itest/harness"

	"github.com/twmb/franz-go/pkg/kgo"
)

// control lets the tutorial break parts, one request at a time.
func (s *stack) control(t *harness.Outside) http.Handler {
	var mu sync.Mutex
	mux := http.NewServeMux()
	handle := func(pattern string, f func(r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if err := harness.Attempt(func() error { return f(r) }); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprintln(w, "done")
		})
	}
	for part, does := range map[string]struct{ stop, start func() error }{
		"kafka":    {func() error { s.kafka.KillNode(0); return nil }, func() error { return s.kafka.StartNode(0) }},
		"connect":  {func() error { s.connect.Kill(); return nil }, func() error { s.connect.Start(t); return nil }},
		"postgres": {func() error { s.pg.Kill(); return nil }, func() error { s.pg.Start(t); return nil }},
		"load":     {func() error { s.load.Kill(); return nil }, func() error { return s.startLoad(t) }},
		"s3":       {func() error { s.s3.Stop(); return nil }, func() error { s.s3.Start(t); return nil }},
	} {
		handle("POST /"+part+"/stop", func(*http.Request) error { return does.stop() })
		handle("POST /"+part+"/start", func(*http.Request) error { return does.start() })
	}
	handle("POST /topics/{name}", func(r *http.Request) error { return s.produce(t, r) })
	handle("DELETE /topics/{name}", func(r *http.Request) error {
		s.kafka.DeleteTopic(t, r.PathValue("name"))
		return nil
	})
	return mux
}

// produce writes the lines of a request's body to a topic.
func (s *stack) produce(t *harness.Outside, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("reading the records: %w", err)
	}
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			s.kafka.Produce(t, &kgo.Record{Topic: r.PathValue("name"), Value: line})
		}
	}
	return nil
}
