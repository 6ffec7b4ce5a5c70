package compact

import (
	"errors"
	"time"
)

// Window is a span of the day, in local time; it may pass midnight. The zero
// Window is the whole day.
type Window struct{ From, To time.Duration }

var errWindowText = errors.New("two times of day are expected, like 01:00-05:30")

// ParseWindow reads "01:00-05:30"; the empty text is the whole day.
func ParseWindow(s string) (Window, error) {
	if s == "" {
		return Window{}, nil
	}
	if len(s) != len("15:04-15:04") || s[5] != '-' {
		return Window{}, errWindowText
	}
	from, err1 := time.Parse("15:04", s[:5])
	to, err2 := time.Parse("15:04", s[6:])
	if err1 != nil || err2 != nil || from.Equal(to) {
		return Window{}, errWindowText
	}
	clock := func(t time.Time) time.Duration {
		return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	}
	return Window{clock(from), clock(to)}, nil
}

// Holds reports whether a point in time lies in the window.
func (w Window) Holds(t time.Time) bool {
	at := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
	switch {
	case w == Window{}:
		return true
	case w.From < w.To:
		return at >= w.From && at < w.To
	}
	return at >= w.From || at < w.To
}
