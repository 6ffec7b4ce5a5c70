package paimon

import (
	"fmt"
	"slices"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// buckets says which bucket a row of a table with bucket > 0 belongs to.
type buckets struct {
	n        int // 0: the table has none, everything is in bucket 0
	cols     []int
	types    []types.Type
	function binrow.BucketFunction
}

func newBuckets(s *Schema, o *Options) buckets {
	b := buckets{n: max(o.Bucket, 0)}
	if b.n == 0 {
		return b
	}
	for _, name := range s.BucketKeys() {
		c := s.Column(name)
		if c < 0 { // refused for writing; for reading it does not matter
			return b
		}
		b.cols, b.types = append(b.cols, c), append(b.types, s.Fields[c].Type)
	}
	b.function, _ = binrow.ParseBucketFunction(o.BucketFunction) // Refuse has seen it
	return b
}

// Buckets returns the number of buckets, 0 for a table without (bucket=-1).
func (t *Table) Buckets() int { return t.buckets.n }

// BucketOf returns the bucket of row i of a batch of the table's columns, defaults
// applied; in tables without buckets it is 0.
func (t *Table) BucketOf(b *types.Batch, i int) (int32, error) {
	k := &t.buckets
	if k.n == 0 {
		return 0, nil
	}
	row := make([]types.Datum, len(k.cols))
	for j, c := range k.cols {
		row[j] = b.Cols[c].Datum(i)
		if typ := k.types[j]; typ.Kind == types.Char && !row[j].Null {
			row[j].B = padChar(row[j].B, typ.Length)
		}
	}
	n, err := k.function.Bucket(k.types, row, k.n)
	return int32(n), err
}

// totalBuckets is _TOTAL_BUCKETS of new files.
func (t *Table) totalBuckets() int32 {
	if t.buckets.n > 0 {
		return int32(t.buckets.n)
	}
	return manifest.UnawareBuckets
}

// BucketKey names a bucket of a partition.
type BucketKey struct {
	Partition string // the partition row's bytes
	Bucket    int32
}

// BucketStates is what a writer must know of a bucketed table's files.
type BucketStates struct {
	next   map[BucketKey]int64 // sequence number
	totals map[string]int32    // _TOTAL_BUCKETS by partition
}

// NewBucketStates reads them off the live files of a state.
func NewBucketStates(files []manifest.Entry) *BucketStates {
	s := &BucketStates{next: map[BucketKey]int64{}, totals: map[string]int32{}}
	s.Add(files)
	return s
}

// Add takes further files into account.
func (s *BucketStates) Add(files []manifest.Entry) {
	for i := range files {
		e := &files[i]
		k := BucketKey{string(e.Partition), e.Bucket}
		s.next[k] = max(s.next[k], e.File.MaxSequence+1)
		s.totals[k.Partition] = e.TotalBuckets
	}
}

// Target returns where the new files of a bucket go: behind those that are there,
// since readers take a bucket's files in the order of their sequence numbers
// (paimon-format.md §8.4). A partition that has another number of buckets than the
// table's option says now is refused: rows would not be where readers look.
func (s *BucketStates) Target(t *Table, k BucketKey) (Target, error) {
	if have, ok := s.totals[k.Partition]; ok && have != t.totalBuckets() {
		return Target{}, &Refusal{[]Reason{{CodeBuckets, fmt.Sprintf("a partition has %d buckets, the option bucket says %d: "+
			"bring it to the new number with INSERT OVERWRITE, or set the option back", have, t.buckets.n)}}}
	}
	return Target{Partition: []byte(k.Partition), Bucket: k.Bucket, Sequence: s.next[k]}, nil
}

// Target is where new files go: a partition, given by its row's bytes, and a
// bucket of it.
type Target struct {
	Partition []byte
	Bucket    int32
	// Sequence is the sequence number of the first row.
	Sequence int64
}

// refuseBuckets collects what stands against writing a table's buckets (source:
// Paimon SchemaValidation).
func (c *refuser) refuseBuckets() {
	s, o := c.s, c.o
	if len(s.PrimaryKeys) > 0 { // whose columns are the bucket key, and refused anyway
		return
	}
	keys := s.BucketKeys()
	switch {
	case o.Bucket == -1 && len(keys) > 0:
		c.add(CodeBuckets, "bucket-key is set and bucket is -1: set bucket to a number of buckets, or remove bucket-key")
	case o.Bucket == 0 || o.Bucket < -1:
		c.add(CodeBuckets, "it has bucket=%d: append tables have a number of buckets, or -1 for none", o.Bucket)
	case o.Bucket > 0 && len(keys) == 0:
		c.add(CodeBuckets, "it has bucket=%d and no bucket-key: name the columns that say which bucket a row is in, or use bucket=-1", o.Bucket)
	}
	var ts []types.Type
	for _, k := range keys {
		switch at := s.Column(k); {
		case at < 0:
			c.add(CodeBuckets, "bucket-key names %q, which is no column: correct it (names are parted by commas, without blanks)", k)
			return
		case slices.Contains(s.PartitionKeys, k):
			c.add(CodeBuckets, "bucket-key names the partition key %q: use other columns", k)
		case s.Fields[at].Type.IsNested() || s.Fields[at].Type.Kind == types.Variant:
			c.add(CodeBuckets, "bucket-key names column %q of type %s: use scalar columns", k, s.Fields[at].Type)
			return
		default:
			ts = append(ts, s.Fields[at].Type)
		}
	}
	f, err := binrow.ParseBucketFunction(o.BucketFunction)
	if err == nil && o.Bucket > 0 && len(ts) > 0 {
		nulls := make([]types.Datum, len(ts))
		for i := range nulls {
			nulls[i] = types.Null
		}
		_, err = f.Bucket(ts, nulls, o.Bucket)
	}
	if err != nil {
		c.add(CodeBucketFunction, "%s: use bucket-function.type=default", err)
	}
}
