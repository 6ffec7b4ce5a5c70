package harness

import (
	"fmt"
	"math/bits"
	"strconv"

	"applier/storage/types"
)

// MergeLoad makes the rows of the merge benchmark: one table of 8 columns, and
// batches of 90 % updates of distinct ids drawn uniformly from what exists and
// 10 % inserts. Everything follows from (Seed, id, version) by integer
// arithmetic, in the same way in py/mergebench.py, so that two programs that
// exchange no rows must end with the same table.
type MergeLoad struct {
	Seed       uint64
	TargetRows int64 // rows before the first batch: ids 0 … TargetRows-1, version 0
	BatchRows  int64
	// Worn is how many per cent of the loaded rows are deleted before the first batch.
	Worn int64
}

// Deleted reports whether an id is one of the loaded rows that are deleted before
// the first batch.
func (l MergeLoad) Deleted(id int64) bool {
	return id < l.TargetRows && l.Worn > 0 && int64(mix(l.Seed^uint64(id)*versionStep)%100) < l.Worn
}

// MergeColumns are the table's columns.
var MergeColumns = []Column{
	{Name: "id", Type: "BIGINT"},
	{Name: "v", Type: "BIGINT"},
	{Name: "name", Type: "STRING"},
	{Name: "city", Type: "STRING"},
	{Name: "score", Type: "DOUBLE"},
	{Name: "amount", Type: "DECIMAL(18, 2)"},
	{Name: "ts", Type: "TIMESTAMP(6)"},
	{Name: "d", Type: "DATE"},
}

const (
	golden      = 0x9E3779B97F4A7C15
	versionStep = 0xD1342543DE82EF95
	baseMicros  = 1_600_000_000_000_000
	spanMicros  = 315_360_000_000_000
	baseDay     = 10957
	spanDays    = 9000
)

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// MergeRow is one version of one row.
type MergeRow struct {
	ID, V      int64
	Name, City string
	Score      float64
	Cents      int64 // DECIMAL(18,2), unscaled
	Micros     int64 // TIMESTAMP(6)
	Day        int64 // DATE
}

// Row returns the row of an id at a version: 0 as loaded, k since batch k.
func (l MergeLoad) Row(id, version int64) MergeRow {
	h := mix(l.Seed + uint64(id)*golden + uint64(version)*versionStep)
	cell := func(i uint64) uint64 { return mix(h + i*golden) }
	return MergeRow{
		ID: id, V: int64(cell(1) >> 1),
		Name:   "user-" + strconv.FormatUint(cell(2), 10),
		City:   "city-" + strconv.FormatUint(cell(3)%1000, 10),
		Score:  float64(cell(4)>>11) / (1 << 53) * 1000,
		Cents:  int64(cell(5) % 1_000_000_000_000),
		Micros: int64(cell(6)%spanMicros) + baseMicros,
		Day:    int64(cell(7)%spanDays) + baseDay,
	}
}

// AppendJSON writes the row's text as applier cat prints it; it is also a record
// value of the format json.
func (r MergeRow) AppendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), r.ID, 10)
	b = strconv.AppendInt(append(b, `,"v":`...), r.V, 10)
	b = append(append(b, `,"name":"`...), r.Name...)
	b = append(append(b, `","city":"`...), r.City...)
	b = types.AppendJSON(append(b, `","score":`...), types.DoubleType(), types.Datum{F: r.Score})
	b = fmt.Appendf(append(b, `,"amount":"`...), "%d.%02d", r.Cents/100, r.Cents%100)
	b = types.AppendTimestamp(append(b, `","ts":"`...), r.Micros, 0, 6, 'T')
	b = types.AppendDate(append(b, `","d":"`...), r.Day)
	return append(b, `"}`...)
}

// Batch returns the ids of batch number 1, 2, …: updates, then inserts. Their
// rows have the batch's number as version.
func (l MergeLoad) Batch(number int64) []int64 {
	inserts := l.BatchRows / 10
	current := l.TargetRows + (number-1)*inserts
	updates := l.BatchRows - inserts
	if updates*2 > current {
		panic(fmt.Sprintf("a batch of %d is too large for %d rows", l.BatchRows, current))
	}
	ids := make([]int64, 0, l.BatchRows)
	seen := make([]uint64, (current+63)/64)
	for j := uint64(0); int64(len(ids)) < updates; j++ {
		id := mix(l.Seed+uint64(number)<<40+j*golden) % uint64(current)
		if seen[id/64]&(1<<(id%64)) == 0 {
			seen[id/64] |= 1 << (id % 64)
			ids = append(ids, int64(id))
		}
	}
	for id := current; id < current+inserts; id++ {
		ids = append(ids, id)
	}
	return ids
}

// Base returns the sum of the table before the first batch.
func (l MergeLoad) Base() Summer {
	var s Summer
	var buf []byte
	for id := range l.TargetRows {
		if l.Deleted(id) {
			continue
		}
		buf = l.Row(id, 0).AppendJSON(buf[:0])
		s.Add(buf)
	}
	return s
}

// Follow brings the sum of the loaded table to the one after a number of batches.
// It keeps two bytes a row.
func (l MergeLoad) Follow(s *Summer, batches int64) {
	if bits.Len64(uint64(batches)) > 16 {
		panic("too many batches")
	}
	version := make([]uint16, l.TargetRows+batches*(l.BatchRows/10))
	current := l.TargetRows
	var buf []byte
	for k := int64(1); k <= batches; k++ {
		for _, id := range l.Batch(k) {
			if id < current && (version[id] > 0 || !l.Deleted(id)) {
				buf = l.Row(id, int64(version[id])).AppendJSON(buf[:0])
				s.Remove(buf)
			}
			version[id] = uint16(k)
			buf = l.Row(id, k).AppendJSON(buf[:0])
			s.Add(buf)
		}
		current += l.BatchRows / 10
	}
}

// Expected returns the digest of the table after a number of batches.
func (l MergeLoad) Expected(batches int64) Digest {
	s := l.Base()
	l.Follow(&s, batches)
	return s.Digest()
}
