package harness

import (
	"context"
	"slices"
	"testing"
)

// Agree reads a table with every judge and fails the test unless all digests
// are equal; the message shows the rows that differ. It returns the digest.
func Agree(ctx context.Context, t testing.TB, ref Ref, q Query, judges ...Judge) Digest {
	t.Helper()
	var first Digest
	for i, j := range judges {
		d, err := j.Digest(ctx, ref, q)
		if err != nil {
			t.Fatalf("%s of %s at snapshot %d: %v", ref.Table, ref.Warehouse, q.Snapshot, err)
		}
		if i == 0 {
			first = d
		} else if d != first {
			t.Fatalf("%s of %s at snapshot %d: %s reads %v, %s reads %v\n%s", ref.Table, ref.Warehouse, q.Snapshot,
				judges[0].Name(), first, j.Name(), d, differ(ctx, ref, q, judges[0], j))
		}
	}
	return first
}

func differ(ctx context.Context, ref Ref, q Query, a, b Judge) string {
	ra, errA := a.Read(ctx, ref, q)
	rb, errB := b.Read(ctx, ref, q)
	if errA != nil || errB != nil {
		return "the rows cannot be read again"
	}
	return DiffRows(a.Name(), ra.Texts(), b.Name(), rb.Texts())
}

// SameRows fails the test unless every judge reads exactly these rows, in any
// order: a model's row texts, or what applier cat printed.
func SameRows(ctx context.Context, t testing.TB, want []string, ref Ref, q Query, judges ...Judge) {
	t.Helper()
	expected := DigestOf(want)
	for _, j := range judges {
		d, err := j.Digest(ctx, ref, q)
		if err != nil {
			t.Fatalf("%s at snapshot %d: %v", ref.Table, q.Snapshot, err)
		}
		if d == expected {
			continue
		}
		r, err := j.Read(ctx, ref, q)
		if err != nil {
			t.Fatalf("%s at snapshot %d: %s reads %v instead of %v, and then: %v", ref.Table, q.Snapshot, j.Name(), d, expected, err)
		}
		t.Fatalf("%s of %s at snapshot %d: %s reads %v instead of %v\n%s", ref.Table, ref.Warehouse, q.Snapshot, j.Name(), d, expected,
			DiffRows("expected", slices.Clone(want), j.Name(), r.Texts()))
	}
}
