package admin

import (
	"fmt"
	"html/template"
	"strconv"
	"time"
)

// pageFuncs are the formats of the status page.
func pageFuncs() template.FuncMap {
	return template.FuncMap{"ago": ago, "bytes": bytesText, "count": count, "seconds": seconds, "percent": percent}
}

// ago tells how long ago t was.
func ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return seconds(time.Since(t).Seconds()) + " ago"
}

// seconds writes a time span with one unit.
func seconds(s float64) string {
	switch {
	case s < 0:
		return "0s"
	case s < 10:
		return strconv.FormatFloat(s, 'f', 1, 64) + "s"
	case s < 120:
		return fmt.Sprintf("%.0fs", s)
	case s < 2*3600:
		return fmt.Sprintf("%.0f min", s/60)
	case s < 48*3600:
		return fmt.Sprintf("%.0f h", s/3600)
	}
	return fmt.Sprintf("%.0f d", s/86400)
}

// bytesText writes a size with one unit.
func bytesText(n int64) string {
	f, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + units[i]
}

// count writes a number in groups of three digits.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

func percent(f float64) string { return fmt.Sprintf("%.0f %%", f*100) }
