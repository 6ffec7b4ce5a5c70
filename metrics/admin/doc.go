// Package admin serves HTTP. The public port answers /metrics, /healthz and
// /readyz to anybody, and nothing else. The admin port has the status page,
// /status, /debug/pprof and the commands; it answers this host, and others only
// with a bearer token.
//
// The package knows nothing of pipelines: the application implements Source and
// Control.
package admin
