package merger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"applier/ingest/change"
)

// PropertyPrefix starts the snapshot properties that hold position records:
// one key a pipeline id, so that several pipelines and foreign properties live
// side by side.
const PropertyPrefix = "applier."

// RecordVersion is the newest record version this program reads and the one it writes.
const RecordVersion = 1

// What can be wrong with a position record.
var (
	// ErrRecordVersion: it was written by a newer program.
	ErrRecordVersion = errors.New("position record of a newer version")
	// ErrRecord: it is not what any version writes.
	ErrRecord = errors.New("malformed position record")
)

// Record is the position record of a pipeline inside a snapshot's properties:
// everything needed to go on after a crash, in the same file whose creation is
// the commit. Every record is complete; nothing is inherited.
type Record struct {
	Version int    `json:"v"`
	Seq     int64  `json:"seq"`            // commits of this pipeline, from 1
	Txn     string `json:"txn"`            // unique for this batch attempt chain; how we know our own snapshot
	Base    string `json:"base"`           // identity of the snapshot built on, "" for none
	Epoch   int64  `json:"epoch"`          // grows with every (re)start and takeover
	Owner   string `json:"owner"`          // instance id, for people
	Config  string `json:"cfg"`            // digest of the settings that must not change silently
	Table   string `json:"table"`          // identity of the table (first schema file)
	Cluster string `json:"cluster"`        // Kafka cluster id
	Op      string `json:"op,omitempty"`   // "start", "carry", "set", "skip", "adopt"; absent for batches
	Chain   string `json:"chain"`          // hash over all applied ranges so far
	Gaps    int64  `json:"gaps,omitempty"` // records an operator skipped so far
	Seal    string `json:"seal,omitempty"` // hash over the snapshot file, see CheckSeal

	// Deletes says which remembered deletes go with this snapshot; nil if none are
	// remembered, or not by this program: one that does not know of them leaves the
	// member out, and that shows.
	Deletes *RememberedDeletes `json:"deletes,omitempty"`

	Topics map[string]RecordTopic `json:"topics"`

	// Counts of this batch.
	In         int64                          `json:"in"`
	Inserted   int64                          `json:"ins"`
	Updated    int64                          `json:"upd"`
	Deleted    int64                          `json:"del"`
	Unchanged  int64                          `json:"noop"`
	DeadLetter int64                          `json:"dlq"`
	Truncated  bool                           `json:"trunc,omitempty"` // it begins with a truncation of the source's table, which on_truncate applies
	Range      map[string]map[string][2]int64 `json:"range,omitempty"` // [first, next) a partition with progress

	strange bool // it has no seal, but members that no version without seals wrote
}

// RememberedDeletes names the state of the remembered deletes in state_dir. Times
// are milliseconds of the committing instance's wall clock.
type RememberedDeletes struct {
	Head  string `json:"head"`  // transaction of the last commit that changed them, "" for none
	Since int64  `json:"since"` // what was deleted from here on is remembered, ...
	Lost  int64  `json:"lost"`  // ... and from here until Since forgotten; the same as Since: nothing is
	Keep  int64  `json:"keep"`  // for how many milliseconds each is remembered
}

// RecordTopic is one topic of a record.
type RecordTopic struct {
	ID         string              `json:"id"` // Kafka topic id, "" if the broker has none
	Partitions map[string][2]int64 `json:"p"`  // partition number → [next, leader epoch]
}

