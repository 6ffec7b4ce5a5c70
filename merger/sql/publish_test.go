package sql

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"applier/storage/objstore"

	"github.com/stretchr/testify/require"
)

// faultyStore is a warehouse's store that fails as a test wants it to.
type faultyStore struct {
	objstore.Bucket
	putAll      func(ctx context.Context, objects []objstore.Object) error
	putIfAbsent func(put func() error) error
}

func (f *faultyStore) PutAll(ctx context.Context, objects []objstore.Object) error {
	if f.putAll != nil {
		return f.putAll(ctx, objects)
	}
	return f.Bucket.PutAll(ctx, objects)
}

func (f *faultyStore) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	put := func() error { return f.Bucket.PutIfAbsent(ctx, key, data) }
	if f.putIfAbsent != nil && strings.HasPrefix(key, "snapshot/") {
		return f.putIfAbsent(put)
	}
	return put()
}

// faulty puts the store between a session's tables and their folders.
func faulty(s *Session) *faultyStore {
	f := &faultyStore{}
	s.o.Catalog.UseStore(func(folder string) (objstore.Bucket, error) {
		b, err := objstore.NewLocal(folder, objstore.LocalOptions{})
		f.Bucket = b
		return f, err
	})
	return f
}

// N11: the index file is there when the rest of the commit cannot be written. What the
// statement has written goes, what the table is made of stays.
func TestExecute_AFailedCommitTakesAwayOnlyItsOwnFiles(t *testing.T) {
	s, root := newSession(t)
	must(t, s, "CREATE TABLE t (k INT, v INT) TBLPROPERTIES ('deletion-vectors.enabled'='true')", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", "DELETE FROM t WHERE k = 1")
	j := &judge{t: t, root: root}
	before := j.files()
	f, full, wrote := faulty(s), errors.New("no space left"), false
	f.putAll = func(ctx context.Context, objects []objstore.Object) error {
		for _, o := range objects {
			if strings.Contains(o.Key, "index-") {
				wrote = true
				return errors.Join(f.Bucket.PutAll(ctx, []objstore.Object{o}), full)
			}
		}
		return f.Bucket.PutAll(ctx, objects)
	}
	for _, sql := range []string{"UPDATE t SET v = 9 WHERE k > 1", "DELETE FROM t WHERE k = 2"} {
		_, err := exec(t, s, sql)
		require.ErrorIs(t, err, full, sql)
		require.Equal(t, before, j.files(), sql)
	}
	require.True(t, wrote)
	f.putAll = nil
	require.Equal(t, []string{"2  2", "3  3"}, rows(t, s, "SELECT * FROM t ORDER BY k"))
	must(t, s, "DELETE FROM t WHERE k = 2")
	require.Equal(t, []string{"3  3"}, rows(t, s, "SELECT * FROM t"))
}

// N12: the snapshot is there, and the answer says that it failed. The statement finds it
// by its id and is done; it is not run twice.
func TestExecute_APublishWhoseAnswerIsLostIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSession(t)
		must(t, s, "CREATE TABLE t (k INT, v INT) TBLPROPERTIES ('deletion-vectors.enabled'='true')", "INSERT INTO t VALUES (1, 1)")
		f, lost, published := faulty(s), errors.New("the answer was lost"), 0
		f.putIfAbsent = func(put func() error) error {
			if published++; published > 1 {
				return put()
			}
			return errors.Join(put(), lost)
		}
		res, err := exec(t, s, "UPDATE t SET v = v + 1")
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"t": 2}, res.Snapshot)
		require.Equal(t, 2, published)
		require.Equal(t, []string{"1  2"}, rows(t, s, "SELECT * FROM t"))
	})
}

// Nobody knows whether the snapshot will appear: nothing that it may name is deleted.
func TestExecute_AnUnknownOutcomeKeepsItsFilesAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, root := newSession(t)
		must(t, s, "CREATE TABLE t (k INT, v INT)", "INSERT INTO t VALUES (1, 1)")
		j := &judge{t: t, root: root}
		before := j.files()
		f := faulty(s)
		f.putIfAbsent = func(func() error) error { return errors.New("out of reach") }
		_, err := exec(t, s, "UPDATE t SET v = 2")
		require.Equal(t, ClassUnknown, Describe(err).Class)
		require.Greater(t, len(j.files()), len(before))
		f.putIfAbsent = nil
		require.Equal(t, []string{"1  1"}, rows(t, s, "SELECT * FROM t"))
	})
}
