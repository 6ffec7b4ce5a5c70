package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"applier/config"
	"applier/metrics/admin"

	"github.com/stretchr/testify/require"
)

// output collects everything a process says.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// loud runs the program with everything logged, in both formats.
func (w *world) loud(out *output) *running {
	h := startedHandler{Handler: slog.DiscardHandler, once: new(sync.Once), admin: make(chan string, 1)}
	all := &slog.HandlerOptions{Level: slog.LevelDebug}
	r := &running{commits: make(chan commit, 100)}
	var err error
	r.app, err = New(w.cfg, Options{Log: slog.New(slog.NewMultiHandler(h, slog.NewTextHandler(out, all), slog.NewJSONHandler(out, all))), Committed: r.committed})
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.app.Run(ctx, context.Background()) }()
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(w.t, take(w.t, done))
		})
	}
	w.t.Cleanup(r.stop)
	r.admin = take(w.t, h.admin)
	return r
}

// get reads a page of the admin or the public port.
func get(t *testing.T, addr, path string) string {
	resp, err := http.Get("http://" + addr + path)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

// secretsOf are the paths of all secrets in a configuration: of a new one this test
// knows nothing until it is set below.
func secretsOf(t reflect.Type, path string, out *[]string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t == reflect.TypeFor[config.Secret]() {
		*out = append(*out, path)
		return
	}
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[config.Config]().PkgPath() {
		return
	}
	for f := range t.Fields() {
		secretsOf(f.Type, path+"."+f.Name, out)
	}
}

// A secret of the configuration is in nothing that the process says: logs of all
// levels in both formats, errors, /status, /metrics, the page, the configuration
// printed, panics.
func TestThreat_SecretsStayInside(t *testing.T) {
	const password, token = "canary-7f3a-sasl-password", "canary-9d1e-admin-token-0123456789"
	var paths []string
	secretsOf(reflect.TypeFor[config.Config](), "", &paths)
	// Those of an object store have a test of their own below.
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasPrefix(p, ".Warehouse.S3.") })
	require.ElementsMatch(t, []string{".Kafka.SASL.Password", ".Server.Admin.Token"}, paths, "set a canary for the new secret in this test")

	w := newWorld(t, "    key: [id]\n"+quick)
	w.create(orders(), nil)
	w.produce(0, `{"id":1,"note":"a"}`)
	cert := filepath.Join(w.dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, []byte("canary-tls-key"), 0o600))
	text := fmt.Sprintf(`version: 1
kafka:
  brokers: [%q]
  sasl: { mechanism: plain, username: user, password: "${env:PASSWORD}", allow_plaintext: true }
warehouse: %q
state_dir: %q
server: { listen: "127.0.0.1:0", admin: { listen: "127.0.0.1:0", token: "${file:%s}" }, log: { level: debug } }
pipelines:
  p: { source: { topic: shop.orders, format: json }, target: shop.orders, key: [id] }
`, w.broker.ListenAddrs()[0], filepath.Join(w.dir, "warehouse"), filepath.Join(w.dir, "state"), filepath.Join(w.dir, "token"))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "token"), []byte(token), 0o600))
	env := func(name string) (string, bool) { return password, name == "PASSWORD" }
	var out output
	var err error
	w.cfg, err = config.Parse(filepath.Join(w.dir, "applier.yml"), []byte(text), env)
	require.NoError(t, err)
	require.Equal(t, password, w.cfg.Kafka.SASL.Password.Reveal())
	require.Equal(t, token, w.cfg.Server.Admin.Token.Reveal())

	fmt.Fprintln(&out, w.cfg.Effective(), w.cfg.Warnings, w.cfg)
	fmt.Fprintf(&out, "%v %+v %#v", w.cfg, w.cfg, w.cfg)
	j, err := json.Marshal(w.cfg)
	require.NoError(t, err)
	_, _ = out.Write(j)
	func() { // a panic with the configuration in hand
		defer func() { fmt.Fprintf(&out, "%v %+v", recover(), w.cfg.Kafka) }()
		panic(fmt.Sprintf("cannot work with %+v", w.cfg))
	}()
	// The broker knows no SASL: the login fails again and again, loudly.
	r := w.loud(&out)
	cl := admin.NewClient(r.admin, "")
	require.Eventually(t, func() bool { return strings.Count(out.String(), "sasl") > 2 || strings.Contains(out.String(), "SASL") }, patience, 5*time.Millisecond)
	fmt.Fprintln(&out, get(t, r.admin, "/status"), get(t, r.admin, "/"), get(t, r.admin, "/debug/pprof/cmdline"))
	for _, err := range []error{cl.Pause(testContext(t), "p"), cl.Pause(testContext(t), "q"), admin.NewClient(r.admin, token+"x").Pause(testContext(t), "p")} {
		fmt.Fprintln(&out, err)
	}
	families, err := r.app.registry.Gather()
	require.NoError(t, err)
	fmt.Fprintln(&out, families)
	var said bytes.Buffer
	fmt.Fprintln(&out, Validate(testContext(t), w.cfg, 2*time.Second, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), &said), said.String())
	brief, cancel := context.WithTimeout(testContext(t), 2*time.Second)
	defer cancel()
	_, err = ShowOffsets(brief, w.cfg, "p", w.kafka(), discard())
	fmt.Fprintln(&out, err, fmt.Sprintf("%v", err))
	r.stop()
	// Mistakes around the secrets themselves.
	for _, bad := range []string{
		strings.Replace(text, "mechanism: plain", "mechanism: "+password, 1), strings.Replace(text, `"${env:PASSWORD}"`, "["+password+"]", 1),
		strings.Replace(text, "sasl: {", "tls: { cert: "+cert+", key: "+cert+" }\n  sasl: {", 1), strings.Replace(text, "token: ", "tokne: ", 1),
	} {
		_, err := config.Parse("a.yml", []byte(strings.Replace(bad, "mechanism: "+password, "mechanism: wrong", 1)), env)
		require.Error(t, err)
		fmt.Fprintln(&out, err)
	}
	said2 := out.String()
	require.Greater(t, len(said2), 5000, "the process said nothing, so nothing was tested")
	for _, secret := range []string{password, token, "canary-tls-key", "canary-7f3a", "canary-9d1e"} {
		for line := range strings.Lines(said2) {
			require.NotContains(t, line, secret)
		}
	}
}

