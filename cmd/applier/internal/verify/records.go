package verify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"applier/ingest"
	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/merger"

	"github.com/cespare/xxhash/v2"
)

// records reads the applied ranges from Kafka again, computes the hash chain, and
// compares the rows that the records make with those of the table (I1, I2).
func (v *verifier) records(ctx context.Context) {
	sec, rows := v.r.section("hash chain"), v.r.section("records")
	if v.Kafka == nil {
		sec.skip("%s", v.Offline)
		rows.skip("%s", v.Offline)
		return
	}
	switch {
	case v.newest() == nil:
		sec.skip("there is no position record")
		rows.skip("there is no position record")
		return
	case v.last == nil:
		sec.unread("the latest snapshot cannot be read, see above")
		rows.unread("the latest snapshot cannot be read, see above")
		return
	}
	log, err := openLog(ctx, v)
	if err != nil {
		sec.unread("Kafka: %v", err)
		rows.unread("Kafka: %v", err)
		return
	}
	defer log.close()
	base, why := v.base(log)
	if base < 0 {
		sec.skip("%s", why)
		rows.skip("%s", why)
		return
	}
	if why != "" {
		sec.note("what was applied up to %s is not compared: %s", v.chain[base].key, why)
	}
	a := &auditor{v: v, log: log, chain: sec, rows: rows}
	err = a.run(ctx, base)
	switch {
	case err == nil:
	case corrupt(err): // a file of the table, met on the way
		sec.unread("a file of the table is damaged, see records")
		rows.fail("", "", "%v", err)
	default:
		sec.unread("Kafka: %v", err)
		rows.unread("Kafka: %v", err)
	}
}

// newest returns the newest snapshot with a record of the pipeline.
func (v *verifier) newest() *snapshot {
	for i := len(v.chain) - 1; i >= 0; i-- {
		if v.chain[i].own != nil {
			return v.chain[i]
		}
	}
	return nil
}

// kafkaLog reads ranges of the topics; they mostly follow each other.
type kafkaLog struct {
	options ingest.ClientOptions
	cluster *ingest.Cluster
	lags    map[change.Partition]ingest.Lag
	reader  *ingest.RangeReader
	at      map[change.Partition]int64
}

// askKafka is how long Kafka may take to say what it has.
const askKafka = 30 * time.Second

func openLog(ctx context.Context, v *verifier) (*kafkaLog, error) {
	cl, err := ingest.NewClient(*v.Kafka)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, askKafka)
	defer cancel()
	admin := ingest.NewAdmin(cl)
	l := &kafkaLog{options: *v.Kafka}
	if l.cluster, err = admin.Describe(ctx, v.Topics); err != nil {
		return nil, err
	}
	l.lags, err = admin.Lags(ctx, v.Topics)
	return l, err
}

func (l *kafkaLog) close() {
	if l.reader != nil {
		l.reader.Close()
	}
}

// read hands the records of [from, to) of a partition to fn. next says where the
// other partitions will be read from, should a new reader be needed.
func (l *kafkaLog) read(ctx context.Context, p change.Partition, from, to int64, next map[change.Partition][2]int64, fn func(*decode.Record) error) error {
	if at, ok := l.at[p]; l.reader == nil || !ok || from < at {
		l.close()
		l.at = map[change.Partition]int64{}
		for q, r := range next {
			l.at[q] = max(r[0], l.lags[q].Start)
		}
		l.at[p] = max(from, l.lags[p].Start)
		var err error
		if l.reader, err = ingest.NewRangeReader(l.options, l.at); err != nil {
			return err
		}
	}
	if from > l.at[p] {
		if err := l.reader.Read(ctx, p, from, func(*decode.Record) error { return nil }); err != nil {
			return err
		}
	}
	l.at[p] = to
	return l.reader.Read(ctx, p, to, fn)
}

// base finds the oldest snapshot from which on everything that was applied can be
// read again and means the same under the present settings; -1 and why if there
// is none.
func (v *verifier) base(l *kafkaLog) (at int, why string) {
	at = -1
	for i := len(v.chain) - 1; i >= 0; i-- {
		s := v.chain[i]
		if i < len(v.chain)-1 && v.chain[i+1].id != s.id+1 {
			return at, "snapshots are missing"
		}
		if s.own == nil {
			continue
		}
		if why := v.unfit(l, s); why != "" {
			return at, why
		}
		at = i
		if why := unavailable(l, s.own); why != "" {
			return at, why // its rows are the base: what came before them cannot be read
		}
	}
	if at < 0 {
		return -1, "there is no position record"
	}
	return at, ""
}

// unfit says why the state at a record cannot be the base.
func (v *verifier) unfit(l *kafkaLog, s *snapshot) string {
	switch {
	case s.own.Config != v.Config:
		return fmt.Sprintf("%s was written under other settings (key, apply or merge.when, order_by, topics)", s.key)
	case s.s.SchemaID != v.Table.Schema().ID:
		return fmt.Sprintf("%s was written under schema %d, the table has schema %d now", s.key, s.s.SchemaID, v.Table.Schema().ID)
	case s.own.Cluster != "" && l.cluster.ID != "" && s.own.Cluster != l.cluster.ID:
		return fmt.Sprintf("%s counts offsets of another Kafka cluster", s.key)
	}
	for name, t := range s.own.Topics {
		if now := l.cluster.Topics[name]; t.ID != "" && now != "" && now != t.ID {
			return fmt.Sprintf("topic %s was deleted and created again", name)
		}
	}
	return ""
}

// unavailable says why the batch of a record cannot be read again.
func unavailable(l *kafkaLog, r *merger.Record) string {
	rg, err := ranges(r)
	if err != nil {
		return err.Error()
	}
	for p, x := range rg {
		lag, ok := l.lags[p]
		switch {
		case x[0] == x[1]:
		case !ok:
			return fmt.Sprintf("Kafka has no partition %s any more", p)
		case x[0] < lag.Start:
			return fmt.Sprintf("Kafka no longer has the records of %s before offset %d", p, lag.Start)
		case x[1] > lag.Stable:
			return fmt.Sprintf("%s ends at offset %d, records up to %d were applied: the log was cut", p, lag.Stable, x[1])
		}
	}
	return ""
}

// digest is the hash of one batch, as batcher computes it (docs/verify.md).
type digest struct {
	sum     []byte
	part    *xxhash.Digest
	records int64
}

// begin begins a partition of the batch; they come in the order of their names.
func (d *digest) begin() { d.part = xxhash.New() }

func (d *digest) record(offset int64, key, value []byte) {
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:8], uint64(offset))
	binary.LittleEndian.PutUint32(head[8:12], uint32(len(key)))
	binary.LittleEndian.PutUint32(head[12:], uint32(len(value)))
	_, _ = d.part.Write(head[:])
	_, _ = d.part.Write(key)
	_, _ = d.part.Write(value)
	d.records++
}

func (d *digest) end(p change.Partition, from, to int64) {
	d.sum = fmt.Appendf(d.sum, "%s/%d %d %d ", p.Topic, p.Partition, from, to)
	d.sum = binary.LittleEndian.AppendUint64(d.sum, d.part.Sum64())
}

func (d *digest) bytes() []byte {
	h := sha256.Sum256(d.sum)
	return h[:]
}
