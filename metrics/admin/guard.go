package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard decides who may use the admin port.
//
// A request with the token may do everything. Without one it must come from
// this host, and it must not have been made by a web page of another site: a
// browser on this host sends such requests with our loopback address (Host or
// Origin tells), or with the page's own host name that was made to resolve to
// it (DNS rebinding; Host tells).
type guard struct {
	token  [sha256.Size]byte // digest, so that comparing tells nothing of the length
	set    bool
	log    *slog.Logger
	origin *http.CrossOriginProtection
	next   http.Handler
}

func newGuard(token string, log *slog.Logger, next http.Handler) *guard {
	return &guard{
		token: sha256.Sum256([]byte(token)), set: token != "", log: log,
		origin: http.NewCrossOriginProtection(), next: next,
	}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, why := g.refusal(r)
	if code == 0 {
		g.next.ServeHTTP(w, r)
		return
	}
	g.log.Warn("admin request refused", "remote", r.RemoteAddr, "method", r.Method, "reason", why)
	if code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="applier"`)
	}
	writeError(w, code, why)
}

// refusal returns the HTTP status and the reason to refuse r with, 0 if none.
func (g *guard) refusal(r *http.Request) (int, string) {
	if auth := r.Header.Get("Authorization"); auth != "" {
		if g.valid(auth) {
			return 0, ""
		}
		return http.StatusUnauthorized, "the token is wrong"
	}
	switch {
	case !fromThisHost(r) && g.set:
		return http.StatusUnauthorized, "requests from other hosts need the token of server.admin.token"
	case !fromThisHost(r):
		return http.StatusForbidden, "requests from other hosts need a token, and server.admin.token is not set"
	case !loopbackName(r.Host):
		return http.StatusMisdirectedRequest, "the Host header names another host; use localhost or 127.0.0.1"
	case g.origin.Check(r) != nil || foreignPage(r):
		return http.StatusForbidden, "the request comes from a page of another site"
	}
	return 0, ""
}

// valid compares a bearer token in constant time.
func (g *guard) valid(auth string) bool {
	scheme, token, ok := strings.Cut(auth, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") || !g.set {
		return false
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// fromThisHost reports whether the request was made on this host. One that came
// through a proxy was not, whatever the address says.
func fromThisHost(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// loopbackName reports whether a Host header names this host in a way that no
// DNS server can answer for.
func loopbackName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// foreignPage reports whether a page of another site makes the request, except
// for following a link to the status page.
func foreignPage(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.Method != http.MethodGet || r.URL.Path != "/" || r.Header.Get("Sec-Fetch-Dest") != "document"
}
