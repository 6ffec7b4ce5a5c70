//go:build itest

package itest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// edit replaces a text of the configuration file.
func (r *rig) edit(from, to string) {
	r.t.Helper()
	text, err := os.ReadFile(r.File)
	require.NoError(r.t, err)
	require.Contains(r.t, string(text), from)
	require.NoError(r.t, os.WriteFile(r.File, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
}

func TestFault_I1(t *testing.T) {
	f := newFaulty(t, "", "")
	sound, err := os.ReadFile(f.File)
	require.NoError(t, err)
	for _, c := range []struct{ name, from, to, says string }{
		{"a typo", "state_dir:", "state_dri:", "did you mean state_dir"},
		{"an unknown key", "target: db.t", "target: db.t\n    colour: blue", "colour"},
		{"a wrong type", "session_timeout: 1s", "session_timeout: [1]", "session_timeout"},
		{"a contradiction", "    key: [id]\n", "    key: [id]\n    apply: append\n", "append"},
		{"something missing", "    target: db.t\n", "", "target"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(f.File, sound, 0o600))
			f.edit(c.from, c.to)
			for _, command := range []string{"run", "validate"} {
				code, output := f.command(command)
				require.Equal(t, 2, code, output)
				require.Regexp(t, `applier\.yml:\d+: `, output)
				require.Contains(t, output, c.says)
			}
		})
	}
}

func TestFault_I2(t *testing.T) {
	f := newFaulty(t, "", "")
	secret := filepath.Join(t.TempDir(), "missing-password")
	sasl := func(reference string) {
		f.configure("")
		f.edit("session_timeout: 1s", `session_timeout: 1s, sasl: { mechanism: scram-sha-256, username: u, password: "`+reference+`" }`)
	}
	for reference, name := range map[string]string{"${env:NO_SUCH_PASSWORD}": "NO_SUCH_PASSWORD", "${file:" + secret + "}": "missing-password"} {
		sasl(reference)
		code, output := f.command("run")
		require.Equal(t, 2, code, output)
		require.Contains(t, output, name)
		require.Regexp(t, `applier\.yml:\d+: `, output)
	}
	// A value is never shown, whatever else is wrong.
	require.NoError(t, os.WriteFile(secret, []byte("hunter2-the-secret"), 0o600))
	sasl("${file:" + secret + "}")
	f.edit("state_dir:", "state_dri:")
	code, output := f.command("run")
	require.Equal(t, 2, code, output)
	require.NotContains(t, output, "hunter2")
}

// badBroker listens with a certificate and answers nothing else.
func badBroker(t *testing.T, name string, ips []net.IP, notAfter time.Time) (addr, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: ips, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: notAfter,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = c.(*tls.Conn).Handshake(); _ = c.Close() }()
		}
	}()
	ca = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return l.Addr().String(), ca
}

func TestFault_I3(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.produce(50)
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	expired := time.Now().AddDate(0, 0, -3)
	for _, c := range []struct {
		name     string
		ips      []net.IP
		notAfter time.Time
		says     []string
	}{
		{"expired.example", loopback, expired, []string{"expired", "expired.example", expired.UTC().Format("2006-01-02")}},
		{"other.example", nil, time.Now().AddDate(1, 0, 0), []string{"other.example", "127.0.0.1"}},
	} {
		addr, ca := badBroker(t, c.name, c.ips, c.notAfter)
		f.configure("")
		f.edit(`"`+f.kafka.Addrs()[0]+`"`, `"`+addr+`"`)
		f.edit("session_timeout: 1s", "session_timeout: 1s, tls: { ca: "+ca+" }")
		p := f.start()
		s := f.waitHalt(p, "K-TLS")
		for _, text := range c.says {
			require.Contains(t, s.Halt.Message, text)
		}
		_, err := p.Stop(patience)
		require.NoError(t, err)
	}
	f.configure("")
	f.again()
}

func TestFault_I4(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	for _, port := range []string{"listen", "admin"} {
		other := newRig(t, f.Warehouse, f.pipes...)
		from, to := other.Public, f.Public
		if port == "admin" {
			from, to = other.Admin, f.Admin
		}
		other.edit(strings.TrimPrefix(from, "http://"), strings.TrimPrefix(to, "http://"))
		code, output := other.command("run")
		require.Equal(t, 2, code, output)
		require.Contains(t, output, "address already in use")
		require.Contains(t, output, strings.TrimPrefix(to, "http://"))
	}
	f.produce(20)
	f.waitApplied(p)
	f.exact(p)
}

