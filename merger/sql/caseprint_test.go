package sql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"

	"github.com/stretchr/testify/require"
)

// commits prints the snapshots of t that are new since the last look.
func (m *caseMode) commits(t *testing.T) string {
	_, tab, err := (&run{Session: m.s}).open(t.Context(), nameOf("t"), paimon.Read)
	if err != nil {
		return "" // the case has no table t
	}
	latest, err := paimon.LatestSnapshotID(t.Context(), tab.Bucket(), tab.Paths())
	require.NoError(t, err)
	if latest == m.seen {
		return "no snapshot\n"
	}
	var out strings.Builder
	before := m.state(t, tab, m.seen)
	for id := m.seen + 1; id <= latest; id++ {
		now := m.state(t, tab, id)
		p := now.Snapshot
		fmt.Fprintf(&out, "%s %s Δ%s/%d:%s%s\n", p.CommitKind, p.Operation, signed(p.DeltaRecordCount), p.TotalRecordCount,
			m.dataFiles(t, tab, p), m.indexFiles(t, tab, before, now))
		before = now
	}
	m.seen = latest
	return out.String()
}

func signed(n int64) string {
	if n == 0 {
		return "0"
	}
	return strings.Replace(fmt.Sprintf("%+d", n), "-", "−", 1)
}

// state is a snapshot's; an empty one if it has expired.
func (m *caseMode) state(t *testing.T, tab *paimon.Table, id int64) *paimon.State {
	if id == 0 {
		return &paimon.State{}
	}
	s, err := paimon.ReadSnapshot(t.Context(), tab.Bucket(), tab.Paths(), id)
	if err != nil {
		return &paimon.State{}
	}
	st, err := tab.State(t.Context(), s)
	require.NoError(t, err)
	return st
}

// dataFiles prints what a snapshot removes and adds.
func (m *caseMode) dataFiles(t *testing.T, tab *paimon.Table, s *paimon.Snapshot) string {
	delta, err := tab.Delta(t.Context(), s)
	require.NoError(t, err)
	gone, added := "", ""
	for _, e := range delta {
		where := ""
		if dir, err := tab.Paths().Location(&e); err == nil && strings.Contains(dir, "=") {
			where = "@" + dir[:strings.Index(dir, "/bucket-")]
		}
		if e.Kind == manifest.Delete {
			gone += fmt.Sprintf(" -%s(%d)%s", m.files[e.File.Name], e.File.Rows, where)
			continue
		}
		m.added++
		m.files[e.File.Name] = fmt.Sprintf("f%d", m.added)
		added += fmt.Sprintf(" +%s(%d)%s", m.files[e.File.Name], e.File.Rows, where)
	}
	return gone + added
}

// indexFiles prints the index files that are in one of two states only.
func (m *caseMode) indexFiles(t *testing.T, tab *paimon.Table, before, now *paimon.State) (out string) {
	has := func(list []manifest.IndexEntry, name string) bool {
		return slices.ContainsFunc(list, func(e manifest.IndexEntry) bool { return e.Name == name })
	}
	for _, e := range before.Index {
		if !has(now.Index, e.Name) {
			out += " -" + m.files[e.Name]
		}
	}
	rows := map[paimon.FileKey]int64{}
	files, err := tab.Files(t.Context(), now, nil)
	require.NoError(t, err)
	for i := range files {
		rows[paimon.KeyOf(&files[i])] = files[i].File.Rows
	}
	for i := range now.Index {
		e := &now.Index[i]
		if has(before.Index, e.Name) {
			continue
		}
		m.marked++
		m.files[e.Name] = fmt.Sprintf("i%d", m.marked)
		refs, err := tab.LiveVectors(now.Index[i : i+1])
		require.NoError(t, err)
		var marks []string
		for k, ref := range refs {
			v, err := tab.ReadVector(t.Context(), ref, rows[k])
			require.NoError(t, err)
			marks = append(marks, m.files[k.Name]+":"+positions(v.ToArray()))
		}
		slices.Sort(marks)
		out += " +" + m.files[e.Name] + "{" + strings.Join(marks, "; ") + "}"
	}
	return out
}

// positions lists rows of a file, or says how many they are.
func positions(list []uint32) string {
	if len(list) > 8 {
		return fmt.Sprintf("%d rows", len(list))
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ",")
}

// facts prints the live data files as row tracking sees them.
func (m *caseMode) facts(t *testing.T) string {
	tab := m.table(t)
	st := m.state(t, tab, m.seen)
	files, err := tab.Files(t.Context(), st, nil)
	require.NoError(t, err)
	var lines []string
	for i := range files {
		f := &files[i].File
		ids := "no ids"
		switch {
		case f.FirstRowID != nil:
			ids = fmt.Sprintf("ids from %d", *f.FirstRowID)
		case slices.Contains(f.WriteColumns, "_ROW_ID"):
			ids = "ids in its rows"
		}
		lines = append(lines, fmt.Sprintf("%s: %d rows, %s, sequence %d to %d", m.files[f.Name], f.Rows, ids, f.MinSequence, f.MaxSequence))
	}
	slices.Sort(lines)
	if st.Snapshot.NextRowID != nil {
		lines = append(lines, fmt.Sprintf("next row id %d", *st.Snapshot.NextRowID))
	}
	return joined(lines)
}

// schema prints the columns with the stored texts of their defaults, and what
// applier keeps of defaults in options.
func (m *caseMode) schema(t *testing.T) string {
	s := m.table(t).Schema()
	var lines []string
	for _, f := range s.Fields {
		line := f.Name + " " + f.Type.String()
		if f.Default != nil {
			line += " default " + *f.Default
		}
		if x, ok := s.Options[fmt.Sprintf("applier.default-expr.%d", f.ID)]; ok {
			line += " option " + x
		}
		lines = append(lines, line)
	}
	return joined(lines)
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return "no rows\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

// testEnv is what a statement's expressions see.
func testEnv(s *Session) *expr.Env { return &expr.Env{Now: s.o.Now(), Zone: s.zone} }

func nameOf(table string) sqlparse.Name {
	return sqlparse.Name{Parts: []sqlparse.Ident{{Name: table}}}
}
