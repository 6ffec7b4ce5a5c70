package manifest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/paimon/binrow"
	"applier/storage/types"
)

func file(name string) Entry {
	return Entry{Partition: binrow.Empty(), File: DataFile{Name: name, Rows: 1}}
}

func TestID_TellsFilesApartByWhatJavaTellsThemApart(t *testing.T) {
	base := fullEntry()
	same := base
	same.Kind, same.TotalBuckets = Add, 9
	same.File.Rows, same.File.ValueStats, same.File.MinSequence, same.File.FirstRowID, same.File.SchemaID = 1, Stats{}, 8, nil, 5
	require.Equal(t, base.ID(), same.ID())
	for name, change := range map[string]func(*Entry){
		"partition":           func(e *Entry) { e.Partition = intRow(8) },
		"bucket":              func(e *Entry) { e.Bucket = 0 },
		"level":               func(e *Entry) { e.File.Level = 5 },
		"file":                func(e *Entry) { e.File.Name = "x" },
		"extra files":         func(e *Entry) { e.File.ExtraFiles = []string{"a.index"} },
		"extra files' cut":    func(e *Entry) { e.File.ExtraFiles = []string{"a.indexb"} },
		"embedded index":      func(e *Entry) { e.File.EmbeddedIndex = []byte{1} },
		"no embedded index":   func(e *Entry) { e.File.EmbeddedIndex = nil },
		"empty embedded":      func(e *Entry) { e.File.EmbeddedIndex = []byte{} },
		"external path":       func(e *Entry) { e.File.ExternalPath = new("y") },
		"no external path":    func(e *Entry) { e.File.ExternalPath = nil },
		"empty external path": func(e *Entry) { e.File.ExternalPath = new("") },
	} {
		e := fullEntry()
		change(&e)
		require.NotEqual(t, base.ID(), e.ID(), name)
	}
	a, b := file("f"), file("f")
	b.File.EmbeddedIndex = []byte{}
	require.NotEqual(t, a.ID(), b.ID(), "null and empty are not the same")
	id := base.ID()
	require.Contains(t, id.String(), base.File.Name)
	require.Contains(t, id.String(), "file:/x/y")
	require.Equal(t, base.File.Name, id.FileName())
}

func TestNewDelete_CopiesEverythingButTheKind(t *testing.T) {
	e := plainEntry(3)
	d := e.NewDelete()
	require.Equal(t, Delete, d.Kind)
	require.Equal(t, e.ID(), d.ID())
	d.Kind = Add
	require.Equal(t, e, d)
}

func TestKind_String(t *testing.T) {
	require.Equal(t, "ADD DELETE KIND(7)", fmt.Sprint(Add, " ", Delete, " ", Kind(7)))
}

func TestMerge_CancelsPairsAndKeepsTheRestInOrder(t *testing.T) {
	a, b, c, d := file("a"), file("b"), file("c"), file("d")
	got, err := Merge([]Entry{a, b, d.NewDelete()}, nil, []Entry{c, a.NewDelete()})
	require.NoError(t, err)
	require.Equal(t, []Entry{b, d.NewDelete(), c}, got)
	_, err = Live([]Entry{a, b, d.NewDelete()})
	require.ErrorIs(t, err, ErrInconsistent)
	got, err = Live([]Entry{a, b}, []Entry{a.NewDelete()})
	require.NoError(t, err)
	require.Equal(t, []Entry{b}, got)
}

func TestMerge_RefusesWhatCannotHappen(t *testing.T) {
	a := file("a")
	for _, l := range [][]Entry{{a, a}, {a.NewDelete(), a.NewDelete()}, {a.NewDelete(), a}} {
		_, err := Merge(l)
		require.ErrorIs(t, err, ErrInconsistent)
		_, err = Live(l)
		require.ErrorIs(t, err, ErrInconsistent)
	}
	// A DELETE that names another extra file is about another file.
	other := a.NewDelete()
	other.File.ExtraFiles = []string{"x"}
	got, err := Merge([]Entry{a, other})
	require.NoError(t, err)
	require.Len(t, got, 2)
}

