package decode

import (
	"bytes"
	"encoding/binary"

	"applier/storage/types"
)

// Limits of what a decoder learns of names it was not asked for.
const (
	maxExtraNames = 512
	maxNameLength = 1024
)

// slot is one member name of an object.
type slot struct {
	quoted []byte // the name with comma, quotes and colon, as last seen
	word   uint64 // the first eight bytes of quoted, mask those there are
	mask   uint64
	next   *slot  // the member that followed this one last time
	seen   uint64 // object in which the name was seen last
	id     int    // the owner's number; negative: the value is not wanted
	conv   conv   // row images only
}

// members finds the members of objects of one shape. Producers write members
// in the same order again and again, so each slot remembers its successor and a
// name is usually found by one comparison of bytes, without a map.
type members struct {
	byName map[string]*slot
	head   slot // before the first member
	prev   *slot
	object uint64
	extra  int
	rest   slot // every name beyond maxExtraNames
	// unknown, if set, is told once of each name that add did not announce.
	unknown func(name string)
}

// add announces a name. Names are expected in the order of the calls.
func (m *members) add(name string, id int) *slot {
	if m.byName == nil {
		m.byName = make(map[string]*slot)
		m.prev = &m.head
	}
	if sl := m.byName[name]; sl != nil {
		return sl
	}
	sl := &slot{id: id}
	sl.setQuoted(quote([]byte(name)))
	m.byName[name] = sl
	m.prev.next = sl
	m.prev = sl
	return sl
}

// quote returns a name as JSON writes it between its neighbours.
func quote(name []byte) []byte { return append(types.AppendJSONString([]byte{','}, name), ':') }

// setQuoted changes the text by which a slot is recognised.
func (sl *slot) setQuoted(text []byte) {
	var first [8]byte
	n := copy(first[:], text)
	sl.quoted, sl.word, sl.mask = text, binary.LittleEndian.Uint64(first[:]), 1<<(8*n)-1
}

// open enters the object at s and returns its first member, whose value is
// next. It returns nil at the end of the object and on an error.
func (m *members) open(s *scanner) *slot {
	m.object++
	m.prev = &m.head
	if !s.begin() {
		return nil
	}
	if sl := m.head.next; sl != nil && bytes.HasPrefix(s.b[s.p:], sl.quoted[1:]) {
		s.p += len(sl.quoted) - 1
		return m.take(s, sl)
	}
	if !s.more(true) {
		return nil
	}
	return m.take(s, m.search(s))
}

// next returns the member after the value that was just read.
func (m *members) next(s *scanner) *slot {
	b, p, sl := s.b, s.p, m.prev.next
	if sl != nil && p+8 <= len(b) && binary.LittleEndian.Uint64(b[p:])&sl.mask == sl.word {
		if q := sl.quoted; len(q) <= 8 || bytes.HasPrefix(b[p+8:], q[8:]) {
			s.p = p + len(q)
			return m.take(s, sl)
		}
	}
	if !s.more(false) {
		return nil
	}
	return m.take(s, m.search(s))
}

// take notes that the object has the member and refuses a second one of its
// name. Among names beyond maxExtraNames duplicates go unseen: their values are
// not used either.
func (m *members) take(s *scanner, sl *slot) *slot {
	if sl == nil {
		return nil
	}
	if sl.seen == m.object && sl != &m.rest {
		s.fail(s.p, badMember)
		return nil
	}
	sl.seen = m.object
	m.prev = sl
	return sl
}

// search finds a name that did not come as expected.
func (m *members) search(s *scanner) *slot {
	if sl := m.prev.next; sl != nil && bytes.HasPrefix(s.b[s.p:], sl.quoted[1:]) {
		s.p += len(sl.quoted) - 1 // only white space before the name was unexpected
		return sl
	}
	start := s.p
	name, escaped, ok := s.name()
	if !ok {
		return nil
	}
	sl := m.byName[string(name)]
	if sl == nil {
		sl = m.learn(name)
	}
	if escaped && len(name) <= maxNameLength && sl != &m.rest {
		sl.setQuoted(append([]byte{','}, s.b[start:s.p]...)) // this producer escapes the name
	}
	if sl != &m.rest { // which stands for many names and predicts none
		m.prev.next = sl
	}
	return sl
}

// learn adds a name nobody asked for.
func (m *members) learn(name []byte) *slot {
	if m.extra >= maxExtraNames || len(name) > maxNameLength {
		m.rest.id = -1
		return &m.rest
	}
	m.extra++
	text := string(name)
	sl := &slot{id: -1}
	sl.setQuoted(quote(name))
	if m.byName == nil {
		m.byName = make(map[string]*slot)
	}
	m.byName[text] = sl
	if m.unknown != nil {
		m.unknown(text)
	}
	return sl
}
