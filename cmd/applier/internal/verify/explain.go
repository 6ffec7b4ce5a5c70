package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// ErrNoKey: explaining needs a key, which the pipeline has not.
var ErrNoKey = errors.New("apply: append has no merge key")

// History is what is known of one key.
type History struct {
	Pipeline string `json:"pipeline"`
	Table    string `json:"table"`
	Key      string `json:"key"`
	// Rows are the live rows at the latest snapshot.
	Latest int64   `json:"latest_snapshot"`
	Rows   []Place `json:"rows"`
	Events []Event `json:"events"`
	// Records says why records are missing from events, if they are.
	Records string `json:"records,omitempty"`
	Why     string `json:"why"`
}

// Place is a row and where it lies.
type Place struct {
	Row  string `json:"row"`
	File string `json:"file"`
	Pos  uint32 `json:"position"`
}

// Event is a snapshot that touched the key.
type Event struct {
	Snapshot  int64       `json:"snapshot"`
	Time      time.Time   `json:"time"`
	Kind      string      `json:"kind"`
	Operation string      `json:"operation,omitempty"`
	Writer    string      `json:"writer"`
	Ranges    []string    `json:"ranges,omitempty"` // TOPIC/PARTITION [first, next)
	Added     []Place     `json:"added,omitempty"`
	Removed   []Place     `json:"removed,omitempty"`
	Records   []KeyRecord `json:"records,omitempty"`
	own       bool        // this pipeline's batch
}

// KeyRecord is a record of Kafka that names the key.
type KeyRecord struct {
	Partition string    `json:"partition"`
	Offset    int64     `json:"offset"`
	Time      time.Time `json:"time"`
	Op        string    `json:"op"`
	Outcome   string    `json:"outcome"`
}

// seat is the place of a row.
type seat struct {
	file paimon.FileKey
	pos  uint32
}

// explainer gathers a history.
type explainer struct {
	*verifier
	h    *History
	key  []types.Datum
	text string
	hits map[paimon.FileKey]map[uint32]string // rows of the key in a file, deleted or not
	keys map[string]string                    // keys of files for people
}

// Explain tells the history of a key: which retained snapshots changed its rows,
// and, as far as Kafka still has them, by which records.
func Explain(ctx context.Context, t Target, key []types.Datum) (*History, error) {
	if t.Apply == batcher.Append {
		return nil, ErrNoKey
	}
	v := &verifier{Target: t, o: Options{MaxKeys: 1 << 40}, r: &Report{}}
	if err := v.snapshots(ctx); err != nil {
		return nil, err
	}
	m, err := newModel(v)
	if err != nil {
		return nil, err
	}
	e := &explainer{
		verifier: v, key: key, text: keyText(m.keyFields, key), hits: map[paimon.FileKey]map[uint32]string{}, keys: map[string]string{},
		h: &History{Pipeline: t.Pipeline, Table: t.Name, Latest: v.r.Latest},
	}
	e.h.Key = e.text
	before := map[seat]int{}
	for i, s := range v.chain {
		now, err := e.at(ctx, m, s)
		if err != nil {
			return nil, fmt.Errorf("snapshot %d: %w", s.id, err)
		}
		ev := e.event(s, before, now)
		if i == 0 {
			ev.Removed = nil
		}
		e.h.Events = append(e.h.Events, ev)
		before = now
	}
	e.h.Rows = e.places(before)
	e.records(ctx)
	e.h.Why = e.why()
	// Snapshots that have nothing to do with the key are left out.
	e.h.Events = slices.DeleteFunc(e.h.Events, func(ev Event) bool {
		return len(ev.Added)+len(ev.Removed)+len(ev.Records) == 0
	})
	return e.h, nil
}

// at returns the live rows of the key at a snapshot.
func (e *explainer) at(ctx context.Context, m *model, s *snapshot) (map[seat]int, error) {
	c, err := e.load(ctx, s)
	if err != nil {
		return nil, err
	}
	out := map[seat]int{}
	for i := range c.files {
		f := &c.files[i]
		rows, err := e.inFile(ctx, m, f)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			continue
		}
		dead, err := e.vectorOf(ctx, c, f)
		if err != nil {
			return nil, err
		}
		for pos := range rows {
			if dead == nil || !dead.Contains(pos) {
				out[seat{paimon.KeyOf(f), pos}] = 1
			}
		}
	}
	return out, nil
}

// inFile finds the rows of the key in a data file; each file is read once.
func (e *explainer) inFile(ctx context.Context, m *model, f *manifest.Entry) (map[uint32]string, error) {
	k := paimon.KeyOf(f)
	if rows, ok := e.hits[k]; ok {
		return rows, nil
	}
	rows := map[uint32]string{}
	e.hits[k] = rows
	if out, err := e.outside(ctx, f); out || err != nil {
		return rows, err
	}
	err := e.readRows(ctx, f, nil, func(pos uint32, row []types.Datum) error {
		if m.keyOfRow(row) == e.text {
			rows[pos] = m.text(row)
		}
		return nil
	})
	if err == nil && len(rows) > 0 {
		e.keys[k.Partition+"/"+k.Name], err = e.Table.Paths().Location(f)
	}
	return rows, err
}

