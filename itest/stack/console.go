package main

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// console makes a page of Prometheus (a console template) of a Grafana dashboard: the
// same panels with what their expressions say now, each with a link to its graph. It
// returns the folder that holds it.
func console(dashboard, dir string) (string, error) {
	text, err := os.ReadFile(dashboard)
	if err != nil {
		return "", err
	}
	var board struct {
		Title  string
		Panels []struct {
			Type, Title, Description string
			Targets                  []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return "", fmt.Errorf("reading %s: %w", dashboard, err)
	}
	variables := strings.NewReplacer("$pipeline", ".*", "$stage", ".*", "$__rate_interval", "1m")
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=5><title>%[1]s</title><h1>%[1]s</h1>\n", html.EscapeString(board.Title))
	for _, p := range board.Panels {
		if p.Type == "row" {
			fmt.Fprintf(&b, "<h2>%s</h2>\n", html.EscapeString(p.Title))
			continue
		}
		fmt.Fprintf(&b, "<h3>%s</h3><p>%s</p>\n", html.EscapeString(p.Title), html.EscapeString(p.Description))
		for _, t := range p.Targets {
			expr := variables.Replace(t.Expr)
			fmt.Fprintf(&b, "<table>{{range query %s}}<tr><td>{{range $k, $v := .Labels}}{{$v}} {{end}}<td><a href=\"../graph?g0.range_input=15m&g0.tab=0&g0.expr=%s\">{{.Value | humanize}}</a>{{end}}</table>\n",
				strconv.Quote(expr), url.QueryEscape(expr))
		}
	}
	folder := filepath.Join(dir, "consoles")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "applier.html"), []byte(b.String()), 0o644)
}
