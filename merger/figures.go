package merger

// Figures describe the table and the index for metrics.
type Figures struct {
	Files      int
	SmallFiles int   // below a quarter of the target size
	Partitions int   // with data
	LiveRows   int64 // without deleted ones
	Deleted    int64 // rows that deletion vectors hide
	DVBytes    int64 // of the deletion vectors
	Snapshots  int64 // from the earliest to the newest, at the last look
	// Lookups of the present index; they begin at 0 again when it is rebuilt.
	Hits, Misses, Collisions int64
	SidecarBytes             int64 // of the index on disk
}

// HoleCounts say where the cells came from that the last change of a written row
// did not carry.
type HoleCounts struct {
	Batch    int64 // from an earlier change of the same batch
	Table    int64 // from the row of the table
	Unfilled int64 // nowhere: the column's default or NULL
}

// count counts a cell of a written row whose last change is w.
func (h *HoleCounts) count(x cell, filled bool) {
	switch {
	case x.asIs:
		h.Table++
	case filled:
		h.Batch++
	default:
		h.Unfilled++
	}
}

// figures reports the live files; the walk over them is made once a snapshot.
func (v *view) figures() Figures {
	if v.figuresOf != v.ref || v.ref == (SnapRef{}) {
		v.counted, v.figuresOf = v.countFiles(), v.ref
	}
	f := v.counted
	if v.index != nil {
		st := v.index.Stats()
		f.Hits, f.Misses, f.Collisions = st.Hits, st.Misses, st.Collisions
		f.SidecarBytes = st.SidecarBytes
	}
	return f
}

func (v *view) countFiles() Figures {
	var f Figures
	small := v.table.Options().TargetFileSize / 4
	partitions := map[string]bool{}
	for _, d := range v.bySeg {
		f.Files++
		f.LiveRows += d.entry.File.Rows
		partitions[string(d.entry.Partition)] = true
		if d.entry.File.Size < small {
			f.SmallFiles++
		}
		if d.vector != nil {
			f.Deleted += int64(d.vector.GetCardinality())
			f.DVBytes += int64(d.ref.At.Length)
		}
	}
	f.LiveRows -= f.Deleted
	f.Partitions = len(partitions)
	return f
}
