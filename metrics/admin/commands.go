package admin

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/pprof"
)

// wrap gives a sentinel its text.
func wrap(sentinel error, text string) error { return fmt.Errorf("%w: %s", sentinel, text) }

// commands serves the admin port behind the guard.
type commands struct {
	source  Source
	control Control
	log     *slog.Logger
}

// adminHandler serves the admin port.
func adminHandler(o Options) http.Handler {
	c := &commands{o.Source, o.Control, o.Log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", c.page)
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(styleCSS)
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, c.source.Status())
	})
	const pipeline = "/api/v1/pipelines/{name}"
	mux.HandleFunc("POST "+pipeline+"/pause", c.command("pause", c.control.Pause))
	mux.HandleFunc("POST "+pipeline+"/resume", c.command("resume", c.control.Resume))
	mux.HandleFunc("POST "+pipeline+"/flush", c.command("flush", c.control.Flush))
	mux.HandleFunc("GET "+pipeline+"/offsets", c.offsets)
	mux.HandleFunc("POST "+pipeline+"/offsets", c.changeOffsets)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return withHeaders(newGuard(o.Token, o.Log, mux))
}

// command serves a command without arguments.
func (c *commands) command(name string, run func(context.Context, string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n > 0 {
			c.fail(w, r, name, wrap(ErrInvalid, "this command takes no body"))
			return
		}
		if err := run(r.Context(), r.PathValue("name")); err != nil {
			c.fail(w, r, name, err)
			return
		}
		c.done(r, name)
		writeJSON(w, http.StatusOK, struct{}{})
	}
}

func (c *commands) offsets(w http.ResponseWriter, r *http.Request) {
	o, err := c.control.Offsets(r.Context(), r.PathValue("name"))
	if err != nil {
		c.fail(w, r, "offsets show", err)
		return
	}
	writeJSON(w, http.StatusOK, o)
}

func (c *commands) changeOffsets(w http.ResponseWriter, r *http.Request) {
	change, err := readChange(r)
	if err != nil {
		c.fail(w, r, "offsets", err)
		return
	}
	name := "offsets " + change.Action
	o, err := c.control.ChangeOffsets(r.Context(), r.PathValue("name"), change)
	if err != nil {
		c.fail(w, r, name, err)
		return
	}
	if !change.DryRun {
		c.done(r, name)
	}
	writeJSON(w, http.StatusOK, o)
}

// readChange decodes the body of a change. Its errors wrap ErrInvalid.
func readChange(r *http.Request) (OffsetChange, error) {
	var change OffsetChange
	// A page of another site cannot send this type without asking us first.
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return change, wrap(ErrInvalid, "the Content-Type must be application/json")
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&change); err != nil {
		return change, wrap(ErrInvalid, err.Error())
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return change, wrap(ErrInvalid, "something follows the JSON object")
	}
	return change, change.check()
}

// done logs a command for the record.
func (c *commands) done(r *http.Request, name string) {
	c.log.Info("admin command", "command", name, "pipeline", r.PathValue("name"), "remote", r.RemoteAddr)
}

// fail answers with the status that fits the error.
func (c *commands) fail(w http.ResponseWriter, r *http.Request, name string, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, ErrNotFound):
		code = http.StatusNotFound
	case errors.Is(err, ErrInvalid):
		code = http.StatusBadRequest
	case errors.Is(err, ErrConflict):
		code = http.StatusConflict
	case errors.Is(err, context.DeadlineExceeded):
		code = http.StatusGatewayTimeout
	}
	c.log.Warn("admin command failed", "command", name, "pipeline", r.PathValue("name"), "remote", r.RemoteAddr, "err", err)
	writeError(w, code, err.Error())
}

// failure is the body of every answer that is not a success.
type failure struct {
	Error string `json:"error"`
}

func writeError(w http.ResponseWriter, code int, text string) { writeJSON(w, code, failure{text}) }

func writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		code, b = http.StatusInternalServerError, []byte(`{"error": "the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n'))
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed style.css
	styleCSS []byte

	pageTemplate = template.Must(template.New("page").Funcs(pageFuncs()).Parse(pageHTML))
)

// page serves the status page. It is built before anything is sent, so that an
// error is not half a page.
func (c *commands) page(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, c.source.Status()); err != nil {
		c.fail(w, r, "page", err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
}
