package admin

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPublic_ServesThreePathsAndNothingElse(t *testing.T) {
	p := newProcess()
	h := publicHandler(testOptions(p))
	for _, tc := range []struct {
		method, path string
		want         int
		body         string
	}{
		{"GET", "/metrics", 200, "applier_test 7"},
		{"HEAD", "/metrics", 200, ""},
		{"POST", "/metrics", 405, ""},
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 200, "ok"},
		{"GET", "/", 404, ""},
		{"GET", "/status", 404, ""},
		{"GET", "/style.css", 404, ""},
		{"GET", "/debug/pprof/", 404, ""},
		{"GET", "/debug/pprof/heap", 404, ""},
		{"GET", "/api/v1/pipelines/orders/offsets", 404, ""},
		{"POST", "/api/v1/pipelines/orders/pause", 404, ""},
		{"GET", "/metrics/..%2fstatus", 404, ""},
	} {
		r := httptest.NewRequest(tc.method, "http://anything.example"+tc.path, nil)
		r.RemoteAddr = "192.0.2.7:1"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, tc.want, w.Code, "%s %s", tc.method, tc.path)
		require.Contains(t, w.Body.String(), tc.body)
	}
	require.Empty(t, p.calls)
}

func TestPublic_ReadyzSaysWhyNotAndHealthzStaysOK(t *testing.T) {
	p := newProcess()
	p.unready = []string{"pipeline orders is rebuilding its index", "kafka is not reachable"}
	h := publicHandler(testOptions(p))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	require.Equal(t, 503, w.Code)
	require.Equal(t, strings.Join(p.unready, "\n")+"\n", w.Body.String())
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
	require.Equal(t, 200, w.Code)
}

// post sends a body to the admin handler from this host.
func post(t *testing.T, p *process, path, contentType, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest("POST", "http://localhost/api/v1/pipelines/"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	newServer(testOptions(p), nil, nil).admin.Handler.ServeHTTP(w, r)
	require.True(t, json.Valid(w.Body.Bytes()) || w.Code == 404 || w.Code == 405, w.Body.String())
	return w.Code, w.Body.String()
}

func TestAdmin_CommandsReachThePipeline(t *testing.T) {
	p := newProcess()
	for _, tc := range []struct {
		path, contentType, body string
		want                    int
		text                    string
	}{
		{"orders/pause", "", "", 200, "{}"},
		{"orders/resume", "", "", 200, "{}"},
		{"orders/flush", "", "", 500, "permission denied"},
		{"unknown/pause", "", "", 404, `no such pipeline`},
		{"orders/pause", "application/json", "{}", 400, "takes no body"},
		{"orders/pause", "", strings.Repeat("x", maxBodyBytes+1), 400, "takes no body"},
		{"orders/drop", "", "", 404, ""},
		{"a%2fb/pause", "", "", 404, "no such pipeline"},
		{"orders/offsets", "application/json", `{"action":"adopt"}`, 409, "the pipeline is running"},
		{"orders/offsets", "application/json; charset=utf-8", `{"action":"set","positions":[{"topic":"t","partition":1,"next":5}]}`, 200, `"next": 5`},
		{"orders/offsets", "application/json", `{"action":"skip","positions":[{"topic":"t","partition":1,"next":9}],"dry_run":true}`, 200, `"next": 9`},
		{"orders/offsets", "text/plain", `{"action":"adopt"}`, 400, "Content-Type"},
		{"orders/offsets", "", `{"action":"adopt"}`, 400, "Content-Type"},
		{"orders/offsets", "application/json", ``, 400, "EOF"},
		{"orders/offsets", "application/json", `{"action":"adopt"}{}`, 400, "follows"},
		{"orders/offsets", "application/json", `{"action":"adopt","x":1}`, 400, "unknown field"},
		{"orders/offsets", "application/json", `{"action":"set","positions":[` + strings.Repeat(" ", maxBodyBytes) + `]}`, 400, "too large"},
	} {
		code, body := post(t, p, tc.path, tc.contentType, tc.body)
		require.Equal(t, tc.want, code, "%s %s: %s", tc.path, tc.body, body)
		require.Contains(t, body, tc.text)
	}
	require.Equal(t, []string{"pause orders", "resume orders", "flush orders", "adopt orders", "set orders", "skip orders"}, p.calls)
	require.EqualValues(t, 5, p.offsets["orders"][0].Next, "a dry run moved the offsets")
}

func TestAdmin_CommandsNeedPOST(t *testing.T) {
	p := newProcess()
	for _, cmd := range []string{"pause", "resume", "flush"} {
		w := ask(testOptions(p), "GET", "http://localhost/api/v1/pipelines/orders/"+cmd, "127.0.0.1:1", nil)
		require.Equal(t, 405, w.Code, cmd)
	}
	require.Empty(t, p.calls)
}

func TestOffsetChange_RefusesWhatNoPipelineCouldAccept(t *testing.T) {
	at := time.Now()
	one := []Position{{"t", 0, 1}}
	for name, tc := range map[string]struct {
		change OffsetChange
		ok     bool
	}{
		"set by position":     {OffsetChange{Action: "set", Positions: one}, true},
		"set by time":         {OffsetChange{Action: "set", Time: at}, true},
		"set both":            {OffsetChange{Action: "set", Positions: one, Time: at}, false},
		"set nothing":         {OffsetChange{Action: "set"}, true}, // the remedy of K-RECREATED
		"skip":                {OffsetChange{Action: "skip", Positions: one}, true},
		"skip nothing":        {OffsetChange{Action: "skip"}, true}, // the remedy of K-GAP
		"skip by time":        {OffsetChange{Action: "skip", Positions: one, Time: at}, false},
		"adopt":               {OffsetChange{Action: "adopt", DryRun: true}, true},
		"adopt with position": {OffsetChange{Action: "adopt", Positions: one}, false},
		"no action":           {OffsetChange{Positions: one}, false},
		"other action":        {OffsetChange{Action: "reset", Positions: one}, false},
		"twice":               {OffsetChange{Action: "set", Positions: []Position{{"t", 0, 1}, {"t", 0, 2}}}, false},
		"two partitions":      {OffsetChange{Action: "set", Positions: []Position{{"t", 0, 1}, {"t", 1, 2}, {"u", 0, 3}}}, true},
		"negative offset":     {OffsetChange{Action: "set", Positions: []Position{{"t", 0, -1}}}, false},
		"negative partition":  {OffsetChange{Action: "set", Positions: []Position{{"t", -1, 1}}}, false},
		"no topic":            {OffsetChange{Action: "set", Positions: []Position{{"", 0, 1}}}, false},
	} {
		err := tc.change.check()
		require.Equal(t, tc.ok, err == nil, "%s: %v", name, err)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
		}
	}
}

