package tidy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goCommand runs the go command in a folder.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("go", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

// module is a module of the program.
type module struct {
	Path, Version, Dir string
}

// modules lists what the program is made of.
func modules(t *testing.T, dir string) []module {
	lines := goCommand(t, dir, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}", "./cmd/applier")
	var out []module
	for line := range strings.Lines(lines) {
		if f := strings.Fields(line); len(f) == 3 {
			out = append(out, module{f[0], f[1], f[2]})
		}
	}
	slices.SortFunc(out, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	out = slices.Compact(out)
	require.Greater(t, len(out), 10)
	return out
}

// licences are recognised by sentences that only they have; all of them are
// permissive. What is not recognised is not allowed.
var licences = []struct {
	name string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`Apache License\s+Version 2\.0, January 2004`)},
	{"MIT", regexp.MustCompile(`Permission\s+is\s+hereby\s+granted,\s+free\s+of\s+charge,\s+to\s+any\s+person\s+obtaining\s+a\s+copy`)},
	{"BSD-3-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms(?s:.*)[Nn]either the name`)},
	{"BSD-2-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify, and(?:/or)? distribute this software`)},
}

// licenceOf finds the licence of a module, which may be that of the module above.
func licenceOf(t *testing.T, m module) string {
	for dir := m.Dir; strings.Contains(dir, "@") || dir == m.Dir; dir = filepath.Dir(dir) {
		for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "License*", "license*"} {
			files, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					continue
				}
				for _, l := range licences {
					if l.text.Match(text) {
						return l.name
					}
				}
			}
		}
	}
	t.Errorf("module %s %s has no licence that is known to be permissive", m.Path, m.Version)
	return "?"
}

// What the program is made of is known, permitted and repeatable.
func TestThreat_SupplyChain(t *testing.T) {
	dir := root(t)
	mods := modules(t, dir)
	t.Run("licences", func(t *testing.T) {
		var b strings.Builder
		b.WriteString("# Licences\n\nThe modules that are compiled into `applier`, and their licences; written by `make gen`, checked by a test. All are permissive.\n\n| module | version | licence |\n|---|---|---|\n")
		for _, m := range mods {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, licenceOf(t, m))
		}
		page := filepath.Join(dir, "docs", "licenses.md")
		if *update {
			require.NoError(t, os.WriteFile(page, []byte(b.String()), 0o644))
			return
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Equal(t, b.String(), string(text), "run: go test ./cmd/applier/internal/tidy -update")
	})
	bin := filepath.Join(t.TempDir(), "applier")
	goCommand(t, dir, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=test", "-o", bin, "./cmd/applier")
	t.Run("bill of materials", func(t *testing.T) {
		out, err := exec.Command(bin, "version", "--sbom").Output()
		require.NoError(t, err)
		var bom struct {
			BomFormat, SpecVersion string
			Metadata               struct {
				Component struct{ Name, Version string }
			}
			Components []struct {
				Name, Version, Purl string
				Hashes              []struct{ Alg, Content string }
			}
		}
		require.NoError(t, json.Unmarshal(out, &bom))
		require.Equal(t, "CycloneDX", bom.BomFormat)
		require.Equal(t, "test", bom.Metadata.Component.Version)
		listed := map[string]string{}
		for _, c := range bom.Components {
			listed[c.Name] = c.Version
			require.Equal(t, "pkg:golang/"+c.Name+"@"+c.Version, c.Purl)
			if c.Name != "std" {
				require.Len(t, c.Hashes, 1, c.Name)
				require.Len(t, c.Hashes[0].Content, 64, c.Name)
			}
		}
		for _, m := range mods {
			require.Equal(t, m.Version, listed[m.Path], m.Path)
		}
		require.Len(t, listed, len(mods)+1, "and nothing else but the standard library")
		// What the binary itself says, which any tool can read.
		for line := range strings.Lines(goCommand(t, dir, "version", "-m", bin)) {
			if f := strings.Fields(line); len(f) >= 3 && f[0] == "dep" {
				require.Equal(t, f[2], listed[f[1]])
			}
		}
	})
	t.Run("go.sum is complete", func(t *testing.T) {
		sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		require.NoError(t, err)
		for _, m := range mods {
			require.Contains(t, string(sums), m.Path+" "+m.Version+" h1:")
		}
	})
	t.Run("reproducible build", func(t *testing.T) {
		// The same tree elsewhere makes the same bytes: no path of a machine is in them.
		elsewhere := filepath.Join(t.TempDir(), "another", "place")
		require.NoError(t, os.MkdirAll(elsewhere, 0o755))
		for _, name := range []string{"batcher", "cmd", "config", "ingest", "merger", "metrics", "storage"} {
			require.NoError(t, os.CopyFS(filepath.Join(elsewhere, name), os.DirFS(filepath.Join(dir, name))))
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(elsewhere, name), b, 0o644))
		}
		again := filepath.Join(elsewhere, "applier")
		goCommand(t, elsewhere, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version=test", "-o", again, "./cmd/applier")
		require.Equal(t, fileHash(t, bin), fileHash(t, again))
	})
}

