package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/config"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/config.md")

// testEnv is the environment of every golden file.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"HOME":           "/home/tester",
		"KAFKA_PASSWORD": "canary-kafka",
		"ADMIN_TOKEN":    "canary-admin-0123456789",
		"BROKERS_PORT":   "9092",
		"ROWS":           "1_000",
		"PIN":            "false",
		"MEMORY":         "1GiB",
		"EMPTY":          "",
		"BAD_SIZE":       "canary-size",
		"BAD_TOPIC":      "canary topic",
		"DUP":            "canary_twice",
	}[name]
	return v, ok
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run with -update to write it")
	require.Equal(t, string(want), got)
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	return names
}

// showGood is what a good file's golden holds: warnings and the effective
// configuration, with the folder of this package taken out.
func showGood(t *testing.T, c *config.Config) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	require.NoError(t, err)
	var b strings.Builder
	for _, w := range c.Warnings {
		b.WriteString("# warning: " + w.String() + "\n")
	}
	b.WriteString(c.Effective())
	return strings.ReplaceAll(b.String(), dir, "DIR")
}

func TestLoad_GoodFilesGiveTheirEffectiveConfiguration(t *testing.T) {
	for _, name := range files(t, "*.good.yml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			c, err := config.Load(name, testEnv)
			require.NoError(t, err)
			got := showGood(t, c)
			require.NotContains(t, got, "canary")
			golden(t, strings.TrimSuffix(name, ".yml")+".txt", got)
		})
	}
}

func TestLoad_BadFilesGiveEveryProblemWithItsLine(t *testing.T) {
	for _, name := range files(t, "*.bad.yml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			c, err := config.Load(name, testEnv)
			require.Nil(t, c)
			var problems config.Problems
			require.True(t, errors.As(err, &problems), "%v", err)
			require.NotEmpty(t, problems)
			for _, p := range problems {
				require.NotEmpty(t, p.Msg)
				require.NotEmpty(t, p.Hint, p.String())
			}
			require.NotContains(t, err.Error(), "canary", "a value of a reference or a secret was printed")
			golden(t, strings.TrimSuffix(name, ".yml")+".txt", err.Error()+"\n")
		})
	}
}

// An operator may copy the effective configuration into a file.
func TestEffective_LoadsAgainAndGivesTheSame(t *testing.T) {
	for _, name := range files(t, "*.good.yml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			c, err := config.Load(name, testEnv)
			require.NoError(t, err)
			first := strings.ReplaceAll(c.Effective(), "'***'", "sixteen-asterisks")
			again, err := config.Parse(name, []byte(first), testEnv)
			require.NoError(t, err, first)
			require.Equal(t, c.Effective(), again.Effective())
		})
	}
}
