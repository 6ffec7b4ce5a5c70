package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// PromServer is a running Prometheus of Debian. It scrapes every second.
type PromServer struct {
	URL     string
	process *Process
}

// Prometheus starts one that scrapes targets (host:port) and evaluates rule files,
// with further flags; it ends with the test.
func Prometheus(t testing.TB, targets, rules []string, flags ...string) *PromServer {
	t.Helper()
	p, err := fetch("prometheus")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: { scrape_interval: 1s, evaluation_interval: 1s }\nrule_files: [%s]\nscrape_configs:\n"+
		"  - { job_name: applier, static_configs: [ { targets: [%s] } ] }\n", quoted(rules), quoted(targets))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	s := &PromServer{URL: "http://" + address}
	s.process, err = Start(Spec{Name: "prometheus", Path: p["server"], Dir: dir, Args: append([]string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
	}, flags...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.process.Kill()
		if t.Failed() {
			t.Logf("last lines of prometheus:\n%s", s.process.Output.Tail(20))
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.process.WaitHTTP(ctx, s.URL+"/-/ready", http.StatusOK); err != nil {
		t.Fatal(err)
	}
	return s
}

func quoted(texts []string) string {
	out := make([]string, len(texts))
	for i, s := range texts {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ", ")
}

// Promtool runs promtool with a text as its input and returns what it printed.
func Promtool(t testing.TB, input string, args ...string) (output string, err error) {
	t.Helper()
	p, err := fetch("prometheus")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), p["promtool"], args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// DockerCompose runs Debian's docker-compose, which needs no engine to read files.
func DockerCompose(t testing.TB, args ...string) (output string, err error) {
	t.Helper()
	p, err := fetch("compose")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), p["program"], args...)
	cmd.Dir = repoDir()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// PromSample is one element of an expression's result.
type PromSample struct {
	Labels map[string]string
	Value  float64
}

// ask gets a page of the HTTP API.
func (s *PromServer) ask(ctx context.Context, path string, data any) error {
	status, body, err := get(ctx, s.URL+path)
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return fmt.Errorf("prometheus answers %d: %.500s", status, body)
	}
	if answer.Status != "success" {
		return fmt.Errorf("prometheus refuses: %s", answer.Error)
	}
	return nil
}

// Query evaluates an expression now.
func (s *PromServer) Query(ctx context.Context, expr string) ([]PromSample, error) {
	var data struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := s.ask(ctx, "/api/v1/query?query="+url.QueryEscape(expr), &data); err != nil {
		return nil, fmt.Errorf("evaluating %s: %w", expr, err)
	}
	if data.ResultType != "vector" {
		return nil, fmt.Errorf("evaluating %s: it is a %s", expr, data.ResultType)
	}
	out := make([]PromSample, 0, len(data.Result))
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("evaluating %s: %w", expr, err)
		}
		out = append(out, PromSample{r.Metric, v})
	}
	return out, nil
}

// PromRule is the state of an alert rule.
type PromRule struct {
	Name, State, Health, LastError string
	Alerts                         []struct {
		Labels map[string]string
		State  string
	}
}

// Rules returns the rules and what they say now.
func (s *PromServer) Rules(ctx context.Context) ([]PromRule, error) {
	var data struct {
		Groups []struct{ Rules []PromRule }
	}
	if err := s.ask(ctx, "/api/v1/rules", &data); err != nil {
		return nil, fmt.Errorf("asking for the rules: %w", err)
	}
	var out []PromRule
	for _, g := range data.Groups {
		out = append(out, g.Rules...)
	}
	return out, nil
}
