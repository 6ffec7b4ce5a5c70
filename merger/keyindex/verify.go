package keyindex

import (
	"bytes"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"applier/storage/types"
)

// hashBytes is how types.KeyEncoder hashes the canonical bytes of a long key.
func hashBytes(b []byte) uint64 { return types.Mix64(xxhash.Sum64(b)) }

// verify drops from the matches of the last len(block) keys the rows whose keys
// only have the same hash. first is where their matches begin.
func (x *Index) verify(keys *types.Keys, block []uint32, first int, m *Matches) error {
	found := m.Loc[first:]
	var sum uint64
	for _, l := range found { // the offsets into the caches
		sum += uint64(x.segs.get(l.Segment()).side.off[l.Pos()])
	}
	for _, l := range found { // the bytes into the caches
		s := x.segs.get(l.Segment()).side
		if o := int(s.off[l.Pos()]); o < len(s.data) {
			sum += uint64(s.data[o])
		}
	}
	x.touched += sum
	out, base := first, len(m.Start)-1-len(block)
	at := first
	for j, i := range block {
		key := keys.Bytes(int(i))
		for end := int(m.Start[base+j+1]); at < end; at++ {
			l := m.Loc[at]
			same, err := x.segs.get(l.Segment()).side.equal(l.Pos(), key, keys.Hash[i], x.hashBytes)
			switch {
			case err != nil:
				return err
			case same:
				m.Loc[out] = l
				out++
			default:
				x.count.collisions++
			}
		}
		m.Start[base+j+1] = uint32(out)
	}
	m.Loc = m.Loc[:out]
	return nil
}

// key returns the canonical bytes of a row. It touches the mapping: under guard only.
func (s *sidecar) key(pos uint32) ([]byte, error) {
	if uint64(pos)+1 >= uint64(len(s.off)) {
		return nil, fmt.Errorf("key sidecar: row %d of %d", pos, len(s.off)-1)
	}
	from, to := s.off[pos], s.off[pos+1]
	if from > to || int(to) > len(s.data) {
		return nil, fmt.Errorf("key sidecar: row %d lies at %d to %d of %d bytes", pos, from, to, len(s.data))
	}
	return s.data[from:to], nil
}

// equal reports whether the row's key is key, whose hash the row's entry has.
// Different bytes of the same hash are so rare that they are worth a second
// look: if they do not have that hash, they are not what was written.
func (s *sidecar) equal(pos uint32, key []byte, hash uint64, rehash func([]byte) uint64) (bool, error) {
	b, err := s.key(pos)
	if err != nil {
		return false, err
	}
	if bytes.Equal(b, key) {
		return true, nil
	}
	if rehash(b) != hash {
		return false, fmt.Errorf("key sidecar: row %d does not have the bytes written to it", pos)
	}
	return false, nil
}

// checkKey verifies that a long key's bytes have the hash of its entry.
func (x *Index) checkKey(l Loc, hash uint64) error {
	side := x.segs.get(l.Segment()).side
	if side == nil || side.f != nil {
		return nil // still growing
	}
	key, err := side.key(l.Pos())
	if err == nil && x.hashBytes(key) != hash {
		err = fmt.Errorf("key sidecar: row %d does not have the bytes written to it", l.Pos())
	}
	return err
}
