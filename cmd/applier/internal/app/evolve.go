package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"applier/batcher"
	"applier/config"
	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// evolution is a change of the table's schema that a record asks for.
type evolution struct {
	change    *decode.SchemaChange
	partition change.Partition
	offset    int64
}

// evolutions keeps what was asked for until the table is opened anew, and what the
// table's format refused. It is safe for concurrent use.
type evolutions struct {
	mu      sync.Mutex
	asked   *evolution
	refused []string // paths of columns
}

func (e *evolutions) ask(what evolution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = &what
}

func (e *evolutions) due() *evolution {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

func (e *evolutions) done() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = nil
}

func (e *evolutions) refuse(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.refused, path) {
		e.refused = append(e.refused, path)
	}
}

func (e *evolutions) leave() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.refused)
}

// evolutionOf says how far a pipeline's table follows its records.
func evolutionOf(p *config.Pipeline, b *bound) decode.Evolution {
	e := decode.Evolution{}
	switch p.Schema.Evolve {
	case config.EvolveAdd:
		e.How = decode.EvolveAdd
	case config.EvolveAddAndWiden:
		e.How = decode.EvolveWiden
	}
	s := b.table.Schema()
	e.Keep = slices.Concat(p.Key, p.OrderBy.By, s.PartitionKeys, s.BucketKeys(), sortedKeys(p.Columns.Add))
	if p.Create != nil {
		e.Keep = append(e.Keep, sortedKeys(p.Create.Types)...)
	}
	if b.apply == batcher.SoftDelete {
		e.Keep = append(e.Keep, merger.DeletedAt)
	}
	return e
}

// evolve gives a table what a record asked for, and returns the table as it is then.
// Somebody else may have done so, or do so at the same time: what is there already
// is left out.
func (p *pipeline) evolve(ctx context.Context, t *paimon.Table) (*paimon.Table, error) {
	asked := p.evolution.due()
	if asked == nil {
		return t, nil
	}
	for {
		done, err := p.evolveOnce(ctx, t, asked)
		if err != nil && !errors.Is(err, objstore.ErrExist) {
			return nil, fmt.Errorf("changing the schema of table %s as the record at %s offset %d asks (schema.evolve: %s): %w",
				p.target, asked.partition, asked.offset, p.cfg.Schema.Evolve, err)
		}
		if t, err = openTable(ctx, p.app.catalog, p.cfg, p.app.kafka, p.log); err != nil {
			return nil, err
		}
		if done {
			p.evolution.done()
			return t, nil
		}
	}
}

// evolveOnce writes the next schema; objstore.ErrExist if somebody else was faster.
func (p *pipeline) evolveOnce(ctx context.Context, t *paimon.Table, asked *evolution) (done bool, err error) {
	b, err := bind(p.cfg, t)
	if err != nil {
		return false, err
	}
	e := evolutionOf(p.cfg, b)
	e.Leave = p.evolution.leave()
	edits := e.Edits(t.Schema().Fields, asked.change.Columns)
	live, err := paimon.LatestSnapshotID(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return false, err
	}
	next, applied := p.nextSchema(t.Schema(), live > 0, edits)
	if next == nil {
		return true, nil
	}
	if err := paimon.AddSchema(ctx, t.Bucket(), t.Paths(), next); err != nil {
		return false, err
	}
	var texts []string
	for _, e := range applied {
		kind, word := "widen", "widened "
		if e.Add {
			kind, word = "add", "added "
		}
		texts = append(texts, word+e.String())
		p.app.metrics.Ingest.SchemaChanges.WithLabelValues(p.name, p.target, kind).Inc()
	}
	p.log.Info("the table's schema follows its records", "schema", next.ID, "changes", strings.Join(texts, ", "),
		"partition", asked.partition.String(), "offset", asked.offset)
	return true, nil
}

// nextSchema applies the edits that the table's format allows; nil if there are none.
// The others are told once and left alone from then on.
func (p *pipeline) nextSchema(s *paimon.Schema, live bool, edits []decode.ColumnEdit) (*paimon.Schema, []decode.ColumnEdit) {
	now := time.Now().UnixMilli()
	var next *paimon.Schema
	var applied []decode.ColumnEdit
	for i := range edits {
		made, err := editedSchema(s, live, append(slices.Clone(applied), edits[i]), now)
		if err != nil {
			p.app.metrics.Ingest.SchemaChanges.WithLabelValues(p.name, p.target, "rejected").Inc()
			p.evolution.refuse(strings.Join(edits[i].Path, "."))
			p.log.Warn("the table's schema cannot follow its records; the column is left as it is", "change", edits[i].String(), "err", err)
			continue
		}
		next, applied = made, append(applied, edits[i])
	}
	return next, applied
}

func editedSchema(s *paimon.Schema, live bool, edits []decode.ColumnEdit, now int64) (*paimon.Schema, error) {
	edit := s.Edit(live)
	for _, e := range edits {
		var err error
		if e.Add {
			err = edit.AddColumn(e.Path, types.Field{Type: e.Type}, nil)
		} else {
			err = edit.SetType(e.Path, e.Type)
		}
		if err != nil {
			return nil, err
		}
	}
	next, changed, err := edit.Schema(now)
	if err == nil && !changed {
		err = errors.New("it changes nothing")
	}
	if err == nil {
		err = paimon.Refuse(next, paimon.Write)
	}
	return next, err
}
