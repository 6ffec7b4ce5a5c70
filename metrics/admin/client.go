package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// maxAnswer bounds what a client reads.
const maxAnswer = 16 << 20

// Client sends commands to a running process. It is safe for concurrent use.
// The context of each call bounds it.
type Client struct {
	base, token string
	http        *http.Client
}

// NewClient returns a client of the admin port that listens on listen, as
// written in server.admin.listen. The token may be empty on the same host.
func NewClient(listen, token string) *Client {
	return &Client{
		base: "http://" + dialAddress(listen), token: token,
		// No proxy: the request must come from this host. No redirects: there are none.
		http: &http.Client{
			Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// dialAddress returns where to reach what listens on an address of this host.
func dialAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip, err := netip.ParseAddr(host); host == "" || (err == nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
		if ip.Is6() && !ip.Is4In6() {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

// Pause stops a pipeline.
func (c *Client) Pause(ctx context.Context, pipeline string) error {
	return c.command(ctx, pipeline, "pause")
}

// Resume starts a paused or failed pipeline.
func (c *Client) Resume(ctx context.Context, pipeline string) error {
	return c.command(ctx, pipeline, "resume")
}

// Flush commits the open batch of a pipeline.
func (c *Client) Flush(ctx context.Context, pipeline string) error {
	return c.command(ctx, pipeline, "flush")
}

// Offsets returns the positions of a pipeline.
func (c *Client) Offsets(ctx context.Context, pipeline string) (Offsets, error) {
	var out Offsets
	err := c.do(ctx, http.MethodGet, pipelinePath(pipeline, "offsets"), nil, &out)
	return out, err
}

// ChangeOffsets moves the positions of a pipeline.
func (c *Client) ChangeOffsets(ctx context.Context, pipeline string, change OffsetChange) (Offsets, error) {
	var out Offsets
	if err := change.check(); err != nil {
		return out, err
	}
	body, err := json.Marshal(change)
	if err != nil {
		return out, fmt.Errorf("encoding the change: %w", err)
	}
	err = c.do(ctx, http.MethodPost, pipelinePath(pipeline, "offsets"), body, &out)
	return out, err
}

// Status returns the state of the process.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var out Status
	err := c.do(ctx, http.MethodGet, "/status", nil, &out)
	return out, err
}

func (c *Client) command(ctx context.Context, pipeline, name string) error {
	return c.do(ctx, http.MethodPost, pipelinePath(pipeline, name), nil, nil)
}

func pipelinePath(pipeline, command string) string {
	return "/api/v1/pipelines/" + url.PathEscape(pipeline) + "/" + command
}

// do sends a request and decodes the answer into out unless that is nil.
func (c *Client) do(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking the process at %s: %w", c.base, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return answerError(resp.StatusCode, answer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("decoding the answer of %s: %w", c.base, err)
	}
	return nil
}

// answerError turns a refusal back into the sentinel it was.
func answerError(code int, body []byte) error {
	var f failure
	if json.Unmarshal(body, &f) != nil || f.Error == "" {
		return fmt.Errorf("the process answered %d %s", code, http.StatusText(code))
	}
	var sentinel error
	switch code {
	case http.StatusNotFound:
		sentinel = ErrNotFound
	case http.StatusBadRequest:
		sentinel = ErrInvalid
	case http.StatusConflict:
		sentinel = ErrConflict
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest:
		sentinel = ErrDenied
	default:
		return errors.New(f.Error)
	}
	return wrap(sentinel, strings.TrimPrefix(f.Error, sentinel.Error()+": "))
}

// Probe asks the public port that listens on listen for /healthz or /readyz. Its
// error says why the process is not well.
func Probe(ctx context.Context, listen, path string) error {
	c := NewClient(listen, "")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("asking the process at %s: %w", c.base, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the process answered %d: %s", resp.StatusCode, strings.TrimSpace(string(text)))
	}
	return nil
}