// Records cannot write log lines, terminal sequences or metric series: what they
// hold is neither logged nor a label, and what is logged is quoted.
func TestThreat_LogInjection(t *testing.T) {
	w := newWorld(t, "    key: [id]\n"+quick)
	w.create(orders(), nil)
	evil := []string{
		"\nlevel=ERROR msg=\"forged\"", "\r\nforged", "\x1b[2Jforged\x1b[31m", "\u2028forged", "\x00forged", "\u202eforged", `"}` + "\n" + `{"forged":1}`,
		strings.Repeat("forged", 10_000),
	}
	for i, e := range evil {
		b, err := json.Marshal(map[string]any{"id": i, "note": e, e: e})
		require.NoError(t, err)
		w.produce(0, string(b), e, `{"id":"`+e+`"}`, `{"id":`+e+`}`)
	}
	var out output
	r := w.loud(&out)
	r.records(t, int64(4*len(evil)))
	status := get(t, r.admin, "/status") + get(t, r.admin, "/")
	families, err := r.app.registry.Gather()
	require.NoError(t, err)
	r.stop()
	lines := 0
	for s := bufio.NewScanner(strings.NewReader(out.String())); s.Scan(); lines++ {
		line := s.Text()
		require.True(t, strings.HasPrefix(line, "time=") || strings.HasPrefix(line, `{"time":`), "a line of its own: %q", line)
		require.NotContains(t, line, "forged", "record content is logged")
		require.False(t, strings.ContainsAny(line, "\x1b\x00\u202e\u2028"), "%q", line)
	}
	require.Greater(t, lines, 10)
	require.NotContains(t, status, "forged")
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				require.NotContains(t, l.GetValue(), "forged", f.GetName())
			}
		}
	}
}

// The folder for state is this user's own and closed to others, and no link leads
// elsewhere.
func TestThreat_StateDir(t *testing.T) {
	dir := t.TempDir()
	fresh := filepath.Join(dir, "a", "b")
	require.NoError(t, secureStateDir(fresh))
	info, err := os.Stat(fresh)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	readable := filepath.Join(dir, "readable")
	require.NoError(t, os.Mkdir(readable, 0o755))
	require.NoError(t, secureStateDir(readable))
	info, err = os.Stat(readable)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), "closed to others")

	writable := filepath.Join(dir, "writable")
	require.NoError(t, os.Mkdir(writable, 0o755))
	require.NoError(t, os.Chmod(writable, 0o777))
	require.ErrorContains(t, secureStateDir(writable), "chmod 700")

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(fresh, link))
	require.ErrorContains(t, secureStateDir(link), "symbolic link")
	dangling := filepath.Join(dir, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(dir, "nowhere"), dangling))
	require.Error(t, secureStateDir(dangling))
	require.NoDirExists(t, filepath.Join(dir, "nowhere"), "nothing was made behind the link")

	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, secureStateDir(file))

	if os.Geteuid() == 0 {
		foreign := filepath.Join(dir, "foreign")
		require.NoError(t, os.Mkdir(foreign, 0o700))
		require.NoError(t, os.Chown(foreign, 65532, 65532))
		require.ErrorContains(t, secureStateDir(foreign), "belongs to user 65532")
	}
}

