package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	testName   = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	makeCall   = regexp.MustCompile("(?:`|&& )make ([a-z][a-z-]*)")
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	proofOf    = regexp.MustCompile("^\\* `([a-z/]+)`: ")
)

// proofs is what a page may name: the tests of each package, whatever their build
// tags, and the targets of the Makefile.
type proofs struct {
	tests   map[string][]string
	targets map[string]bool
}

func proofsOf(t *testing.T) proofs {
	p := proofs{tests: map[string][]string{}, targets: map[string]bool{}}
	dir, files := goFiles(t)
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(dir, f))
		require.NoError(t, err)
		pkg := filepath.ToSlash(filepath.Dir(f))
		for _, m := range testFunc.FindAllStringSubmatch(string(src), -1) {
			p.tests[pkg] = append(p.tests[pkg], m[1])
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "Makefile"))
	require.NoError(t, err)
	for _, m := range makeTarget.FindAllStringSubmatch(string(text), -1) {
		p.targets[m[1]] = true
	}
	return p
}

// has reports whether a test's name begins with a name, in one package or ("") any.
func (p proofs) has(pkg, name string) bool {
	for in, tests := range p.tests {
		if pkg != "" && in != pkg {
			continue
		}
		if slices.ContainsFunc(tests, func(f string) bool { return strings.HasPrefix(f, name) }) {
			return true
		}
	}
	return false
}

// missing lists what a page names and the tree has not. A list item that begins with
// a package, and its continuation lines, names tests of that package.
func (p proofs) missing(page string) (out []string) {
	pkg := ""
	for line := range strings.Lines(page) {
		if m := proofOf.FindStringSubmatch(line); m != nil {
			pkg = m[1]
		} else if !strings.HasPrefix(line, "  ") {
			pkg = ""
		}
		for _, name := range testName.FindAllString(line, -1) {
			if !p.has(pkg, name) {
				out = append(out, strings.TrimSpace(pkg+" "+name))
			}
		}
		for _, m := range makeCall.FindAllStringSubmatch(line, -1) {
			if !p.targets[m[1]] {
				out = append(out, "make "+m[1])
			}
		}
	}
	return out
}

// What the docs call a proof is there: tests, in the packages that are named, and targets.
func TestDocs_NameOnlyTestsAndTargetsThatExist(t *testing.T) {
	p := proofsOf(t)
	for _, name := range []string{"guarantees.md", "security.md"} {
		text, err := os.ReadFile(filepath.Join(root(t), "docs", name))
		require.NoError(t, err)
		require.Greater(t, len(testName.FindAllString(string(text), -1)), 15, name)
		require.Empty(t, p.missing(string(text)), "docs/%s names what does not exist", name)
	}
}

// The check above is one that can fail.
func TestDocs_MissingProofsAreFound(t *testing.T) {
	p := proofsOf(t)
	require.Empty(t, p.missing("* `cmd/applier/internal/tidy`: TestDocs_MissingProofsAreFound,\n  TestThreat_Container\n\nTestFault_E2 is of `itest`: `make test`\n"))
	require.Equal(t, []string{"TestFault_Z9", "FuzzNothingAtAll", "make tests", "make itest-ful"},
		p.missing("TestFault_Z9, FuzzNothingAtAll: `make tests`, `make itest-setup && make itest-ful`, make sense of it\n"))
	require.Equal(t, []string{"merger TestThreat_Container", "merger TestThreat_NoSQLFromData"},
		p.missing("* `merger`: TestThreat_Container,\n  TestThreat_NoSQLFromData\n\nTestThreat_Container\n"))
}

// Each promise says what it needs, where it ends, and how it is proven.
func TestGuarantees_EachPromiseIsWhole(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "guarantees.md"))
	require.NoError(t, err)
	promises := strings.Split(string(text), "\n## ")[1:]
	require.Len(t, promises, 16)
	for _, promise := range promises {
		title, _, _ := strings.Cut(promise, "\n")
		at := 0
		for _, part := range []string{"\n**Needs.** ", "\n**Not promised.** ", "\n**Proof.**", "\n* `", "\n**Run.** ", "\n**Numbers.** "} {
			i := strings.Index(promise[at:], part)
			require.GreaterOrEqual(t, i, 0, "promise %s lacks %q, or has it in another place", title, part)
			at += i
		}
	}
}
