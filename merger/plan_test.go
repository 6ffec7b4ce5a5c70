package merger

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/keyindex"
	"applier/merger/tombstones"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestPlan_Stories runs testdata/plan: what a batch does to a table. Commands:
//
//	table apply=… key=(a,b) [order-by=(a)] [tie=first|dead_letter] [late=apply|dead_letter] [remember]
//	    columns, separated by semicolons; a word after DEFAULT is the default
//	when
//	    the clauses of apply=merge, one a line
//	file [deleted=(0,2)]
//	    rows of a data file: name=value, a name that is left out is NULL
//	plan
//	    changes, one a line: put or del, [part=1] [old=(1)] [time=ms], then cells;
//	    of a put, - is absent, ? unavailable, a name left out is NULL
//
// plan prints what it decided: positions by file, rows, counts, refused changes,
// changes sent away for their place in the order, how many deletes are
// remembered if that changed. Deletes are remembered from one plan to the next, but the table
// stays as it is.
func TestPlan_Stories(t *testing.T) {
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		var s *planStory
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			switch c.Cmd {
			case "table":
				if s != nil {
					s.close(t)
				}
				s = newPlanStory(t, c)
				return ""
			case "when":
				clauses, err := ParseMerge(strings.Split(c.Input, "\n"))
				require.NoError(t, err)
				s.set.Merge = &Merge{Clauses: clauses, SkipUnchanged: c.HasArg("skip-unchanged")}
				return ""
			case "file":
				s.file(t, c)
				return ""
			case "plan":
				return s.plan(t, c)
			}
			c.Fatalf(t, "unknown command %s", c.Cmd)
			return ""
		})
		if s != nil {
			s.close(t)
		}
	})
}

// planStory is a table as planning sees it: an index, and files that are batches.
type planStory struct {
	fields []types.Field
	set    Settings
	enc    *types.KeyEncoder
	index  *keyindex.Index
	files  map[uint32]*types.Batch
	memory *tombstones.Set
}

