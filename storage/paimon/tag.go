package paimon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"applier/storage/objstore"
)

// Tag is the content of tag/tag-<name>: a snapshot that expiry keeps, with an
// optional end of life (source: Paimon Tag, TagManager).
type Tag struct {
	Snapshot
	// CreateTime is the creator's local wall clock, without zone; UTC stands in
	// for it. The zero time is absent.
	CreateTime time.Time
	// Retained is how long the tag lives; nil is for ever.
	Retained *time.Duration
}

// ParseTag reads a tag file, which may be a plain snapshot.
func ParseTag(b []byte) (*Tag, error) {
	ms, err := parseObject(b)
	var t *Tag
	if err == nil {
		t, err = parseTag(ms)
	}
	if err != nil {
		return nil, corruptUnlessNewer("tag", err)
	}
	return t, nil
}

func parseTag(ms []member) (*Tag, error) {
	s, err := parseSnapshot(ms)
	if err != nil {
		return nil, err
	}
	t := &Tag{Snapshot: *s}
	t.extra = nil
	for _, m := range s.extra {
		switch m.name {
		case "tagCreateTime":
			if t.CreateTime, err = parseLocalDateTime(m.raw); err != nil {
				return nil, fmt.Errorf("tagCreateTime: %w", err)
			}
		case "tagTimeRetained":
			if t.Retained, err = parseSeconds(m.raw); err != nil {
				return nil, fmt.Errorf("tagTimeRetained: %w", err)
			}
		default:
			t.extra = append(t.extra, m)
		}
	}
	return t, nil
}

// Encode returns the bytes of the tag file, as Java writes them.
func (t *Tag) Encode() ([]byte, error) {
	var w jsonWriter
	t.write(&w)
	if !t.CreateTime.IsZero() {
		w.raw("tagCreateTime", appendLocalDateTime(nil, t.CreateTime))
	}
	if t.Retained != nil {
		w.raw("tagTimeRetained", appendSeconds(nil, *t.Retained))
	}
	w.extra(t.extra)
	b, err := w.end()
	if err != nil {
		return nil, fmt.Errorf("writing a tag of snapshot %d: %w", t.ID, err)
	}
	return b, nil
}

// parseLocalDateTime reads [y, M, d, h, m, s, nanos]; what is missing at the end is 0.
func parseLocalDateTime(raw json.RawMessage) (time.Time, error) {
	if string(raw) == "null" {
		return time.Time{}, nil
	}
	var l []int
	if err := json.Unmarshal(raw, &l); err != nil {
		return time.Time{}, err
	}
	if len(l) < 3 || len(l) > 7 {
		return time.Time{}, fmt.Errorf("%d parts", len(l))
	}
	v := [7]int{}
	copy(v[:], l)
	t := time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], v[6], time.UTC)
	if got := [7]int{t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()}; got != v {
		return time.Time{}, fmt.Errorf("no date and time: %v", l)
	}
	return t, nil
}

// appendLocalDateTime leaves out zero seconds and nanoseconds, as Jackson does.
func appendLocalDateTime(dst []byte, t time.Time) []byte {
	dst = fmt.Appendf(dst, "[%d,%d,%d,%d,%d", t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute())
	if t.Second() != 0 || t.Nanosecond() != 0 {
		dst = fmt.Appendf(dst, ",%d", t.Second())
	}
	if t.Nanosecond() != 0 {
		dst = fmt.Appendf(dst, ",%d", t.Nanosecond())
	}
	return append(dst, ']')
}

// parseSeconds reads decimal seconds; a retention beyond 292 years is cut to that.
func parseSeconds(raw json.RawMessage) (*time.Duration, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil {
		return nil, err
	}
	text, neg := strings.CutPrefix(string(n), "-")
	whole, frac, _ := strings.Cut(text, ".")
	if strings.ContainsAny(text, "eE+-") || whole == "" || len(frac) > 9 {
		return nil, fmt.Errorf("%q is no number of seconds", n)
	}
	s, err := strconv.ParseUint(whole, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("%q is no number of seconds", n)
	}
	nanos, err := strconv.ParseUint((frac + "000000000")[:9], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no number of seconds", n)
	}
	d := time.Duration(math.MaxInt64)
	if s < math.MaxInt64/uint64(time.Second) {
		d = time.Duration(s)*time.Second + time.Duration(nanos)
	}
	if neg {
		d = -d
	}
	return &d, nil
}

func appendSeconds(dst []byte, d time.Duration) []byte {
	if d < 0 {
		dst = append(dst, '-')
	}
	u := uint64(d)
	if d < 0 {
		u = -u
	}
	return fmt.Appendf(dst, "%d.%09d", u/1e9, u%1e9)
}

// ReadTag reads a tag, objstore.ErrNotExist if there is none.
func ReadTag(ctx context.Context, b objstore.Bucket, p Paths, name string) (*Tag, error) {
	key, err := p.Tag(name)
	if err != nil {
		return nil, err
	}
	data, err := b.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading tag %q: %w", name, err)
	}
	t, err := ParseTag(data)
	if err != nil {
		return nil, fmt.Errorf("reading tag %q: %w", name, err)
	}
	return t, nil
}

// CreateTag writes a tag; objstore.ErrExist if the name is taken.
func CreateTag(ctx context.Context, b objstore.Bucket, p Paths, name string, t *Tag) error {
	key, err := p.Tag(name)
	if err != nil {
		return err
	}
	data, err := t.Encode()
	if err != nil {
		return err
	}
	if err := b.PutIfAbsent(ctx, key, data); err != nil {
		return fmt.Errorf("creating tag %q: %w", name, err)
	}
	return nil
}

// ListTags returns the names of the tags, sorted.
func ListTags(ctx context.Context, b objstore.Bucket, p Paths) ([]string, error) {
	var names []string
	err := b.List(ctx, p.TagDir(), func(i objstore.Info) error {
		if name, ok := strings.CutPrefix(baseName(i.Key), "tag-"); ok && name != "" && !i.Folder {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing tags: %w", err)
	}
	return names, nil
}

// baseName returns what stands behind the last slash, a folder's own one aside.
func baseName(key string) string {
	key = strings.TrimSuffix(key, "/")
	return key[strings.LastIndexByte(key, '/')+1:]
}
