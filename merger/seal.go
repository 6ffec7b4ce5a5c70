package merger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"applier/storage/paimon"
)

// A seal is a hash over all bytes of a snapshot file, which stands in the
// position record inside that file: snapshot files have no checksum of their
// own, so nothing else would tell a changed count or time in one. While it is
// computed, zeros stand in its place.

// sealBytes is the length of a seal before it is written as hexadecimal digits.
const sealBytes = 16

// openSeal is what stands in place of a seal until it is known.
var openSeal = strings.Repeat("0", 2*sealBytes)

// sealMember is a seal as it stands in a record, sealInFile as it stands in a
// snapshot file, where the record is a text.
func sealMember(seal string) string { return `"seal":"` + seal + `"` }

func sealInFile(seal string) []byte { return []byte(`\"seal\":\"` + seal + `\"`) }

// Errors of CheckSeal.
var (
	// ErrNoSeal: the record was written without one.
	ErrNoSeal = errors.New("the position record has no seal")
	// ErrSeal: the snapshot file is not the one that was written.
	ErrSeal = errors.New("the snapshot file does not match the seal in its position record")
)

// seal computes the seal of a commit whose record under a property was written
// with an open one, and puts it in.
func seal(c *paimon.Commit, property string) error {
	record := c.Snapshot.Properties[property]
	if bytes.Count(c.Bytes, sealInFile(openSeal)) != 1 || strings.Count(record, sealMember(openSeal)) != 1 {
		return fmt.Errorf("sealing snapshot %d: its record has no place for a seal", c.Snapshot.ID)
	}
	sum := sealOf(c.Bytes)
	c.Bytes = bytes.Replace(c.Bytes, sealInFile(openSeal), sealInFile(sum), 1)
	c.Snapshot.Properties[property] = strings.Replace(record, sealMember(openSeal), sealMember(sum), 1)
	return nil
}

func sealOf(file []byte) string {
	h := sha256.Sum256(file)
	return hex.EncodeToString(h[:sealBytes])
}

// CheckSeal compares a snapshot file with the seal in its own position record r.
func CheckSeal(file []byte, r *Record) error {
	switch {
	case r.strange:
		return fmt.Errorf("%w: the record has no seal, but members that records without one never had", ErrSeal)
	case r.Seal == "":
		return ErrNoSeal
	case len(r.Seal) != 2*sealBytes || bytes.Count(file, sealInFile(r.Seal)) != 1:
		return fmt.Errorf("%w: the seal itself is damaged", ErrSeal)
	}
	if sealOf(bytes.Replace(file, sealInFile(r.Seal), sealInFile(openSeal), 1)) != r.Seal {
		return ErrSeal
	}
	return nil
}
