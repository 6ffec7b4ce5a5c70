package main

import (
	"fmt"
	"os"
	"testing"
)

// tb lets the harness, which is made for tests, work for this program: what ends
// a test ends the run with an error instead.
type tb struct {
	testing.TB
	dir      string
	cleanups []func()
}

// fatal is what a tb panics with.
type fatal struct{ error }

func (t *tb) Helper()                   {}
func (t *tb) Name() string              { return "bench" }
func (t *tb) Failed() bool              { return false }
func (t *tb) Cleanup(f func())          { t.cleanups = append(t.cleanups, f) }
func (t *tb) Log(args ...any)           { fmt.Fprintln(os.Stderr, args...) }
func (t *tb) Logf(f string, a ...any)   { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (t *tb) Fatal(args ...any)         { panic(fatal{fmt.Errorf("%s", fmt.Sprintln(args...))}) }
func (t *tb) Fatalf(f string, a ...any) { panic(fatal{fmt.Errorf(f, a...)}) }

func (t *tb) TempDir() string {
	dir, err := os.MkdirTemp(t.dir, "tmp-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// end runs the cleanups, the last one first.
func (t *tb) end() {
	for len(t.cleanups) > 0 {
		last := len(t.cleanups) - 1
		f := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		f()
	}
}

// attempt calls f and turns the end of a "test" into an error.
func attempt(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fatal:
			err = r.error
		default:
			panic(r)
		}
	}()
	return f()
}
