package harness

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// Outside lets the harness, which is made for tests, work for a program: what ends a
// test ends Attempt with an error instead. It belongs to one goroutine.
type Outside struct {
	testing.TB // nil: what is not below is not for programs
	Dir        string
	Ctx        context.Context // nil: context.Background
	cleanups   []func()
}

// fatal is what an Outside panics with.
type fatal struct{ error }

// The methods of testing.TB that the harness uses.

func (t *Outside) Helper()                   {}
func (t *Outside) Name() string              { return "outside" }
func (t *Outside) Failed() bool              { return false }
func (t *Outside) Cleanup(f func())          { t.cleanups = append(t.cleanups, f) }
func (t *Outside) Log(args ...any)           { fmt.Fprintln(os.Stderr, args...) }
func (t *Outside) Logf(f string, a ...any)   { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (t *Outside) Fatal(args ...any)         { panic(fatal{fmt.Errorf("%s", fmt.Sprintln(args...))}) }
func (t *Outside) Fatalf(f string, a ...any) { panic(fatal{fmt.Errorf(f, a...)}) }

// Context returns Ctx.
func (t *Outside) Context() context.Context {
	if t.Ctx == nil {
		return context.Background()
	}
	return t.Ctx
}

// TempDir makes a folder in Dir, or among the machine's temporary ones. It stays.
func (t *Outside) TempDir() string {
	dir, err := os.MkdirTemp(t.Dir, "tmp-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// End runs the cleanups, the last one first.
func (t *Outside) End() {
	for len(t.cleanups) > 0 {
		last := len(t.cleanups) - 1
		f := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		f()
	}
}

// Attempt calls f and turns the end of a "test" into an error.
func Attempt(f func() error) (err error) {
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
