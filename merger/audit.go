package merger

import (
	"context"

	"applier/storage/objstore"
	"applier/storage/paimon"
)

// What an auditor needs to judge a table without a commit loop.

// SnapshotIdentity names a snapshot as Record.Base does: its uuid, or a hash of
// its file where the writer gave none.
func SnapshotIdentity(s *paimon.Snapshot, file []byte) string { return identify(s, file) }

// NextChain is Record.Chain after a batch: a hash over the chain before it and the
// batch's digest (batcher.Batch.Digest).
func NextChain(previous string, digest []byte) string { return chainHash(previous, digest) }

// ConfigDigest is Record.Config under these settings: it changes with everything
// that the meaning of recorded positions depends on.
func ConfigDigest(s Settings, schema *paimon.Schema) string { return configDigest(s, schema) }

// Marked reports whether the marker in a state folder says that a pipeline id has
// committed to some table.
func Marked(ctx context.Context, state objstore.Bucket, id string) bool {
	b, err := state.Get(ctx, markerKey(id))
	return err == nil && len(b) > 0
}