// UnmarshalJSON refuses what encoding/json would quietly fill up or cut: a
// position must have its two numbers.
func (t *RecordTopic) UnmarshalJSON(b []byte) error {
	var raw struct {
		ID         string             `json:"id"`
		Partitions map[string][]int64 `json:"p"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*t = RecordTopic{ID: raw.ID, Partitions: make(map[string][2]int64, len(raw.Partitions))}
	for p, v := range raw.Partitions {
		if len(v) != 2 {
			return fmt.Errorf("partition %q has %d numbers, not next offset and leader epoch", p, len(v))
		}
		t.Partitions[p] = [2]int64(v)
	}
	return nil
}

// Positions returns the record's full vector.
func (r *Record) Positions() (change.Positions, error) {
	out := change.Positions{}
	for topic, t := range r.Topics {
		for p, v := range t.Partitions {
			n, err := strconv.ParseInt(p, 10, 32)
			canonical := err == nil && n >= 0 && strconv.FormatInt(n, 10) == p // or 7 and 07 would be one
			if !canonical || v[0] < 0 || v[1] < -1 || v[1] > math.MaxInt32 {
				return nil, fmt.Errorf("%w: partition %q of topic %q", ErrRecord, p, topic)
			}
			out[change.Partition{Topic: topic, Partition: int32(n)}] = change.Position{Next: v[0], Epoch: int32(v[1])}
		}
	}
	return out, nil
}

// setPositions fills Topics; ids maps topic names to Kafka topic ids.
func (r *Record) setPositions(pos change.Positions, ids map[string]string) {
	r.Topics = map[string]RecordTopic{}
	for _, p := range pos.Sorted() {
		t, ok := r.Topics[p.Topic]
		if !ok {
			t = RecordTopic{ID: ids[p.Topic], Partitions: map[string][2]int64{}}
			r.Topics[p.Topic] = t
		}
		t.Partitions[strconv.Itoa(int(p.Partition))] = [2]int64{pos[p].Next, int64(pos[p].Epoch)}
	}
}

// setRange fills Range with the partitions that moved.
func (r *Record) setRange(start, next change.Positions) {
	r.Range = nil
	for _, p := range next.Sorted() {
		from, to := start[p].Next, next[p].Next
		if _, known := start[p]; known && from == to {
			continue
		}
		if r.Range == nil {
			r.Range = map[string]map[string][2]int64{}
		}
		if r.Range[p.Topic] == nil {
			r.Range[p.Topic] = map[string][2]int64{}
		}
		r.Range[p.Topic][strconv.Itoa(int(p.Partition))] = [2]int64{from, to}
	}
}

// TopicIDs returns the topic ids by name.
func (r *Record) TopicIDs() map[string]string {
	ids := make(map[string]string, len(r.Topics))
	for name, t := range r.Topics {
		ids[name] = t.ID
	}
	return ids
}

// Encode returns the property value. Map keys are sorted by encoding/json, so
// equal records have equal bytes.
func (r *Record) Encode() (string, error) {
	b, err := json.Marshal(r)
	return string(b), err
}

// DecodeRecord reads a property value. Unknown members are ignored; a newer
// version is ErrRecordVersion, whatever else it holds; anything that is not a
// record is ErrRecord.
func DecodeRecord(s string) (*Record, error) {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal([]byte(s), &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if head.Version > RecordVersion {
		return nil, fmt.Errorf("%w: %d, this program knows %d", ErrRecordVersion, head.Version, RecordVersion)
	}
	var r Record
	if err := json.Unmarshal([]byte(s), &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if r.Version < 1 || r.Txn == "" {
		return nil, fmt.Errorf("%w: no version or no txn", ErrRecord)
	}
	if _, err := r.Positions(); err != nil {
		return nil, err
	}
	if r.Seal == "" { // or a changed letter of its name would take the seal away
		strict := json.NewDecoder(strings.NewReader(s))
		strict.DisallowUnknownFields()
		r.strange = strict.Decode(new(Record)) != nil
	}
	return &r, nil
}

// RecordIn returns the pipeline's record in a snapshot's properties, nil if
// there is none, and the ids of other pipelines whose records are beside it.
func RecordIn(properties map[string]string, id string) (own *Record, others map[string]*Record, err error) {
	for k, v := range properties {
		name, ok := strings.CutPrefix(k, PropertyPrefix)
		if !ok {
			continue
		}
		r, err := DecodeRecord(v)
		if err != nil {
			if name == id {
				return nil, nil, err
			}
			continue
		}
		if name == id {
			own = r
			continue
		}
		if others == nil {
			others = map[string]*Record{}
		}
		others[name] = r
	}
	return own, others, nil
}

// chainHash extends the hash over all applied ranges by one batch.
func chainHash(previous string, digest []byte) string {
	h := sha256.New()
	h.Write([]byte(previous))
	h.Write(digest)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
