package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// PlanExpire is Table.PlanExpire, but it also keeps the newest position record of
// every pipeline, without which a pipeline would not know how far the table is, and
// every snapshot that is younger than young: a writer that hangs may be about to
// publish one with the same id, and would succeed if that were free again.
func PlanExpire(ctx context.Context, t *paimon.Table, o paimon.ExpireOptions, young time.Duration) (*paimon.ExpirePlan, error) {
	keep := func(from int64, why string) {
		if from > 0 && (o.KeepFrom == 0 || from < o.KeepFrom) {
			o.KeepFrom, o.KeptFor = from, why
		}
	}
	if young > 0 {
		from, err := firstAfter(ctx, t, o.Now.Add(-young))
		if err != nil {
			return nil, err
		}
		keep(from, fmt.Sprintf("it is younger than %s, and a writer that hangs may be about to publish one with its id", young))
	}
	from, pipeline, err := oldestRecord(ctx, t)
	if err != nil {
		return nil, err
	}
	keep(from, "it has the newest Kafka positions of pipeline "+pipeline)
	return t.PlanExpire(ctx, o)
}

// oldestRecord finds, of the newest records of all pipelines, the one that lies
// furthest back; 0 if there is none. A record that cannot be read counts, too.
func oldestRecord(ctx context.Context, t *paimon.Table) (id int64, pipeline string, err error) {
	ids, err := paimon.ListSnapshotIDs(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return 0, "", err
	}
	seen := map[string]bool{}
	for _, n := range slices.Backward(ids) {
		s, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), n)
		if errors.Is(err, objstore.ErrNotExist) {
			break // expired meanwhile
		}
		if err != nil {
			return 0, "", err
		}
		for name := range s.Properties {
			p, ok := strings.CutPrefix(name, merger.PropertyPrefix)
			if ok && !seen[p] {
				seen[p] = true
				id, pipeline = n, p
			}
		}
	}
	return id, pipeline, nil
}

// firstAfter returns the id of the oldest snapshot of those at the end of the chain
// that are younger than a moment; 0 if there is none.
func firstAfter(ctx context.Context, t *paimon.Table, moment time.Time) (id int64, err error) {
	ids, err := paimon.ListSnapshotIDs(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return 0, err
	}
	for _, n := range slices.Backward(ids) {
		s, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), n)
		if errors.Is(err, objstore.ErrNotExist) {
			break // expired meanwhile
		}
		if err != nil {
			return 0, err
		}
		if s.TimeMillis <= moment.UnixMilli() {
			break
		}
		id = n
	}
	return id, nil
}