func TestStatus_IsJSON(t *testing.T) {
	p := newProcess()
	p.status = Status{Version: "1", Pipelines: []PipelineStatus{{Name: "orders", State: "running", Snapshot: 9007199254740993}}}
	w := ask(testOptions(p), "GET", "http://localhost/status", "127.0.0.1:1", nil)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var got Status
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	require.Equal(t, p.status, got)
	require.Contains(t, w.Body.String(), "9007199254740993")
	require.NotContains(t, w.Body.String(), "last_commit\"")
}

func TestPage_ShowsPipelinesAndEscapesTexts(t *testing.T) {
	p := newProcess()
	const evil = `<script>alert(1)</script>`
	p.status = Status{
		Version: evil, Ready: false, NotReady: []string{evil}, Config: evil, Started: time.Now(), MemoryUsed: 3 << 20, MemoryLimit: 1 << 30,
		Pipelines: []PipelineStatus{{
			Name: "orders", Table: "sales.orders", State: "failed", Halt: &Halt{"K-GAP", evil, "run offsets skip"}, Detail: evil, LastError: evil,
			Snapshot: 42, LagRecords: 1234567, FreshnessSeconds: 90, LastCommit: time.Now().Add(-3 * time.Hour),
			Deletes:    &DeletesStatus{Remembered: 3, ForgottenSince: time.UnixMilli(0), ForgottenUntil: time.UnixMilli(1000)},
			Index:      IndexStatus{Keys: 1000, MemoryBytes: 24000, Progress: 0.25},
			Partitions: []PartitionStatus{{Topic: evil, Partition: 3, Next: 100, Received: 120, End: 121, Note: "held back"}},
		}},
	}
	w := ask(testOptions(p), "GET", "http://localhost/", "127.0.0.1:1", nil)
	body := w.Body.String()
	require.Equal(t, 200, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	require.NotContains(t, body, "<script")
	require.Contains(t, body, "</html>")
	for _, text := range []string{"orders", "sales.orders", "K-GAP", "run offsets skip", "1 234 567", "90s", "3 h ago", "3.0 MiB of 1.0 GiB", "25 %", "deletes from 1970-01-01T00:00:00Z to 1970-01-01T00:00:01Z are forgotten", "not ready", "held back", "42"} {
		require.Contains(t, body, text)
	}
	for _, ref := range regexp.MustCompile(`(?:src|href|action)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		require.True(t, strings.HasPrefix(ref[1], "/") && !strings.HasPrefix(ref[1], "//"), "an asset from elsewhere: %s", ref[1])
	}
	p.status = Status{Ready: true}
	require.Contains(t, ask(testOptions(p), "GET", "http://localhost/", "127.0.0.1:1", nil).Body.String(), "no pipelines")
}

func TestPprof_AnswersOnTheAdminPort(t *testing.T) {
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap", "/debug/pprof/symbol", "/debug/pprof/cmdline"} {
		w := ask(testOptions(newProcess()), "GET", "http://localhost"+path, "127.0.0.1:1", nil)
		require.Equal(t, 200, w.Code, path)
		n, err := io.Copy(io.Discard, w.Body)
		require.NoError(t, err)
		require.NotZero(t, n, path)
	}
}

func TestPage_FormatsNumbersForPeople(t *testing.T) {
	require.Equal(t, []string{"0", "999", "1 000", "-1 234 567", "-12"}, []string{count(0), count(999), count(1000), count(-1234567), count(-12)})
	require.Equal(t, []string{"0 B", "1023 B", "1.0 KiB", "64.0 MiB", "8.0 EiB"},
		[]string{bytesText(0), bytesText(1023), bytesText(1024), bytesText(64 << 20), bytesText(1<<63 - 1)})
	require.Equal(t, []string{"0s", "0.5s", "59s", "5 min", "3 h", "2 d"},
		[]string{seconds(-1), seconds(0.5), seconds(59), seconds(300), seconds(3 * 3600), seconds(48 * 3600)})
	require.Equal(t, "never", ago(time.Time{}))
}

func FuzzReadChange(f *testing.F) {
	for _, s := range []string{
		`{"action":"set","positions":[{"topic":"t","partition":1,"next":5}]}`, `{"action":"adopt"}`, `{"action":"set","time":"2026-11-01T00:00:00Z"}`,
		`{`, `[]`, `null`, `{"action":"set","positions":[{"next":-9223372036854775808}]}`, `{"action":"skip","positions":null}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		change, err := readChange(r)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.NoError(t, change.check())
		for _, p := range change.Positions {
			require.GreaterOrEqual(t, p.Next, int64(0))
		}
	})
}
