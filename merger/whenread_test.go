package merger

import (
	"strings"
	"testing"
	"time"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// Of the rows of the table is read what some clause may need for a change, no more:
// k, a, b, c are the columns; a change says which it leaves open.
func TestMerge_OnlyWhatAClauseMayNeedIsRead(t *testing.T) {
	mirror := []string{"MATCHED AND s.__op = 'd' THEN DELETE", "MATCHED THEN UPDATE SET *", "NOT MATCHED THEN INSERT *"}
	newest := []string{"MATCHED AND s.b >= t.b THEN UPDATE SET *"}
	soft := []string{"MATCHED AND s.__op = 'd' THEN UPDATE SET c = 1", "MATCHED THEN UPDATE SET *"}
	for name, c := range map[string]struct {
		clauses             []string
		delete, skip        bool
		absent, unavailable string // columns
		want                string
	}{
		"nothing of it":                              {clauses: mirror},
		"nothing for a delete":                       {clauses: mirror, delete: true, absent: "abc"},
		"what the change does not carry":             {clauses: mirror, absent: "b", want: "b"},
		"what its producer could not send":           {clauses: mirror, unavailable: "c", want: "c"},
		"a condition":                                {clauses: newest, want: "b"},
		"a condition on what could not be sent":      {clauses: newest, unavailable: "b", want: "b"},
		"all to compare with":                        {clauses: newest, skip: true, want: "kabc"},
		"nothing to compare with for a delete":       {clauses: mirror, skip: true, delete: true, absent: "abc"},
		"what stays":                                 {clauses: soft, delete: true, absent: "abc", want: "kab"},
		"not what would stay for another change":     {clauses: soft},
		"a value":                                    {clauses: []string{"MATCHED THEN UPDATE SET k = s.k, a = t.a + s.a, b = s.b, c = s.c"}, want: "a"},
		"a value made of what could not be sent":     {clauses: []string{"MATCHED THEN UPDATE SET k = s.k, a = s.b + 1, b = s.c, c = s.c"}, unavailable: "b", want: "b"},
		"both outcomes of a condition":               {clauses: []string{"MATCHED AND t.a = 1 THEN DELETE", "MATCHED THEN UPDATE SET a = s.a"}, want: "kabc"},
		"nothing behind a condition that holds":      {clauses: []string{"MATCHED AND s.a = 0 THEN DELETE", "MATCHED AND t.a = 1 THEN DELETE"}},
		"what is behind one that does not":           {clauses: []string{"MATCHED AND s.a = 1 THEN DELETE", "MATCHED AND t.a = 1 THEN DELETE"}, want: "a"},
		"nothing behind one that cannot be computed": {clauses: []string{"MATCHED AND 1 / s.a = 1 THEN DELETE", "MATCHED AND t.a = 1 THEN DELETE"}},
		"nothing without a clause for rows":          {clauses: []string{"NOT MATCHED THEN INSERT *"}},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []types.Field
			for i, n := range "kabc" {
				fields = append(fields, types.Field{ID: i, Name: string(n), Type: types.IntType()})
			}
			w, err := newWhen(fields, []int{0}, mergeOf(t, c.skip, c.clauses...).Clauses, make([]*types.Datum, len(fields)), time.Time{})
			require.NoError(t, err)
			b := change.NewBatch(fields, fields[:1])
			for i, f := range fields {
				switch {
				case strings.Contains(c.absent, f.Name):
					b.Cols[i].Absent.Set(0)
					b.Cols[i].AppendNull()
				case strings.Contains(c.unavailable, f.Name):
					b.Cols[i].Unavailable.Set(0)
					b.Cols[i].AppendNull()
				default:
					b.Cols[i].AppendInt32(0)
				}
			}
			kind := change.Update
			if c.delete {
				kind = change.Delete
			}
			b.EndRow(kind, 0, 0, 0)
			w.hold(b, []change.Partition{{Topic: "t"}}, 0, nil)
			want := make([]bool, len(fields))
			any, read := w.needs(c.skip, want), ""
			for i, f := range fields {
				if want[i] {
					read += f.Name
				}
			}
			require.Equal(t, c.want, read)
			require.Equal(t, read != "", any)
		})
	}
}
