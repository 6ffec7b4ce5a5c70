package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// rule is an alert of alerts.yml.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func alertRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	var file struct{ Groups []struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

// panel is the part of a panel of dashboard.json that is checked.
type panel struct {
	ID          int
	Type, Title string
	Description string
	Targets     []struct{ Expr, LegendFormat string }
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
}

func dashboardPanels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var d struct{ Panels []panel }
	require.NoError(t, json.Unmarshal(text, &d))
	return d.Panels
}

func TestAlerts_TheElevenHaveTheirSectionInTheRunbook(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	require.NoError(t, err)
	_, runbook, found := strings.Cut(string(page), "\n## Alerts\n")
	require.True(t, found)
	runbook, _, _ = strings.Cut(runbook, "\n## ")
	sections := strings.Split(runbook, "\n### ")[1:]
	var documented []string
	for _, s := range sections {
		name, text, _ := strings.Cut(s, "\n")
		documented = append(documented, name)
		require.Contains(t, text, "**What to do.** ", "the section of %s", name)
	}
	var alerts []string
	for _, r := range alertRules(t) {
		alerts = append(alerts, r.Alert)
		require.Equal(t, "docs/operations.md#"+strings.ToLower(r.Alert), r.Annotations["runbook"])
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["description"], r.Alert)
		require.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
	}
	require.Equal(t, strings.Fields(`FreshnessSLO PipelineStuck PipelinePaused DeadLetters CommitFailing CompactionDebt
		IndexMismatch MemoryNearBudget SourceRecreated RetentionHeadroom LSOLag`), alerts)
	require.Equal(t, alerts, documented, "docs/operations.md has a section for each alert, in the order of alerts.yml, and no other")
}

// The tests of the rules (promtool test rules) have both cases of each alert.
func TestAlerts_EachHasAFiringAndAQuietCase(t *testing.T) {
	text, err := os.ReadFile("alerts_test.yml")
	require.NoError(t, err)
	var file struct {
		Tests []struct {
			Name  string
			Cases []struct {
				Alertname string
				Expected  []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		all := true
		for _, c := range test.Cases {
			require.True(t, strings.HasPrefix(test.Name, c.Alertname+" "), test.Name)
			fires[c.Alertname] = fires[c.Alertname] || len(c.Expected) > 0
			all = all && len(c.Expected) == 0
		}
		if all {
			quiet[test.Cases[0].Alertname] = true
		}
	}
	for _, r := range alertRules(t) {
		require.True(t, fires[r.Alert], "no case in which %s fires", r.Alert)
		require.True(t, quiet[r.Alert], "no case in which %s is quiet", r.Alert)
	}
}

func TestDashboard_HasItsSixRowsAndNoPanelOverAnother(t *testing.T) {
	var rows []string
	ids, at := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboardPanels(t) {
		require.False(t, ids[p.ID], "%s: its id is taken", p.Title)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, at[[2]int{x, y}], "%s lies on another panel", p.Title)
				at[[2]int{x, y}] = p.Title
			}
		}
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
	}
	require.Equal(t, []string{"Promise", "Flow", "Batch anatomy", "Table health", "Index", "Process"}, rows)
}

