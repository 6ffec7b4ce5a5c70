package verify

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Status is what became of a check.
type Status string

// The statuses.
const (
	OK         Status = "ok"
	Failed     Status = "failed"
	NotChecked Status = "not checked"
)

// Report is the result of a verification.
type Report struct {
	Pipeline string `json:"pipeline"`
	Table    string `json:"table"`
	Full     bool   `json:"full"`
	// Earliest and Latest are the retained snapshots at the start of the check.
	Earliest int64 `json:"earliest_snapshot"`
	Latest   int64 `json:"latest_snapshot"`
	// Verdict is OK: everything that was to be checked holds; Failed: the table is
	// damaged; NotChecked: no damage was found, but something could not be read.
	Verdict  Status     `json:"verdict"`
	Sections []*Section `json:"sections"`
	Seconds  float64    `json:"seconds"`
}

// Section is one kind of check.
type Section struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Reason says why something was not checked. Excused: that is in the nature of
	// the thing (expired records, --offline) and no reason for doubt.
	Reason  string `json:"reason,omitempty"`
	Excused bool   `json:"excused,omitempty"`
	// Counts say how much was checked.
	Counts []Count `json:"counts,omitempty"`
	// Notes are facts that are no damage.
	Notes []string `json:"notes,omitempty"`
	// Findings are the first differences, Total all of them.
	Findings []Finding `json:"findings,omitempty"`
	Total    int       `json:"findings_total"`
}

// Count is a number and what it counts.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Finding is one difference.
type Finding struct {
	// File is the damaged file, a key below the table's folder; Key the merge key
	// of the row. Either may be missing.
	File string `json:"file,omitempty"`
	Key  string `json:"key,omitempty"`
	What string `json:"what"`
}

// maxFindings is how many differences a section shows.
const maxFindings = 20

// Count returns a number of a section, 0 if it has none of that name.
func (r *Report) Count(section, name string) int64 {
	for _, s := range r.Sections {
		for _, c := range s.Counts {
			if s.Name == section && c.Name == name {
				return c.N
			}
		}
	}
	return 0
}

func (s *Section) count(name string, n int64) {
	for i := range s.Counts {
		if s.Counts[i].Name == name {
			s.Counts[i].N += n
			return
		}
	}
	s.Counts = append(s.Counts, Count{name, n})
}

func (s *Section) note(format string, a ...any) { s.Notes = append(s.Notes, fmt.Sprintf(format, a...)) }

// fail records a difference.
func (s *Section) fail(file, key, format string, a ...any) {
	s.Status = Failed
	if s.Total++; len(s.Findings) < maxFindings {
		s.Findings = append(s.Findings, Finding{file, key, fmt.Sprintf(format, a...)})
	}
}

// unread says that something could not be read, which is no damage.
func (s *Section) unread(format string, a ...any) {
	if s.Status != Failed {
		s.Status, s.Excused = NotChecked, false
	}
	if s.Reason == "" {
		s.Reason = fmt.Sprintf(format, a...)
	}
}

// skip says that there is nothing to check, and why.
func (s *Section) skip(format string, a ...any) {
	if s.Status == OK {
		s.Status, s.Excused, s.Reason = NotChecked, true, fmt.Sprintf(format, a...)
	}
}

// readError sorts an error of reading a file: damage, or out of reach.
func (s *Section) readError(file string, err error) {
	if outOfReach(err) {
		s.unread("%s: %v", file, err)
		return
	}
	s.fail(file, "", "%v", err)
}

// section begins a kind of check.
func (r *Report) section(name string) *Section {
	s := &Section{Name: name, Status: OK}
	r.Sections = append(r.Sections, s)
	return s
}

func (r *Report) finish(from time.Time) {
	r.Seconds = time.Since(from).Seconds()
	r.Verdict = OK
	for _, s := range r.Sections {
		switch {
		case s.Status == Failed:
			r.Verdict = Failed
			return
		case s.Status == NotChecked && !s.Excused:
			r.Verdict = NotChecked
		}
	}
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	mode := ""
	if r.Full {
		mode = ", every row read"
	}
	fmt.Fprintf(w, "pipeline %s, table %s, snapshots %d to %d%s\n\n", r.Pipeline, r.Table, r.Earliest, r.Latest, mode)
	for _, s := range r.Sections {
		s.print(w)
	}
	fmt.Fprintf(w, "\n%s (%.1f s)\n", r.sentence(), r.Seconds)
}

func (s *Section) print(w io.Writer) {
	var counts []string
	for _, c := range s.Counts {
		counts = append(counts, fmt.Sprintf("%d %s", c.N, c.Name))
	}
	fmt.Fprintf(w, "%-12s %-11s %s\n", s.Name, s.Status, strings.Join(counts, ", "))
	if s.Reason != "" {
		fmt.Fprintf(w, "    %s\n", s.Reason)
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "    note: %s\n", n)
	}
	for _, f := range s.Findings {
		var where []string
		if f.File != "" {
			where = append(where, f.File)
		}
		if f.Key != "" {
			where = append(where, "key "+f.Key)
		}
		fmt.Fprintf(w, "  ! %s: %s\n", strings.Join(where, ", "), f.What)
	}
	if more := s.Total - len(s.Findings); more > 0 {
		fmt.Fprintf(w, "    and %d more\n", more)
	}
}

func (r *Report) sentence() string {
	switch r.Verdict {
	case OK:
		return "The table is proven: everything that could be compared agrees."
	case Failed:
		return "The table is DAMAGED; see the lines marked with !, and T-CORRUPT in docs/operations.md."
	}
	return "No damage was found, but not everything could be read; see \"not checked\"."
}
