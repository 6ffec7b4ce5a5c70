package harness

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitHTTP_WaitsForTheStatusAndNoticesTheEnd(t *testing.T) {
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) < 3 {
			http.Error(w, "index is being built", http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	p := shell(t, "sleep 3600")
	require.NoError(t, p.WaitHTTP(t.Context(), srv.URL, http.StatusOK))
	require.EqualValues(t, 3, calls.Load())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, p.WaitHTTP(ctx, srv.URL, http.StatusTeapot), "last answer: 200")
	p.Kill()
	require.ErrorContains(t, p.WaitHTTP(t.Context(), srv.URL, http.StatusTeapot), "script ended")
}

func TestMetrics_ReadsNamesWithLabels(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprint(w, "# HELP a x\n# TYPE a counter\na 3\nb{pipeline=\"p q\",result=\"committed\"} 1.5e+06\nc +Inf\n\n")
	}))
	defer srv.Close()
	m, err := Metrics(t.Context(), srv.URL+"/metrics")
	require.NoError(t, err)
	require.Equal(t, 3.0, m["a"])
	require.Equal(t, 1.5e6, m[`b{pipeline="p q",result="committed"}`])
	require.Len(t, m, 3)
	_, err = Metrics(t.Context(), srv.URL+"/other")
	require.ErrorContains(t, err, "404")
}
