package keyindex

import "math/bits"

// shard is one table of entries with the same top bits of the hash: an array of
// slots of w words, (hash, loc) or (hash, low, loc), where loc 0 is an empty
// slot. Three rules hold between calls:
//
//   - occupied slots are in ascending order of (hash, low, loc);
//   - every entry lies at its home slot or behind it with no empty slot between,
//     home being the hash scaled to the home range, so it ascends with the hash;
//   - the last slot is empty, and tailSlots or more lie behind the home range.
//
// The first two leave exactly one arrangement of a set of entries: each one lies
// at the larger of its home and the slot after its predecessor. From a home on,
// "empty or not below (hash, low, loc)" is false, then true for good: a search
// may leap, so a run of 100,000 rows of one key costs its neighbours a few
// probes, not 100,000.
type shard struct {
	t     []uint64 // slots*w words
	homes uint64   // size of the home range, in slots
	n     int      // occupied slots
	end   int      // no slot from here on is occupied
	limit int      // entries beyond which the shard grows
	w     int
	bits  uint
	id    int
	phase float64
	bytes []byte // the memory of t
}

func (s *shard) setHomes(homes uint64) {
	s.homes = homes
	s.limit = int(float64(homes) * maxLoad)
}

func (s *shard) slots() int { return len(s.t) / s.w }

// home is the slot of a hash: its bits below the shard's, scaled to the home range.
func (s *shard) home(hash uint64) int {
	hi, _ := bits.Mul64(hash<<s.bits, s.homes)
	return int(hi)
}

func (s *shard) used(slot int) bool { return s.t[slot*s.w+s.w-1] != 0 }

func (s *shard) loc(slot int) Loc { return Loc(s.t[slot*s.w+s.w-1]) }

// sameKey reports whether the occupied slot has this hash (and low).
func (s *shard) sameKey(slot int, hash, low uint64) bool {
	i := slot * s.w
	return s.t[i] == hash && (s.w == 2 || s.t[i+1] == low) && s.t[i+s.w-1] != 0
}

// below reports whether the slot is occupied by an entry below (hash, low, loc).
func (s *shard) below(slot int, hash, low, loc uint64) bool {
	i := slot * s.w
	e := s.t[i : i+s.w : i+s.w]
	at := e[len(e)-1]
	switch {
	case at == 0:
		return false
	case e[0] != hash:
		return e[0] < hash
	case len(e) == 3 && e[1] != low:
		return e[1] < low
	}
	return at < loc
}

const (
	// window is the number of slots that find looks at without a branch.
	window = 4
	// near is how many slots seek tries one by one before it leaps.
	near = 16
)

// find returns the first slot of the run of a key, or the one where it would be.
// Most entries lie within four slots of their home, at a distance that no branch
// predictor can guess; so those are counted with arithmetic: at 10 million keys
// a fifth of the time of a lookup.
func (s *shard) find(hash, low uint64) int {
	home := s.home(hash)
	i := home * s.w
	var below uint64
	if s.w == 2 {
		e := (*[2 * window]uint64)(s.t[i : i+2*window])
		below = smaller(e[0], e[1], hash) + smaller(e[2], e[3], hash) + smaller(e[4], e[5], hash) + smaller(e[6], e[7], hash)
	} else {
		e := (*[3 * window]uint64)(s.t[i : i+3*window])
		below = smaller(e[0], e[2], hash) + smaller(e[3], e[5], hash) + smaller(e[6], e[8], hash) + smaller(e[9], e[11], hash)
	}
	return s.seek(home+int(below), hash, low, 0)
}

// smaller is 1 if the slot is occupied and its hash smaller, else 0.
func smaller(h, loc, hash uint64) uint64 {
	_, less := bits.Sub64(h, hash, 0)
	_, used := bits.Sub64(0, loc, 0)
	return less & used
}

// seek returns the first slot from slot on that is empty or not below
// (hash, low, loc). slot must not lie behind the entry's place: its home does,
// and so does the result of a seek for less.
func (s *shard) seek(slot int, hash, low, loc uint64) int {
	for end := slot + near; slot < end; slot++ {
		if !s.below(slot, hash, low, loc) {
			return slot
		}
	}
	// Everything before lo is below, hi is not: double the step, then halve it.
	lo, last := slot, s.slots()-1
	hi := lo
	for step := near; s.below(hi, hash, low, loc); step *= 2 {
		lo = hi + 1
		hi = min(hi+step, last)
	}
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if s.below(mid, hash, low, loc) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// insertAt puts an entry into the slot that seek returned, moving what is in its
// way one slot on; it returns how much that was. A slot must be free behind the
// last occupied one (reserve).
func (s *shard) insertAt(slot int, hash, low uint64, loc Loc) (moved int) {
	hole := slot
	for s.used(hole) {
		hole++
	}
	w := s.w
	copy(s.t[(slot+1)*w:(hole+1)*w], s.t[slot*w:hole*w])
	e := s.t[slot*w : slot*w+w]
	e[0], e[1], e[w-1] = hash, low, uint64(loc)
	s.n++
	s.end = max(s.end, hole+1)
	return hole - slot
}

// remove takes out the entries in slots [from, to) and moves those behind them
// back, to their homes at most.
func (s *shard) remove(from, to int) {
	w := s.w
	clear(s.t[from*w : to*w])
	s.n -= to - from
	next := from
	for q := to; s.used(q); q++ {
		p := max(s.home(s.t[q*w]), next)
		if p == q {
			return // this one and all behind it are where they belong
		}
		s.move(p, q)
		next = p + 1
	}
}

// move moves the entry of slot from to the empty slot to (or to itself).
func (s *shard) move(to, from int) {
	w := s.w
	src := s.t[from*w : from*w+w]
	hash, low, loc := src[0], src[1], src[w-1]
	src[0], src[1], src[w-1] = 0, 0, 0
	dst := s.t[to*w : to*w+w]
	dst[0], dst[1], dst[w-1] = hash, low, loc
}
