package merger

import (
	"context"
	"fmt"
	"slices"

	"applier/batcher"
	"applier/ingest"
	"applier/ingest/change"
	"applier/storage/mutant"
)

// simRecord is one record of the simulated topic.
type simRecord struct {
	key     int32
	val     int64
	delete  bool
	control bool // a transaction marker: it takes an offset and nothing else
	empties bool // the source's table was emptied
	epoch   int32
}

const simTopic = "t"

// simKafka is one topic under one name. It may be created anew: then its offsets
// mean other records.
type simKafka struct {
	id     string
	parts  []*simPart
	topics map[string][]*simPart // by topic id, old ones included
}

// simPart is the log of a partition; offsets are indexes.
type simPart struct {
	start int64
	epoch int32
	recs  []simRecord
	// gone are logs that were cut since, whole, as they were before the cut.
	gone [][]simRecord
}

func newSimKafka(parts int) *simKafka {
	k := &simKafka{topics: map[string][]*simPart{}}
	k.create("topic-1", parts)
	return k
}

func (k *simKafka) create(id string, parts int) {
	k.id, k.parts = id, nil
	for range parts {
		k.parts = append(k.parts, &simPart{})
	}
	k.topics[id] = k.parts
}

// grow adds a partition: keys move, since they are spread by the number of partitions.
func (k *simKafka) grow() {
	k.parts = append(k.parts, &simPart{})
	k.topics[k.id] = k.parts
}

// cut loses the records from an offset on, as an unclean election does.
func (p *simPart) cut(at int64) {
	p.gone = append(p.gone, p.recs)
	p.recs = slices.Clone(p.recs[:at])
	p.start = min(p.start, at)
	p.epoch++
}

// epochEnd is what a leader answers about the end of an epoch.
func (p *simPart) epochEnd(epoch int32) int64 {
	for o, r := range slices.Backward(p.recs) {
		if r.epoch <= epoch {
			return int64(o + 1)
		}
	}
	return 0
}

// branch finds the log that a position was reached on: the present one, or one
// that was cut since.
func (p *simPart) branch(next int64, epoch int32) []simRecord {
	for _, log := range append([][]simRecord{p.recs}, p.gone...) {
		if next == 0 || int64(len(log)) >= next && (epoch < 0 || log[next-1].epoch == epoch) {
			return log
		}
	}
	return nil
}

func simPartition(p int) change.Partition {
	return change.Partition{Topic: simTopic, Partition: int32(p)}
}

func (k *simKafka) all() map[change.Partition]bool {
	out := map[change.Partition]bool{}
	for p := range k.parts {
		out[simPartition(p)] = true
	}
	return out
}

// log is what the brokers say, as ingest asks for it.
func (k *simKafka) log(pos change.Positions) *ingest.Log {
	l := &ingest.Log{
		Cluster: ingest.Cluster{ID: "cluster", Topics: map[string]string{simTopic: k.id}},
		Starts:  map[change.Partition]int64{}, Ends: map[change.Partition]int64{}, EpochEnds: map[change.Partition]int64{},
	}
	for p, part := range k.parts {
		at := simPartition(p)
		l.Partitions = append(l.Partitions, at)
		l.Starts[at], l.Ends[at] = part.start, int64(len(part.recs))
		if e := pos[at].Epoch; e >= 0 {
			l.EpochEnds[at] = part.epochEnd(e)
		}
	}
	return l
}

// produce appends records. Keys are spread over the partitions as they are, or,
// by a producer that has not heard of a new one, as they were.
func (w *world) produce() {
	for range 1 + w.rng.IntN(6) {
		k := w.rng.IntN(w.keys)
		parts := len(w.kafka.parts)
		if w.grown && parts > 1 && w.chance(10) {
			parts--
		}
		p := w.kafka.parts[k%parts]
		r := simRecord{key: int32(k), val: int64(w.rng.IntN(1 << 30)), delete: w.chance(25), epoch: p.epoch}
		if w.clauses != nil {
			r.val %= simMergeValues
		}
		if w.chance(5) {
			r = simRecord{control: true, epoch: p.epoch}
		}
		if w.empties && w.chance(8) {
			r = simRecord{empties: true, epoch: p.epoch}
		}
		p.recs = append(p.recs, r)
	}
}

