package merger

import (
	"slices"

	"applier/batcher"
)

// simClauses are clauses of merge.when that a world applies in the place of a
// preset, and beside them what they mean, in Go: the model evaluates no SQL. Rows
// hold p = v % 2 in every world.
type simClauses struct {
	name string
	when []string
	// matched says what becomes of a row of value v that a change meets: its next
	// value, or nothing.
	matched func(r simRecord, offset, v int64) (next int64, stays bool)
	// fresh says which row a change makes of a key that has none.
	fresh func(r simRecord, offset int64) (v int64, made bool)
}

// simMergeValues is how many values the records of these worlds have: so few that
// conditions hold now and then, and rows become what they are.
const simMergeValues = 40

// simMerges are the lists of clauses of the worlds.
var simMerges = []*simClauses{
	{
		name: "conditions",
		when: []string{
			"MATCHED AND s.__op = 'd' AND t.v % 3 = 0 THEN UPDATE SET v = t.v + 2",
			"MATCHED AND s.__op = 'd' THEN DELETE",
			"MATCHED AND s.v >= t.v THEN UPDATE SET *",
			"NOT MATCHED AND s.__op <> 'd' AND s.v % 5 <> 0 THEN INSERT *",
		},
		matched: func(r simRecord, _, v int64) (int64, bool) {
			switch {
			case r.delete && v%3 == 0:
				return v + 2, true
			case r.delete:
				return 0, false
			}
			return max(v, r.val), true
		},
		fresh: func(r simRecord, _ int64) (int64, bool) { return r.val, !r.delete && r.val%5 != 0 },
	},
	{
		// What a change does depends on all before it: one too many or too few shows for good.
		name: "counting",
		when: []string{
			"MATCHED AND s.__op = 'd' AND t.v > 100 THEN DELETE",
			"MATCHED AND s.__op = 'd' THEN UPDATE SET v = 3 * t.v",
			"MATCHED THEN UPDATE SET v = t.v + s.v + 1, p = CAST((t.v + s.v + 1) % 2 AS INT)",
			"NOT MATCHED THEN INSERT (k, v, p) VALUES (s.k, coalesce(s.v, 7) + s.__offset, CAST((coalesce(s.v, 7) + s.__offset) % 2 AS INT))",
		},
		matched: func(r simRecord, _, v int64) (int64, bool) {
			switch {
			case r.delete:
				return 3 * v, v <= 100
			}
			return v + r.val + 1, true
		},
		fresh: func(r simRecord, offset int64) (int64, bool) {
			if r.delete {
				return 7 + offset, true
			}
			return r.val + offset, true
		},
	},
	{
		// Deleted rows stay, as even values; some changes remove the row for good.
		name: "kept deletes",
		when: []string{
			"MATCHED AND s.__op = 'd' THEN UPDATE SET v = t.v + t.v % 2, p = 0",
			"MATCHED AND t.v % 2 = 0 AND s.v % 4 = 0 THEN DELETE",
			"MATCHED AND s.__offset % 7 = 0 THEN UPDATE SET v = s.v + 40, p = s.p",
			"MATCHED AND s.v <> t.v THEN UPDATE SET v = s.v, p = s.p",
			"NOT MATCHED AND s.__op = 'd' THEN INSERT (k, v, p) VALUES (s.k, 0, 0)",
			"NOT MATCHED THEN INSERT *",
		},
		matched: func(r simRecord, offset, v int64) (int64, bool) {
			switch {
			case r.delete:
				return v + v%2, true
			case v%2 == 0 && r.val%4 == 0:
				return 0, false
			case offset%7 == 0:
				return r.val + 40, true
			}
			return r.val, true
		},
		fresh: func(r simRecord, _ int64) (int64, bool) {
			if r.delete {
				return 0, true
			}
			return r.val, true
		},
	},
}

// chooseClauses gives some worlds clauses in the place of their preset. It draws
// from the stream of the faults, so that all else of a seed stays; the seeds of
// testdata/seeds.txt are none of these.
func (w *world) chooseClauses() {
	if m := w.o.seed % 7; m != 4 && m != 6 {
		return
	}
	w.apply, w.clauses = batcher.Merge, simMerges[w.frng.IntN(len(simMerges))]
	parsed, err := ParseMerge(w.clauses.when)
	if err != nil {
		panic(err)
	}
	w.merge = &Merge{Clauses: parsed, SkipUnchanged: w.frng.IntN(2) == 0}
}

// apply puts one record to the clauses.
func (c *simClauses) apply(s *simState, r simRecord, offset int64) {
	old := s.rows[r.key]
	delete(s.rows, r.key)
	if len(old) == 0 {
		if v, made := c.fresh(r, offset); made {
			s.rows[r.key] = []int64{v}
		}
		return
	}
	for _, v := range slices.Clone(old) {
		if next, stays := c.matched(r, offset, v); stays {
			s.rows[r.key] = append(s.rows[r.key], next)
		}
	}
}
