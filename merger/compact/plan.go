package compact

import (
	"cmp"
	"math"
	"slices"

	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
)

// File is a live data file with the number of its deleted rows.
type File struct {
	Entry   manifest.Entry
	Deleted int64
}

// live is about what the file's rows would take without the deleted ones.
func (f *File) live() int64 {
	if f.Entry.File.Rows == 0 {
		return 0
	}
	return int64(float64(f.Entry.File.Size) * float64(f.Entry.File.Rows-f.Deleted) / float64(f.Entry.File.Rows))
}

// Policy says which files are worth the work.
type Policy struct {
	// TargetBytes is the size of files that are large enough. Files below
	// SmallRatio of it are joined.
	TargetBytes int64
	SmallRatio  float64
	// DeleteRatio: a file of which a larger share is deleted is written again.
	DeleteRatio float64
	// MinFiles is how many small files of a partition or bucket are joined at least.
	MinFiles int
	// Full joins whatever can be joined, and purges every deleted row.
	Full bool
	// Clustered: files above level 0 were sorted by somebody else, and stay as they are
	// but for deleted rows (paimon.Table.Clustered).
	Clustered bool
	// Ordered: files of a bucket are kept in the order of their sequence numbers.
	Ordered bool
}

// NewPolicy is the policy of a table's options, with a share of deleted rows that
// is worth purging; 0 takes the option's.
func NewPolicy(t *paimon.Table, deleteRatio float64) Policy {
	o := t.Options()
	if deleteRatio == 0 {
		deleteRatio = o.CompactDeleteRatio
	}
	return Policy{
		TargetBytes: o.TargetFileSize, SmallRatio: o.CompactSmallRatio, DeleteRatio: deleteRatio,
		MinFiles: max(o.CompactMinFiles, 2), Ordered: t.Buckets() > 0, Clustered: t.Clustered(),
	}
}

// Costs of the model of performance.md §8, in nanoseconds: writing a row again, and
// writing the mark of a deleted row once more.
const (
	rewriteRow  = 500
	rewriteMark = 20
)

// PurgeRatio is the share of deleted rows at which writing a file again becomes
// cheaper than writing its deletion vector with every commit: deletes are
// spread over the whole table, and every commit of batch rows touches most files.
// The fewer rows a commit has for the rows there are, the earlier it pays.
func PurgeRatio(batch, rows int64) float64 {
	if batch <= 0 || rows <= 0 {
		return 0.2
	}
	return min(max(math.Sqrt(rewriteRow*float64(batch)/(rewriteMark*float64(rows))), 0.05), 0.5)
}

// tinyBytes is the size below which files are joined however small what they are
// joined with.
const tinyBytes = 8 << 20

// Plan chooses files to be joined: groups of one partition and bucket each, whose
// files become one, in that order. A group of one file is a purge.
func Plan(files []File, p Policy) [][]File {
	var order []paimon.BucketKey
	buckets := map[paimon.BucketKey][]File{}
	var groups [][]File
	for _, f := range files {
		if p.Clustered && f.Entry.File.Level > 0 {
			if p.dirty(&f) {
				groups = append(groups, []File{f})
			}
			continue
		}
		k := paimon.BucketKey{Partition: string(f.Entry.Partition), Bucket: f.Entry.Bucket}
		if _, ok := buckets[k]; !ok {
			order = append(order, k)
		}
		buckets[k] = append(buckets[k], f)
	}
	for _, k := range order {
		if p.Ordered {
			groups = append(groups, p.ordered(buckets[k])...)
		} else {
			groups = append(groups, p.unordered(buckets[k])...)
		}
	}
	return groups
}

func (p *Policy) dirty(f *File) bool {
	if p.Full {
		return f.Deleted > 0
	}
	return float64(f.Deleted) > p.DeleteRatio*float64(f.Entry.File.Rows)
}

func (p *Policy) small(f *File) bool { return float64(f.live()) < p.SmallRatio*float64(p.TargetBytes) }

// unordered joins the smallest files up to the one that is larger than all before
// it together: so a row is written again only when its file at least doubles.
// Files stay in the order of the table, which is that of time.
func (p *Policy) unordered(files []File) [][]File {
	var small, groups []int
	for i := range files {
		if p.small(&files[i]) {
			small = append(small, i)
		}
	}
	slices.SortStableFunc(small, func(a, b int) int { return cmp.Compare(files[a].live(), files[b].live()) })
	chosen := map[int]bool{}
	for _, i := range small[:p.joinable(len(small), func(n int) *File { return &files[small[n]] })] {
		chosen[i] = true
	}
	var join []File
	var out [][]File
	for i := range files {
		switch {
		case chosen[i]:
			join = append(join, files[i])
		case p.dirty(&files[i]):
			groups = append(groups, i)
		}
	}
	out = append(out, p.cut(join)...)
	for _, i := range groups {
		out = append(out, []File{files[i]})
	}
	return out
}

// joinable returns how many of n files, the least first, are worth joining.
func (p *Policy) joinable(n int, file func(int) *File) int {
	sum, count, dirty := int64(0), 0, false
	for ; count < n; count++ {
		f := file(count)
		if !p.Full && f.live() > max(sum, tinyBytes) {
			break
		}
		sum += f.live()
		dirty = dirty || p.dirty(f)
	}
	if count < p.MinFiles && !(p.Full && count > 1) && !dirty {
		return 0
	}
	return count
}

// ordered joins neighbours only, from the newest file back.
func (p *Policy) ordered(files []File) [][]File {
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Entry.File.MinSequence, b.Entry.File.MinSequence) })
	end := len(files)
	for end > 0 && !p.small(&files[end-1]) {
		end--
	}
	from := end
	for from > 0 && p.small(&files[from-1]) {
		from--
	}
	run := files[from:end]
	n := p.joinable(len(run), func(i int) *File { return &run[len(run)-1-i] })
	join := run[len(run)-n:]
	var out [][]File
	for i := range files {
		if in := i >= end-n && i < end; !in && p.dirty(&files[i]) {
			out = append(out, []File{files[i]})
		}
	}
	return append(out, p.cut(join)...)
}

// cut parts files at the target size. What is left alone needs no joining, unless
// rows are to be purged.
func (p *Policy) cut(files []File) [][]File {
	var out [][]File
	var group []File
	size := int64(0)
	end := func() {
		if len(group) > 1 || len(group) == 1 && p.dirty(&group[0]) {
			out = append(out, group)
		}
		group, size = nil, 0
	}
	for _, f := range files {
		if len(group) > 0 && size+f.live() > p.TargetBytes {
			end()
		}
		group = append(group, f)
		size += f.live()
	}
	end()
	return out
}
