package datafile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/rle"
)

// The RLE/bit-packing hybrid holds levels, dictionary indexes and booleans of
// V2 pages. Source: parquet-format Encodings.md, "RLE". Reading is ours because
// it must not allocate what a run header claims, and because a batch takes only
// a part of a page.

// hybrid reads values of a fixed bit width (0..32) one after another.
type hybrid struct {
	b      []byte
	width  int
	run    int    // values left in the current run
	value  uint32 // of a repeated run
	packed bool
	acc    uint64 // bits of the packed run, low first
	bits   int    // valid bits in acc
	left   int    // bytes of the packed run not yet in acc
	err    error  // the first error; nothing is read after it
}

func newHybrid(b []byte, width int) hybrid { return hybrid{b: b, width: width} }

// next starts the next run.
func (h *hybrid) next() error {
	if h.err == nil {
		h.err = h.start()
	}
	if h.err != nil {
		h.run = 0
	}
	return h.err
}

func (h *hybrid) start() error {
	h.b = h.b[min(h.left, len(h.b)):] // padding of a packed run
	h.left, h.acc, h.bits = 0, 0, 0
	for h.run == 0 {
		u, n := binary.Uvarint(h.b)
		if n <= 0 {
			return fmt.Errorf("%w: levels or indexes end too early", ErrCorrupt)
		}
		h.b = h.b[n:]
		count := u >> 1
		if count > 1<<31 {
			return fmt.Errorf("%w: a run of %d values", ErrCorrupt, count)
		}
		if h.packed = u&1 != 0; h.packed {
			h.run = int(count) * 8
			// Writers may cut the padding of the last run.
			h.left = min(int(count)*h.width, len(h.b))
			continue
		}
		h.run = int(count)
		k := (h.width + 7) / 8
		if k > len(h.b) {
			return fmt.Errorf("%w: levels or indexes end too early", ErrCorrupt)
		}
		h.value = 0
		for i := k - 1; i >= 0; i-- {
			h.value = h.value<<8 | uint32(h.b[i])
		}
		h.b = h.b[k:]
		if h.width < 32 && h.value>>h.width != 0 {
			return fmt.Errorf("%w: a run of %d in %d bits", ErrCorrupt, h.value, h.width)
		}
	}
	return nil
}

// constant consumes n values and returns true if they all are v and this can
// be seen at once.
func (h *hybrid) constant(n int, v uint32) bool {
	if h.run == 0 && h.next() != nil {
		return false // the caller's next call says why
	}
	if h.packed || h.value != v || h.run < n {
		return false
	}
	h.run -= n
	return true
}

// unpack returns the next value of a packed run.
func (h *hybrid) unpack() (uint32, bool) {
	for h.bits < h.width {
		if h.left >= 4 && h.bits <= 32 {
			h.acc |= uint64(binary.LittleEndian.Uint32(h.b)) << h.bits
			h.b, h.left, h.bits = h.b[4:], h.left-4, h.bits+32
			continue
		}
		if h.left == 0 {
			return 0, false
		}
		h.acc |= uint64(h.b[0]) << h.bits
		h.b, h.left, h.bits = h.b[1:], h.left-1, h.bits+8
	}
	v := uint32(h.acc & (1<<h.width - 1))
	h.acc >>= h.width
	h.bits -= h.width
	return v, true
}

// hybridRead fills dst with the next values.
func hybridRead[T uint8 | uint32](h *hybrid, dst []T) error {
	for len(dst) > 0 {
		if h.run == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		n := min(h.run, len(dst))
		part := dst[:n]
		switch {
		case !h.packed:
			v := T(h.value)
			for i := range part {
				part[i] = v
			}
		case h.width == 1:
			part = part[hybridBits(h, part):]
			fallthrough
		default:
			for i := range part {
				v, ok := h.unpack()
				if !ok {
					return fmt.Errorf("%w: levels or indexes end too early", ErrCorrupt)
				}
				part[i] = T(v)
			}
		}
		h.run -= n
		dst = dst[n:]
	}
	return nil
}

// hybridBits unpacks single bits, eight at a time, and returns how many it did;
// the caller does the rest.
func hybridBits[T uint8 | uint32](h *hybrid, dst []T) int {
	n := 0
	for h.bits > 0 && n < len(dst) {
		dst[n] = T(h.acc & 1)
		h.acc >>= 1
		h.bits--
		n++
	}
	for h.left > 0 && len(dst)-n >= 8 {
		b := h.b[0]
		out := dst[n : n+8 : n+8]
		out[0], out[1], out[2], out[3] = T(b&1), T(b>>1&1), T(b>>2&1), T(b>>3&1)
		out[4], out[5], out[6], out[7] = T(b>>4&1), T(b>>5&1), T(b>>6&1), T(b>>7)
		h.b, h.left = h.b[1:], h.left-1
		n += 8
	}
	return n
}

// appendLevels writes levels with their length in front, as V1 pages have them.
func appendLevels(dst []byte, levels []uint8, maxLevel uint8, scratch *[]byte) ([]byte, error) {
	enc := rle.Encoding{BitWidth: bitWidth(int(maxLevel))}
	b, err := enc.EncodeLevels((*scratch)[:0], levels)
	if err != nil {
		return dst, fmt.Errorf("encoding levels: %w", err)
	}
	*scratch = b
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...), nil
}

// maxValidityBytes is the room that appendValidity may take for n rows.
func maxValidityBytes(n int) int { return 4 + binary.MaxVarintLen32 + (n+7)/8 }

// appendValidity writes the definition levels of a flat nullable column: n rows,
// nulls of them NULL, bit i of valid set if row i is not (valid may be empty if
// all or none are).
func appendValidity(dst []byte, n, nulls int, valid []byte) []byte {
	from := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	switch nulls {
	case 0:
		dst = append(binary.AppendUvarint(dst, uint64(n)<<1), 1)
	case n:
		dst = append(binary.AppendUvarint(dst, uint64(n)<<1), 0)
	default:
		groups := (n + 7) / 8
		dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
		dst = append(dst, valid[:groups]...)
	}
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(dst)-from-4))
	return dst
}

// appendIndexes writes dictionary indexes below count with their bit width in front.
func appendIndexes(dst []byte, idx []int32, count int, scratch *[]byte) ([]byte, error) {
	w := bitWidth(count - 1)
	enc := rle.Encoding{BitWidth: w}
	b, err := enc.EncodeInt32((*scratch)[:0], idx)
	if err != nil {
		return dst, fmt.Errorf("encoding dictionary indexes: %w", err)
	}
	*scratch = b
	return append(append(dst, byte(w)), b...), nil
}

// bitWidth is the number of bits that hold 0..v.
func bitWidth(v int) int {
	n := 0
	for ; v > 0; v >>= 1 {
		n++
	}
	return n
}
