package keyindex

import (
	"fmt"
	"runtime/debug"
)

// guard runs f, which reads mapped files, and turns a page that cannot be read
// (the file was cut short, the disk failed) into an error instead of a crash.
func guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(interface{ Addr() uintptr }); ok {
			err = fmt.Errorf("reading key sidecar: memory fault at %#x", fault.Addr())
			return
		}
		panic(r)
	}()
	return f()
}
