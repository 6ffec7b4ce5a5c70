package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"applier/config"
	"applier/ingest"
	"applier/ingest/decode"
	"applier/merger"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// openTable opens a pipeline's table for writing, and creates it first if the
// configuration says so and it is missing.
func openTable(ctx context.Context, c *catalog.FileSystem, p *config.Pipeline, kafka ingest.ClientOptions, log *slog.Logger) (*paimon.Table, error) {
	name, err := catalog.ParseName(p.Target.Table)
	if err != nil {
		return nil, err
	}
	t, err := c.Open(ctx, name, paimon.Write)
	if !errors.Is(err, catalog.ErrNoTable) {
		return t, err
	}
	if p.Create == nil {
		return nil, missingTable(p.Target.Table)
	}
	schema, err := newSchema(ctx, p, kafka)
	if err != nil {
		return nil, fmt.Errorf("creating table %s: %w", p.Target.Table, err)
	}
	t, err = c.Create(ctx, name, schema)
	if errors.Is(err, catalog.ErrTableExists) { // another instance was faster
		return c.Open(ctx, name, paimon.Write)
	}
	if err != nil {
		return nil, err
	}
	log.Info("table created", "columns", len(schema.Fields), "partition_by", strings.Join(schema.PartitionKeys, ","))
	return t, nil
}

// missingTable is a catalog.ErrNoTable that says how to make the table.
type missingTable string

// Error implements error.
func (t missingTable) Error() string {
	return fmt.Sprintf("table %s does not exist; create it, or let the pipeline do so by this line:\n  create: {}", string(t))
}

func (missingTable) Unwrap() error { return catalog.ErrNoTable }

// newSchema makes the schema of a pipeline's table: the columns of the records'
// own schema, changed and completed by create.types.
func newSchema(ctx context.Context, p *config.Pipeline, kafka ingest.ClientOptions) (*paimon.Schema, error) {
	wanted := map[string]types.Type{}
	for _, name := range sortedKeys(p.Create.Types) {
		t, err := types.ParseType(p.Create.Types[name])
		if err != nil {
			return nil, fmt.Errorf("create.types.%s: %w", name, err)
		}
		wanted[name] = t
	}
	columns, err := derived(ctx, p, kafka, wanted)
	if err != nil {
		return nil, err
	}
	var fields []types.Field
	add := func(name string, t types.Type) {
		if slices.Contains(p.Key, name) {
			t = t.NonNull()
		}
		fields = append(fields, types.Field{Name: name, Type: t})
	}
	for _, c := range columns {
		t, ok := wanted[c.Name]
		if !ok {
			if t, err = types.ParseType(c.Type); err != nil {
				return nil, err
			}
			t = t.Nullable()
		}
		delete(wanted, c.Name)
		add(c.Name, t)
	}
	for _, name := range typeOrder(p, wanted) {
		add(name, wanted[name])
	}
	if p.Apply == config.ApplySoftDelete && !slices.ContainsFunc(fields, func(f types.Field) bool { return f.Name == merger.DeletedAt }) {
		add(merger.DeletedAt, types.TimestampLTZType(3))
	}
	s, err := paimon.NewSchema(fields, p.Create.PartitionBy, tableOptions(p.Create.Options), nil, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	return s, paimon.Refuse(s, paimon.Create)
}

// typeOrder is the order of columns that only create.types names: the merge key
// first, then as they are written.
func typeOrder(p *config.Pipeline, wanted map[string]types.Type) []string {
	var names []string
	for _, k := range p.Key {
		if _, ok := wanted[k]; ok {
			names = append(names, k)
		}
	}
	for _, n := range p.Create.TypeOrder() {
		if _, ok := wanted[n]; ok && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// derived asks the topic for columns; records without schema leave all to
// create.types.
func derived(ctx context.Context, p *config.Pipeline, kafka ingest.ClientOptions, wanted map[string]types.Type) ([]ingest.Column, error) {
	quiet := 5 * time.Second
	if len(wanted) > 0 {
		quiet = 500 * time.Millisecond // a quiet topic: what is written must do
	}
	columns, _, err := ingest.DeriveColumns(ctx, kafka, p.Source.TopicList()[0], quiet)
	if !errors.Is(err, decode.ErrNoSchema) {
		return columns, err
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("%w; name the columns under create.types", err)
	}
	for _, k := range p.Key {
		// These types are changes to a schema that is still to come: a table made of them
		// alone could not even hold the key, and would stay.
		if _, ok := wanted[k]; !ok {
			return nil, fmt.Errorf("%w, and create.types does not name the key column %s", err, k)
		}
	}
	return nil, nil
}

// tableOptions are the options of a table we create: without buckets and with
// deletion vectors, which suits streams of changes best, unless the user's own say
// otherwise.
func tableOptions(user map[string]string) map[string]string {
	options := map[string]string{paimon.OptBucket: "-1", paimon.OptDeletionVectors: "true"}
	maps.Copy(options, user)
	return options
}

// Observe is told of the requests to a store; see objstore.LocalOptions.
type Observe = func(op, key string, bytes int64, err error, d time.Duration)

// OpenWarehouse opens the catalog of a warehouse, on the local disk or in an object
// store.
func OpenWarehouse(w config.Warehouse, observe Observe) (*catalog.FileSystem, error) {
	if !w.OnS3() {
		return catalog.NewFileSystem(w.Path, objstore.LocalOptions{Observe: observe})
	}
	o := objstore.S3Options{Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"), Observe: observe}
	o.Bucket, o.Prefix = w.Location()
	if s := w.S3; s != nil {
		o.Endpoint, o.Region, o.PathStyle = s.Endpoint, cmp.Or(s.Region, o.Region), s.PathStyle
		o.AccessKey, o.SecretKey, o.SessionToken = s.AccessKey.Reveal(), s.SecretKey.Reveal(), s.SessionToken.Reveal()
		o.Encryption, o.KMSKey = s.Encryption, s.KMSKey
		if s.CA != "" {
			var err error
			if o.TLS, err = (config.TLS{CA: s.CA}).ClientConfig(); err != nil {
				return nil, fmt.Errorf("warehouse.s3.ca %w", err)
			}
		}
	}
	c, err := catalog.NewS3(o)
	if err != nil {
		return nil, fmt.Errorf("opening warehouse %s: %w", w.Path, err)
	}
	return c, nil
}

// newCatalog opens the warehouse.
func newCatalog(cfg *config.Config, observe Observe) (*catalog.FileSystem, error) {
	return OpenWarehouse(cfg.Warehouse, observe)
}

// kafkaOptions converts the connection settings.
func kafkaOptions(cfg *config.Config, log *slog.Logger) (ingest.ClientOptions, error) {
	o := ingest.ClientOptions{Brokers: cfg.Kafka.Brokers, ClientID: cfg.Kafka.ClientID, Log: log}
	// A record must fit with its batch.
	for _, p := range cfg.Pipelines {
		o.MaxBatchBytes = max(o.MaxBatchBytes, ingest.DefaultMaxBatchBytes, 2*int(p.MaxRecordBytes))
	}
	if cfg.Kafka.TLS != nil {
		tls, err := cfg.Kafka.TLS.ClientConfig()
		if err != nil {
			return o, err
		}
		o.TLS = tls
	}
	if s := cfg.Kafka.SASL; s != nil {
		o.SASL = ingest.SASL{Mechanism: s.Mechanism, Username: s.Username, Password: s.Password.Reload}
	}
	return o, nil
}
