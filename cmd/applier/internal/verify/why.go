package verify

import (
	"fmt"
	"io"
	"time"
)

// why is the sentence at the end: why the key has its value, or none.
func (e *explainer) why() string {
	h := e.h
	state := fmt.Sprintf("%s has %d live rows", h.Key, len(h.Rows))
	switch len(h.Rows) {
	case 0:
		state = h.Key + " has no row"
	case 1:
		state = h.Key + " has its value"
	}
	var last *Event
	for i := range h.Events {
		ev := &h.Events[i]
		// The first retained snapshot shows what is there, not who put it there, unless
		// nothing came before it.
		known := i > 0 || ev.Snapshot == 1
		if known && len(ev.Added)+len(ev.Removed) > 0 && ev.Kind != "COMPACT" {
			last = ev
		}
	}
	if last == nil {
		if len(h.Rows) == 0 {
			return fmt.Sprintf("%s: no retained snapshot (%d to %d) holds a row of it or removed one.", state, e.r.Earliest, e.r.Latest)
		}
		return fmt.Sprintf("%s since before snapshot %d, the oldest that is retained.", state, e.r.Earliest)
	}
	if !last.own {
		return fmt.Sprintf("%s because of snapshot %d, committed by %s; nothing has changed it since.", state, last.Snapshot, last.Writer)
	}
	for i := len(last.Records) - 1; i >= 0; i-- {
		if r := last.Records[i]; r.Outcome == string(applied) {
			return fmt.Sprintf("%s because the %s at %s offset %d (%s) was applied in snapshot %d; nothing has changed it since.",
				state, r.Op, r.Partition, r.Offset, r.Time.Format(time.RFC3339), last.Snapshot)
		}
	}
	reason := ""
	if h.Records != "" {
		reason = " (" + h.Records + ")"
	}
	return fmt.Sprintf("%s because of the records %v applied in snapshot %d; which of them it was is not known%s.", state, last.Ranges, last.Snapshot, reason)
}

// Print writes the history for people.
func (h *History) Print(w io.Writer) {
	fmt.Fprintf(w, "pipeline %s, table %s, key %s\n", h.Pipeline, h.Table, h.Key)
	fmt.Fprintf(w, "\nsnapshot %d has %d row(s):\n", h.Latest, len(h.Rows))
	for _, p := range h.Rows {
		fmt.Fprintf(w, "  %s\n    in %s, row %d\n", p.Row, p.File, p.Pos)
	}
	for i := range h.Events {
		h.Events[i].print(w)
	}
	if h.Records != "" {
		fmt.Fprintf(w, "\nrecords: %s\n", h.Records)
	}
	fmt.Fprintf(w, "\n%s\n", h.Why)
}

func (ev *Event) print(w io.Writer) {
	kind := ev.Kind
	if ev.Operation != "" {
		kind += " " + ev.Operation
	}
	fmt.Fprintf(w, "\nsnapshot %d, %s, %s, by %s\n", ev.Snapshot, ev.Time.Format(time.RFC3339), kind, ev.Writer)
	for _, r := range ev.Ranges {
		fmt.Fprintf(w, "  applied %s\n", r)
	}
	for _, r := range ev.Records {
		fmt.Fprintf(w, "  %s offset %d, %s, %s: %s\n", r.Partition, r.Offset, r.Time.Format(time.RFC3339), r.Op, r.Outcome)
	}
	for _, p := range ev.Removed {
		fmt.Fprintf(w, "  - %s (%s row %d)\n", p.Row, p.File, p.Pos)
	}
	for _, p := range ev.Added {
		fmt.Fprintf(w, "  + %s (%s row %d)\n", p.Row, p.File, p.Pos)
	}
}
