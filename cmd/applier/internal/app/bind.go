package app

import (
	"errors"
	"fmt"
	"slices"

	"applier/batcher"
	"applier/config"
	"applier/ingest"
	"applier/ingest/decode"
	"applier/merger"
	"applier/storage/paimon"
	"applier/storage/types"
)

// bound is a pipeline's configuration applied to its table: names became
// column indexes.
type bound struct {
	pipe   *config.Pipeline
	table  *paimon.Table
	apply  batcher.Apply
	merge  *merger.Merge // the clauses; nil for presets
	key    []int
	order  batcher.Order
	decode decode.Options
}

// bind fits a pipeline to its table. All misfits are reported at once.
func bind(p *config.Pipeline, t *paimon.Table) (*bound, error) {
	b := &bound{pipe: p, table: t, order: order(p.OrderBy)}
	fields := t.Schema().Fields
	var errs []error
	fail := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	column := func(setting, name string) int {
		if i := t.Schema().Column(name); i >= 0 {
			return i
		}
		fail("%s: table %s has no column %q%s", setting, p.Target.Table, name, suggestion(name, fields))
		return -1
	}
	var ok bool
	if b.apply, ok = batcher.ParseApply(p.Preset()); !ok {
		fail("apply: %q is not known", p.Apply)
	}
	for _, name := range p.Key {
		if i := column("key", name); i >= 0 {
			b.key = append(b.key, i)
		}
	}
	for _, name := range p.OrderBy.By {
		if i := column("order_by", name); i >= 0 {
			b.order.By = append(b.order.By, i)
		}
	}
	var metas []decode.MetaColumn
	for _, name := range sortedKeys(p.Columns.Add) {
		if i := column("columns.add", name); i >= 0 {
			metas = append(metas, decode.MetaColumn{Column: i, Source: p.Columns.Add[name]})
		}
	}
	if b.apply == batcher.SoftDelete {
		if i := t.Schema().Column(merger.DeletedAt); i < 0 {
			fail("apply: soft_delete needs a column %s TIMESTAMP(3) WITH LOCAL TIME ZONE; table %s has none", merger.DeletedAt, p.Target.Table)
		} else if f := fields[i]; f.Type.Kind != types.TimestampLTZ || f.Type.NotNull {
			fail("apply: soft_delete needs column %s to be a nullable TIMESTAMP(3) WITH LOCAL TIME ZONE; it is %s", merger.DeletedAt, f.Type)
		} else {
			metas = append(metas, decode.MetaColumn{Column: i, Source: decode.SourceNull})
		}
	}
	if p.Merge != nil && len(b.key) == len(p.Key) {
		var err error
		if b.merge, err = bindMerge(p, t, b.key); err != nil {
			fail("%w", err)
		}
	}
	for _, f := range fields {
		if _, err := paimon.DefaultValue(f); err != nil {
			fail("%v", err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	b.decode = decodeOptions(p, fields, b, metas)
	for k, name := range t.Schema().PartitionKeys {
		if check := t.PartitionCondition(k); check != nil {
			b.decode.Conditions = append(b.decode.Conditions, decode.Condition{Column: t.Schema().Column(name), Check: check})
		}
	}
	if _, err := decode.New(p.Source.Format.Type, b.decode); err != nil {
		return nil, err
	}
	if b.apply != batcher.Append {
		var key []types.Type
		for _, i := range b.key {
			key = append(key, fields[i].Type)
		}
		if _, err := types.NewKeyEncoder(key); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// CheckClauses finds what is wrong with the clauses of pipelines, as far as that can
// be seen without their tables. The error is a config.Problems.
func CheckClauses(file string, cfg *config.Config) error {
	var out config.Problems
	for _, name := range cfg.Names() {
		if p := cfg.Pipelines[name]; p.Merge != nil {
			if _, err := merger.ParseMerge(p.Merge.When); err != nil {
				out = append(out, config.Problem{File: file, Path: "pipelines." + name, Msg: err.Error()})
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// bindMerge reads the clauses and fits them to the table.
func bindMerge(p *config.Pipeline, t *paimon.Table, key []int) (*merger.Merge, error) {
	clauses, err := merger.ParseMerge(p.Merge.When)
	if err != nil {
		return nil, err
	}
	return &merger.Merge{Clauses: clauses, SkipUnchanged: p.Merge.SkipUnchanged}, merger.CheckMerge(t, key, clauses)
}

// order converts how ties and late changes are treated; its columns are those of a
// table.
func order(c config.OrderBy) (o batcher.Order) {
	switch c.OnTie {
	case config.OnTieFirst:
		o.Tie = batcher.TieFirst
	case config.OnTieDeadLetter:
		o.Tie = batcher.TieDeadLetter
	}
	switch c.Late {
	case config.LateApply:
		o.Late = batcher.LateApply
	case config.LateDeadLetter:
		o.Late = batcher.LateDeadLetter
	}
	return o
}

func decodeOptions(p *config.Pipeline, fields []types.Field, b *bound, metas []decode.MetaColumn) decode.Options {
	o := decode.Options{
		Fields: fields, Key: b.key, OrderBy: b.order.By, Append: b.apply == batcher.Append, Columns: metas,
		Unavailable: p.Source.Format.UnavailableValue, UnscaledDecimals: p.Source.Format.Decimals == config.DecimalsUnscaled,
		KeepRaw:         p.OnError == config.OnErrorDeadLetter,
		KeepEvery:       p.OrderBy.DeadLetters() || b.apply == batcher.Merge && p.OnError == config.OnErrorDeadLetter,
		BeforeImages:    b.apply == batcher.Merge,
		IgnoreDeletes:   b.apply == batcher.Upsert || b.apply == batcher.InsertOnly,
		Truncates:       p.OnTruncate == config.OnTruncateApply,
		IgnoreRecordKey: p.Source.KeyFrom == config.KeyFromValue,
	}
	switch p.Source.Format.Binary {
	case "base64url":
		o.Binary = decode.BinaryBase64URL
	case "hex":
		o.Binary = decode.BinaryHex
	}
	return o
}

// start converts where a pipeline begins.
func start(s config.Start) ingest.Start {
	switch {
	case !s.Time.IsZero():
		return ingest.Start{Kind: "time", Time: s.Time}
	case len(s.Offset) > 0:
		return ingest.Start{Kind: "offset", Offsets: s.Offset}
	}
	return ingest.Start{Kind: s.Position}
}

// suggestion names the column whose spelling is nearest.
func suggestion(name string, fields []types.Field) string {
	best, distance := "", 3
	for _, f := range fields {
		if d := editDistance(name, f.Name); d < distance {
			best, distance = f.Name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
