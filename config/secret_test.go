package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"applier/config"
)

const canary = "canary-secret"

// holder has a secret where fmt cannot call its methods.
type holder struct {
	hidden config.Secret
	Shown  config.Secret
}

func TestSecret_ShowsOnlyStars(t *testing.T) {
	s := config.NewSecret(canary)
	h := holder{hidden: s, Shown: s}
	for _, v := range []any{s, &s, h, &h, []config.Secret{s}, map[string]config.Secret{"a": s}, any(s)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%08.3f"} {
			require.NotContains(t, fmt.Sprintf(verb, v), canary, "%s of %T", verb, v)
			require.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", canary), "%s of %T", verb, v)
		}
		require.NotContains(t, fmt.Sprint(v)+fmt.Sprintln(v), canary)
		b, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(b), canary)
	}
	require.Equal(t, "***", s.String())
	require.Equal(t, "***", fmt.Sprintf("%v", s))
	require.Equal(t, canary, s.Reveal())
}

func TestSecret_StaysSecretInLogsAndYAML(t *testing.T) {
	s := config.NewSecret(canary)
	var b bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		log := slog.New(h)
		log.Info("x", "secret", s, "pointer", &s, "in", holder{s, s})
		log.Info("y", slog.Any("group", []any{s}))
	}
	require.NoError(t, yaml.NewEncoder(&b).Encode(map[string]any{"s": s, "h": &holder{s, s}}))
	require.NotContains(t, b.String(), canary)
	require.Contains(t, b.String(), "***")
}

func TestSecret_ZeroValueIsNotSet(t *testing.T) {
	var s config.Secret
	require.False(t, s.IsSet())
	require.Empty(t, s.Reveal())
	require.Equal(t, "***", s.String())
	require.False(t, config.NewSecret("").IsSet())
	require.NoError(t, s.UnmarshalText([]byte("x")))
	require.True(t, s.IsSet())
}

// Every secret of a loaded configuration is printed in every usual way.
func TestLoad_SecretsOfAConfigurationAreNeverPrinted(t *testing.T) {
	c, err := config.Load(filepath.Join("testdata", "typical.good.yml"), testEnv)
	require.NoError(t, err)
	require.Equal(t, "canary-file", c.Kafka.SASL.Password.Reveal())
	require.Equal(t, "canary-admin-0123456789", c.Server.Admin.Token.Reveal())
	j, err := json.Marshal(c)
	require.NoError(t, err)
	y, err := yaml.Marshal(c)
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("loaded", "config", c)
	out := fmt.Sprintf("%v %+v %#v %v %#v", c, c, c, *c, *c.Kafka.SASL) + string(j) + string(y) + log.String() + c.Effective()
	require.NotContains(t, out, "canary")
}

func TestSecret_OfKafkaIsReadAgainWhereItCameFrom(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write("old\n")
	parse := func(password string) config.Secret {
		text := "version: 1\nkafka: { brokers: [\"b:1\"], sasl: { mechanism: scram-sha-256, username: u, password: \"" + password + "\" } }\n" +
			"warehouse: /w\nstate_dir: /s\npipelines: { p: { source: { topic: t, format: json }, target: db.t, key: [id] } }\n"
		c, err := config.Parse(filepath.Join(dir, "applier.yml"), []byte(text), testEnv)
		require.NoError(t, err)
		return c.Kafka.SASL.Password
	}
	s, fixed := parse("x${file:password}"), parse("written")
	require.Equal(t, "xold", s.Reload())
	write("new\n")
	require.Equal(t, "xnew", s.Reload())
	require.Equal(t, "xold", s.Reveal())
	require.NoError(t, os.Remove(file))
	require.Equal(t, "xold", s.Reload(), "while it is replaced")
	require.Equal(t, "written", fixed.Reload())
	for _, verb := range []string{"%v", "%+v", "%#v", "%d"} {
		require.NotContains(t, fmt.Sprintf(verb, holder{s, s}), "xold")
	}
}
