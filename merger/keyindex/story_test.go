package keyindex

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestStories runs the stories of testdata/stories, each for every kind of key:
// what the index says must not depend on that (but for long keys that share
// hashes, whose stale rows are found later). Commands:
//
//	build                     bulk load; each line of input is a file's keys
//	file 1 2 null 1x500 7-9   a new file, with its rows' keys
//	announce rows=3           a new file, its rows to follow
//	rows file=1 from=0 1 2    rows of it
//	delete file=1 0 3 5-9     its deletion vector
//	remove file=1             it is gone
//	lookup 1 2 null           the rows of each key, as file/position
//	sweep, check, stats
func TestStories(t *testing.T) {
	forSpaces(t, func(t *testing.T, s keySpace) {
		if s.name == "bytes colliding" {
			return
		}
		datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
			st := &story{s: s, x: s.new(t, Options{})}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				st.t = t
				out, err := st.command(d)
				if err != nil {
					return "error: " + err.Error() + "\n"
				}
				return out
			})
		})
	})
}

type story struct {
	t *testing.T
	s keySpace
	x *Index
}

func (st *story) command(d *datadriven.TestData) (string, error) {
	args := map[string]uint32{}
	var words []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 1 {
			n, err := strconv.ParseUint(a.Vals[0], 10, 32)
			require.NoError(st.t, err)
			args[a.Key] = uint32(n)
		} else {
			words = append(words, a.Key)
		}
	}
	x, ids := st.x, st.ids(words)
	switch d.Cmd {
	case "build":
		return "", st.build(strings.Split(d.Input, "\n"))
	case "file":
		seg, err := x.AddSegment(uint32(len(ids)))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("file %d\n", seg), x.Add(seg, 0, st.s.keys(ids...))
	case "announce":
		seg, err := x.AddSegment(args["rows"])
		return fmt.Sprintf("file %d\n", seg), err
	case "rows":
		return "", x.Add(args["file"], args["from"], st.s.keys(ids...))
	case "delete":
		dv := roaring.New()
		for _, pos := range ids {
			dv.Add(uint32(pos))
		}
		return "", x.SetDeleted(args["file"], dv)
	case "remove":
		return "", x.RemoveSegment(args["file"])
	case "lookup":
		return st.lookup(ids)
	case "sweep":
		_, err := x.Sweep(0)
		return "", err
	case "check":
		return "", x.Check()
	case "stats":
		v := x.Stats()
		return fmt.Sprintf("entries %d, live %d, stale %d, null %d, files %d\n", v.Entries, v.Live, v.Stale, v.NullRows, v.Segments), nil
	}
	return "", fmt.Errorf("unknown command %q", d.Cmd)
}

// ids reads numbers: plain, null, NxM for M times N, A-B for a range.
func (st *story) ids(words []string) []int {
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		require.NoError(st.t, err)
		return n
	}
	var out []int
	for _, w := range words {
		if w == "null" {
			out = append(out, -1)
		} else if key, n, ok := strings.Cut(w, "x"); ok {
			out = append(out, repeat(number(key), number(n))...)
		} else if from, to, ok := strings.Cut(w, "-"); ok {
			out = append(out, sequence(number(from), number(to)-number(from)+1)...)
		} else {
			out = append(out, number(w))
		}
	}
	return out
}

func (st *story) build(files []string) error {
	var segs []uint32
	var keys [][]int
	for _, line := range files {
		ids := st.ids(strings.Fields(line))
		seg, err := st.x.AddSegment(uint32(len(ids)))
		if err != nil {
			return err
		}
		segs, keys = append(segs, seg), append(keys, ids)
	}
	b, err := st.x.NewBuilder(0)
	if err != nil {
		return err
	}
	for i, seg := range segs {
		if err := b.Add(seg, 0, st.s.keys(keys[i]...)); err != nil {
			return err
		}
	}
	return b.Finish()
}

func (st *story) lookup(ids []int) (string, error) {
	var m Matches
	if err := st.x.Lookup(st.s.keys(ids...), nil, &m); err != nil {
		return "", err
	}
	var b strings.Builder
	for j, id := range ids {
		fmt.Fprintf(&b, "%d:", id)
		for _, l := range m.Rows(j) {
			fmt.Fprintf(&b, " %d/%d", l.Segment(), l.Pos())
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
