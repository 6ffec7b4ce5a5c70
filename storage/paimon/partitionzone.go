package paimon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"applier/storage/objstore"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// With partition.legacy-name=false the folder of a TIMESTAMP_LTZ value is named in the
// time zone of the Java that computes it, which is recorded nowhere. Here it is UTC. A
// table is written only if files of it show that it is UTC for its other engines, too.

// zoned says whether folders of a table are named in a time zone.
func zoned(s *Schema, o *Options) bool {
	return !o.PartitionLegacyName && slices.ContainsFunc(s.PartitionTypes(), isZoned)
}

func isZoned(t types.Type) bool { return t.Kind == types.TimestampLTZ }

// zoneFiles is how many partitions are looked at.
const zoneFiles = 20

// checkZone looks for files where UTC says that they are: live ones must be there. A
// file that was removed, and lies there still, is proof too.
func (t *Table) checkZone(ctx context.Context) error {
	live, gone, err := t.zoneEvidence(ctx)
	if err != nil {
		return err
	}
	for _, key := range live {
		_, err := t.bucket.Stat(ctx, key)
		if errors.Is(err, objstore.ErrNotExist) {
			return t.zoneRefusal(fmt.Sprintf("and there is no file %s: its other writers run in another time zone than UTC", key))
		}
		if err != nil {
			return err
		}
	}
	if len(live) > 0 {
		return nil
	}
	for _, key := range gone {
		if _, err := t.bucket.Stat(ctx, key); !errors.Is(err, objstore.ErrNotExist) {
			return err
		}
	}
	return t.zoneRefusal("and no file shows that it is UTC: insert a row with another engine that runs in UTC")
}

func (t *Table) zoneRefusal(why string) error {
	return &Refusal{[]Reason{{CodePartitionType, "it is partitioned by a TIMESTAMP WITH LOCAL TIME ZONE with partition.legacy-name=false, " +
		"so that its directory names depend on the time zone of each writer, " + why}}}
}

// zoneEvidence returns the keys of live files, one of each of some partitions whose
// folders are named in a time zone; without any, those of files that were removed.
func (t *Table) zoneEvidence(ctx context.Context) (live, gone []string, err error) {
	id, err := LatestSnapshotID(ctx, t.bucket, t.paths)
	if err != nil || id == 0 {
		return nil, nil, err
	}
	s, err := ReadSnapshot(ctx, t.bucket, t.paths, id)
	if err != nil {
		return nil, nil, err
	}
	st, err := t.State(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	files, err := t.Files(ctx, st, nil)
	if err != nil {
		return nil, nil, err
	}
	if live, err = t.zonedKeys(files); err != nil || len(live) > 0 {
		return live, nil, err
	}
	for _, m := range st.Manifests {
		entries, err := t.Entries(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		keys, err := t.zonedKeys(entries)
		if err != nil {
			return nil, nil, err
		}
		gone = append(gone, keys...)
	}
	return nil, gone, nil
}

// zonedKeys returns a key for each of some partitions that have a zoned value.
func (t *Table) zonedKeys(files []manifest.Entry) (keys []string, err error) {
	seen := map[string]bool{}
	for i := range files {
		e := &files[i]
		if seen[string(e.Partition)] || e.File.ExternalPath != nil {
			continue
		}
		seen[string(e.Partition)] = true
		values, err := binrow.Decode(t.partitionTypes, e.Partition)
		if err != nil {
			return nil, fmt.Errorf("partition: %w", err)
		}
		has := false
		for k, typ := range t.partitionTypes {
			has = has || isZoned(typ) && !values[k].Null
		}
		if !has {
			continue
		}
		key, err := t.paths.Data(e)
		if err != nil {
			return nil, err
		}
		if keys = append(keys, key); len(keys) == zoneFiles {
			break
		}
	}
	return keys, nil
}
