package verify

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"applier/batcher"
	"applier/storage/objstore"
	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

// golden are the tables that other engines wrote, whatever they are: Java, Flink,
// Spark, with compactions, overwrites, rollbacks, evolved schemas.
const golden = "../../../../storage/paimon/testdata/golden"

func TestGolden_TablesOfOtherEnginesAreClean(t *testing.T) {
	tables, err := filepath.Glob(golden + "/*/warehouse/*.db/*")
	require.NoError(t, err)
	checked := 0
	for _, dir := range tables {
		b, err := objstore.NewLocal(dir, objstore.LocalOptions{})
		require.NoError(t, err)
		tab, err := paimon.OpenTable(context.Background(), b, paimon.Read)
		if errors.Is(err, paimon.ErrRefused) || errors.Is(err, objstore.ErrNotExist) {
			continue // primary keys and other things that are refused by name
		}
		require.NoError(t, err, dir)
		t.Run(strings.TrimPrefix(dir, golden+"/"), func(t *testing.T) {
			r, err := Run(context.Background(), Target{
				Pipeline: "p", ID: "p", Name: "x.y", Table: tab, Apply: batcher.Append, Offline: "no Kafka",
			}, Options{Full: true})
			require.NoError(t, err)
			var text bytes.Buffer
			r.Print(&text)
			require.Equal(t, OK, r.Verdict, text.String())
		})
		checked++
	}
	require.Greater(t, checked, 20)
}
