package compact

import (
	"fmt"
	"math"
	"testing"

	"applier/storage/paimon/manifest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const mib = 1 << 20

func fileOf(partition string, bucket int32, size, rows, deleted, sequence int64) File {
	return File{
		Entry: manifest.Entry{Partition: []byte(partition), Bucket: bucket, File: manifest.DataFile{
			Name: fmt.Sprintf("%s-%d-%d", partition, bucket, sequence), Size: size, Rows: rows, MinSequence: sequence,
		}},
		Deleted: deleted,
	}
}

func names(groups [][]File) (out [][]string) {
	for _, g := range groups {
		var names []string
		for _, f := range g {
			names = append(names, f.Entry.File.Name)
		}
		out = append(out, names)
	}
	return out
}

func TestPlan_ChoosesSmallFilesAndDirtyOnes(t *testing.T) {
	p := Policy{TargetBytes: 100 * mib, SmallRatio: 0.7, DeleteRatio: 0.2, MinFiles: 3}
	full, ordered := p, p
	full.Full, ordered.Ordered = true, true
	clustered, fullClustered := p, full
	clustered.Clustered, fullClustered.Clustered = true, true
	sorted := func(f File) File { f.Entry.File.Level = 5; return f }
	small := func(i int64) File { return fileOf("p", 0, mib, 100, 0, i) }
	big := func(i, deleted int64) File { return fileOf("p", 0, 90*mib, 100, deleted, i) }
	for _, c := range []struct {
		name  string
		p     Policy
		files []File
		want  [][]string
	}{
		{"nothing", p, nil, nil},
		{"too few small files", p, []File{small(1), small(2)}, nil},
		{"enough small files", p, []File{small(1), big(2, 0), small(3), small(4)}, [][]string{{"p-0-1", "p-0-3", "p-0-4"}}},
		{"a dirty file alone", p, []File{big(1, 21), big(2, 20)}, [][]string{{"p-0-1"}}},
		{"a small dirty file is purged though it is alone", p, []File{fileOf("p", 0, mib, 100, 30, 1)}, [][]string{{"p-0-1"}}},
		{"a large file that is mostly deleted is small", p, []File{big(1, 95), small(2), small(3)}, [][]string{{"p-0-1", "p-0-2", "p-0-3"}}},
		{"a file that is larger than all others together stays", p, []File{fileOf("p", 0, 60*mib, 9, 0, 1), small(2), small(3), small(4)}, [][]string{{"p-0-2", "p-0-3", "p-0-4"}}},
		{"partitions and buckets stay apart", p, []File{small(1), fileOf("q", 0, mib, 1, 0, 2), fileOf("p", 1, mib, 1, 0, 3)}, nil},
		{"groups end at the target", full, []File{fileOf("p", 0, 60*mib, 9, 0, 1), fileOf("p", 0, 60*mib, 9, 0, 2), fileOf("p", 0, 30*mib, 9, 0, 3)}, [][]string{{"p-0-2", "p-0-3"}}},
		{"full joins two", full, []File{small(1), small(2)}, [][]string{{"p-0-1", "p-0-2"}}},
		{"full purges one row", full, []File{big(1, 1)}, [][]string{{"p-0-1"}}},
		{"full leaves a single clean file", full, []File{small(1)}, nil},
		{"neighbours only, where order counts", ordered, []File{small(1), small(2), small(3), big(4, 0), small(5), small(6)}, nil},
		{"the newest neighbours", ordered, []File{small(9), big(1, 0), small(8), small(7)}, [][]string{{"p-0-7", "p-0-8", "p-0-9"}}},
		{"sorted files are not joined", clustered, []File{sorted(small(1)), small(2), sorted(small(3)), small(4), small(5), sorted(small(6))}, [][]string{{"p-0-2", "p-0-4", "p-0-5"}}},
		{"sorted files are purged, each alone", fullClustered, []File{sorted(big(1, 1)), small(2), sorted(fileOf("p", 0, mib, 100, 1, 3)), small(4)}, [][]string{{"p-0-1"}, {"p-0-3"}, {"p-0-2", "p-0-4"}}},
		{"levels of a table that is not clustered mean nothing", p, []File{sorted(small(1)), small(2), sorted(small(3))}, [][]string{{"p-0-1", "p-0-2", "p-0-3"}}},
		{"a dirty file among others keeps its place", ordered, []File{big(1, 50), big(2, 0)}, [][]string{{"p-0-1"}}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, names(Plan(c.files, c.p))) })
	}
}

// Rows are written again only when their file at least doubles: what a long
// stream of small commits costs grows with the logarithm of the table's size.
func TestPlan_ALongStreamOfSmallFilesIsCheapAndFewFilesAreLeft(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		p := Policy{TargetBytes: 256 * mib, SmallRatio: 0.7, DeleteRatio: 0.2, MinFiles: 5, Ordered: ordered}
		var files []File
		var inserted, written int64
		most := 0
		for i := range int64(4000) {
			files = append(files, fileOf("", 0, mib, 1000, 0, i))
			inserted += mib
			for _, g := range Plan(files, p) {
				in := map[string]bool{}
				size, rows := int64(0), int64(0)
				for _, f := range g {
					in[f.Entry.File.Name] = true
					size, rows = size+f.Entry.File.Size, rows+f.Entry.File.Rows
				}
				var left []File
				for _, f := range files {
					if !in[f.Entry.File.Name] {
						left = append(left, f)
					}
				}
				files = append(left, fileOf("", 0, size, rows, 0, g[0].Entry.File.MinSequence))
				written += size
			}
			most = max(most, len(files))
		}
		require.Less(t, float64(written)/float64(inserted), math.Log2(256)+1, "ordered %t", ordered)
		require.Less(t, len(files), 60)
		require.Less(t, most, 80)
	}
}

func TestPlan_GroupsAreDisjointOfOneBucketAndWorthTheWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{TargetBytes: 100, SmallRatio: 0.7, DeleteRatio: 0.3, MinFiles: rapid.IntRange(2, 5).Draw(t, "least"), Full: rapid.Bool().Draw(t, "full"), Ordered: rapid.Bool().Draw(t, "ordered")}
		var files []File
		for i := range rapid.IntRange(0, 20).Draw(t, "files") {
			rows := rapid.Int64Range(1, 20).Draw(t, "rows")
			files = append(files, fileOf(rapid.SampledFrom([]string{"", "p"}).Draw(t, "partition"), rapid.Int32Range(0, 1).Draw(t, "bucket"),
				rapid.Int64Range(1, 200).Draw(t, "size"), rows, rapid.Int64Range(0, rows).Draw(t, "deleted"), int64(i)))
		}
		seen := map[string]bool{}
		for _, g := range Plan(files, p) {
			require.NotEmpty(t, g)
			size, dirty := int64(0), false
			for i, f := range g {
				require.False(t, seen[f.Entry.File.Name])
				seen[f.Entry.File.Name] = true
				require.Equal(t, g[0].Entry.Partition, f.Entry.Partition)
				require.Equal(t, g[0].Entry.Bucket, f.Entry.Bucket)
				require.True(t, i == 0 || g[i-1].Entry.File.MinSequence < f.Entry.File.MinSequence)
				size += f.live()
				dirty = dirty || p.dirty(&f)
			}
			require.True(t, len(g) > 1 || dirty)
			require.True(t, len(g) == 1 || size <= p.TargetBytes)
		}
		if p.Full { // nothing deleted is left
			for _, f := range files {
				require.True(t, f.Deleted == 0 || seen[f.Entry.File.Name], f.Entry.File.Name)
			}
		}
	})
}
