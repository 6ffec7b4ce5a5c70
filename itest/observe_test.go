//go:build itest

package itest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"applier/itest/harness"
)

// metricsDir has what operators load into Prometheus and Grafana.
var metricsDir = filepath.Join("..", "metrics")

func TestPromtool_TakesTheRulesAndTheirTests(t *testing.T) {
	out, err := harness.Promtool(t, "", "check", "rules", filepath.Join(metricsDir, "alerts.yml"))
	require.NoError(t, err, out)
	require.Contains(t, out, "11 rules found")
	out, err = harness.Promtool(t, "", "test", "rules", filepath.Join(metricsDir, "alerts_test.yml"))
	require.NoError(t, err, out)
}

func TestPromtool_TakesThePrometheusOfTheComposeFile(t *testing.T) {
	out, err := harness.Promtool(t, "", "check", "config", "--syntax-only", filepath.Join("..", "docs", "compose", "prometheus.yml"))
	require.NoError(t, err, out)
}

// Debian's docker-compose is another reader of the file than the tests of the tree have.
func TestDockerCompose_TakesTheComposeFile(t *testing.T) {
	out, err := harness.DockerCompose(t, "--env-file", "docs/compose/demo.env", "--profile", "demo", "config")
	require.NoError(t, err, out)
	for _, service := range []string{"applier", "bucket", "connect", "connector", "generator", "grafana", "kafka", "load", "postgres", "prometheus", "s3"} {
		require.Contains(t, out, "\n  "+service+":\n")
	}
	out, err = harness.DockerCompose(t, "config")
	require.Error(t, err, out)
	require.Contains(t, out, "--env-file docs/compose/demo.env", "passwords have no defaults, and it says so")
}

