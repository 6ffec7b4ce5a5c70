// Package catalogue holds the list of faults that this program must survive, and
// checks that each has a test. It has tests only.
package catalogue

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// faults.txt has one fault a line: id, what happens, state, reason; tabs between.
//
//go:embed faults.txt
var faults string

// The states of a row.
const (
	stateTest   = "test"            // TestFault_<id> exists
	stateCannot = "cannot run here" // a Linux machine without Docker cannot make it happen
	stateNot    = "not built"       // what it is about does not exist yet
)

// sections are the rows of each section of the catalogue.
var sections = map[byte]int{'A': 23, 'B': 19, 'C': 21, 'D': 7, 'E': 32, 'F': 16, 'G': 28, 'H': 8, 'I': 8}

type row struct{ id, text, state, reason string }

func rows(t *testing.T) []row {
	var out []row
	for i, line := range strings.Split(strings.TrimSuffix(faults, "\n"), "\n") {
		f := strings.Split(line, "\t")
		require.GreaterOrEqual(t, len(f), 3, "line %d: %q", i+1, line)
		require.LessOrEqual(t, len(f), 4, "line %d: %q", i+1, line)
		r := row{id: f[0], text: f[1], state: f[2]}
		if len(f) == 4 {
			r.reason = f[3]
		}
		out = append(out, r)
	}
	return out
}

var faultTest = regexp.MustCompile(`(?m)^func TestFault_([A-Z]\d+(?:_[A-Z]\d+)*)(_\w*)?\(t \*testing\.T\)`)

// tests finds the functions TestFault_<id> of the whole tree, whatever their build tags.
func tests(t *testing.T) map[string][]string {
	found := map[string][]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		for _, m := range faultTest.FindAllStringSubmatch(string(src), -1) {
			for _, id := range strings.Split(m[1], "_") { // one test may be of several
				found[id] = append(found[id], filepath.Base(path))
			}
		}
		return err
	})
	require.NoError(t, err)
	return found
}

func TestCatalogue_EveryFaultHasATestOrAReason(t *testing.T) {
	found := tests(t)
	seen, perSection := map[string]bool{}, map[byte]int{}
	for _, r := range rows(t) {
		if seen[r.id] {
			t.Errorf("%s is there twice", r.id)
		}
		seen[r.id] = true
		perSection[r.id[0]]++
		switch r.state {
		case stateTest:
			if len(found[r.id]) == 0 {
				t.Errorf("%s (%s) has no function TestFault_%s", r.id, r.text, r.id)
			}
		case stateCannot, stateNot:
			if r.reason == "" {
				t.Errorf("%s (%s) is %q without a reason", r.id, r.text, r.state)
			}
			if len(found[r.id]) > 0 {
				t.Errorf("%s is %q, but %s has a test of it", r.id, r.state, found[r.id][0])
			}
		default:
			t.Errorf("%s has the state %q; write %q, %q or %q", r.id, r.state, stateTest, stateCannot, stateNot)
		}
	}
	require.Equal(t, sections, perSection)
	for id, files := range found {
		if !seen[id] {
			t.Errorf("%s: TestFault_%s is about no fault of faults.txt", files[0], id)
		}
	}
}

// TestCatalogue_Counts prints what CI shows.
func TestCatalogue_Counts(t *testing.T) {
	counts := map[string]map[string]int{}
	for _, r := range rows(t) {
		for _, s := range []string{r.id[:1], "all"} {
			if counts[s] == nil {
				counts[s] = map[string]int{}
			}
			counts[s][r.state]++
			counts[s]["rows"]++
		}
	}
	text := fmt.Sprintf("%-8s %5s %5s %16s %10s\n", "section", "rows", stateTest, stateCannot, stateNot)
	names := []string{}
	for s := range counts {
		names = append(names, s)
	}
	slices.Sort(names)
	for _, s := range names {
		c := counts[s]
		text += fmt.Sprintf("%-8s %5d %5d %16d %10d\n", s, c["rows"], c[stateTest], c[stateCannot], c[stateNot])
	}
	t.Log("\n" + text)
	require.Equal(t, 162, counts["all"]["rows"])
}
