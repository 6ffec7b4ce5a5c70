package harness

import (
	"context"
	"testing"
	"time"
)

// Until polls until f says true; f's error, or the end of the time, fails the test.
func Until(t testing.TB, within time.Duration, what string, f func() (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := poll(ctx, what, f); err != nil {
		t.Fatal(err)
	}
}
