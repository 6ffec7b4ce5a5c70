package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/config"
)

const minimal = `version: 1
kafka: { brokers: ["kafka:9092"] }
warehouse: /data/warehouse
pipelines:
  orders:
    source: { topic: shop.public.orders, format: debezium-json }
    target: sales.orders
    key: [order_id]
`

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse(filepath.Join(t.TempDir(), "applier.yml"), []byte(text), testEnv)
	require.NoError(t, err)
	return c
}

func TestLoad_MinimalFileHasTheDocumentedDefaults(t *testing.T) {
	c := parse(t, minimal)
	require.Equal(t, config.Size(512<<20), c.Memory)
	require.Equal(t, ":9464", c.Server.Listen)
	require.Equal(t, "127.0.0.1:9465", c.Server.Admin.Listen)
	require.False(t, c.Server.Admin.Token.IsSet())
	require.Equal(t, config.Log{Level: "info", Format: "text"}, c.Server.Log)
	require.Equal(t, "applier", c.Kafka.ClientID)
	require.Nil(t, c.Kafka.TLS)
	require.Nil(t, c.Kafka.SASL)
	require.Empty(t, c.Warnings)
	require.Equal(t, []string{"orders"}, c.Names())
	require.Equal(t, &config.Pipeline{
		Name: "orders", ID: "orders",
		Source: config.Source{
			Topic:   "shop.public.orders",
			Format:  config.Format{Type: "debezium-json", UnavailableValue: "__debezium_unavailable_value", Decimals: config.DecimalsExact, Binary: "base64"},
			KeyFrom: config.KeyFromRecordKey,
			Start:   config.Start{Position: config.StartEarliest},
		},
		Target: config.Target{Table: "sales.orders"},
		Key:    []string{"order_id"},
		Apply:  config.ApplyMirror, OnTruncate: config.OnTruncatePause,
		Schema: config.TableSchema{Evolve: config.EvolveStrict},
		Policy: config.Policy{
			Batch:   config.Batch{Interval: 10 * time.Second, Rows: 50_000, Bytes: 64 << 20, IdleFlush: 2 * time.Second},
			OnError: config.OnErrorPause, Pin: true, MaxRecordBytes: 16 << 20,
			Maintenance: config.Maintenance{Every: 10 * time.Minute, Rate: 64 << 20}, // and nothing is on
		},
	}, c.Pipelines["orders"])
}

func TestLoad_PipelinesDoNotLeakIntoEachOther(t *testing.T) {
	c := parse(t, minimal+`
  b:
    source: { topic: b, format: { type: json }, start: { offset: { 3: 7 } } }
    target: db.b
    key: [x]
    batch: { rows: 5 }
    columns: { add: { p: kafka.partition } }
  c:
    source: { topics: [c, d], format: debezium-json, start: latest }
    target: db.c
    key: [y]
defaults: { batch: { interval: 1s, idle_flush: 0s } }
`)
	b, o, cc := c.Pipelines["b"], c.Pipelines["orders"], c.Pipelines["c"]
	require.Equal(t, config.Start{Offset: map[int32]int64{3: 7}}, b.Source.Start)
	require.Equal(t, config.Start{Position: config.StartEarliest}, o.Source.Start)
	require.Equal(t, config.Start{Position: config.StartLatest}, cc.Source.Start)
	require.Equal(t, config.Batch{Interval: time.Second, Rows: 5, Bytes: 64 << 20}, b.Batch)
	require.Equal(t, config.Batch{Interval: time.Second, Rows: 50_000, Bytes: 64 << 20}, o.Batch)
	require.Empty(t, o.Columns.Add)
	require.Equal(t, []string{"b"}, b.Source.TopicList())
	require.Equal(t, []string{"c", "d"}, cc.Source.TopicList())
	require.Empty(t, cc.Source.Topic)
	require.Empty(t, b.Source.Format.UnavailableValue)
}

func TestLoad_StartTimeIsRead(t *testing.T) {
	c := parse(t, strings.Replace(minimal, "format: debezium-json", "format: json, start: { time: 2026-11-01T00:00:00+02:00 }", 1))
	got := c.Pipelines["orders"].Source.Start
	require.True(t, got.Time.Equal(time.Date(2026, 10, 31, 22, 0, 0, 0, time.UTC)))
	require.Empty(t, got.Position)
}

func TestLoad_StateDirFollowsTheEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want string
	}{
		"systemd":        {map[string]string{"STATE_DIRECTORY": "/var/lib/applier:/other", "HOME": "/home/a"}, "/var/lib/applier"},
		"xdg":            {map[string]string{"XDG_CACHE_HOME": "/cache", "HOME": "/home/a"}, "/cache/applier"},
		"home":           {map[string]string{"XDG_CACHE_HOME": "relative", "HOME": "/home/a"}, "/home/a/.cache/applier"},
		"nothing at all": {nil, filepath.Join(os.TempDir(), "applier-")},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := config.Parse("/etc/applier.yml", []byte(minimal), func(n string) (string, bool) {
				v, ok := tc.env[n]
				return v, ok
			})
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(c.StateDir, tc.want), c.StateDir)
		})
	}
}

func TestLoad_RelativePathsStartAtTheFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "applier.yml")
	text := strings.Replace(minimal, "/data/warehouse", "../wh", 1) + "state_dir: ./state/x/..\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := config.Load(file, testEnv)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(filepath.Dir(dir), "wh"), c.Warehouse.Path)
	require.Equal(t, filepath.Join(dir, "state"), c.StateDir)
}

func TestLoad_UnreadableFileIsNoProblemOfItsContent(t *testing.T) {
	_, err := config.Load(filepath.Join(t.TempDir(), "nowhere.yml"), testEnv)
	require.ErrorIs(t, err, fs.ErrNotExist)
	var problems config.Problems
	require.False(t, errors.As(err, &problems))
	_, err = config.Load(t.TempDir(), testEnv)
	require.ErrorContains(t, err, "reading the configuration")
}

func TestParse_RefusesAFileThatIsTooLarge(t *testing.T) {
	_, err := config.Parse("a.yml", []byte(strings.Repeat("#", 1<<20+1)), testEnv)
	require.EqualError(t, err, "a.yml: is larger than 1MiB; split it")
}

// A few kilobytes with aliases of aliases stand for millions of values.
func TestParse_AliasBombsAreStopped(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nkafka: { brokers: &k [")
	for i := range 400 {
		b.WriteString("b" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + ":9092, ")
	}
	b.WriteString("] }\nwarehouse: /w\npipelines:\n")
	for i := range 1000 {
		b.WriteString("  p" + strings.Repeat("y", i%50) + string(rune('a'+i/50)) + ": { source: { topics: *k, format: json }, target: a.b, key: *k }\n")
	}
	_, err := config.Parse("a.yml", []byte(b.String()), testEnv)
	require.ErrorContains(t, err, "more than 100000 values")
}

func TestParse_DeepNestingIsRefused(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	_, err := config.Parse("a.yml", []byte("version: "+deep), testEnv)
	require.Error(t, err)
	_, err = config.Parse("a.yml", []byte("a: &a [*a, {x: *a}]\nversion: *a\nkafka: *a\n"), testEnv)
	require.Error(t, err)
}

func TestParse_ReferencesAreReplacedAndEscaped(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"plain": "one", "newline": "one\n", "crlf": "one\r\n", "two": "one\n\n", "empty": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "big"), make([]byte, 64<<10+1), 0o600))
	env := func(name string) (string, bool) { return "<" + name + ">", name != "NO" }
	for _, tc := range []struct{ text, want, problem string }{
		{"${env:A}", "<A>", ""},
		{"x${env:A}y${env:B_1}z", "x<A>y<B_1>z", ""},
		{"$${env:A}", "${env:A}", ""},
		{"$$${env:A}", "$${env:A}", ""},
		{"$a $ {b} }", "$a $ {b} }", ""},
		{"${file:plain}-${file:newline}-${file:crlf}", "one-one-one", ""},
		{"${file:two}", "one\n", ""},
		{"${file:" + filepath.Join(dir, "plain") + "}", "one", ""},
		{"${file:empty}", "", "is empty"},
		{"${file:big}", "", "is larger than 64KiB"},
		{"${file:none}", "", "the file none cannot be read"},
		{"${file:}", "", "neither"},
		{"${env:NO}", "", "NO is not set"},
		{"${env:}", "", "neither"},
		{"${env:a b}", "", "neither"},
		{"${HOME}", "", "neither"},
		{"${env:A", "", "without }"},
		{"a${", "", "without }"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			text := strings.Replace(minimal, "}\nwarehouse", ", client_id: '"+tc.text+"' }\nwarehouse", 1)
			c, err := config.Parse(filepath.Join(dir, "a.yml"), []byte(text), env)
			if tc.problem != "" {
				require.ErrorContains(t, err, tc.problem)
				require.ErrorContains(t, err, "a.yml:2: kafka.client_id: ")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, c.Kafka.ClientID)
		})
	}
}

// What a variable holds is data: it is not searched for references again.
func TestParse_ReferencesAreNotExpandedTwice(t *testing.T) {
	text := strings.Replace(minimal, "}\nwarehouse", ", client_id: '${env:X}' }\nwarehouse", 1)
	c, err := config.Parse("a.yml", []byte(text), func(string) (string, bool) { return "${env:Y}", true })
	require.NoError(t, err)
	require.Equal(t, "${env:Y}", c.Kafka.ClientID)
}

func TestParse_UnicodeAndWindowsLineEndsAreRead(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(strings.Replace(minimal, "order_id", "zähler", 1), "\n", "\r\n")
	c := parse(t, text)
	require.Equal(t, []string{"zähler"}, c.Pipelines["orders"].Key)
}

func FuzzParse(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "*.yml"))
	require.NoError(f, err)
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte("a: &a [*a]\n? [b]\n: *a\n<<: *a\n"))
	f.Add([]byte("version: ${env:\x00}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		env := func(string) (string, bool) { return "v", true }
		c, err := config.Parse("/nowhere/fuzz.yml", data, env)
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
		if err != nil {
			var problems config.Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("not problems: %v", err)
			}
			return
		}
		if _, err := config.Parse("/nowhere/fuzz.yml", []byte(strings.ReplaceAll(c.Effective(), "'***'", "0123456789abcdef")), env); err != nil {
			t.Fatalf("the effective configuration does not load: %v\n%s", err, c.Effective())
		}
	})
}
