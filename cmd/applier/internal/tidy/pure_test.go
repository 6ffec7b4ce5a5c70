package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// coreFiles are the commit loop's decisions: Step and all that it is made of.
var coreFiles = []string{"step.go", "state.go"}

// coreImports are the packages whose functions depend on their arguments alone.
var coreImports = []string{"fmt", "strings", "maps", "applier/ingest/change", "applier/storage/mutant"}

// impurities says what in a file could make two runs differ: a clock, randomness,
// I/O, goroutines, channels, locks, the order of a map, variables of the package.
func impurities(fset *token.FileSet, f *ast.File) (found []string) {
	say := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), what))
	}
	for _, i := range f.Imports {
		if path := strings.Trim(i.Path.Value, `"`); !slices.Contains(coreImports, path) {
			say(i, "imports "+path)
		}
	}
	for _, d := range f.Decls {
		if v, ok := d.(*ast.GenDecl); ok && v.Tok == token.VAR && v.Specs[0].(*ast.ValueSpec).Names[0].Name != "phaseNames" {
			say(d, "a variable of the package")
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			say(n, "goroutines and channels")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				say(n, "goroutines and channels")
			}
		case *ast.RangeStmt:
			// Whatever is not sorted first may be a map.
			if call, ok := n.X.(*ast.CallExpr); !ok || !strings.HasSuffix(selector(call.Fun), ".Sorted") {
				say(n, "ranges over something that is not sorted")
			}
		case *ast.SelectorExpr:
			if s := selector(n); slices.Contains([]string{"maps.All", "maps.Keys", "maps.Values"}, s) {
				say(n, "the order of a map")
			}
		}
		return true
	})
	return found
}

func selector(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return "." + s.Sel.Name
}

// TestCore_IsPure: the same state and event give the same result, in the daemon
// and in the simulation, which call the same Step.
func TestCore_IsPure(t *testing.T) {
	fset := token.NewFileSet()
	for _, name := range coreFiles {
		f, err := parser.ParseFile(fset, filepath.Join(root(t), "merger", name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		require.Empty(t, impurities(fset, f))
	}
}

// TestCore_ThereIsOneStep: nobody but the loop calls it, and tests.
func TestCore_ThereIsOneStep(t *testing.T) {
	dir, files := goFiles(t)
	declared, called := []string{}, []string{}
	for _, name := range files {
		if filepath.Dir(name) != "merger" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "Step" && n.Recv == nil {
					declared = append(declared, filepath.Base(name))
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "Step" {
					called = append(called, filepath.Base(name))
				}
			}
			return true
		})
	}
	require.Equal(t, []string{"step.go"}, declared)
	require.Equal(t, []string{"applier.go"}, called, "Applier.step, which the simulation drives too")
}

// TestCore_ImpuritiesAreFound: the check above is one that can fail.
func TestCore_ImpuritiesAreFound(t *testing.T) {
	for _, c := range []struct{ body, found string }{
		{`import "time"`, "imports time"},
		{`import "math/rand/v2"`, "imports math/rand/v2"},
		{`var n int`, "a variable of the package"},
		{`func f() { go f() }`, "goroutines"},
		{`func f(c chan int) {}`, "goroutines"},
		{`func f() { for range m {} }`, "not sorted"},
		{`func f() { for k := range s.Positions { _ = k } }`, "not sorted"},
		{`func f() { for k := range maps.Keys(m) { _ = k } }`, "order of a map"},
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x\n"+c.body, parser.SkipObjectResolution)
		require.NoError(t, err)
		require.Contains(t, strings.Join(impurities(fset, f), "\n"), c.found, c.body)
	}
}
