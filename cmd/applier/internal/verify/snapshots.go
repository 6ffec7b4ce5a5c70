package verify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// snapshot is a retained snapshot that could be read.
type snapshot struct {
	id    int64
	key   string
	s     *paimon.Snapshot
	ident string
	file  []byte
	// own is the pipeline's record, genuine only if the snapshot was made with it:
	// a rollback that adds a snapshot copies the record of an older one.
	own     *merger.Record
	genuine bool
	other   map[string]*merger.Record
}

// commitUser is what the commit user of a pipeline looks like.
var commitUser = regexp.MustCompile(`^applier-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ours reports whether a pipeline of ours made the snapshot, and with which record.
func (s *snapshot) ours() *merger.Record {
	if s.genuine {
		return s.own
	}
	for _, r := range s.other {
		if r.Txn == s.s.UUID {
			return r
		}
	}
	return nil
}

// snapshots reads the chain and checks its links (I9, I10).
func (v *verifier) snapshots(ctx context.Context) error {
	sec := v.r.section("snapshots")
	ids, err := paimon.ListSnapshotIDs(ctx, v.Table.Bucket(), v.Table.Paths())
	if err != nil {
		return fmt.Errorf("listing the snapshots: %w", err)
	}
	if len(ids) == 0 {
		sec.note("the table has no snapshot yet")
	} else {
		v.r.Earliest, v.r.Latest = ids[0], ids[len(ids)-1]
	}
	for i, id := range ids {
		if i > 0 && id != ids[i-1]+1 {
			for missing := ids[i-1] + 1; missing < id; missing++ {
				sec.fail(v.Table.Paths().Snapshot(missing), "", "the file is missing between snapshots %d and %d", ids[i-1], id)
			}
		}
		if s := v.readSnapshot(ctx, sec, id); s != nil {
			v.chain = append(v.chain, s)
		}
	}
	v.checkHint(ctx, sec)
	sealed := false
	for i, s := range v.chain {
		var before *snapshot
		if i > 0 && v.chain[i-1].id == s.id-1 {
			before = v.chain[i-1]
		}
		v.checkLink(ctx, sec, before, s)
		sealed = v.checkSeal(sec, s, sealed)
	}
	return nil
}

func (v *verifier) readSnapshot(ctx context.Context, sec *Section, id int64) *snapshot {
	key := v.Table.Paths().Snapshot(id)
	file, err := v.Table.Bucket().Get(ctx, key)
	if errors.Is(err, objstore.ErrNotExist) && v.gone(ctx, id) {
		return nil
	}
	if err != nil {
		sec.readError(key, err)
		return nil
	}
	s, err := paimon.ParseSnapshot(file)
	if err != nil {
		sec.readError(key, err)
		return nil
	}
	out := &snapshot{id: id, key: key, s: s, ident: merger.SnapshotIdentity(s, file), file: file}
	if s.ID != id {
		sec.fail(key, "", "the file says it is snapshot %d", s.ID)
	}
	if out.own, out.other, err = merger.RecordIn(s.Properties, v.ID); err != nil {
		sec.readError(key, fmt.Errorf("the position record: %w", err))
	}
	out.genuine = out.own != nil && out.own.Txn == s.UUID
	sec.count("snapshots", 1)
	if out.ours() == nil {
		sec.count("of other writers", 1)
	}
	return out
}

// checkHint compares LATEST with the files: a snapshot that commits have named
// there must not be gone from the top.
func (v *verifier) checkHint(ctx context.Context, sec *Section) {
	key := v.Table.Paths().LatestHint()
	b, err := v.Table.Bucket().Get(ctx, key)
	if err != nil {
		return // no hint, or none that can be read: readers list
	}
	var id int64
	if _, err := fmt.Sscanf(strings.TrimSpace(string(b)), "%d", &id); err != nil {
		sec.note("%s holds no number; readers list the folder instead", key)
		return
	}
	if id <= v.r.Latest {
		return
	}
	if now, err := paimon.LatestSnapshotID(ctx, v.Table.Bucket(), v.Table.Paths()); err == nil && now >= id {
		return // committed meanwhile
	}
	sec.fail(v.Table.Paths().Snapshot(id), "", "the file is missing: %s names it, the newest one there is %d", key, v.r.Latest)
}

// checkLink compares a snapshot with the one it stands on, nil if that is not there.
func (v *verifier) checkLink(ctx context.Context, sec *Section, before, s *snapshot) {
	record := s.ours()
	if record == nil && commitUser.MatchString(s.s.CommitUser) {
		sec.fail(s.key, "", "it was committed by a pipeline (%s), but holds no position record of its own", s.s.CommitUser)
	}
	if _, err := v.Table.SchemaByID(ctx, s.s.SchemaID); err != nil {
		sec.readError(v.Table.Paths().Schema(s.s.SchemaID), err)
	}
	if before == nil {
		return
	}
	if record != nil && record.Base != before.ident {
		sec.fail(s.key, "", "it was built on the snapshot %s, but %s is %s", record.Base, before.key, before.ident)
	}
	if s.s.SchemaID < before.s.SchemaID && record != nil {
		sec.fail(s.key, "", "its schema %d is older than %d of the snapshot before", s.s.SchemaID, before.s.SchemaID)
	}
	if s.s.TimeMillis < before.s.TimeMillis {
		if record != nil {
			sec.fail(s.key, "", "its time is before that of %s", before.key)
		} else {
			sec.note("%s, of another writer, has a time before that of the one before it", s.key)
		}
	}
}

// checkSeal compares a file of ours with its seal. Records without one are older
// than seals; once there are any, all later ones have them.
func (v *verifier) checkSeal(sec *Section, s *snapshot, sealed bool) bool {
	record := s.ours()
	if record == nil {
		return sealed
	}
	switch err := merger.CheckSeal(s.file, record); {
	case err == nil:
		sec.count("sealed", 1)
		return true
	case errors.Is(err, merger.ErrNoSeal) && !sealed:
		sec.count("without a seal", 1)
	default:
		sec.fail(s.key, "", "%v", err)
	}
	return sealed
}
