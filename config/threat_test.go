package config_test

import (
	"crypto/tls"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/config"
)

// TLS is 1.2 at least, verified by authority and name, and nothing but the
// configuration's own `insecure` switches that off, with a warning.
func TestThreat_TLSDowngrade(t *testing.T) {
	dir := t.TempDir()
	server := &tls.Config{Certificates: []tls.Certificate{writeCert(t, dir, "server", 1)}}
	writeCert(t, dir, "other", 2)
	for name, c := range map[string]struct {
		block string
		max   uint16
		ok    bool
	}{
		"verified, 1.3":     {"{ ca: server.pem, server_name: kafka.test }", tls.VersionTLS13, true},
		"verified, 1.2":     {"{ ca: server.pem, server_name: kafka.test }", tls.VersionTLS12, true},
		"1.1":               {"{ ca: server.pem, server_name: kafka.test }", tls.VersionTLS11, false},
		"1.0":               {"{ ca: server.pem, server_name: kafka.test }", tls.VersionTLS10, false},
		"1.1 and insecure":  {"{ insecure: true }", tls.VersionTLS11, false},
		"another authority": {"{ ca: other.pem, server_name: kafka.test }", tls.VersionTLS13, false},
		"another host":      {"{ ca: server.pem, server_name: evil.test }", tls.VersionTLS13, false},
		"no name":           {"{ ca: server.pem }", tls.VersionTLS13, false},
		"self-signed":       {"{ server_name: kafka.test }", tls.VersionTLS13, false},
		"insecure":          {"{ insecure: true }", tls.VersionTLS13, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, env := range []string{"GODEBUG", "APPLIER_INSECURE", "APPLIER_TLS_INSECURE", "KAFKA_TLS_INSECURE", "NODE_TLS_REJECT_UNAUTHORIZED"} {
				t.Setenv(env, map[bool]string{true: "tls10server=1,tlsmaxrsasize=0", false: "true"}[env == "GODEBUG"])
			}
			s := server.Clone()
			s.MinVersion, s.MaxVersion = tls.VersionTLS10, c.max
			_, err := handshake(t, tlsConfig(t, dir, c.block), s)
			require.Equal(t, c.ok, err == nil, "%v", err)
		})
	}
	text := strings.Replace(minimal, "}\nwarehouse", ", tls: { insecure: true } }\nwarehouse", 1)
	c, err := config.Parse(filepath.Join(dir, "a.yml"), []byte(text), testEnv)
	require.NoError(t, err)
	require.Contains(t, c.Warnings.Error(), "certificates are not verified")
}

// A password is not sent in the clear, unless the configuration says so in words,
// and then with a warning.
func TestThreat_PasswordInTheClear(t *testing.T) {
	for name, c := range map[string]struct {
		kafka   string
		problem string
		warning string
	}{
		"plain":                  {"sasl: { mechanism: plain, username: u, password: p }", "plain without TLS shows the password", ""},
		"plain, allowed":         {"sasl: { mechanism: plain, username: u, password: p, allow_plaintext: true }", "", "unencrypted"},
		"plain over TLS":         {"tls: {}, sasl: { mechanism: plain, username: u, password: p }", "", ""},
		"scram":                  {"sasl: { mechanism: scram-sha-512, username: u, password: p }", "", ""},
		"a mechanism of no name": {"sasl: { mechanism: login, username: u, password: p }", "login", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(minimal, "}\nwarehouse", ", "+c.kafka+" }\nwarehouse", 1)
			got, err := config.Parse("a.yml", []byte(text), testEnv)
			if c.problem != "" {
				require.ErrorContains(t, err, c.problem)
				return
			}
			require.NoError(t, err)
			if c.warning != "" {
				require.Contains(t, got.Warnings.Error(), c.warning)
			} else {
				require.NotContains(t, got.Warnings.Error(), "unencrypted")
			}
		})
	}
}

// A password that was put where none belongs is not repeated by the error.
func TestThreat_CredentialsInAddresses(t *testing.T) {
	for _, address := range []string{"sasl://user:canary@h:9092", "user:canary@h:9092", ":canary@h", "https://h/x?a=b user:canary@c:1"} {
		for _, text := range []string{
			strings.Replace(minimal, `"kafka:9092"`, `"`+address+`"`, 1),
			strings.Replace(minimal, "brokers: [", "brokers: [\""+address+"\", ", 1),
			regexp.MustCompile(`(?m)^warehouse: .*$`).ReplaceAllString(minimal, `warehouse: "`+address+`"`),
			minimal + "server: { listen: \"" + address + "\" }\n",
		} {
			c, err := config.Parse("a.yml", []byte(text), testEnv)
			if err == nil { // a folder may have any name
				require.NotContains(t, c.Warnings.Error(), "canary")
				continue
			}
			require.NotContains(t, err.Error(), "canary", text)
		}
	}
}