func TestFault_I5(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	f.edit("state_dir:", "state_dri:")
	require.NoError(t, p.Signal(syscall.SIGHUP))
	said(t, p, "the configuration cannot be taken; the old one stays")
	harness.MustSay(t, p, "did you mean")
	f.waitMetric("applier_config_reload_errors_total", func(v float64) bool { return v == 1 })
	f.produce(50)
	f.waitApplied(p)
	// A sound one takes its place, in the same process.
	second := f.pipes[0]
	second.Name, second.ID, second.Table = "q", second.ID+"q", "db.q"
	f.pipes = append(f.pipes, second)
	f.configure("")
	require.NoError(t, p.Signal(syscall.SIGHUP))
	f.produce(50)
	f.waitApplied(p)
	f.exact(p)
	harness.SameRows(t.Context(), t, f.m.texts(), f.refOf(second), harness.Query{}, cat(t))
	require.Equal(t, 2, strings.Count(p.Output.String(), "msg=started "))
}

// A halt that another configuration repairs needs no restart either.
func TestFault_I5_OutOfAHalt(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.produce(20)
	f.pipes[0].Key = "[id, v]"
	f.configure("")
	p := f.start()
	f.waitHalt(p, "C-CHANGED")
	f.pipes[0].Key = "[id]"
	f.configure("")
	require.NoError(t, p.Signal(syscall.SIGHUP))
	f.waitApplied(p)
	f.exact(p)
}

// I6: a program of another version wrote the record. What it added is ignored, what
// it left out has a meaning; TestFault_A21 is the one that must not be read.
func TestFault_I6(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	f.editRecord(func(r map[string]any) {
		r["added_later"] = map[string]any{"x": 1}
		delete(r, "gaps")
		delete(r, "range")
		delete(r, "dlq")
	})
	f.again()
}

func TestFault_I7(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	before := len(snapshotIDs(f.ref()))
	f.must("pause", "p")
	f.produce(50)
	f.waitMetric(`applier_pipeline_state{pipeline="p",state="paused"`, func(v float64) bool { return v == 1 })
	f.waitMetric("applier_pipeline_state_since_timestamp_seconds", func(v float64) bool { return time.Since(time.Unix(int64(v), 0)) < time.Minute })
	f.waitMetric("applier_pipeline_up", func(v float64) bool { return v == 0 })
	require.Len(t, snapshotIDs(f.ref()), before)
	f.must("resume", "p")
	f.waitApplied(p)
	f.exact(p)
}

// I8: the same records under other time zones, locales and umasks give the same
// bytes in the same folders.
func TestFault_I8(t *testing.T) {
	f := newFaulty(t, "", "create: { types: { id: BIGINT, v: STRING, at: TIMESTAMP(3), z: \"TIMESTAMP(3) WITH LOCAL TIME ZONE\", d: DATE }, partition_by: [d] }\nbatch: { rows: 20, interval: 30s, idle_flush: 0s }")
	var recs []*kgo.Record
	for i := range 20 {
		recs = append(recs, put(f.topic, 0, fmt.Sprintf(`{"id":%d,"v":"ı I i é","at":"2026-03-29T02:30:00.%03d","z":"2026-03-29T01:30:00.%03dZ","d":"2026-03-%02d"}`, i, i, i, 28+i%3)))
	}
	f.kafka.Produce(t, recs...)
	var want map[string]string
	for _, c := range []struct{ tz, locale, umask string }{
		{"UTC", "C", "022"}, {"Asia/Kolkata", "tr_TR.UTF-8", "077"}, {"America/St_Johns", "de_DE.UTF-8", "002"},
	} {
		r := newRig(t, "", pipe{Topic: f.topic, More: f.pipes[0].More})
		p := harness.StartBinary(t, "/bin/sh", harness.Run{
			Args: []string{"-c", "umask " + c.umask + ` && exec "$@"`, "sh", harness.Build(t, "./cmd/applier"), "run", "-c", r.File},
			Env:  []string{"TZ=" + c.tz, "LANG=" + c.locale, "LC_ALL=" + c.locale},
		})
		r.waitApplied(p)
		harness.MustStop(t, p)
		got := map[string]string{}
		files, err := filepath.Glob(filepath.Join(tableDir(r.ref()), "d=*", "bucket-0", "data-*"))
		require.NoError(t, err)
		require.Len(t, files, 3)
		for _, file := range files {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			got[filepath.Base(filepath.Dir(filepath.Dir(file)))] = string(b)
		}
		if want == nil {
			want = got
		}
		require.Equal(t, slices.Sorted(keysOf(want)), slices.Sorted(keysOf(got)))
		for folder := range want {
			require.True(t, want[folder] == got[folder], "%v: the file of %s has other bytes", c, folder)
		}
		_, err = harness.Java(t).Digest(t.Context(), r.ref(), harness.Query{})
		require.NoError(t, err)
	}
}
