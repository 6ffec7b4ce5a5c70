//go:build itest

package main

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// Prometheus itself must take the page, and every panel must be on it.
func TestConsole_ShowsEveryPanelOfTheDashboard(t *testing.T) {
	const dashboard = "../../metrics/dashboard.json"
	folder, err := console(dashboard, t.TempDir())
	require.NoError(t, err)
	prom := harness.Prometheus(t, nil, nil, "--web.console.templates="+folder)
	resp, err := http.Get(prom.URL + "/consoles/applier.html")
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(page))
	var board struct{ Panels []struct{ Title string } }
	text, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &board))
	require.Greater(t, len(board.Panels), 40)
	for _, p := range board.Panels {
		require.Contains(t, string(page), ">"+html.EscapeString(p.Title)+"<")
	}
}
