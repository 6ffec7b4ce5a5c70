package compact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// PlanExpire is Table.PlanExpire, but it also keeps the newest position record of
// every pipeline: without it a pipeline would not know how far the table is.
func PlanExpire(ctx context.Context, t *paimon.Table, o paimon.ExpireOptions) (*paimon.ExpirePlan, error) {
	from, pipeline, err := oldestRecord(ctx, t)
	if err != nil {
		return nil, err
	}
	if from > 0 && (o.KeepFrom == 0 || from < o.KeepFrom) {
		o.KeepFrom = from
		o.KeptFor = fmt.Sprintf("it has the newest Kafka positions of pipeline %s", pipeline)
	}
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
