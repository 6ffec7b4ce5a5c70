package sql

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A batch through the clauses of a pipeline leaves the table that the same clauses
// leave as MERGE statements: each change of a key is one, in the order of arrival.
func TestPipeline_ClausesDoWhatMergeDoes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { checkTwins(t, r) })
}

// twinTables are the properties of the kinds of tables.
var twinTables = []string{
	"'bucket'='-1', 'deletion-vectors.enabled'='true'",
	"'bucket'='-1'",
	"'bucket'='-1', 'deletion-vectors.enabled'='true', 'row-tracking.enabled'='true'",
	"'bucket'='-1', 'row-tracking.enabled'='true'",
	"'bucket'='2', 'bucket-key'='b', 'deletion-vectors.enabled'='true'",
}

// twinChange is a change; nil is NULL.
type twinChange struct {
	kind change.Kind
	k    int64
	a    *int64
	b    *string
	ms   int64
}

func checkTwins(t *testing.T, r *rapid.T) {
	s, _ := newSession(t)
	disks := map[string]*objstore.Mem{}
	s.o.Catalog.UseStore(func(folder string) (objstore.Bucket, error) {
		if disks[folder] == nil {
			disks[folder] = objstore.NewMem(objstore.MemOptions{Now: time.Now})
		}
		return disks[folder].Attach(objstore.MemOptions{Now: time.Now}), nil
	})
	properties := rapid.SampledFrom(twinTables).Draw(r, "table")
	for _, name := range []string{"pipeline", "statements"} {
		_, err := exec(t, s, "CREATE TABLE "+name+" (k INT NOT NULL, a INT, b STRING DEFAULT 'x1', c DECIMAL(6,2), at TIMESTAMP) TBLPROPERTIES ("+properties+")")
		require.NoError(r, err)
		_, err = exec(t, s, "INSERT INTO "+name+" VALUES (1, 1, 'x', 1.5, NULL), (2, NULL, NULL, NULL, TIMESTAMP '1970-01-01 00:00:05'), (3, 7, 'y', 0, NULL)")
		require.NoError(r, err)
	}
	lines := drawClauses(r)
	clauses, err := merger.ParseMerge(lines)
	require.NoError(r, err)
	p := startTwin(t, r, s, &merger.Merge{Clauses: clauses, SkipUnchanged: rapid.Bool().Draw(r, "skip unchanged")})
	defer p.stop()
	for range rapid.IntRange(1, 3).Draw(r, "batches") {
		changes := rapid.SliceOfN(rapid.Custom(drawTwinChange), 1, 6).Draw(r, "changes")
		p.apply(r, changes)
		for _, round := range rounds(changes) {
			if _, err := exec(t, s, mergeOf(lines, round)); err != nil {
				r.Fatalf("%s: %v", mergeOf(lines, round), err)
			}
		}
		require.Equal(r, twinRows(t, r, s, "statements"), twinRows(t, r, s, "pipeline"), "%s\n%+v", strings.Join(lines, "\n"), changes)
	}
}

// rounds are the first changes of all keys, then the second ones, and so on.
func rounds(changes []twinChange) (out [][]twinChange) {
	seen := map[int64]int{}
	for _, c := range changes {
		if seen[c.k] == len(out) {
			out = append(out, nil)
		}
		out[seen[c.k]] = append(out[seen[c.k]], c)
		seen[c.k]++
	}
	return out
}

func mergeOf(lines []string, changes []twinChange) string {
	var rows []string
	for _, c := range changes {
		a, b := "CAST(NULL AS INT)", "CAST(NULL AS STRING)"
		if c.a != nil {
			a = fmt.Sprintf("CAST(%d AS INT)", *c.a)
		}
		if c.b != nil {
			b = "'" + *c.b + "'"
		}
		rows = append(rows, fmt.Sprintf("(CAST(%d AS INT), %s, %s, CAST(NULL AS DECIMAL(6,2)), CAST(NULL AS TIMESTAMP), '%s', timestamp_millis(%d))", c.k, a, b, twinOps[c.kind], c.ms))
	}
	return "MERGE INTO statements AS t USING (SELECT * FROM VALUES " + strings.Join(rows, ", ") + " AS v(k, a, b, c, at, __op, __ts)) AS s ON t.k = s.k WHEN " +
		strings.Join(lines, " WHEN ")
}