// outside reports whether the statistics of a file leave the key out.
func (e *explainer) outside(ctx context.Context, f *manifest.Entry) (bool, error) {
	schema, err := e.Table.SchemaByID(ctx, f.File.SchemaID)
	if err != nil {
		return false, err
	}
	evolution := paimon.NewStatsEvolution(e.Table.Schema(), schema)
	for i, c := range e.Key {
		s, err := evolution.Column(&f.File, c)
		if err != nil {
			return false, err
		}
		t := e.Table.Schema().Fields[c].Type
		if !s.Min.Null && !s.Max.Null && t.Kind != types.Char &&
			(types.CompareDatums(t, e.key[i], s.Min) < 0 || types.CompareDatums(t, e.key[i], s.Max) > 0) {
			return true, nil
		}
	}
	return false, nil
}

func (e *explainer) places(m map[seat]int) []Place {
	out := []Place{}
	for s := range m {
		out = append(out, Place{e.hits[s.file][s.pos], e.keys[s.file.Partition+"/"+s.file.Name], s.pos})
	}
	slices.SortFunc(out, func(a, b Place) int {
		if a.File != b.File {
			return compareText(a.File, b.File)
		}
		return int(a.Pos) - int(b.Pos)
	})
	return out
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// event describes what a snapshot did to the key's rows.
func (e *explainer) event(s *snapshot, before, now map[seat]int) Event {
	ev := Event{
		Snapshot: s.id, Time: time.UnixMilli(s.s.TimeMillis).UTC(), Kind: string(s.s.CommitKind), Operation: string(s.s.Operation),
		Writer: e.writer(s), own: s.batch(),
	}
	added, removed := map[seat]int{}, map[seat]int{}
	for p := range now {
		if before[p] == 0 {
			added[p] = 1
		}
	}
	for p := range before {
		if now[p] == 0 {
			removed[p] = 1
		}
	}
	ev.Added, ev.Removed = e.places(added), e.places(removed)
	if s.batch() {
		if rg, err := ranges(s.own); err == nil {
			for p, x := range rg {
				ev.Ranges = append(ev.Ranges, fmt.Sprintf("%s [%d, %d)", p, x[0], x[1]))
			}
			slices.Sort(ev.Ranges)
		}
	}
	return ev
}

// writer names who made a snapshot.
func (e *explainer) writer(s *snapshot) string {
	switch {
	case s.genuine && s.own.Op != "":
		return fmt.Sprintf("this pipeline (%s)", s.own.Op)
	case s.genuine:
		return "this pipeline"
	}
	for id, r := range s.other {
		if r.Txn == s.s.UUID {
			return "pipeline " + id
		}
	}
	return "another writer (" + s.s.CommitUser + ")"
}

// records finds the records that name the key, and what became of each.
func (e *explainer) records(ctx context.Context) {
	if e.Kafka == nil {
		e.h.Records = e.Offline
		return
	}
	log, err := openLog(ctx, e.verifier)
	if err != nil {
		e.h.Records = "Kafka: " + err.Error()
		return
	}
	defer log.close()
	base, why := e.base(log)
	if base < 0 {
		e.h.Records = why
		return
	}
	e.h.Records = why
	a := &auditor{v: e.verifier, log: log, chain: &Section{Status: OK}, rows: &Section{Status: OK}, every: 1, touched: map[string]bool{e.text: true}}
	if err := e.follow(ctx, a, base); err != nil {
		e.h.Records = "Kafka: " + err.Error()
	}
}

// follow folds the records from a base on and notes those of the key.
func (e *explainer) follow(ctx context.Context, a *auditor, base int) error {
	var err error
	if a.model, err = newModel(e.verifier); err != nil {
		return err
	}
	if err := a.begin(); err != nil {
		return err
	}
	if err := a.loadRows(ctx, e.chain[base]); err != nil {
		return err
	}
	for i := base + 1; i < len(e.chain); i++ {
		ev := &e.h.Events[i]
		err := a.step(ctx, e.chain[i-1], e.chain[i], func(rec *decode.Record, op string, o outcome) {
			ev.Records = append(ev.Records, KeyRecord{
				change.Partition{Topic: rec.Topic, Partition: rec.Partition}.String(), rec.Offset, time.UnixMilli(rec.Timestamp).UTC(),
				op, string(o),
			})
		})
		if err != nil {
			return err
		}
		collapse(ev)
	}
	return nil
}

// collapse marks the records that a later one of the same batch took the place of.
func collapse(ev *Event) {
	last := -1
	for i := len(ev.Records) - 1; i >= 0; i-- {
		r := &ev.Records[i]
		switch {
		case r.Outcome != string(applied):
		case last < 0:
			last = i
		default:
			r.Outcome = fmt.Sprintf("collapsed: %s offset %d of the same batch came later", ev.Records[last].Partition, ev.Records[last].Offset)
		}
	}
}
