package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"applier/config"
	"applier/ingest"
	"applier/storage/catalog"
	"applier/storage/paimon"
)

// Kafka returns the connection settings of a configuration for commands.
func Kafka(cfg *config.Config, log *slog.Logger) (ingest.ClientOptions, *slog.Logger, error) {
	o, err := kafkaOptions(cfg, log)
	return o, log, err
}

// Validate checks a configuration against the tables and Kafka and writes a
// line a pipeline. It changes nothing. The error joins everything found.
func Validate(ctx context.Context, cfg *config.Config, timeout time.Duration, log *slog.Logger, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	kafka, err := kafkaOptions(cfg, log)
	if err != nil {
		return err
	}
	cl, err := ingest.NewClient(kafka)
	if err != nil {
		return err
	}
	defer cl.Close()
	c, err := newCatalog(cfg, nil)
	if err != nil {
		return err
	}
	admin := ingest.NewAdmin(cl)
	var errs []error
	for _, name := range cfg.Names() {
		p := cfg.Pipelines[name]
		table, kafkaErr := validateTable(ctx, c, p, kafka), validateTopics(ctx, admin, p)
		if table != nil && kafkaErr != nil && table.Error() == kafkaErr.Error() {
			kafkaErr = nil // a new table's columns come from Kafka: the same trouble, once
		}
		for _, e := range []error{table, kafkaErr} {
			if e != nil {
				errs = append(errs, fmt.Errorf("pipeline %s: %w", name, e))
			}
		}
		if table == nil && kafkaErr == nil {
			fmt.Fprintf(out, "pipeline %s: table %s and topics are fine\n", name, p.Target.Table)
		}
	}
	return errors.Join(errs...)
}

func validateTable(ctx context.Context, c *catalog.FileSystem, p *config.Pipeline, kafka ingest.ClientOptions) error {
	name, err := catalog.ParseName(p.Target.Table)
	if err != nil {
		return err
	}
	t, err := c.Open(ctx, name, paimon.Write)
	if errors.Is(err, catalog.ErrNoTable) && p.Create != nil {
		_, err := newSchema(ctx, p, kafka) // it will be created: can it be?
		return err
	}
	if errors.Is(err, catalog.ErrNoTable) {
		return missingTable(p.Target.Table)
	}
	if err != nil {
		return err
	}
	_, err = bind(p, t)
	return err
}

func validateTopics(ctx context.Context, a *ingest.Admin, p *config.Pipeline) error {
	topics := p.Source.TopicList()
	if p.DeadLetters() {
		topics = append(topics[:len(topics):len(topics)], p.DeadLetter.Topic)
	}
	_, err := a.Describe(ctx, topics)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("Kafka does not answer: %w", err)
	}
	return err
}
