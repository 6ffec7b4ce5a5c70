package manifest

import "fmt"

// Merge applies entries in order and returns what is left, in order: an ADD and
// the DELETE behind it cancel each other, a DELETE without its ADD stays. The
// order is that of the lists, base before delta. A file that is added twice or
// deleted twice is ErrInconsistent (source: Paimon FileEntry.mergeEntries).
func Merge(lists ...[]Entry) ([]Entry, error) {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	all := make([]*Entry, 0, n)
	at := make(map[ID]int, n)
	left := 0
	for _, l := range lists {
		for i := range l {
			e := &l[i]
			id := e.ID()
			j, seen := at[id]
			switch {
			case !seen:
				at[id] = len(all)
				all = append(all, e)
				left++
			case e.Kind == Delete && all[j].Kind == Add:
				all[j] = nil
				delete(at, id)
				left--
			default:
				return nil, fmt.Errorf("%w: %s behind %s of %s", ErrInconsistent, e.Kind, all[j].Kind, id)
			}
		}
	}
	merged := make([]Entry, 0, left)
	for _, e := range all {
		if e != nil {
			merged = append(merged, *e)
		}
	}
	return merged, nil
}

// Live is Merge for a complete state, in which no DELETE may be left.
func Live(lists ...[]Entry) ([]Entry, error) {
	merged, err := Merge(lists...)
	if err != nil {
		return nil, err
	}
	for i := range merged {
		if merged[i].Kind != Add {
			return nil, fmt.Errorf("%w: DELETE of %s, which is not there", ErrInconsistent, merged[i].ID())
		}
	}
	return merged, nil
}
