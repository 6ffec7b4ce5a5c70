package decode

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"applier/storage/types"
)

// placeholder recognises Debezium's stand-in for a value the database did not
// send (unchanged TOAST, LOB), in each form that column types give it (source:
// Debezium's UnchangedToastedPlaceholder).
type placeholder struct {
	texts    [][]byte // as a string's content
	nested   [][]byte // as the raw token of an array or object
	shortest int      // length of the shortest text
}

// newPlaceholder returns the forms of a configured placeholder, which may be
// given as hex:… like at the producer; nil if it is switched off.
func newPlaceholder(text string) (*placeholder, error) {
	if text == "" {
		return nil, nil
	}
	raw := []byte(text)
	if digits, ok := strings.CutPrefix(text, "hex:"); ok {
		var err error
		if raw, err = hex.DecodeString(digits); err != nil || len(raw) == 0 {
			return nil, fmt.Errorf("unavailable value placeholder: hex: must be followed by hexadecimal digits")
		}
	}
	quoted := string(types.AppendJSONString(nil, raw))
	std, url := base64.StdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw)
	ints := make([]string, len(raw))
	for i, c := range raw {
		ints[i] = strconv.Itoa(int(c))
	}
	p := &placeholder{
		shortest: len(raw),
		nested: [][]byte{
			[]byte("[" + quoted + "]"),                  // text[], varchar[], json[]
			[]byte(`["` + std + `"]`),                   // bytea[]
			[]byte("[" + strings.Join(ints, ",") + "]"), // int4[], int8[], date[]
			[]byte(`["` + nameUUID(raw) + `"]`),         // uuid[]
			[]byte("{" + quoted + ":" + quoted + "}"),   // hstore as a map
		},
	}
	for _, form := range []string{string(raw), std, url, hex.EncodeToString(raw), "{" + quoted + ":" + quoted + "}"} {
		if !containsBytes(p.texts, []byte(form)) {
			p.texts = append(p.texts, []byte(form))
		}
	}
	return p, nil
}

func containsBytes(list [][]byte, b []byte) bool {
	for _, x := range list {
		if bytes.Equal(x, b) {
			return true
		}
	}
	return false
}

// is reports whether the value is the placeholder. It looks at the wire form,
// before any conversion, which would choke on it.
func (p *placeholder) is(t *token) bool {
	switch t.kind {
	case kindString:
		return len(t.text) >= p.shortest && containsBytes(p.texts, t.text)
	case kindArray, kindObject:
		return containsBytes(p.nested, t.raw)
	}
	return false
}

// nameUUID is Java's UUID.nameUUIDFromBytes: version 3 without a namespace.
func nameUUID(b []byte) string {
	sum := md5.Sum(b)
	sum[6] = sum[6]&0x0f | 0x30
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
