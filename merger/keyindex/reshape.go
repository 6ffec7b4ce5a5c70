package keyindex

import "math/bits"

// change is what reshape does to a shard.
type change struct {
	add    []uint64       // sorted entries to merge
	extra  int            // more entries to make room for
	keep   func(Loc) bool // if not nil, entries it refuses are dropped
	shrink bool           // give memory back if much is free
}

// reshape rebuilds a shard in place and returns how many entries it dropped. It
// takes no memory beyond the shard's new size. On ErrMemory the shard keeps its
// old size and does not have c.add; dropped entries are gone all the same.
func (s *shard) reshape(mem *arena, c change) (dropped int, err error) {
	dropped = s.n
	s.pack(c.keep)
	dropped -= s.n
	homes := s.homes
	total := s.n + len(c.add)/s.w + c.extra
	want := homesFor(total, s.phase)
	if total > s.limit {
		homes = max(homes, want)
	} else if c.shrink && want < homes-homes/8 {
		homes = want
	}
	end := s.measure(homes, c.add)
	slots := max(int(homes), end) + tailSlots
	if slots > s.slots() && (homes != s.homes || end >= s.slots()) {
		if err := mem.resize(s, slots); err != nil {
			s.place(nil)
			return dropped, err
		}
	}
	s.setHomes(homes)
	s.place(c.add)
	if spare := s.slots() - slots; spare > slots/16 {
		return dropped, mem.resize(s, slots)
	}
	return dropped, nil
}

// reshape is the shard's, with the index's counters.
func (x *Index) reshape(s *shard, c change) error {
	before := s.n
	dropped, err := s.reshape(x.mem, c)
	x.entries += int64(s.n - before)
	x.count.reclaimed += int64(dropped)
	return err
}

// pack moves all entries to the front of the array, without those that keep refuses.
func (s *shard) pack(keep func(Loc) bool) {
	t, w := s.t, s.w
	i, end := 0, s.end*w
	for j := 0; j < end; j += w {
		// Empty slots come at random: written without a branch on them, each
		// is overwritten by the next entry.
		loc := t[j+w-1]
		_, used := bits.Sub64(0, loc, 0)
		if keep != nil && loc != 0 && !keep(Loc(loc)) {
			used = 0
		}
		t[i], t[i+1], t[i+w-1] = t[j], t[j+1], loc
		i += w & -int(used)
	}
	s.n = i / w
}

// measure returns where the last entry would end if the packed entries and add
// were placed in a home range of that size.
func (s *shard) measure(homes uint64, add []uint64) int {
	t, w, shift := s.t, s.w, s.bits
	next, i, end := 0, 0, s.n*w
	for ; len(add) > 0; add = add[w:] {
		for ; i < end && t[i] <= add[0]; i += w {
			hi, _ := bits.Mul64(t[i]<<shift, homes)
			next = max(int(hi), next) + 1
		}
		hi, _ := bits.Mul64(add[0]<<shift, homes)
		next = max(int(hi), next) + 1
	}
	for ; i < end; i += w {
		hi, _ := bits.Mul64(t[i]<<shift, homes)
		next = max(int(hi), next) + 1
	}
	return next
}

// place spreads the packed entries, merged with add, over the array. They first
// go to its back, then one by one to their places; a place never lies behind the
// next entry to be moved, as all that is still to come must fit between.
func (s *shard) place(add []uint64) {
	w, n := s.w, s.n
	s.n += len(add) / w
	from, to, next := s.slots()-n, s.slots(), 0
	copy(s.t[from*w:], s.t[:n*w])
	clear(s.t[:from*w])
	for ; len(add) > 0; add = add[w:] {
		before := from
		for before < to && lessEntry(s.t[before*w:before*w+w], add[:w]) {
			before++
		}
		next = s.spread(from, before, next)
		from = before
		p := max(s.home(add[0]), next)
		e := s.t[p*w : p*w+w]
		e[0], e[1], e[w-1] = add[0], add[1], add[w-1]
		next = p + 1
	}
	s.end = s.spread(from, to, next)
}

// spread moves the entries of slots [from, to), one by one, to their places from
// slot next on, and returns the slot behind the last one.
func (s *shard) spread(from, to, next int) int {
	for ; from < to; from++ {
		p := max(s.home(s.t[from*s.w]), next)
		s.move(p, from)
		next = p + 1
	}
	return next
}
