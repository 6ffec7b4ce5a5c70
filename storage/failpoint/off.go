//go:build !failpoints

package failpoint

// Enabled says whether failpoints are compiled in.
const Enabled = false

// Hit passes the named point.
func Hit(string) error { return nil }

// Armed reports whether a fault is set up at the named point.
func Armed(string) bool { return false }
