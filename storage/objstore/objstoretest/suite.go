// Package objstoretest is the conformance suite of objstore.Bucket: what every
// implementation must do, whatever is behind it.
package objstoretest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
)

// Traits are what a bucket may do otherwise than a disk; it has them as a method
// Traits.
type Traits struct {
	// Flat: there are no folders but those that names make, so an object may have the
	// name of one.
	Flat bool
	// MaxName is the longest part of a key that the server takes, if less than 255.
	MaxName int
}

func traits(b objstore.Bucket) Traits {
	if t, ok := b.(interface{ Traits() Traits }); ok {
		return t.Traits()
	}
	return Traits{}
}

// Run tests the buckets that open returns: an empty one for each call, which open
// cleans up when its test ends.
func Run(t *testing.T, open func(t *testing.T) objstore.Bucket) {
	tests := []struct {
		name string
		run  func(*testing.T, objstore.Bucket)
	}{
		{"GetReturnsWhatWasPut", testPutGet},
		{"GetAndOpenSayWhatIsMissing", testMissing},
		{"OpenReadsPartsConcurrently", testOpen},
		{"PutAllWritesManySideBySide", testPutAllMany},
		{"PutAllKeepsExistingObjects", testPutAllExisting},
		{"PutAllRefusesBadCallsWhole", testPutAllBad},
		{"CreateStreams", testCreate},
		{"CreateShowsNothingBeforeClose", testCreateHidden},
		{"CreateAbortLeavesNothing", testCreateAbort},
		{"CreateNeverReplaces", testCreateExisting},
		{"LargeObjects", testLarge},
		{"PutIfAbsentNeverReplaces", testPutIfAbsent},
		{"PutIfAbsentHasOneWinnerOf16", testPutIfAbsentRace},
		{"PutIfAbsentIsNeverHalfVisible", testPutIfAbsentWhole},
		{"ReplaceIsAtomicForReaders", testReplace},
		{"StatDescribesObjectsOnly", testStat},
		{"ListShowsChildrenInKeyOrder", testList},
		{"ListOfManyAndOfNone", testListSizes},
		{"ListStopsAtTheCallersError", testListError},
		{"AwkwardKeys", testAwkwardKeys},
		{"BadKeysAreRefusedEverywhere", testBadKeys},
		{"DeleteRemovesObjectsOnly", testDelete},
		{"CancelledContext", testCancelled},
		{"CallersBytesAreNotKept", testNoRetention},
		{"ProbePasses", testProbe},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := open(t)
			test.run(t, b)
			requireNoLeftovers(t, b)
		})
	}
}

// requireNoLeftovers walks the bucket: no call may leave unfinished objects behind.
func requireNoLeftovers(t *testing.T, b objstore.Bucket) {
	t.Helper()
	for _, key := range allKeys(t, b, "") {
		require.False(t, objstore.IsTemp(key), "left behind: %s", key)
	}
}

// allKeys lists all objects below a folder.
func allKeys(t *testing.T, b objstore.Bucket, folder string) (keys []string) {
	t.Helper()
	var folders []string
	require.NoError(t, b.List(context.Background(), folder, func(i objstore.Info) error {
		if i.Folder {
			folders = append(folders, i.Key)
		} else {
			keys = append(keys, i.Key)
		}
		return nil
	}))
	for _, f := range folders {
		keys = append(keys, allKeys(t, b, f)...)
	}
	return keys
}

// content returns n bytes that depend on the seed.
func content(seed uint64, n int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(n))
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b) // never fails
	return b
}

// requireObject checks an object's bytes without printing them.
func requireObject(t *testing.T, b objstore.Bucket, key string, want []byte) {
	t.Helper()
	got, err := b.Get(context.Background(), key)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%s: %s", key, difference(want, got))
}

func difference(want, got []byte) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("%d bytes wanted, %d got, first difference at %d", len(want), len(got), i)
		}
	}
	return fmt.Sprintf("%d bytes wanted, %d got", len(want), len(got))
}

func requireMissing(t *testing.T, b objstore.Bucket, key string) {
	t.Helper()
	_, err := b.Get(context.Background(), key)
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

// put is PutIfAbsent that must succeed.
func put(t *testing.T, b objstore.Bucket, key string, data []byte) {
	t.Helper()
	require.NoError(t, b.PutIfAbsent(context.Background(), key, data))
}
