// Package failpoint names the points at which tests make the program fail. In
// an ordinary build every call is empty; with the build tag "failpoints" the
// environment variable APPLIER_FAILPOINTS arms them:
//
//	APPLIER_FAILPOINTS="commit/publish=kill@3,commit/data=error"
//
// Actions: kill (SIGKILL of this process), exit (status 86), stop (SIGSTOP of this
// process: it goes on with the SIGCONT of whoever waited for it), error (Hit returns
// ErrInjected), sleep:DURATION, panic; "@n" fires at the n-th hit only, "%p" with
// p per cent probability, otherwise at every hit. A malformed variable ends the
// process at the first Hit: a fault test whose fault never fires would prove nothing.
package failpoint

import "errors"

// ErrInjected is what an armed error action makes Hit return.
var ErrInjected = errors.New("failpoint: injected error")