// The warning that nothing is verified comes back every hour.
func TestThreat_InsecureTLSIsToldAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		a := &App{cfg: &config.Config{Kafka: config.Kafka{TLS: &config.TLS{Insecure: true}}}, log: slog.New(slog.NewTextHandler(&out, nil))}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour+time.Minute)
		defer cancel()
		a.warnInsecure(ctx)
		require.Equal(t, 3, strings.Count(out.String(), "certificates are not verified"))
	})
}

// A topic full of records that cannot be applied, or of very many, holds its own
// pipeline up and no other.
func TestThreat_NoisyNeighbour(t *testing.T) {
	w := newWorld(t, "    key: [id]\n"+quick)
	w.create(orders(), nil)
	require.NoError(t, w.broker.CreateTopic("noisy", 1, nil))
	text := fmt.Sprintf(`version: 1
kafka: { brokers: [%q] }
warehouse: %q
state_dir: %q
memory: 256MiB
server: { listen: "127.0.0.1:0", admin: { listen: "127.0.0.1:0" } }
pipelines:
  p: { source: { topic: shop.orders, format: json }, target: shop.orders, key: [id], batch: { interval: 1s, idle_flush: 20ms } }
  noisy: { source: { topic: noisy, format: json }, target: shop.noisy, key: [id], create: { types: { id: BIGINT, note: STRING } }, on_error: pause }
`, w.broker.ListenAddrs()[0], filepath.Join(w.dir, "warehouse"), filepath.Join(w.dir, "state"))
	var err error
	w.cfg, err = config.Parse("a.yml", []byte(text), os.LookupEnv)
	require.NoError(t, err)
	big := strings.Repeat("x", 200_000)
	for i := range 200 { // 40 MB of good records, then poison
		w.produceTo("noisy", 0, fmt.Sprintf(`{"id":%d,"note":%q}`, i, big))
	}
	w.produceTo("noisy", 0, "poison")
	r := w.run()
	for i := range 5 {
		w.produce(0, fmt.Sprintf(`{"id":%d}`, i))
		for {
			if c := take(t, r.commits); c.pipeline == "p" && c.records > 0 {
				break
			}
		}
	}
	r.stop()
}

// The same for the keys of an object store, which refuses them here.
func TestThreat_SecretsStayInside_KeysOfAStore(t *testing.T) {
	var paths []string
	secretsOf(reflect.TypeFor[config.Warehouse](), "", &paths)
	require.ElementsMatch(t, []string{".S3.AccessKey", ".S3.SecretKey", ".S3.SessionToken"}, paths, "set a canary for the new secret in this test")
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>")
	}))
	defer store.Close()
	w := newWorld(t, "    key: [id]\n"+quick)
	text := fmt.Sprintf(`version: 1
kafka: { brokers: [%q] }
warehouse: { path: s3://lake/w, s3: { endpoint: %q, path_style: true, access_key: "${env:KEY}", secret_key: "${env:SECRET}", session_token: "${env:SESSION}" } }
state_dir: %q
server: { listen: "127.0.0.1:0", admin: { listen: "127.0.0.1:0" }, log: { level: debug } }
pipelines:
  p: { source: { topic: shop.orders, format: json }, target: shop.orders, key: [id] }
`, w.broker.ListenAddrs()[0], store.URL, filepath.Join(w.dir, "state"))
	env := func(name string) (string, bool) { return "canary-" + strings.ToLower(name), true }
	var out output
	var err error
	w.cfg, err = config.Parse(filepath.Join(w.dir, "applier.yml"), []byte(text), env)
	require.NoError(t, err)
	require.Equal(t, "canary-secret", w.cfg.Warehouse.S3.SecretKey.Reveal())
	fmt.Fprintln(&out, w.cfg.Effective(), w.cfg.Warnings, w.cfg)
	fmt.Fprintf(&out, "%v %+v %#v", w.cfg, w.cfg, w.cfg.Warehouse.S3)
	r := w.loud(&out)
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "InvalidAccessKeyId") }, patience, 5*time.Millisecond)
	fmt.Fprintln(&out, get(t, r.admin, "/status"), get(t, r.admin, "/"))
	require.NotContains(t, strings.ToLower(out.String()), "canary")
}
