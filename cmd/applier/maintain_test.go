package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// golden copies a golden table into a warehouse of its own.
func golden(t *testing.T, fixture, table string) (warehouse string) {
	t.Helper()
	warehouse = t.TempDir()
	from := filepath.Join("../../storage/paimon/testdata/golden", fixture, "warehouse", fixture+".db", table)
	require.NoError(t, os.CopyFS(filepath.Join(warehouse, fixture+".db", table), os.DirFS(from)))
	return warehouse
}

// command runs applier and returns what it printed.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(t, args...)
	require.NoError(t, err, out)
	return out
}

func TestMaintenance_ChangesFilesAndNotRows(t *testing.T) {
	for _, c := range []struct{ fixture, table string }{
		{"partitions_dv", "t"},
		{"row_tracking", "t"},
		{"row_tracking_cow", "t"},
		{"spec_cow", "my_table"},
		{"buckets_cow", "dv"},
		{"nested_dv", "t"},
		{"evolved_dv", "t"},
		{"bitmap64", "t"},
		{"many_commits", "t"},
	} {
		t.Run(c.fixture, func(t *testing.T) {
			w, name := golden(t, c.fixture, c.table), c.fixture+"."+c.table
			rows := func() string { return must(t, "cat", name, "--warehouse", w, "--format", "jsonl") }
			before := rows()
			dry := must(t, "compact", name, "--warehouse", w, "--full", "--dry-run")
			require.Regexp(t, `^\d+ of \d+ files \(.*\) would become \d+; \d+ deleted rows would be purged\n$`, dry)
			out := must(t, "compact", name, "--warehouse", w, "--full")
			if regexp.MustCompile(`^0 of`).MatchString(dry) {
				require.Equal(t, "nothing to do\n", out)
			} else {
				require.Regexp(t, `^\d+ files \(.*\) became \d+ \(.*\), \d+ deleted rows purged: snapshot \d+\n$`, out)
			}
			require.ElementsMatch(t, bytes.Split([]byte(before), []byte("\n")), bytes.Split([]byte(rows()), []byte("\n")))

			out = must(t, "expire", name, "--warehouse", w, "--retain-min", "1", "--retain-time", "0s", "--dry-run")
			require.Regexp(t, `would be removed|nothing to do`, out)
			must(t, "expire", name, "--warehouse", w, "--retain-min", "1", "--retain-time", "0s")
			require.ElementsMatch(t, bytes.Split([]byte(before), []byte("\n")), bytes.Split([]byte(rows()), []byte("\n")))
			again := must(t, "expire", name, "--warehouse", w, "--retain-min", "1", "--retain-time", "0s")
			require.Regexp(t, `^nothing to do: `, again)
			require.Equal(t, "0 files (0 B) deleted\n", must(t, "orphans", name, "--warehouse", w))
		})
	}
}

func TestMaintenance_BadFlagsSayWhatToGive(t *testing.T) {
	w := golden(t, "partitions_dv", "t")
	for _, c := range [][]string{
		{"compact", "--deleted-ratio", "2", "a share between 0 and 1"},
		{"expire", "--retain-min", "5", "--retain-max", "2", "at most 2 snapshots cannot stay if 5 stay at least"},
		{"expire", "--min-age", "-1s", "no snapshot is younger than that"},
		{"orphans", "--older-than", "1m", "give 1h0m0s or more"},
	} {
		args := append([]string{c[0], "partitions_dv.t", "--warehouse", w}, c[1:len(c)-1]...)
		_, err := command(t, args...)
		require.ErrorContains(t, err, c[len(c)-1])
	}
	_, err := command(t, "compact", "partitions_dv.t")
	require.ErrorContains(t, err, "say where the table is")
	refused := golden(t, "refused", "pk")
	_, err = command(t, "compact", "refused.pk", "--warehouse", refused)
	require.ErrorContains(t, err, "primary key")
}

// A writer that hangs may be about to publish a snapshot with the id of a young one,
// so these stay, unless the operator says that nobody writes.
func TestExpire_KeepsYoungSnapshotsUnlessToldOtherwise(t *testing.T) {
	w := t.TempDir()
	statement := func(s string) { must(t, "sql", "--warehouse", w, "-e", s) }
	statement("CREATE DATABASE shop")
	statement("CREATE TABLE shop.t (id BIGINT)")
	for i := range 4 {
		statement(fmt.Sprintf("INSERT INTO shop.t VALUES (%d)", i))
	}
	all := []string{"expire", "shop.t", "--retain-min", "1", "--retain-max", "1", "--retain-time", "0s"}
	at := func(more ...string) []string { return append(append(slices.Clone(all), "--warehouse", w), more...) }
	require.Equal(t, "nothing to do: it is younger than 1h0m0s, and a writer that hangs may be about to publish one with its id\n", must(t, at()...))

	file := filepath.Join(t.TempDir(), "applier.yml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "version: 1\nkafka: { brokers: [\"kafka:9092\"] }\nwarehouse: %q\nstuck_after: 7m\npipelines: { p: { source: { topic: t, format: json }, target: shop.t, key: [id] } }\n", w), 0o600))
	require.Contains(t, must(t, append(slices.Clone(all), "-c", file)...), "it is younger than 7m0s")

	require.Regexp(t, `^snapshots 1 to 3 would be removed, `, must(t, at("--min-age", "0s", "--dry-run")...))
	require.Regexp(t, `^snapshots 1 to 3 removed, `, must(t, at("--min-age", "0s")...))
	require.Equal(t, "{\"id\":0}\n{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n", must(t, "cat", "shop.t", "--warehouse", w, "--format", "jsonl"))
}

func TestHumanSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "0.977 KiB", 1 << 20: "1 MiB", 1234567890: "1.15 GiB"} {
		require.Equal(t, want, humanSize(n))
	}
}