var twinOps = map[change.Kind]string{change.Insert: "c", change.Update: "u", change.Read: "r", change.Delete: "d"}

func drawTwinChange(r *rapid.T) twinChange {
	c := twinChange{
		kind: rapid.SampledFrom([]change.Kind{change.Insert, change.Update, change.Update, change.Read, change.Delete}).Draw(r, "kind"),
		k:    rapid.Int64Range(1, 5).Draw(r, "k"), ms: 1000 * rapid.Int64Range(0, 9).Draw(r, "seconds"),
	}
	if rapid.IntRange(0, 3).Draw(r, "a") > 0 {
		v := rapid.Int64Range(-3, 9).Draw(r, "value")
		c.a = &v
	}
	if rapid.IntRange(0, 3).Draw(r, "b") > 0 {
		v := rapid.SampledFrom([]string{"x", "y", "xy", ""}).Draw(r, "text")
		c.b = &v
	}
	return c
}

// drawClauses draws clauses as a pipeline lists them, those with MATCHED first, which
// MERGE asks for.
func drawClauses(r *rapid.T) (out []string) {
	draw := func(family string, conditions, actions []string) {
		for range rapid.IntRange(0, 3).Draw(r, "clauses") {
			out = append(out, family+" AND "+rapid.SampledFrom(conditions).Draw(r, "condition")+" THEN "+rapid.SampledFrom(actions).Draw(r, "action"))
		}
		if rapid.Bool().Draw(r, "else") {
			out = append(out, family+" THEN "+rapid.SampledFrom(actions).Draw(r, "action"))
		}
	}
	draw("MATCHED", []string{
		"s.__op = 'd'", "s.a > t.a", "t.b = s.b", "NOT (t.b <=> s.b)", "(s.a IS NULL OR t.a IS NULL)", "s.a + t.a > 10", "t.b LIKE 'x%'",
		"s.__ts > t.at", "t.a IN (1, 2, NULL)", "NOT (t.a IN (1, NULL))", "s.__op IN ('c', 'r') AND t.k <> 2",
	}, []string{
		"DELETE", "DELETE", "UPDATE SET *", "UPDATE SET a = t.a + 1", "UPDATE SET b = concat(t.b, s.b), at = s.__ts", "UPDATE SET c = s.a / 3, b = DEFAULT",
		"UPDATE SET c = s.a, a = s.a", "UPDATE SET a = NULL, t.b = upper(s.b)", "UPDATE SET k = s.k, b = t.a, a = t.a",
	})
	draw("NOT MATCHED", []string{"s.__op <> 'd'", "s.a > 3", "s.b IS NULL", "s.a % 2 = 0 AND b = 'x'"}, []string{
		"INSERT *", "INSERT *", "INSERT (k, b) VALUES (s.k, s.b)", "INSERT (a, k, c, at) VALUES (s.a * 2, s.k, s.a, s.__ts)", "INSERT (k, b) VALUES (k, DEFAULT)",
	})
	if len(out) == 0 {
		return []string{"MATCHED THEN UPDATE SET *"}
	}
	return out
}

func twinRows(t *testing.T, r *rapid.T, s *Session, table string) []string {
	res, err := exec(t, s, "SELECT * FROM "+table)
	require.NoError(r, err)
	out := []string{}
	for _, row := range res.Rows {
		out = append(out, fmt.Sprint(row))
	}
	slices.Sort(out)
	return out
}

