package paimon

import (
	"context"
	"slices"
)

// Tables with clustering.incremental keep their files in levels: 0 has the files as
// they were written, the levels above it hold files that a clustering of Java's has
// sorted by the option's columns. Every writer writes to level 0; sorting
// is left to Java, whose next clustering takes the files of level 0 in. What must not
// happen is that a sorted file is called one of level 0 without need, for then it is
// sorted again, or a file that is not sorted one of a level above, for then it never is.
// Source: IncrementalClusterManager, IncrementalClusterStrategy.

// Clustered reports whether the table's files are kept in levels.
func (t *Table) Clustered() bool { return t.options.IncrementalClustering }

// copyLevel is the level of a copy of files: that of a single one, whose rows keep
// their order, if it is sorted as the current schema asks for (the schema that the
// copy names is where Java looks for the columns it was sorted by).
func (t *Table) copyLevel(ctx context.Context, parts []Part) (int32, error) {
	f := &parts[0].Entry.File
	if !t.Clustered() || len(parts) > 1 || f.Level == 0 {
		return 0, nil
	}
	old, err := t.SchemaByID(ctx, f.SchemaID)
	if err != nil {
		return 0, err
	}
	o, err := ParseOptions(old.Options)
	if err != nil || !slices.Equal(o.ClusteringColumns, t.options.ClusteringColumns) {
		return 0, nil // what the old options meant is not known: not sorted
	}
	for _, name := range o.ClusteringColumns {
		was, is := old.Column(name), t.schema.Column(name)
		if was < 0 || is < 0 || old.Fields[was].ID != t.schema.Fields[is].ID ||
			old.Fields[was].Type.Nullable().String() != t.schema.Fields[is].Type.Nullable().String() {
			return 0, nil
		}
	}
	return f.Level, nil
}
