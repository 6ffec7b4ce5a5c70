package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"applier/cmd/applier/internal/verify"
	"applier/config"
	"applier/ingest"
	"applier/ingest/decode"
	"applier/merger"
	"applier/metrics/admin"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// Audited fits a pipeline to its table for verify and explain, which write
// nothing. kafka nil leaves the records out, for the reason offline.
func Audited(ctx context.Context, cfg *config.Config, name string, kafka *ingest.ClientOptions, offline string) (verify.Target, error) {
	p := cfg.Pipelines[name]
	if p == nil {
		return verify.Target{}, fmt.Errorf("%w: %s; the configuration has %s", admin.ErrNotFound, name, strings.Join(cfg.Names(), ", "))
	}
	c, err := newCatalog(cfg, nil)
	if err != nil {
		return verify.Target{}, err
	}
	tn, err := catalog.ParseName(p.Target.Table)
	if err != nil {
		return verify.Target{}, err
	}
	t, err := c.Open(ctx, tn, paimon.Read)
	if err != nil {
		return verify.Target{}, err
	}
	b, err := bind(p, t)
	if err != nil {
		return verify.Target{}, err
	}
	decoding := b.decode
	decoding.Truncates = true // whether one was applied, the position record says
	s := merger.Settings{ID: p.ID, Apply: b.apply, Merge: b.merge, Key: b.key, Order: b.order, RememberDeletes: p.OrderBy.RememberDeletes, Topics: p.Source.TopicList()}
	return verify.Target{
		Pipeline: name, ID: p.ID, Name: p.Target.Table, Table: t, Apply: b.apply, Merge: b.merge, Key: b.key, Order: b.order, Remembers: p.OrderBy.RememberDeletes > 0,
		Topics: s.Topics, Config: merger.ConfigDigest(s, t.Schema()), MaxRecordBytes: int(p.MaxRecordBytes),
		NewDecoder: func() (decode.Decoder, error) { return decode.New(p.Source.Format.Type, decoding) },
		Marked:     marked(ctx, cfg, p), Kafka: kafka, Offline: offline,
	}, nil
}

// marked reports whether a marker in state_dir says that the pipeline has committed.
func marked(ctx context.Context, cfg *config.Config, p *config.Pipeline) bool {
	b, err := objstore.NewLocal(cfg.StateDir, objstore.LocalOptions{})
	if err != nil {
		return false
	}
	return merger.Marked(ctx, b, p.ID)
}

// Verify checks a pipeline's table. The error is about not being able to begin.
func Verify(ctx context.Context, cfg *config.Config, name string, kafka *ingest.ClientOptions, offline string, running *verify.Running, full bool, log *slog.Logger) (*verify.Report, error) {
	t, err := Audited(ctx, cfg, name, kafka, offline)
	if err != nil {
		return nil, err
	}
	t.Running = running
	r, err := verify.Run(ctx, t, verify.Options{Full: full})
	if err == nil && r.Verdict != verify.OK {
		log.Debug("verification", "verdict", string(r.Verdict))
	}
	return r, err
}

// RunningIndex says what a running process knows of a pipeline's index; nil if
// none answers, or it has none that could be compared.
func RunningIndex(ctx context.Context, c *admin.Client, name string) *verify.Running {
	s, err := c.Status(ctx)
	if err != nil {
		return nil
	}
	for _, p := range s.Pipelines {
		if p.Name == name && p.Snapshot > 0 && p.Index.Progress >= 1 && p.Index.Keys > 0 {
			return &verify.Running{Snapshot: p.Snapshot, Keys: p.Index.Keys}
		}
	}
	return nil
}

// Unknown reports whether an error of Verify or Audited names a pipeline that the
// configuration does not have.
func Unknown(err error) bool { return errors.Is(err, admin.ErrNotFound) }
