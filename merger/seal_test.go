package merger

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// sealedCommit makes a snapshot with a record whose texts try to look like seals.
func sealedCommit(t *testing.T, r *Record) *paimon.Commit {
	s, err := paimon.NewSchema([]types.Field{{Name: "k", Type: types.IntType()}}, nil, map[string]string{paimon.OptBucket: "-1", paimon.OptDeletionVectors: "true"}, nil, 1)
	require.NoError(t, err)
	b := objstore.NewMem(objstore.MemOptions{})
	require.NoError(t, paimon.CreateTable(context.Background(), b, s))
	tab, err := paimon.OpenTable(context.Background(), b, paimon.Write)
	require.NoError(t, err)
	record, err := r.Encode()
	require.NoError(t, err)
	st, err := tab.State(context.Background(), nil)
	require.NoError(t, err)
	c, err := tab.BuildCommit(context.Background(), st, paimon.Changes{}, paimon.CommitInfo{
		UUID: "u", User: "x", NewUUID: uuid.NewString, Properties: map[string]string{PropertyPrefix + "p": record, "other": openSeal},
	})
	require.NoError(t, err)
	return c
}

func record(seal string) *Record {
	return &Record{
		Version: 1, Txn: "u", Seal: seal, Owner: openSeal, Base: `"seal":"`,
		Topics: map[string]RecordTopic{openSeal: {Partitions: map[string][2]int64{"0": {1, 2}}}},
	}
}

func TestSeal_EveryByteOfASnapshotIsUnderIt(t *testing.T) {
	c := sealedCommit(t, record(openSeal))
	require.NoError(t, seal(c, PropertyPrefix+"p"))
	own, _, err := RecordIn(c.Snapshot.Properties, "p")
	require.NoError(t, err)
	require.NotEqual(t, openSeal, own.Seal)
	require.NoError(t, CheckSeal(c.Bytes, own))
	parsed, err := paimon.ParseSnapshot(c.Bytes)
	require.NoError(t, err)
	require.Equal(t, c.Snapshot.Properties, parsed.Properties, "what is in memory is what is published")
	for i := range c.Bytes { // one bit each
		b := bytes.Clone(c.Bytes)
		b[i] ^= 1
		s, err := paimon.ParseSnapshot(b)
		if err != nil {
			continue
		}
		own, _, err := RecordIn(s.Properties, "p")
		if err != nil || own == nil {
			continue // found before
		}
		require.ErrorIs(t, CheckSeal(b, own), ErrSeal, "byte %d, %q", i, b[max(0, i-20):min(len(b), i+20)])
	}
}

func TestSeal_OfRecordsWithoutOne(t *testing.T) {
	c := sealedCommit(t, record(""))
	require.Error(t, seal(c, PropertyPrefix+"p"))
	own, _, err := RecordIn(c.Snapshot.Properties, "p")
	require.NoError(t, err)
	require.ErrorIs(t, CheckSeal(c.Bytes, own), ErrNoSeal)
	own.Seal = strings.Repeat("f", 32)
	require.ErrorIs(t, CheckSeal(c.Bytes, own), ErrSeal)
	own.Seal = "short"
	require.ErrorIs(t, CheckSeal(c.Bytes, own), ErrSeal)
}
