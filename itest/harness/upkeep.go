package harness

import (
	"context"
	"time"
)

// Expiry are the bounds of an expiry; zero values are the table's options.
type Expiry struct {
	RetainMax int
	RetainMin int
	OlderThan time.Duration // -1: any age
}

// Expire removes old snapshots and returns how many.
func (p JavaPeer) Expire(ctx context.Context, ref Ref, e Expiry) (int, error) {
	a := ref.args()
	if e.RetainMax > 0 {
		a["retain_max"] = e.RetainMax
	}
	if e.RetainMin > 0 {
		a["retain_min"] = e.RetainMin
	}
	if e.OlderThan != 0 {
		a["older_than_ms"] = max(0, e.OlderThan.Milliseconds())
	}
	var r struct{ Expired int }
	err := p.Call(ctx, "expire", a, &r)
	return r.Expired, err
}

// CreateTag tags a snapshot (0: the latest); retained 0 keeps it for good.
func (p JavaPeer) CreateTag(ctx context.Context, ref Ref, tag string, snapshot int64, retained time.Duration) error {
	a := ref.args()
	a["tag"] = tag
	if snapshot != 0 {
		a["snapshot"] = snapshot
	}
	if retained != 0 {
		a["retained_ms"] = retained.Milliseconds()
	}
	return p.Call(ctx, "tag_create", a, nil)
}

// DeleteTag removes a tag and what only it kept.
func (p JavaPeer) DeleteTag(ctx context.Context, ref Ref, tag string) error {
	a := ref.args()
	a["tag"] = tag
	return p.Call(ctx, "tag_delete", a, nil)
}

// Tags returns the snapshot of every tag.
func (p JavaPeer) Tags(ctx context.Context, ref Ref) (map[string]int64, error) {
	var r struct{ Tags map[string]int64 }
	err := p.Call(ctx, "tags", ref.args(), &r)
	return r.Tags, err
}

// Rollback makes an older snapshot the latest; newer ones are deleted.
func (p JavaPeer) Rollback(ctx context.Context, ref Ref, snapshot int64) error {
	a := ref.args()
	a["snapshot"] = snapshot
	return p.Call(ctx, "rollback", a, nil)
}

// RollbackToTag makes a tag's snapshot the latest.
func (p JavaPeer) RollbackToTag(ctx context.Context, ref Ref, tag string) error {
	a := ref.args()
	a["tag"] = tag
	return p.Call(ctx, "rollback", a, nil)
}

// Branch creates a branch, from a tag unless that is empty. Its tables are
// named "db.t$branch_NAME".
func (p JavaPeer) Branch(ctx context.Context, ref Ref, branch, tag string) error {
	a := ref.args()
	a["branch"] = branch
	if tag != "" {
		a["tag"] = tag
	}
	return p.Call(ctx, "branch_create", a, nil)
}

// FastForward makes a branch the main one: main's newer snapshots are gone.
func (p JavaPeer) FastForward(ctx context.Context, ref Ref, branch string) error {
	a := ref.args()
	a["branch"] = branch
	return p.Call(ctx, "branch_fast_forward", a, nil)
}

// CompactManifests rewrites the table's manifests, as a snapshot of its own.
func (p JavaPeer) CompactManifests(ctx context.Context, ref Ref) error {
	return p.Call(ctx, "compact_manifests", ref.args(), nil)
}

// DropPartitions removes partitions, each named by the texts of its columns.
func (p JavaPeer) DropPartitions(ctx context.Context, ref Ref, partitions ...map[string]string) error {
	a := ref.args()
	a["partitions"] = partitions
	return p.Call(ctx, "partitions_drop", a, nil)
}

// ExpirePartitions runs Paimon's partition expiry under options such as
// partition.expiration-time and returns the partitions that went.
func (p JavaPeer) ExpirePartitions(ctx context.Context, ref Ref, options map[string]string) ([]map[string]string, error) {
	a := ref.args()
	a["options"] = options
	var r struct{ Partitions []map[string]string }
	err := p.Call(ctx, "partitions_expire", a, &r)
	return r.Partitions, err
}

// Consumers returns every consumer's next snapshot.
func (p JavaPeer) Consumers(ctx context.Context, ref Ref) (map[string]int64, error) {
	var r struct{ Consumers map[string]int64 }
	err := p.Call(ctx, "consumers", ref.args(), &r)
	return r.Consumers, err
}

// ResetConsumer sets a consumer's next snapshot; 0 removes the consumer.
func (p JavaPeer) ResetConsumer(ctx context.Context, ref Ref, consumer string, next int64) error {
	a := ref.args()
	a["consumer"] = consumer
	if next != 0 {
		a["next"] = next
	}
	return p.Call(ctx, "consumer_reset", a, nil)
}

// Orphans lists the files that Paimon's orphan cleaner would remove now, however
// young they are; with remove it removes them.
func (p JavaPeer) Orphans(ctx context.Context, ref Ref, remove bool) ([]string, error) {
	a := ref.args()
	a["remove"] = remove
	var r struct{ Files []string }
	err := p.Call(ctx, "orphans", a, &r)
	return r.Files, err
}
