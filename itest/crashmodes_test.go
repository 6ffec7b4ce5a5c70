//go:build itest

package itest

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// TestCrash_InEveryTableMode is the crash test, each step once, for the kinds of
// tables whose commits write other files.
func TestCrash_InEveryTableMode(t *testing.T) {
	for name, options := range map[string]string{
		"copy on write":               "{ deletion-vectors.enabled: false }",
		"row tracking, copy on write": "{ row-tracking.enabled: true, deletion-vectors.enabled: false }",
		"buckets, vectors":            "{ bucket: 3, bucket-key: id }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(intVariable(t, "CRASH_SEED", int(time.Now().UnixNano()%1_000_000)))
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			r := crashTable(t, rnd, seed, 30_000, crashPlan(rnd, 2), options)
			if name != "row tracking, copy on write" {
				return
			}
			rows, err := cat(t).Read(t.Context(), r.ref(), harness.Query{Columns: []string{"_ROW_ID"}})
			require.NoError(t, err)
			seen := map[int64]bool{}
			for _, text := range rows.Texts() {
				var row struct {
					ID int64 `json:"_ROW_ID"`
				}
				require.NoError(t, json.Unmarshal([]byte(text), &row))
				require.False(t, seen[row.ID], "row id %d was given twice", row.ID)
				seen[row.ID] = true
			}
		})
	}
}
