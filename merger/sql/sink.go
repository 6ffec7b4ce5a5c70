package sql

import (
	"context"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// sink holds rows until there are enough for files.
type sink struct {
	fields []types.Field
	batch  *types.Batch
	ids    []int64
}

// sinkBytes is how much a sink holds before its rows become files; it is looked at
// every sinkStep rows.
const (
	sinkBytes = 256 << 20
	sinkStep  = 4096
)

func (s *sink) len() int {
	if s.batch == nil {
		return 0
	}
	return s.batch.Len()
}

// write adds a row; id counts only in the sink of moved rows.
func (e *editor) write(ctx context.Context, s *sink, row []types.Datum, id int64) error {
	if s.batch == nil {
		s.batch = types.NewBatch(s.fields)
	}
	if e.dry {
		return nil
	}
	s.batch.AppendDatums(row)
	s.ids = append(s.ids, id)
	if s.batch.Len()%sinkStep == 0 && s.batch.MemBytes() > sinkBytes {
		e.r.progress("%d rows", e.inserted+e.updated)
		return e.flush(ctx, s)
	}
	return nil
}

// flush writes a sink's rows into files, those of a partition and bucket together,
// in the order in which they first came.
func (e *editor) flush(ctx context.Context, s *sink) error {
	if s.len() == 0 {
		return nil
	}
	groups, order, err := e.groups(s.batch)
	if err != nil {
		return err
	}
	rows := s.batch
	if s == &e.moved {
		rows = paimon.VersionBatch(s.batch, s.ids)
	}
	var objects []objstore.Object
	for _, k := range order {
		to := paimon.Target{Partition: []byte(k.Partition), Bucket: k.Bucket}
		if e.buckets != nil {
			if to, err = e.buckets.Target(e.tg.t, k); err != nil {
				return err
			}
		}
		if s == &e.moved || !e.tg.t.Options().RowTracking {
			if joined, err := e.join(ctx, k, to, rows, groups[k]); err != nil {
				return err
			} else if joined {
				continue
			}
		}
		if objects, err = e.writeTo(s, to, rows, groups[k], objects); err != nil {
			return err
		}
	}
	if e.buckets != nil {
		e.buckets.Add(e.added)
	}
	s.batch.Reset()
	s.ids = s.ids[:0]
	return e.tg.t.Bucket().PutAll(ctx, objects)
}

// writeTo encodes rows of one bucket into files of their own, which are added to
// objects.
func (e *editor) writeTo(s *sink, to paimon.Target, b *types.Batch, rows []uint32, objects []objstore.Object) ([]objstore.Object, error) {
	write := e.writer.WriteTo
	if s == &e.moved {
		write = e.writer.WriteVersions
	}
	files, err := write(to, b, rows)
	for _, f := range files {
		for _, o := range f.Objects() {
			objects = append(objects, o)
			e.written = append(e.written, o.Key)
		}
		e.added = append(e.added, f.Entry)
	}
	return objects, err
}

// groups sorts rows by where they go.
func (e *editor) groups(b *types.Batch) (groups map[paimon.BucketKey][]uint32, order []paimon.BucketKey, err error) {
	groups = map[paimon.BucketKey][]uint32{}
	var partition []byte
	for i := range b.Len() {
		if partition, err = e.tg.t.AppendPartition(partition[:0], b, i); err != nil {
			return nil, nil, err
		}
		bucket, err := e.tg.t.BucketOf(b, i)
		if err != nil {
			return nil, nil, err
		}
		k := paimon.BucketKey{Partition: string(partition), Bucket: bucket}
		if _, ok := groups[k]; !ok {
			order = append(order, k)
		}
		groups[k] = append(groups[k], uint32(i))
	}
	return groups, order, nil
}
