package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// httpTimeout bounds one request, not the wait.
const httpTimeout = 5 * time.Second

// get fetches a page; the status is returned, not judged.
func get(ctx context.Context, url string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, httpTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", fmt.Errorf("requesting %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", fmt.Errorf("requesting %s: %w", url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading %s: %w", url, err)
	}
	return resp.StatusCode, string(b), nil
}

// WaitHTTP waits until a page answers with a status, such as 200 of /readyz. The
// end of the process that serves it is an error.
func (p *Process) WaitHTTP(ctx context.Context, url string, status int) error {
	var last string
	err := poll(ctx, fmt.Sprintf("status %d of %s", status, url), func() (bool, error) {
		if p.Exited() {
			return false, fmt.Errorf("%s ended (%v):\n%s", p.Spec.Name, p.err, p.Output.Tail(30))
		}
		got, body, err := get(ctx, url)
		if ctx.Err() == nil { // the last request may be cut off: what came before says more
			last = fmt.Sprint(got, " ", body, " ", err)
		}
		return err == nil && got == status, nil
	})
	if err != nil {
		return fmt.Errorf("%w; last answer: %.500s", err, last)
	}
	return nil
}

// Metrics reads a page of Prometheus metrics: values by "name" or
// "name{label="value",…}" as printed.
func Metrics(ctx context.Context, url string) (map[string]float64, error) {
	status, body, err := get(ctx, url)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d: %.500s", url, status, body)
	}
	out := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if line == "" || line[0] == '#' || at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: reading %q: %w", url, line, err)
		}
		out[line[:at]] = v
	}
	return out, lines.Err()
}