// make vuln succeeds only if govulncheck ran and found nothing; without its database
// it says that it did not run, and does not succeed.
func TestThreat_SupplyChain_VulnerabilityCheckIsNeverPassedUnrun(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		ok     bool
		notRun bool
	}{
		"nothing found":   {"echo 'No vulnerabilities found.'; exit 0", true, false},
		"something found": {"echo 'Vulnerability #1: GO-2026-0001'; exit 3", false, false},
		"no database":     {"echo 'govulncheck: fetching vulnerabilities: dial tcp: no such host' >&2; exit 1", false, true},
		"does not build":  {"echo 'govulncheck: loading packages' >&2; exit 1", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			fake := filepath.Join(t.TempDir(), "go")
			require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755))
			out, err := exec.Command("make", "-s", "-C", root(t), "vuln", "GO="+fake).CombinedOutput()
			require.Equal(t, c.ok, err == nil, "%s", out)
			require.Equal(t, c.notRun, strings.Contains(string(out), "govulncheck: NOT RUN"), "%s", out)
		})
	}
}

func fileHash(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// Rooms that see records know no SQL: nothing that Kafka says can become a
// statement or an expression.
func TestThreat_NoSQLFromData(t *testing.T) {
	dir := root(t)
	for _, pkg := range []string{"./ingest/...", "./batcher/...", "./storage/...", "./merger/keyindex/...", "./metrics/..."} {
		for line := range strings.Lines(goCommand(t, dir, "list", "-deps", pkg)) {
			dep := strings.TrimSpace(line)
			for _, sql := range []string{"applier/merger/sqlparse", "applier/merger/expr", "applier/merger/clause"} {
				require.NotEqual(t, sql, dep, "%s can read SQL", pkg)
			}
		}
	}
}

// The image is nothing but the program, run by nobody in particular.
func TestThreat_Container(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "cmd", "applier", "Dockerfile"))
	require.NoError(t, err)
	stages := strings.Split(string(text), "\nFROM ")
	last := stages[len(stages)-1]
	require.True(t, strings.HasPrefix(last, "scratch\n"), "no shell, no package manager, no C library")
	require.Contains(t, last, "\nUSER 65532:65532\n")
	require.NotContains(t, last, "\nRUN ")
	require.NotContains(t, last, "\nADD ")
	require.Contains(t, last, "\nENTRYPOINT [\"/applier\"]\n", "no shell form")
	require.Contains(t, stages[0]+stages[1], "CGO_ENABLED=0")
	for line := range strings.Lines(last) {
		if strings.HasPrefix(line, "EXPOSE") {
			require.Equal(t, "EXPOSE 9464\n", line, "the admin port is not offered")
		}
	}
}

// threatTest finds tests of threats.
var threatTest = regexp.MustCompile(`\bTestThreat_[A-Za-z0-9_]+`)

func TestSecurity_EveryThreatNamesItsTest(t *testing.T) {
	dir, files := goFiles(t)
	there := map[string]string{}
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(dir, f))
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (TestThreat_[A-Za-z0-9_]+)\(`).FindAllStringSubmatch(string(src), -1) {
			require.Empty(t, there[m[1]], "%s is in two packages", m[1])
			there[m[1]] = filepath.ToSlash(filepath.Dir(f))
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "docs", "security.md"))
	require.NoError(t, err)
	named := map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| threat ") {
			continue
		}
		rows++
		tests := threatTest.FindAllString(line, -1)
		if len(tests) == 0 {
			require.Contains(t, line, "not built", "a row without a test says why: %s", line)
		}
		for _, name := range tests {
			named[name] = true
			require.NotEmpty(t, there[name], "docs/security.md names %s, which does not exist", name)
			require.Contains(t, line, "`"+there[name]+"`", "%s is in %s", name, there[name])
		}
	}
	require.Greater(t, rows, 15)
	for name := range there {
		require.True(t, named[name], "docs/security.md does not name %s", name)
	}
}