// expressions are those of the dashboard, with its variables filled in, and the parts
// of those of the alerts, by where they stand. A comparison of an alert is made to
// answer 0 or 1 instead of leaving out what is quiet: so both sides must have data
// that belongs together.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	variables := strings.NewReplacer("$pipeline", ".*", "$stage", "plan", "$__rate_interval", "30s")
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	text, err := os.ReadFile(filepath.Join(metricsDir, "dashboard.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &board))
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			out["dashboard: "+p.Title+" "+target.RefID] = variables.Replace(target.Expr)
		}
	}
	require.Greater(t, len(out), 60)

	compare := regexp.MustCompile(`(^|\s)(>|<|==|!=|>=|<=)\s`)
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text, err = os.ReadFile(filepath.Join(metricsDir, "alerts.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &rules))
	for _, r := range rules.Groups[0].Rules {
		for i, part := range regexp.MustCompile(`\s+or\s+`).Split(r.Expr, -1) {
			out[fmt.Sprint("alert: ", r.Alert, " ", i)] = compare.ReplaceAllString(part, "$1$2 bool ")
		}
	}
	return out
}

// observed is a daemon with something to be seen: a pipeline that works, with dead
// letters and maintenance, and one whose topic was created again.
func observed(t *testing.T) (r *rig, p *harness.Process, feed func()) {
	k := harness.SharedKafka(t)
	good, bad := topicName(t.Name()), harness.Topic{Name: topicName(t.Name()) + "-recreated", Partitions: 1}
	letters := good + "-letters"
	k.CreateTopic(t, harness.Topic{Name: good, Partitions: 2})
	k.CreateTopic(t, harness.Topic{Name: letters, Partitions: 1})
	k.CreateTopic(t, bad)
	types := "create: { types: { id: BIGINT, v: STRING } }\n"
	r = newRig(
		t, "",
		pipe{
			Name: "good", Table: "db.good", Topic: good,
			More: types + "on_error: dead_letter\ndead_letter: { topic: " + letters + " }\nfreshness_slo: 60s\nmaintenance: { compact: true, expire: true, every: 1s }",
		},
		pipe{Name: "bad", Table: "db.bad", Topic: bad.Name, More: types},
	)
	k.Produce(t, put(bad.Name, 0, row(1, "before")))
	p = r.start()
	n := 0
	feed = func() {
		for range 20 {
			k.Produce(t, put(good, int32(n%2), row(n%100, fmt.Sprint("v", n))))
			n++
		}
		k.Produce(t, put(good, 0, `{"id":"not a number","v":"x"}`))
	}
	feed()
	r.waitApplied(p)
	k.RecreateTopic(t, bad)
	harness.Until(t, patience, "K-RECREATED", func() (bool, error) {
		s, ok := r.status()
		return ok && s["bad"].code() == "K-RECREATED", nil
	})
	return r, p, feed
}

// TestPrometheus_EveryExpressionHasData: Debian's Prometheus scrapes a real daemon,
// and everything that the dashboard and the alerts ask is answered.
func TestPrometheus_EveryExpressionHasData(t *testing.T) {
	r, p, feed := observed(t)
	rules, err := filepath.Abs(filepath.Join(metricsDir, "alerts.yml"))
	require.NoError(t, err)
	prom := harness.Prometheus(t, []string{strings.TrimPrefix(r.Public, "http://")}, []string{rules})

	open := expressions(t)
	defer func() {
		if t.Failed() {
			t.Logf("without data: %v", open)
		}
	}()
	harness.Until(t, patience, "data of every expression", func() (bool, error) {
		feed()
		for where, expr := range open {
			samples, err := prom.Query(t.Context(), expr)
			if err != nil {
				return false, fmt.Errorf("%s: %w", where, err)
			}
			if slices.ContainsFunc(samples, func(s harness.PromSample) bool { return !math.IsNaN(s.Value) }) {
				delete(open, where)
			}
		}
		return len(open) == 0, nil
	})

	var state map[string]harness.PromRule
	harness.Until(t, patience, "the alert of the topic created again", func() (bool, error) {
		list, err := prom.Rules(t.Context())
		state = map[string]harness.PromRule{}
		for _, a := range list {
			state[a.Name] = a
		}
		return state["SourceRecreated"].State == "firing", err
	})
	require.Len(t, state, 11)
	for name, a := range state {
		require.Equal(t, "ok", a.Health, "%s: %s", name, a.LastError)
		for _, alert := range a.Alerts {
			if alert.State == "firing" {
				require.Equal(t, "bad", alert.Labels["pipeline"], "%s fires for a pipeline that is well", name)
			}
		}
	}
	tellsWhy(t, r)
	page := metricsPage(t, r.Public)
	out, err := harness.Promtool(t, page, "check", "metrics")
	require.NoError(t, err, out)
	documented(t, page)
	harness.MustStop(t, p)
}

// tellsWhy: applier status, once and again and again, says what the metrics say.
func tellsWhy(t *testing.T, r *rig) {
	t.Helper()
	out := r.must("status")
	for _, text := range []string{"K-RECREATED: ", "promised within 1m0s", "; last commit ", "table: 100 rows", "index: 100 keys", "    commit "} {
		require.Contains(t, out, text)
	}
	w := harness.Applier(t, harness.Run{Name: "applier status --watch", Args: []string{"status", "--watch", "-c", r.File}})
	harness.Until(t, patience, "a second picture", func() (bool, error) {
		return strings.Count(w.Output.String(), "K-RECREATED: ") >= 2, nil
	})
	harness.MustStop(t, w)
}

func metricsPage(t *testing.T, public string) string {
	t.Helper()
	resp, err := statusClient.Get(public + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

var (
	docRow    = regexp.MustCompile("(?m)^\\| `(applier_\\w+)` \\| (\\w+) \\| \\w* \\| (.*?) \\| ")
	docLabel  = regexp.MustCompile("`(\\w+)`(?: \\(([^)]*)\\))?")
	pageType  = regexp.MustCompile(`(?m)^# TYPE (applier_\w+) (\w+)$`)
	pageLine  = regexp.MustCompile(`(?m)^(applier_\w+)(?:\{(.*)\})? \S+$`)
	pageLabel = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

// documented holds a page of metrics against docs/metrics.md: types, labels and the
// values of labels, in both directions.
func documented(t *testing.T, page string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	require.NoError(t, err)
	types := map[string]string{}
	labels := map[string]map[string][]string{}
	for _, m := range docRow.FindAllStringSubmatch(string(text), -1) {
		types[m[1]], labels[m[1]] = m[2], map[string][]string{}
		for _, l := range docLabel.FindAllStringSubmatch(m[3], -1) {
			labels[m[1]][l[1]] = nil
			if l[2] != "" {
				labels[m[1]][l[1]] = strings.Split(l[2], ", ")
			}
		}
	}
	require.Greater(t, len(types), 70)
	missing := map[string]bool{}
	for name := range types {
		missing[name] = true
	}
	for _, m := range pageType.FindAllStringSubmatch(page, -1) {
		require.Equal(t, types[m[1]], m[2], "the type of %s", m[1])
		delete(missing, m[1])
	}
	require.Equal(t, map[string]bool{"applier_tls_verification_disabled": true}, missing, "documented, and not there")
	for _, m := range pageLine.FindAllStringSubmatch(page, -1) {
		name := m[1]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); types[base] == "histogram" {
				name = base
			}
		}
		have := map[string]bool{}
		for _, l := range pageLabel.FindAllStringSubmatch(m[2], -1) {
			if l[1] == "le" && types[name] == "histogram" {
				continue
			}
			values, ok := labels[name][l[1]]
			require.True(t, ok, "label %s of %s is not documented", l[1], name)
			if values != nil {
				require.Contains(t, values, l[2], "label %s of %s", l[1], name)
			}
			have[l[1]] = true
		}
		require.Len(t, have, len(labels[name]), "labels of %s: %s", name, m[2])
	}
}