// Merging in any grouping of manifests gives the same live files.
func TestMerge_IsTheSameInPartsAndAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := map[string]bool{}
		var all []Entry
		names := 0
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "delete") {
				var name string
				for n := range names { // the first live one from a drawn place on
					k := fmt.Sprint((n + rapid.IntRange(0, names-1).Draw(t, "from")) % names)
					if live[k] {
						name = k
						break
					}
				}
				if name == "" {
					continue
				}
				delete(live, name)
				all = append(all, file(name).NewDelete())
				continue
			}
			live[fmt.Sprint(names)] = true
			all = append(all, file(fmt.Sprint(names)))
			names++
		}
		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		first, err := Merge(all[:cut])
		require.NoError(t, err)
		second, err := Merge(all[cut:])
		require.NoError(t, err)
		got, err := Live(first, second)
		require.NoError(t, err)
		whole, err := Live(all)
		require.NoError(t, err)
		require.Equal(t, whole, got)
		require.Len(t, got, len(live))
	})
}

func TestSummarise_CountsAndBounds(t *testing.T) {
	ts := []types.Type{types.DoubleType().NonNull(), types.CharType(2), types.StringType()}
	part := func(d ...types.Datum) []byte {
		b, err := binrow.Encode(ts, d)
		require.NoError(t, err)
		return b
	}
	f, s := types.FloatDatum, types.StringDatum
	mk := func(p []byte, bucket, level int32, schema int64, first *int64) Entry {
		e := plainEntry(1)
		e.Partition, e.Bucket, e.File.Level, e.File.SchemaID, e.File.FirstRowID = p, bucket, level, schema, first
		return e
	}
	entries := []Entry{
		mk(part(f(0), s("b"), types.Null), 3, 0, 1, new(int64(100))),
		mk(part(f(0), s("b"), types.Null), 3, 0, 1, new(int64(103))),
		mk(part(f(math.Copysign(0, -1)), s("b "), types.Null), 1, 2, 5, new(int64(10))),
		mk(part(types.Null, types.Null, types.Null), 2, 0, 2, new(int64(200))).NewDelete(),
	}
	m, err := Summarise("m", 17, entries, ts)
	require.NoError(t, err)
	require.Equal(t, Meta{
		Name: "m", Size: 17, Added: 3, Deleted: 1, SchemaID: 5, MinBucket: new(int32(1)), MaxBucket: new(int32(3)),
		MinLevel: new(int32(0)), MaxLevel: new(int32(2)), MinRowID: new(int64(10)), MaxRowID: new(int64(202)),
		PartitionStats: Stats{
			Min: part(f(math.Copysign(0, -1)), s("b"), types.Null), Max: part(f(0), s("b "), types.Null), NullCounts: []int64{1, 1, 4},
		},
	}, m)

	entries[1].File.FirstRowID = nil
	m, err = Summarise("m", 17, entries, ts)
	require.NoError(t, err)
	require.Nil(t, m.MinRowID)
	require.Nil(t, m.MaxRowID)

	entries[1].Partition = part(f(math.NaN()), s(""), s("x"))
	m, err = Summarise("m", 17, entries, ts)
	require.NoError(t, err)
	require.Equal(t, part(f(math.NaN()), s("b "), s("x")), m.PartitionStats.Max, "NaN is above all, as in Java")

	m, err = Summarise("m", 17, nil, nil)
	require.NoError(t, err)
	require.Equal(t, Meta{Name: "m", Size: 17, PartitionStats: Stats{binrow.Empty(), binrow.Empty(), []int64{}}}, m)
}

func TestSummarise_RefusesWhatIsNoEntryOfTheTable(t *testing.T) {
	_, err := Summarise("m", 1, []Entry{plainEntry(1)}, []types.Type{types.IntType()})
	require.ErrorIs(t, err, binrow.ErrCorrupt)
	e := plainEntry(1)
	e.Kind = 4
	_, err = Summarise("m", 1, []Entry{e}, nil)
	require.ErrorIs(t, err, ErrInconsistent)
}

func BenchmarkMerge(b *testing.B) {
	entries := benchEntries(10_000)
	deletes := make([]Entry, 0, 5000)
	for _, e := range entries[:5000] {
		deletes = append(deletes, e.NewDelete())
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Live(entries, deletes); err != nil {
			b.Fatal(err)
		}
	}
}
