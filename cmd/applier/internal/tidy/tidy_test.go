// Package tidy checks the tree as a whole: which way imports point, how long
// files and functions are, and that pages in docs/ say what the code says. It
// has tests only.
package tidy

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"applier/merger"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/")

// root is the module's folder.
func root(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	require.NoError(t, err)
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// goFiles lists the tree's Go files, relative to the root.
func goFiles(t *testing.T) (dir string, files []string) {
	dir = root(t)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") && path != dir) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") {
			rel, err := filepath.Rel(dir, path)
			files = append(files, rel)
			return err
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(files), 100)
	return dir, files
}

// allowed says which of our packages each room may import: a prefix stands for
// the room and what is below it. What is not listed may import nothing of ours.
var allowed = map[string][]string{
	"config":            nil,
	"metrics":           {"metrics"},
	"storage/types":     nil,
	"storage/failpoint": nil,
	"storage/mutant":    nil,
	"storage/objstore":  {"storage/failpoint", "storage/mutant", "storage/objstore"},
	"storage/paimon":    {"storage/types", "storage/mutant", "storage/objstore", "storage/paimon"},
	"storage/catalog":   {"storage/types", "storage/objstore", "storage/paimon"},
	"ingest":            {"ingest", "storage/types", "storage/mutant"},
	"ingest/change":     {"storage/types"},
	"ingest/decode":     {"ingest/change", "storage/types"},
	"batcher":           {"ingest/change", "storage/types"},
	"merger":            {"merger", "batcher", "ingest/change", "storage"},
	"merger/keyindex":   {"storage/types"},
	"cmd/applier":       {"cmd", "config", "metrics", "ingest", "batcher", "merger", "storage"},
	"itest":             {"itest", "storage/types", "storage/paimon", "ingest/decode", "ingest/change"},
	"itest/bench":       {"itest/harness", "ingest", "batcher", "merger/keyindex", "merger/compact", "storage"},
}

// roomOf finds the longest listed room of a package.
func roomOf(pkg string) string {
	best := ""
	for room := range allowed {
		if (pkg == room || strings.HasPrefix(pkg, room+"/")) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

func TestImports_PointDown(t *testing.T) {
	dir, files := goFiles(t)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		pkg := filepath.ToSlash(filepath.Dir(f))
		room := roomOf(pkg)
		require.NotEmpty(t, room, "%s belongs to no room", f)
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range parsed.Imports {
			path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "applier/")
			if !ours || path == pkg {
				continue
			}
			ok := slices.ContainsFunc(allowed[room], func(a string) bool { return path == a || strings.HasPrefix(path, a+"/") })
			if !ok {
				t.Errorf("%s imports applier/%s: imports point down (docs/architecture.md)", f, path)
			}
		}
	}
}

// Limits of size; what is above them today may only shrink.
const (
	maxFileLines     = 800
	maxFunctionLines = 70
)

func TestSizes_FilesAndFunctionsStaySmall(t *testing.T) {
	dir, files := goFiles(t)
	long, functions := 0, 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(dir, f))
		require.NoError(t, err)
		if n := strings.Count(string(src), "\n"); n > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: split it by responsibility", f, n, maxFileLines)
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, f, src, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			fn, ok := n.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				return true
			}
			functions++
			if lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; lines > maxFunctionLines {
				long++
				t.Logf("%s: %s has %d lines", f, fn.Name.Name, lines)
			}
			return true
		})
	}
	if long*100 > functions*3 {
		t.Errorf("%d of %d functions have more than %d lines, more than 3 per cent", long, functions, maxFunctionLines)
	}
}

// codesText is the generated part of docs/operations.md.
func codesText() string {
	var b strings.Builder
	for _, c := range merger.Codes() {
		b.WriteString("### " + string(c.Code) + "\n\n" + c.Means + "\n\n**What to do.** " + c.Do + "\n\n")
		if c.Alarm {
			b.WriteString("This is an alarm: the pipeline goes on.\n\n")
		}
		if c.Retries {
			b.WriteString("The pipeline keeps trying and goes on by itself when the cause is gone.\n\n")
		}
	}
	return b.String()
}

func TestOperations_ExplainsEveryHaltCode(t *testing.T) {
	path := filepath.Join(root(t), "docs", "operations.md")
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	const begin, end = "<!-- generated: halt codes -->\n", "<!-- end -->"
	from, to := strings.Index(string(page), begin), strings.Index(string(page), end)
	require.True(t, from >= 0 && to > from, "docs/operations.md lacks the markers")
	want := string(page[:from]) + begin + "\n" + codesText() + string(page[to:])
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run: go test ./cmd/applier/internal/tidy -update")
}

// docs/compatibility.md has a row for each code with which a table is refused, and for
// no other.
func TestCompatibility_ListsEveryRefusal(t *testing.T) {
	src, err := os.ReadFile(filepath.Join(root(t), "storage", "paimon", "refuse.go"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "compatibility.md"))
	require.NoError(t, err)
	var codes, rows []string
	for _, m := range regexp.MustCompile(`(?m)^\tCode\w+ +Code = "(\w+)"$`).FindAllStringSubmatch(string(src), -1) {
		codes = append(codes, m[1])
	}
	_, section, found := strings.Cut(string(page), "## Tables that are refused\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(section, -1) {
		rows = append(rows, m[1])
	}
	require.GreaterOrEqual(t, len(codes), 20)
	require.ElementsMatch(t, codes, rows)
}

// codeName finds halt codes in prose.
var codeName = regexp.MustCompile(`\b[TKDCIP]-[A-Z]{2,}(-[A-Z]+)*\b`)

func TestDocs_NameOnlyHaltCodesThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, c := range merger.Codes() {
		known[string(c.Code)] = true
	}
	pages, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	require.NoError(t, err)
	for _, p := range append(pages, filepath.Join(root(t), "README.md")) {
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		for _, c := range codeName.FindAllString(string(text), -1) {
			if !known[c] {
				t.Errorf("%s names the code %s, which does not exist", filepath.Base(p), c)
			}
		}
	}
}

func TestTree_NamesNoPathOfOneMachine(t *testing.T) {
	dir, files := goFiles(t)
	machine := regexp.MustCompile(`"/(work|farm|root)/`)
	for _, f := range files {
		src, err := os.ReadFile(filepath.Join(dir, f))
		require.NoError(t, err)
		if m := machine.Find(src); m != nil && !strings.HasSuffix(f, "tidy_test.go") {
			t.Errorf("%s names %s", f, m)
		}
	}
}