// trouble lets something happen to the topic.
func (w *world) truncate() {
	n := w.rng.IntN(len(w.kafka.parts))
	p := w.kafka.parts[n]
	if len(p.recs) == 0 {
		return
	}
	at := int64(len(p.recs)) - 1 - int64(w.rng.IntN(min(len(p.recs), 6)))
	w.log("partition %d is cut from %d to %d", n, len(p.recs), at)
	w.cause("truncated")
	p.cut(at)
}

func (w *world) recreateTopic() {
	w.topics++
	w.kafka.create(fmt.Sprintf("topic-%d", w.topics+1), len(w.kafka.parts))
	w.log("the topic is deleted and created again: %s", w.kafka.id)
	w.cause("recreated")
	w.group(w.owner)
}

func (w *world) retain() {
	p := w.kafka.parts[w.rng.IntN(len(w.kafka.parts))]
	if n := int64(len(p.recs)); n > p.start {
		p.start += 1 + int64(w.rng.IntN(int(n-p.start)))
		w.log("retention: %v starts at %d", p.epoch, p.start)
		w.cause("retention")
	}
}

func (w *world) grow() {
	if len(w.kafka.parts) >= 4 || w.empties { // the consumer would stop at the next truncation
		return
	}
	w.kafka.grow()
	w.grown = true
	w.log("the topic has %d partitions now", len(w.kafka.parts))
	w.cause("grown")
	w.group(w.owner)
}

// ResolveStart implements Source.
func (i *instance) ResolveStart(context.Context) (change.Positions, map[string]string, string, error) {
	pos := change.Positions{}
	for p, part := range i.w.kafka.parts {
		pos[simPartition(p)] = change.Position{Next: part.start, Epoch: -1}
	}
	return pos, map[string]string{simTopic: i.w.kafka.id}, "cluster", nil
}

// Resume implements Source, as the consumer does with real brokers.
func (i *instance) Resume(_ context.Context, pos change.Positions, ids map[string]string, cluster string) (uint64, error) {
	k := i.w.kafka
	pos = i.groupOffsets(pos)
	l := k.log(pos)
	if p := l.Problem([]string{simTopic}, pos, ids, cluster); p != nil {
		return 0, &Halt{Code(p.Code), p.Facts}
	}
	added := l.Added(pos)
	switch p := ingest.Unassigned(pos, added, i.have).(type) {
	case nil:
	case *ingest.Problem:
		return 0, &Halt{Code(p.Code), p.Facts}
	default:
		return 0, p
	}
	i.gen++
	i.parts = append(pos.Sorted(), added...)
	i.b.Reset(pos, i.parts, i.gen)
	i.held, i.reading, i.topicID, i.passing = nil, true, k.id, nil
	if len(added) > 0 {
		// New partitions wait until the old ones are read up to here.
		i.passing = map[int32]int64{}
		for n := range len(pos) {
			i.passing[int32(n)] = l.Ends[i.parts[n]]
		}
		i.w.meet("new partitions wait")
	}
	return i.gen, nil
}

// fetch takes some records of each partition into the open batch, and reports
// what a broker would.
func (i *instance) fetch() {
	k := i.w.kafka
	if k.id != i.topicID {
		i.stop(Halt{CodeRecreated, "the brokers do not know this topic id"})
		return
	}
	i.release()
	for n, part := range i.parts {
		at, known := i.b.Position(int32(n))
		if !known {
			continue // it waits
		}
		p := k.parts[part.Partition]
		switch {
		case at.Next < p.start && mutant.On(mutant.LogStart): // a client with a reset policy
			i.b.Advance(int32(n), p.start, -1, i.w.now)
			at.Next = p.start
		case at.Next < p.start:
			i.stop(Halt{CodeGap, fmt.Sprintf("%s: %d was removed", part, at.Next)})
			return
		case at.Next > int64(len(p.recs)), at.Epoch >= 0 && p.epochEnd(at.Epoch) < at.Next && !mutant.On(mutant.EpochEnds): // a client that asks with epochs

			i.stop(Halt{CodeTruncated, fmt.Sprintf("%s: the log was cut below %d", part, at.Next)})
			return
		}
		for o := at.Next; o < int64(len(p.recs)) && o < at.Next+int64(1+i.w.rng.IntN(5)); o++ {
			if p.recs[o].empties && !i.b.Truncate(&change.Truncation{Part: int32(n), Offset: o, Time: i.w.now.UnixMilli()}) {
				break // it begins the next batch
			}
			i.add(int32(n), o, p.recs[o])
		}
	}
}