var (
	metricName = regexp.MustCompile(`\b((?:applier|go|process)_[a-z_]+)(\{[^}]*\})?`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	legend     = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}`)
)

// known are the metrics that a scrape has, with their labels.
type known map[string]Desc

func newKnown(t *testing.T) known {
	t.Helper()
	k := known{}
	for _, d := range Table() {
		k[d.Name] = d
		if d.Type == Histogram {
			k[d.Name+"_sum"], k[d.Name+"_count"] = d, d
			d.Labels = append(slices.Clone(d.Labels), Label{Name: "le"})
			k[d.Name+"_bucket"] = d
			delete(k, d.Name)
		}
	}
	families, err := NewRegistry(Build{}).Gather()
	require.NoError(t, err)
	for _, f := range families {
		if _, ours := k[f.GetName()]; !ours {
			k[f.GetName()] = Desc{Name: f.GetName()}
		}
	}
	return k
}

// check finds names, labels and label values in an expression that no metric has.
func (k known) check(expr string, legends ...string) (problems []string) {
	bad := func(format string, a ...any) { problems = append(problems, fmt.Sprintf(format, a...)) }
	names := metricName.FindAllStringSubmatch(expr, -1)
	if len(names) == 0 {
		bad("it has no metric")
	}
	labels := map[string]bool{"instance": true, "job": true} // the scraper's
	for _, m := range names {
		d, ok := k[m[1]]
		if !ok {
			bad("no metric is called %s", m[1])
			continue
		}
		own := map[string]Label{"instance": {}, "job": {}}
		for _, l := range d.Labels {
			own[l.Name], labels[l.Name] = l, true
		}
		for _, s := range matcher.FindAllStringSubmatch(m[2], -1) {
			l, ok := own[s[1]]
			if !ok {
				bad("%s has no label %s", m[1], s[1])
			}
			for _, v := range strings.Split(s[3], "|") {
				if !strings.HasPrefix(v, "$") && len(l.Values) > 0 && !slices.Contains(l.Values, v) {
					bad("label %s of %s is never %s", s[1], m[1], v)
				}
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.FieldsFunc(g[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !labels[l] {
				bad("no metric of it has a label %s", l)
			}
		}
	}
	for _, text := range legends {
		for _, l := range legend.FindAllStringSubmatch(text, -1) {
			if !labels[l[1]] {
				bad("its text names a label %s that no metric of it has", l[1])
			}
		}
	}
	return problems
}

func TestExpressions_NameOnlyMetricsAndLabelsOfTheTable(t *testing.T) {
	k := newKnown(t)
	for _, r := range alertRules(t) {
		require.Empty(t, k.check(r.Expr, r.Annotations["summary"], r.Annotations["description"]), r.Alert)
	}
	n := 0
	for _, p := range dashboardPanels(t) {
		for _, target := range p.Targets {
			require.Empty(t, k.check(target.Expr, target.LegendFormat), "%s: %s", p.Title, target.Expr)
			n++
		}
	}
	require.Greater(t, n, 60)
}

// Whoever is woken by an alert finds its metrics on the dashboard.
func TestDashboard_ShowsWhatAnAlertIsAbout(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	for _, r := range alertRules(t) {
		for _, m := range metricName.FindAllStringSubmatch(r.Expr, -1) {
			require.Contains(t, string(text), m[1], "the metric of %s", r.Alert)
		}
	}
}

// The check above is one that can fail.
func TestExpressions_WhatIsWrongIsFound(t *testing.T) {
	k := newKnown(t)
	for expr, want := range map[string]string{
		`applier_freshness_secs > 0`:                           "no metric is called applier_freshness_secs",
		`applier_commits_total{outcome="ok"}`:                  "applier_commits_total has no label outcome",
		`rate(applier_commits_total{result=~"ok|failed"}[5m])`: "label result of applier_commits_total is never ok",
		`sum by (topic) (applier_freshness_seconds)`:           "no metric of it has a label topic",
		`applier_commit_seconds > 1`:                           "no metric is called applier_commit_seconds",
		`sum by (le) (rate(applier_commit_seconds_count[5m]))`: "no metric of it has a label le",
		`vector(1)`: "it has no metric",
		`applier_pipeline_state{state="shadow"} == 1`:                         "label state of applier_pipeline_state is never shadow",
		`applier_freshness_seconds > on (tables) applier_lease_held`:          "no metric of it has a label tables",
		`go_goroutine and on (instance) applier_build_info`:                   "no metric is called go_goroutine",
		`sum without (op) (applier_source_bytes_total{pipeline="$pipeline"})`: "no metric of it has a label op",
	} {
		require.Equal(t, []string{want}, k.check(expr), expr)
	}
	require.Empty(t, k.check(`sum by (pipeline, le) (rate(applier_commit_seconds_bucket{pipeline=~"$p"}[5m]))`, "{{pipeline}} {{ le }}"))
	require.Equal(t, []string{"its text names a label topic that no metric of it has"}, k.check(`applier_lease_held`, "{{topic}}"))
}

// How many series a pipeline has at most does not depend on its data: labels are
// known beforehand, or name halt codes and partitions.
func TestTable_SeriesOfAPipelineAreBounded(t *testing.T) {
	unknown := map[string]bool{}
	fixed, perPart := 0, 0
	for _, d := range Table() {
		series := 1
		if d.Type == Histogram {
			series = len(secondsBuckets()) + 3 // +Inf, _sum, _count
		}
		partition := false
		for _, l := range d.Labels {
			switch {
			case len(l.Values) > 0:
				series *= len(l.Values)
			case l.Name == "partition":
				partition = true
			case l.Name != "pipeline" && l.Name != "table" && l.Name != "topic":
				unknown[d.Name+" "+l.Name] = true
			}
		}
		if partition {
			perPart += series
		} else {
			fixed += series
		}
	}
	require.Equal(t, map[string]bool{ // each has few values, and none comes from records
		"applier_build_info version": true, "applier_build_info revision": true, "applier_build_info go": true,
		"applier_memory_used_bytes component": true, "applier_pipeline_halted code": true, "applier_source_alarms code": true,
		"applier_store_requests_total op": true, "applier_store_request_seconds op": true,
	}, unknown)
	require.LessOrEqual(t, fixed, 700, "series of a pipeline")
	require.LessOrEqual(t, perPart, 4, "series of a source partition")
}
