package sql

import (
	"math/rand/v2"
	"testing"
)

// Statements that were written for other tables are refused or run, and never panic.
func TestExecute_SurvivesStatementsOfOtherTables(t *testing.T) {
	list := recordedSequences(t, "testdata/statements.jsonl.gz")
	random := rand.New(rand.NewPCG(1, 2))
	refused, ran := 0, 0
	for i := 0; i < len(list); i += 10 {
		s, _ := newSession(t)
		for k, st := range list[i].Steps {
			if k > 3 {
				break
			}
			_, _ = exec(t, s, st.SQL)
		}
		for range 25 {
			other := list[random.IntN(len(list))]
			if _, err := exec(t, s, other.Steps[random.IntN(len(other.Steps))].SQL); err != nil {
				refused++
			} else {
				ran++
			}
		}
	}
	if refused == 0 || ran == 0 {
		t.Fatalf("%d refused, %d ran", refused, ran)
	}
	t.Logf("%d refused, %d ran", refused, ran)
}