// twin is a pipeline on a table, whose source is the test.
type twin struct {
	a         *merger.Applier
	b         *batcher.Batcher
	part      change.Partition
	offset    int64
	resumed   chan change.Positions
	committed chan merger.Commit
	ended     chan error
}

func startTwin(t *testing.T, r require.TestingT, s *Session, m *merger.Merge) *twin {
	table, err := s.o.Catalog.Open(t.Context(), catalog.Name{Database: "default", Table: "pipeline"}, paimon.Write)
	require.NoError(r, err)
	p := &twin{part: change.Partition{Topic: "t"}, resumed: make(chan change.Positions, 1), committed: make(chan merger.Commit, 8), ended: make(chan error, 1)}
	set := merger.Settings{
		ID: "p", Apply: batcher.Merge, Merge: m, Key: []int{0}, Topics: []string{"t"}, OnRowError: "pause", Instance: "i", VerifySample: 1, StateDir: t.TempDir(),
		EncodeConcurrency: 1, CommitUserPrefix: "applier-", Log: slog.New(slog.DiscardHandler), Now: time.Now, UUID: func() string { return uuid.New().String() },
	}
	p.a, err = merger.New(t.Context(), set, merger.Deps{Name: "default.pipeline", Table: table, Source: p, Observer: twinObserver{p}})
	require.NoError(r, err)
	p.b, err = batcher.New(batcher.Options{Fields: table.Schema().Fields, Key: set.Key, Apply: set.Apply, Limits: batcher.Limits{Rows: 1000}})
	require.NoError(r, err)
	go func() { p.ended <- p.a.Run(t.Context()) }()
	p.a.Post(merger.Assigned{})
	p.b.Reset(<-p.resumed, []change.Partition{p.part}, 1)
	return p
}

func (p *twin) stop() {
	p.a.Post(merger.StopAsked{})
	<-p.ended
}

// apply commits changes as one batch.
func (p *twin) apply(r require.TestingT, changes []twinChange) {
	out := p.b.Changes()
	for _, c := range changes {
		row := []types.Datum{types.IntDatum(c.k), types.Null, types.Null, types.Null, types.Null}
		if c.a != nil {
			row[1] = types.IntDatum(*c.a)
		}
		if c.b != nil {
			row[2] = types.StringDatum(*c.b)
		}
		for i, d := range row {
			out.Cols[i].AppendDatum(d)
		}
		out.EndRow(c.kind, 0, p.offset, c.ms)
		p.b.Record(0, p.offset, 0, nil, nil, time.Now())
		p.offset++
	}
	require.NoError(r, p.a.Submit(context.Background(), p.b.Seal(batcher.FlushManual)))
	for c := range p.committed {
		if c.Op == "" {
			return
		}
	}
}

// ResolveStart and the methods below are the source's.
func (p *twin) ResolveStart(context.Context) (change.Positions, map[string]string, string, error) {
	return change.Positions{p.part: {Epoch: -1}}, map[string]string{"t": "id"}, "cluster", nil
}

func (p *twin) Resume(_ context.Context, pos change.Positions, _ map[string]string, _ string) (uint64, error) {
	p.resumed <- pos
	return 1, nil
}
func (p *twin) Refuse(_ change.Partition, _ int64, err *change.RowError) { panic(err) }
func (p *twin) Stop()                                                    {}
func (p *twin) Owned() bool                                              { return true }
func (p *twin) Committed(c change.Positions)                             {}
func (p *twin) Release(b *batcher.Batch)                                 { p.b.Recycle(b) }

// twinObserver hears of commits.
type twinObserver struct{ *twin }

func (o twinObserver) Noticed(merger.Notice)        {}
func (o twinObserver) Committed(c merger.Commit)    { o.committed <- c }
func (o twinObserver) Halted(h *merger.Halt)        {}
func (o twinObserver) TwoPartitions(int64)          {}
func (o twinObserver) DeadLetter(string)            {}
func (o twinObserver) Rebuilt(int64, time.Duration) {}
func (o twinObserver) Stage(string, time.Duration)  {}
