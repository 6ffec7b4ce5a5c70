package paimon

import (
	"context"
	"fmt"
	"path"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// What an audit reads that readers and writers do not need apart from each other.

// ManifestList reads one manifest list; size is its recorded size, nil if there
// is none.
func (t *Table) ManifestList(ctx context.Context, name string, size *int64) ([]manifest.Meta, error) {
	metas, _, err := t.list(ctx, name, size)
	return metas, err
}

// CheckSummary compares what a list says of a manifest with its entries: bounds
// that leave a partition out make readers pass the manifest over. Wider bounds are
// right, if not good.
func (t *Table) CheckSummary(m manifest.Meta, entries []manifest.Entry) error {
	if len(t.partitionTypes) == 0 || m.PartitionStats.Min == nil || m.PartitionStats.Max == nil {
		return nil
	}
	ts := make([]types.Type, len(t.partitionTypes))
	for i, c := range t.partitionTypes {
		ts[i] = c.Nullable()
	}
	low, err := binrow.Decode(ts, m.PartitionStats.Min)
	if err != nil {
		return fmt.Errorf("%w: lowest partition: %w", ErrCorrupt, err)
	}
	top, err := binrow.Decode(ts, m.PartitionStats.Max)
	if err != nil {
		return fmt.Errorf("%w: highest partition: %w", ErrCorrupt, err)
	}
	for i := range entries {
		row, err := binrow.Decode(ts, entries[i].Partition)
		if err != nil {
			return fmt.Errorf("%w: partition of %s: %w", ErrCorrupt, entries[i].File.Name, err)
		}
		for c, d := range row {
			if d.Null || low[c].Null && top[c].Null {
				continue
			}
			if types.CompareDatums(ts[c], d, low[c]) < 0 || types.CompareDatums(ts[c], d, top[c]) > 0 {
				return fmt.Errorf("%w: %s is in a partition outside of the bounds that the list gives", ErrCorrupt, entries[i].File.Name)
			}
		}
	}
	return nil
}

// CompanionKeys are the keys of a data file's companions; those of a file outside of
// the table lie beside it and have none.
func (t *Table) CompanionKeys(e *manifest.Entry) ([]string, error) {
	if e.File.ExternalPath != nil {
		return nil, nil
	}
	key, err := t.paths.Data(e)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, name := range e.File.ExtraFiles {
		extra, err := named(path.Dir(key)+"/", name)
		if err != nil {
			return nil, fmt.Errorf("companion of data file %s: %w", e.File.Name, err)
		}
		keys = append(keys, extra)
	}
	return keys, nil
}

// CheckSeal compares a data file with the seal in its footer: datafile.ErrNoSeal
// if another writer made it, datafile.ErrSeal if a bit of it has changed.
func (t *Table) CheckSeal(ctx context.Context, e *manifest.Entry) error {
	r, err := t.openData(ctx, e)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if n := r.Size(); n >= 0 && n != e.File.Size {
		return fmt.Errorf("%w: it has %d bytes, the manifest says %d", ErrCorrupt, n, e.File.Size)
	}
	return datafile.CheckSeal(r, e.File.Size, maxSealFooter)
}

// maxSealFooter bounds the footer that CheckSeal reads.
const maxSealFooter = 256 << 20
