package main

import (
	"fmt"
	"slices"
	"strings"

	"applier/itest/harness"
)

// workload is one run: a table, and batches that are merged into it.
type workload struct {
	Name    string
	Target  int64 // rows of the table before the first batch
	Batch   int64 // changes in a batch
	Batches int64 // in all, the first included, which is not measured
	// Insert: every change is a new row; else MergeLoad's 90 % updates and 10 % inserts.
	Insert bool
	// Paced: a record is sent when the one before it was committed, so that a
	// commit never waits for another one.
	Paced bool
	// Worn is how many per cent of the table's rows are deleted before the first
	// batch, by deletion vectors.
	Worn int64
	// Maintained: the daemon compacts and expires meanwhile.
	Maintained bool
	// Long: only when it is asked for by name.
	Long bool
	// Clauses: merge.when says what apply: mirror would.
	Clauses bool
}

// warmUp is how many batches at the start are not measured: the first one waits
// for the key index to be built.
const warmUp = 1

// workloads are those of `make bench`, and the long ones.
func workloads() []workload {
	ws := []workload{
		{Name: "W0", Target: million, Batch: 1, Batches: 200 + warmUp, Paced: true},
		{Name: "W1", Batch: 100_000, Batches: 50, Insert: true},
	}
	for _, target := range []int64{million, 10 * million} {
		for _, batch := range []int64{10_000, 100_000} {
			ws = append(ws, merge("W2", target, batch, 30+warmUp))
		}
	}
	fresh := merge("W9", 50*million, 100_000, 40+warmUp)
	fresh.Long = true
	worn := fresh
	worn.Name, worn.Worn, worn.Maintained = fresh.Name+"-worn", 10, true
	ws = append(ws, fresh, worn)
	for _, target := range []int64{million, 10 * million} {
		w := merge("W2c", target, 100_000, 10+warmUp)
		w.Clauses = true
		ws = append(ws, w)
	}
	return ws
}

const million = 1_000_000

// merge is a workload of MergeLoad's batches.
func merge(prefix string, target, batch, batches int64) workload {
	return workload{Name: fmt.Sprintf("%s-%s-%s", prefix, short(target), short(batch)), Target: target, Batch: batch, Batches: batches}
}

// short writes 10000000 as 10M.
func short(n int64) string {
	switch {
	case n >= million && n%million == 0:
		return fmt.Sprintf("%dM", n/million)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// choose returns the workloads of a comma-separated list of names; "W2" stands
// for all that begin with it, "kernels" for none of them, "" for all but the long ones.
func choose(all []workload, names string) (chosen []workload, kernels bool, err error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(all), func(w workload) bool { return w.Long }), true, nil
	}
	for _, name := range strings.Split(names, ",") {
		name = strings.TrimSpace(name)
		if strings.EqualFold(name, "kernels") {
			kernels = true
			continue
		}
		found := false
		for _, w := range all {
			if strings.EqualFold(w.Name, name) || strings.HasPrefix(strings.ToUpper(w.Name), strings.ToUpper(name)+"-") {
				chosen, found = append(chosen, w), true
			}
		}
		if !found {
			return nil, false, fmt.Errorf("there is no workload %q; there are %s and kernels", name, names2(all))
		}
	}
	return chosen, kernels, nil
}

func names2(all []workload) string {
	var names []string
	for _, w := range all {
		names = append(names, w.Name)
	}
	return strings.Join(names, ", ")
}

// scaled makes a workload smaller, to try the benchmark itself out.
func (w workload) scaled(by int64) workload {
	if by <= 1 {
		return w
	}
	w.Target /= by
	if w.Batch > 100 {
		w.Batch = max(w.Batch/by, 10)
	}
	return w
}

// load is the generator of the workload's rows.
func (w workload) load() harness.MergeLoad {
	return harness.MergeLoad{Seed: seed, TargetRows: w.Target, BatchRows: w.Batch, Worn: w.Worn}
}

const seed = 1

// ids returns the ids of batch k = 1, 2, …, and the version of their rows.
func (w workload) ids(k int64) (ids []int64, version int64) {
	if !w.Insert {
		return w.load().Batch(k), k
	}
	ids = make([]int64, w.Batch)
	for i := range ids {
		ids[i] = w.Target + (k-1)*w.Batch + int64(i)
	}
	return ids, 0
}

// expected is the digest of the table at the end.
func (w workload) expected(d *digests) harness.Digest {
	if w.Insert {
		sum := d.base(harness.MergeLoad{Seed: seed, TargetRows: w.Target + w.Batches*w.Batch})
		return sum.Digest()
	}
	sum := d.base(w.load())
	w.load().Follow(&sum, w.Batches)
	return sum.Digest()
}

// digests remembers the digests of tables as loaded, which take the longest.
type digests struct{ known map[baseTable]harness.Summer }

// baseTable is a table as it is before the first batch.
type baseTable struct{ rows, worn int64 }

func (d *digests) base(l harness.MergeLoad) harness.Summer {
	t := baseTable{l.TargetRows, l.Worn}
	s, ok := d.known[t]
	if !ok {
		s = l.Base()
		if d.known == nil {
			d.known = map[baseTable]harness.Summer{}
		}
		d.known[t] = s
	}
	return s
}
