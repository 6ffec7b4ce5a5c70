package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// row is what the source table holds for a key.
type row struct {
	price float64
	sales int64
}

type key struct {
	product int64
	dt      string
}

// generator plays a small shop table: inserts, updates and deletes, keyed as
// Debezium keys them, so that the changes of a row keep their order.
type generator struct {
	cl     *kgo.Client
	rng    *rand.Rand
	rate   int
	rows   map[key]row
	keys   []key
	count  atomic.Int64
	failed atomic.Value
	lsn    int64
}

func newGenerator(brokers []string, topic string, rate int) (*generator, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return nil, err
	}
	return &generator{cl: cl, rng: rand.New(rand.NewPCG(1, 2)), rate: max(rate, 1), rows: map[key]row{}}, nil
}

func (g *generator) close() { g.cl.Close() }

func (g *generator) produced() int64 { return g.count.Load() }

func (g *generator) model() map[key]row { return g.rows }

func (g *generator) example() string {
	return envelope("u", key{7, "2026-09-10"}, row{12.5, 3}, 4711)
}

// run produces until d is over (0: until ctx ends) and flushes.
func (g *generator) run(ctx context.Context, d time.Duration) error {
	if d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	const every = 50 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for due := 0.0; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			flush, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := g.cl.Flush(flush); err != nil {
				return err
			}
			err, _ := g.failed.Load().(error)
			return err
		}
		for due += float64(g.rate) * every.Seconds(); due >= 1; due-- {
			g.change()
		}
	}
}

// change makes one random change of the source table.
func (g *generator) change() {
	g.lsn += 8
	x := g.rng.IntN(100)
	switch {
	case x < 25 || len(g.keys) == 0:
		k := key{int64(g.rng.IntN(400) + 1), fmt.Sprintf("2026-09-%02d", 10+g.rng.IntN(3))}
		if _, exists := g.rows[k]; exists {
			g.update(k)
			return
		}
		g.keys = append(g.keys, k)
		g.rows[k] = row{float64(g.rng.IntN(10000)) / 100, 0}
		g.send(k, envelope("c", k, g.rows[k], g.lsn))
	case x < 90:
		g.update(g.keys[g.rng.IntN(len(g.keys))])
	default:
		i := g.rng.IntN(len(g.keys))
		k := g.keys[i]
		g.keys[i] = g.keys[len(g.keys)-1]
		g.keys = g.keys[:len(g.keys)-1]
		delete(g.rows, k)
		g.send(k, envelope("d", k, row{}, g.lsn))
		g.send(k, "")
	}
}

func (g *generator) update(k key) {
	r := g.rows[k]
	r.sales += int64(g.rng.IntN(5) + 1)
	if g.rng.IntN(4) == 0 {
		r.price = float64(g.rng.IntN(10000)) / 100
	}
	g.rows[k] = r
	g.send(k, envelope("u", k, r, g.lsn))
}

// send produces one record; an empty value is a tombstone.
func (g *generator) send(k key, value string) {
	r := &kgo.Record{Key: fmt.Appendf(nil, `{"product_id":%d,"dt":%q}`, k.product, k.dt)}
	if value != "" {
		r.Value = []byte(value)
	}
	g.count.Add(1)
	g.cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
		if err != nil {
			g.failed.Store(err)
		}
	})
}

// envelope is a Debezium change event without schema.
func envelope(op string, k key, r row, lsn int64) string {
	image := fmt.Sprintf(`{"product_id":%d,"price":%g,"sales":%d,"dt":%q}`, k.product, r.price, r.sales, k.dt)
	before, after := "null", image
	if op == "d" {
		before, after = fmt.Sprintf(`{"product_id":%d,"price":null,"sales":null,"dt":%q}`, k.product, k.dt), "null"
	}
	return fmt.Sprintf(`{"before":%s,"after":%s,"source":{"connector":"postgresql","lsn":%d,"schema":"public","table":"my_table","ts_ms":%d},"op":%q,"ts_ms":%d}`,
		before, after, lsn, time.Now().UnixMilli(), op, time.Now().UnixMilli())
}

// Generate produces the demo's changes to a real broker until d is over (0:
// until ctx ends). The topic is created if it is missing.
func Generate(ctx context.Context, brokers []string, topic string, rate int, d time.Duration) error {
	g, err := newGenerator(brokers, topic, rate)
	if err != nil {
		return err
	}
	defer g.close()
	r, err := kadm.NewClient(g.cl).CreateTopic(ctx, 2, -1, nil, topic)
	if err == nil {
		err = r.Err
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("creating topic %s: %w", topic, err)
	}
	return g.run(ctx, d)
}
