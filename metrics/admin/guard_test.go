package admin

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ask sends a request to the admin handler as if from addr.
func ask(o Options, method, url, addr string, headers map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, nil)
	r.RemoteAddr = addr
	for k, v := range headers {
		if k == "Host" {
			r.Host = v
		}
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	adminHandler(o).ServeHTTP(w, r)
	return w
}

func TestGuard_DecidesWhoMayUseTheAdminPort(t *testing.T) {
	const here, there = "127.0.0.1:5000", "192.0.2.7:5000"
	bearer := map[string]string{"Authorization": "Bearer " + testToken}
	for name, tc := range map[string]struct {
		method, url, addr string
		headers           map[string]string
		noToken           bool // none configured
		want              int
	}{
		"this host":                         {"GET", "http://localhost:9465/status", here, nil, false, 200},
		"this host without a token set":     {"GET", "http://localhost:9465/status", here, nil, true, 200},
		"this host by IPv6":                 {"GET", "http://[::1]:9465/status", "[::1]:5000", nil, false, 200},
		"this host by mapped IPv4":          {"GET", "http://127.0.0.1/status", "[::ffff:127.0.0.1]:5000", nil, false, 200},
		"this host by another loopback":     {"POST", "http://127.5.5.5:1/api/v1/pipelines/orders/pause", "127.9.9.9:5", nil, false, 200},
		"other host":                        {"GET", "http://localhost:9465/status", there, nil, false, 401},
		"other host without a token set":    {"GET", "http://localhost:9465/status", there, nil, true, 403},
		"other host with the token":         {"GET", "http://applier.example:9465/status", there, bearer, false, 200},
		"other host, token in lower case":   {"GET", "http://h/status", there, map[string]string{"Authorization": "bearer " + testToken}, false, 200},
		"other host with a wrong token":     {"GET", "http://localhost/status", there, map[string]string{"Authorization": "Bearer x"}, false, 401},
		"other host with a longer token":    {"GET", "http://localhost/status", there, map[string]string{"Authorization": "Bearer " + testToken + "x"}, false, 401},
		"empty token when none is set":      {"GET", "http://localhost/status", there, map[string]string{"Authorization": "Bearer "}, true, 401},
		"basic auth":                        {"GET", "http://localhost/status", there, map[string]string{"Authorization": "Basic " + testToken}, false, 401},
		"this host with a wrong token":      {"GET", "http://localhost/status", here, map[string]string{"Authorization": "Bearer x"}, false, 401},
		"pprof from another host":           {"GET", "http://localhost/debug/pprof/heap", there, nil, false, 401},
		"command from another host":         {"POST", "http://localhost/api/v1/pipelines/orders/pause", there, nil, false, 401},
		"page from another host":            {"GET", "http://localhost/", there, nil, false, 401},
		"unknown path from another host":    {"GET", "http://localhost/nothing", there, nil, false, 401},
		"through a proxy on this host":      {"GET", "http://localhost/status", here, map[string]string{"X-Forwarded-For": "192.0.2.7"}, false, 401},
		"through a proxy, other header":     {"GET", "http://localhost/status", here, map[string]string{"Forwarded": "for=192.0.2.7"}, false, 401},
		"through a proxy with Via":          {"GET", "http://localhost/status", here, map[string]string{"Via": "1.1 proxy"}, true, 403},
		"DNS rebinding":                     {"GET", "http://evil.example:9465/status", here, nil, false, 421},
		"DNS rebinding of a command":        {"POST", "http://evil.example/api/v1/pipelines/orders/pause", here, nil, false, 421},
		"host name that starts like ours":   {"GET", "http://localhost.evil.example/status", here, nil, false, 421},
		"host name that looks like ours":    {"GET", "http://127.0.0.1.evil.example/status", here, nil, false, 421},
		"empty host":                        {"GET", "/status", here, map[string]string{"Host": ""}, false, 421},
		"command of a foreign page":         {"POST", "http://localhost:9465/api/v1/pipelines/orders/pause", here, map[string]string{"Origin": "https://evil.example"}, false, 403},
		"command of a foreign page, fetch":  {"POST", "http://localhost/api/v1/pipelines/orders/pause", here, map[string]string{"Sec-Fetch-Site": "cross-site"}, false, 403},
		"command of another port's page":    {"POST", "http://localhost:9465/api/v1/pipelines/orders/pause", here, map[string]string{"Origin": "http://localhost:3000"}, false, 403},
		"command of a page without origin":  {"POST", "http://localhost/api/v1/pipelines/orders/pause", here, map[string]string{"Origin": "null"}, false, 403},
		"image in a foreign page":           {"GET", "http://localhost/debug/pprof/profile", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"}, false, 403},
		"link to a profile in a page":       {"GET", "http://localhost/debug/pprof/profile", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}, false, 403},
		"link to the page in a page":        {"GET", "http://localhost/", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}, false, 200},
		"frame of the page in a page":       {"GET", "http://localhost/", here, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "iframe"}, false, 403},
		"our own page":                      {"GET", "http://localhost/style.css", here, map[string]string{"Sec-Fetch-Site": "same-origin"}, false, 200},
		"typed address":                     {"GET", "http://localhost/status", here, map[string]string{"Sec-Fetch-Site": "none"}, false, 200},
		"remote address that is no address": {"GET", "http://localhost/status", "@", nil, false, 401},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess()
			o := testOptions(p)
			if tc.noToken {
				o.Token = ""
			}
			w := ask(o, tc.method, tc.url, tc.addr, tc.headers)
			require.Equal(t, tc.want, w.Code, w.Body.String())
			require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
			require.Equal(t, tc.want == 401, w.Header().Get("WWW-Authenticate") != "")
			require.NotContains(t, w.Body.String(), testToken)
			if tc.want != 200 {
				require.Empty(t, p.calls)
				require.Contains(t, w.Body.String(), `"error"`)
			}
		})
	}
}

func TestGuard_KeepsNoTokenInMemory(t *testing.T) {
	g := newGuard(testToken, nil, nil)
	require.Equal(t, sha256.Sum256([]byte(testToken)), g.token)
}

func TestAdmin_NoPreflightIsAnswered(t *testing.T) {
	w := ask(testOptions(newProcess()), "OPTIONS", "http://localhost/api/v1/pipelines/orders/pause", "127.0.0.1:1",
		map[string]string{"Access-Control-Request-Method": "POST"})
	require.NotEqual(t, http.StatusOK, w.Code)
	for h := range w.Header() {
		require.False(t, strings.HasPrefix(h, "Access-Control-"), h)
	}
}

func TestAdmin_EveryAnswerForbidsFramingSniffingAndCaching(t *testing.T) {
	for _, url := range []string{"http://localhost/", "http://localhost/status", "http://evil.example/", "http://localhost/none"} {
		h := ask(testOptions(newProcess()), "GET", url, "127.0.0.1:1", nil).Header()
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", h.Get("Cache-Control"))
		require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
		require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	}
}