// release lets new partitions go when every old one has passed its mark.
func (i *instance) release() {
	if i.passing == nil {
		return
	}
	for n, end := range i.passing {
		// A log that was cut meanwhile will not reach its old end by itself; what the
		// consumer does then is for its own tests.
		end = min(end, int64(len(i.w.kafka.parts[i.parts[n].Partition].recs)))
		if at, ok := i.b.Position(n); !ok || at.Next < end {
			return
		}
	}
	for n := len(i.passing); n < len(i.parts); n++ {
		i.b.Advance(int32(n), i.w.kafka.parts[i.parts[n].Partition].start, -1, i.w.now)
	}
	i.passing = nil
}

// stop is what the consumer does about a problem while it reads.
func (i *instance) stop(h Halt) {
	i.w.log("i%d's source: %s %s", i.n, h.Code, h.Facts)
	i.reading = false
	i.a.step(SourceHalted{Halt: h, Generation: i.gen})
}

func (i *instance) add(p int32, offset int64, r simRecord) {
	if r.control {
		i.b.Advance(p, offset+1, r.epoch, i.w.now)
		return
	}
	c := i.b.Changes()
	kind := change.Update
	if r.delete {
		kind = change.Delete
	}
	if !r.empties && (!r.delete || i.w.apply != batcher.Append) {
		c.Cols[0].AppendInt32(r.key)
		if r.delete {
			for _, col := range c.Cols[1:3] { // there is nothing but the key
				if i.w.clauses != nil {
					col.Absent.Set(col.Len())
				}
				col.AppendNull()
			}
		} else {
			c.Cols[1].AppendInt64(r.val)
			c.Cols[2].AppendInt32(int32(r.val % 2))
		}
		for _, v := range c.Cols[3:] {
			v.AppendNull()
		}
		c.EndRow(kind, p, offset, i.w.now.UnixMilli())
	}
	i.b.Record(p, offset, r.epoch, []byte{byte(r.key)}, []byte(fmt.Sprint(r.val)), i.w.now)
}

// Refuse implements Source: no record of the simulation is refused.
func (i *instance) Refuse(p change.Partition, offset int64, err *change.RowError) {
	i.w.fail("I15", "i%d refuses %s offset %d: %v", i.n, p, offset, err)
}

// Stop implements Source.
func (i *instance) Stop() { i.reading, i.held = false, nil }

// Owned implements Source.
func (i *instance) Owned() bool { return len(i.have) > 0 }

// Committed implements Source: the group's offsets, which nobody may depend on.
func (i *instance) Committed(pos change.Positions) {
	if i.w.chance(80) {
		i.w.offsets = pos
	}
}

// Release implements Source.
func (i *instance) Release(b *batcher.Batch) { i.b.Recycle(b) }

// resolvePositions is what an operator states after a look at table and topic:
// how far the table is on the log that is there now.
func (w *world) resolvePositions(exp *simState) change.Positions {
	next := change.Positions{}
	for n, p := range w.kafka.parts {
		at := change.Position{Next: p.start, Epoch: -1}
		if old, ok := exp.pos[int32(n)]; ok && exp.topic == w.kafka.id {
			log := p.branch(old.Next, old.Epoch)
			for at.Next = 0; at.Next < old.Next && at.Next < int64(min(len(log), len(p.recs))) && log[at.Next] == p.recs[at.Next]; {
				at.Next++
			}
			at.Next = max(at.Next, p.start)
		}
		next[simPartition(n)] = at
	}
	return next
}