func newPlanStory(t *testing.T, c *datadriven.TestData) *planStory {
	s := &planStory{files: map[uint32]*types.Batch{}, set: Settings{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	for i, text := range strings.Split(strings.ReplaceAll(c.Input, "\n", " "), ";") {
		name, typ, _ := strings.Cut(strings.TrimSpace(text), " ")
		typ, def, has := strings.Cut(typ, " DEFAULT ")
		f := types.Field{ID: i, Name: name}
		var err error
		f.Type, err = types.ParseType(typ)
		require.NoError(t, err)
		if has {
			f.Default = &def
		}
		s.fields = append(s.fields, f)
	}
	for _, a := range c.CmdArgs {
		switch a.Key {
		case "apply":
			var ok bool
			s.set.Apply, ok = batcher.ParseApply(a.Vals[0])
			require.True(t, ok)
		case "key":
			s.set.Key = s.columns(t, a.Vals)
		case "order-by":
			s.set.Order.By = s.columns(t, a.Vals)
		case "tie":
			s.set.Order.Tie = map[string]batcher.Tie{"first": batcher.TieFirst, "dead_letter": batcher.TieDeadLetter}[a.Vals[0]]
		case "late":
			s.set.Order.Late = map[string]batcher.Late{"apply": batcher.LateApply, "dead_letter": batcher.LateDeadLetter}[a.Vals[0]]
		case "remember":
			s.memory = &tombstones.Set{}
		default:
			c.Fatalf(t, "unknown argument %s", a.Key)
		}
	}
	if s.set.Apply == batcher.Append {
		return s
	}
	var key []types.Type
	for _, i := range s.set.Key {
		key = append(key, s.fields[i].Type)
	}
	var err error
	s.enc, err = types.NewKeyEncoder(key)
	require.NoError(t, err)
	s.index, err = keyindex.New(keyindex.Options{Class: s.enc.Class(), Dir: t.TempDir()})
	require.NoError(t, err)
	return s
}

func (s *planStory) close(t *testing.T) {
	if s.index != nil {
		require.NoError(t, s.index.Close())
	}
}

func (s *planStory) columns(t *testing.T, names []string) (cols []int) {
	for _, n := range names {
		cols = append(cols, s.column(t, n))
	}
	return cols
}

func (s *planStory) column(t *testing.T, name string) int {
	i := slices.IndexFunc(s.fields, func(f types.Field) bool { return f.Name == name })
	require.GreaterOrEqual(t, i, 0, "column %s", name)
	return i
}

// cells reads name=value words; what is not there is NULL.
func (s *planStory) cells(t *testing.T, words []string) (row []types.Datum, marks map[int]string) {
	row, marks = make([]types.Datum, len(s.fields)), map[int]string{}
	for i := range row {
		row[i] = types.Null
	}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		require.True(t, ok, "word %q", w)
		c := s.column(t, name)
		if value == "-" || value == "?" {
			marks[c] = value
			continue
		}
		if value != "NULL" {
			row[c] = s.value(t, c, value)
		}
	}
	return row, marks
}

func (s *planStory) value(t *testing.T, c int, text string) types.Datum {
	d, err := types.ParseDatum(s.fields[c].Type, text)
	require.NoError(t, err)
	return d
}

func (s *planStory) file(t *testing.T, c *datadriven.TestData) {
	b := types.NewBatch(s.fields)
	for _, line := range strings.Split(c.Input, "\n") {
		row, _ := s.cells(t, strings.Fields(line))
		b.AppendDatums(row)
	}
	seg, err := s.index.AddSegment(uint32(b.Len()))
	require.NoError(t, err)
	var keys types.Keys
	var cols []*types.Vector
	for _, k := range s.set.Key {
		cols = append(cols, b.Cols[k])
	}
	s.enc.Append(&keys, cols, 0, b.Len())
	require.NoError(t, s.index.Add(seg, 0, &keys))
	s.files[seg] = b
	for _, a := range c.CmdArgs {
		require.Equal(t, "deleted", a.Key)
		gone := newBitmap()
		for _, v := range a.Vals {
			n, err := strconv.Atoi(v)
			require.NoError(t, err)
			gone.Add(uint32(n))
		}
		require.NoError(t, s.index.SetDeleted(seg, gone))
	}
}

// ReadRows implements rowReader.
func (s *planStory) ReadRows(locs []keyindex.Loc, cols []int, out *types.Batch) error {
	if !slices.IsSorted(locs) {
		return fmt.Errorf("rows are not asked in order: %v", locs)
	}
	for _, l := range locs {
		for i, c := range cols {
			out.Cols[i].AppendCell(s.files[l.Segment()].Cols[c], int(l.Pos()))
		}
	}
	return nil
}

func (s *planStory) plan(t *testing.T, c *datadriven.TestData) string {
	b, err := batcher.New(batcher.Options{Fields: s.fields, Key: s.set.Key, Order: s.set.Order, Remembers: true, Apply: s.set.Apply, Limits: batcher.Limits{Rows: 1000}})
	require.NoError(t, err)
	parts := []change.Partition{{Topic: "t", Partition: 0}, {Topic: "t", Partition: 1}}
	b.Reset(change.Positions{parts[0]: {}, parts[1]: {}}, parts, 1)
	for i, line := range strings.Split(c.Input, "\n") {
		s.change(t, b.Changes(), int64(i), line)
	}
	batch := b.Seal(batcher.FlushManual)
	pl := planner{s: &s.set, fields: s.fields, defaults: make([]*types.Datum, len(s.fields)), deletedAt: -1, read: s, index: s.index, memory: s.memory}
	for i, f := range s.fields {
		pl.defaults[i], err = paimon.DefaultValue(f)
		require.NoError(t, err)
		if s.set.Apply == batcher.SoftDelete && f.Name == DeletedAt {
			pl.deletedAt, pl.defaults[i] = i, nil
		}
	}
	if s.set.Merge != nil {
		pl.when, err = newWhen(s.fields, s.set.Key, s.set.Merge.Clauses, pl.defaults, time.UnixMilli(0))
		require.NoError(t, err)
	}
	p, err := pl.plan(batch)
	require.NoError(t, err)
	again, err := pl.plan(batch) // an attempt that lost its race plans again
	require.NoError(t, err)
	text := s.print(p, batch)
	require.Equal(t, text, s.print(again, batch))
	if s.memory != nil {
		s.memory.Apply(&p.memory)
	}
	return text
}

func (s *planStory) change(t *testing.T, out *change.Batch, offset int64, line string) {
	words := strings.Fields(line)
	kind := change.Update
	if words[0] == "del" {
		kind = change.Delete
	} else {
		require.Equal(t, "put", words[0])
	}
	words = words[1:]
	part, at := int32(0), int64(1000)
	var old []types.Datum
	for len(words) > 0 {
		name, value, _ := strings.Cut(words[0], "=")
		if name != "part" && name != "time" && name != "old" {
			break
		}
		switch name {
		case "part":
			part = 1
		case "time":
			_, err := fmt.Sscan(value, &at)
			require.NoError(t, err)
		case "old":
			for i, v := range strings.Split(strings.Trim(value, "()"), ",") {
				old = append(old, s.value(t, s.set.Key[i], v))
			}
		}
		words = words[1:]
	}
	row, marks := s.cells(t, words)
	n := out.Len()
	for c, d := range row {
		out.Cols[c].AppendDatum(d)
		switch marks[c] {
		case "-":
			out.Cols[c].Absent.Set(n)
		case "?":
			out.Cols[c].Unavailable.Set(n)
		}
	}
	out.EndRow(kind, part, offset, at)
	if old != nil {
		out.LinkOldKey(old)
	}
}

func (s *planStory) print(p *plan, b *batcher.Batch) string {
	var out strings.Builder
	for _, seg := range p.sortedSegments() {
		fmt.Fprintf(&out, "file %d: delete %v\n", seg, p.deletes[seg])
	}
	for i := range p.out.Len() {
		fmt.Fprintf(&out, "row %s\n", rowText(s.fields, p.out.Row(i)))
	}
	for _, l := range p.letters {
		fmt.Fprintf(&out, "refused change %d: %v\n", l.row, l.err)
	}
	for _, l := range p.ordered {
		fmt.Fprintf(&out, "sent away change %d: %s\n", l.row, l.err.Class)
	}
	if p.memory.Len() > 0 {
		var after tombstones.Set
		_ = s.memory.Each(func(k, o []byte, at int64) error { after.Put(k, o, at); return nil })
		after.Apply(&p.memory)
		fmt.Fprintf(&out, "deletes remembered: %d\n", after.Len())
	}
	counts := []struct {
		name string
		n    int64
	}{
		{"inserted", p.counts.Inserted},
		{"updated", p.counts.Updated},
		{"deleted", p.counts.Deleted},
		{"unchanged", p.counts.Unchanged},
		{"late", p.counts.Late + b.Counts.Late},
		{"late_applied", p.counts.LateTaken},
		{"tied", p.counts.Tied + b.Counts.Tied},
		{"ignored", p.counts.Ignored + b.Counts.Ignored},
		{"collapsed", b.Counts.Collapsed},
		{"split", b.Counts.TwoPartitions},
	}
	out.WriteString("counts")
	for _, c := range counts {
		if c.n != 0 {
			fmt.Fprintf(&out, " %s=%d", c.name, c.n)
		}
	}
	return out.String() + "\n"
}
