package merger

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"applier/ingest/change"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func fullRecord() *Record {
	r := &Record{
		Version: RecordVersion, Seq: 8123, Txn: "0197-txn", Base: "base-uuid", Epoch: 17, Owner: "host-1", Config: "cfg", Table: "tbl",
		Cluster: "kc", Chain: "abcd", Gaps: 3, In: 1200, Inserted: 310, Updated: 640, Deleted: 50, Unchanged: 180, DeadLetter: 20,
	}
	a, b := change.Partition{Topic: "orders", Partition: 0}, change.Partition{Topic: "orders", Partition: 11}
	c := change.Partition{Topic: "old.orders", Partition: 2}
	from := change.Positions{a: {Next: 1000, Epoch: 4}, b: {Next: 7, Epoch: 4}, c: {Next: 5, Epoch: -1}}
	to := change.Positions{a: {Next: 1800, Epoch: 5}, b: {Next: 7, Epoch: 4}, c: {Next: 5, Epoch: -1}, {Topic: "orders", Partition: 12}: {Next: 0, Epoch: -1}}
	r.setPositions(to, map[string]string{"orders": "id-1"})
	r.setRange(from, to)
	return r
}

func TestRecord_IsTheDocumentedJSON(t *testing.T) {
	text, err := fullRecord().Encode()
	require.NoError(t, err)
	golden(t, "testdata/record/full.json", text+"\n")
	text, err = (&Record{Version: 1, Txn: "t", Topics: map[string]RecordTopic{}}).Encode()
	require.NoError(t, err)
	golden(t, "testdata/record/least.json", text+"\n")
}

// Remembered deletes are a member that older programs pass over, and whose absence
// says that the record's program remembered none.
func TestRecord_RememberedDeletes(t *testing.T) {
	r := fullRecord()
	r.Deletes = &RememberedDeletes{Head: "0197-txn", Since: 1_800_000_000_000, Lost: 1_790_000_000_000, Keep: 604_800_000}
	text, err := r.Encode()
	require.NoError(t, err)
	require.Contains(t, text, `"deletes":{"head":"0197-txn","since":1800000000000,"lost":1790000000000,"keep":604800000}`)
	require.Contains(t, text, `"v":1,`, "a program that does not know the member can go on")
	again, err := DecodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, r, again)
	text, err = fullRecord().Encode()
	require.NoError(t, err)
	require.NotContains(t, text, "deletes")
	_, err = DecodeRecord(`{"v":1,"txn":"t","topics":{},"deletes":[1]}`)
	require.ErrorIs(t, err, ErrRecord)
}

func TestRecord_RoundTrips(t *testing.T) {
	text, err := fullRecord().Encode()
	require.NoError(t, err)
	r, err := DecodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, fullRecord(), r)
	pos, err := r.Positions()
	require.NoError(t, err)
	require.Equal(t, change.Position{Next: 1800, Epoch: 5}, pos[change.Partition{Topic: "orders", Partition: 0}])
	require.Len(t, pos, 4)
	require.Equal(t, map[string]string{"orders": "id-1", "old.orders": ""}, r.TopicIDs())
	// Only what moved has a range; a partition without a position before begins at 0.
	require.Equal(t, map[string]map[string][2]int64{"orders": {"0": {1000, 1800}, "12": {0, 0}}}, r.Range)
}

func TestDecodeRecord_ReadsWhatItKnowsAndRefusesTheRest(t *testing.T) {
	for _, c := range []struct {
		name, json string
		is         error // nil: fine
	}{
		{"least", `{"v":1,"txn":"t","topics":{}}`, nil},
		{"unknown members", `{"v":1,"txn":"t","new":{"a":[1]},"topics":{"x":{"id":"","p":{"0":[5,-1]},"more":true}}}`, nil},
		{"newer", `{"v":2,"txn":"t","topics":{}}`, ErrRecordVersion},
		{"newer, and quite different", `{"v":3,"topics":[1,2],"txn":{"a":1}}`, ErrRecordVersion},
		{"no version", `{"txn":"t","topics":{}}`, ErrRecord},
		{"no txn", `{"v":1,"topics":{}}`, ErrRecord},
		{"not JSON", `v=1`, ErrRecord},
		{"empty", ``, ErrRecord},
		{"an array", `[]`, ErrRecord},
		{"no epoch", `{"v":1,"txn":"t","topics":{"x":{"p":{"0":[5]}}}}`, ErrRecord},
		{"three numbers", `{"v":1,"txn":"t","topics":{"x":{"p":{"0":[5,1,2]}}}}`, ErrRecord},
		{"a fraction", `{"v":1,"txn":"t","topics":{"x":{"p":{"0":[5.5,1]}}}}`, ErrRecord},
		{"a negative offset", `{"v":1,"txn":"t","topics":{"x":{"p":{"0":[-5,1]}}}}`, ErrRecord},
		{"an epoch beyond 32 bits", `{"v":1,"txn":"t","topics":{"x":{"p":{"0":[5,4294967296]}}}}`, ErrRecord},
		{"a partition that is no number", `{"v":1,"txn":"t","topics":{"x":{"p":{"a":[5,1]}}}}`, ErrRecord},
		{"a partition written twice", `{"v":1,"txn":"t","topics":{"x":{"p":{"7":[5,1],"07":[6,1]}}}}`, ErrRecord},
		{"a negative partition", `{"v":1,"txn":"t","topics":{"x":{"p":{"-1":[5,1]}}}}`, ErrRecord},
		{"an offset beyond 64 bits", `{"v":1,"txn":"t","topics":{"x":{"p":{"0":[9223372036854775808,1]}}}}`, ErrRecord},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeRecord(c.json)
			if c.is == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.is)
		})
	}
}

func TestClassify_NamesWhatIsWrongWithARecord(t *testing.T) {
	_, err := DecodeRecord(`{"v":9}`)
	require.Equal(t, CodeVersion, classify(err))
	_, err = DecodeRecord(`x`)
	require.Equal(t, CodeCorrupt, classify(err))
	require.Equal(t, CodeIO, classify(errors.New("anything")))
}

func TestRecordIn_FindsOwnAndOthers(t *testing.T) {
	own, other := `{"v":1,"txn":"own","topics":{}}`, `{"v":1,"txn":"other","topics":{}}`
	r, others, err := RecordIn(map[string]string{"applier.a": own, "applier.b": other, "applier.broken": "x", "owner": "me"}, "a")
	require.NoError(t, err)
	require.Equal(t, "own", r.Txn)
	require.Len(t, others, 1, "what others write wrong is theirs")
	require.Equal(t, "other", others["b"].Txn)

	_, _, err = RecordIn(map[string]string{"applier.a": "x"}, "a")
	require.ErrorIs(t, err, ErrRecord)
	r, others, err = RecordIn(nil, "a")
	require.NoError(t, err)
	require.Nil(t, r)
	require.Nil(t, others)
}

func TestRecord_AThousandPartitionsStaySmall(t *testing.T) {
	pos := change.Positions{}
	for i := range int32(1000) {
		pos[change.Partition{Topic: "orders", Partition: i}] = change.Position{Next: 1 << 40, Epoch: 100}
	}
	r := fullRecord()
	r.setPositions(pos, nil)
	r.setRange(change.Positions{}, pos)
	text, err := r.Encode()
	require.NoError(t, err)
	require.Less(t, len(text), 64<<10)
}

func TestChainHash_DependsOnEveryBatchAndTheirOrder(t *testing.T) {
	a, b := []byte("a"), []byte("b")
	require.NotEqual(t, chainHash(chainHash("", a), b), chainHash(chainHash("", b), a))
	require.Equal(t, chainHash("x", a), chainHash("x", a))
	require.Len(t, chainHash("", nil), 32)
}

// FuzzDecodeRecord: properties of a table are anybody's bytes. What decodes
// encodes to the same, and has a vector.
func FuzzDecodeRecord(f *testing.F) {
	text, _ := fullRecord().Encode()
	f.Add(text)
	f.Add(`{"v":1,"txn":"t","topics":{"x":{"id":"","p":{"0":[5,-1]}}}}`)
	f.Add(`{"v":2}`)
	f.Add(strings.Repeat("[", 1000))
	f.Fuzz(func(t *testing.T, s string) {
		r, err := DecodeRecord(s)
		if err != nil {
			require.True(t, errors.Is(err, ErrRecord) || errors.Is(err, ErrRecordVersion), "%v", err)
			return
		}
		pos, err := r.Positions()
		require.NoError(t, err)
		again, err := r.Encode()
		require.NoError(t, err)
		r2, err := DecodeRecord(again)
		require.NoError(t, err)
		pos2, err := r2.Positions()
		require.NoError(t, err)
		require.Equal(t, pos, pos2)
	})
}

func TestRecord_PositionsOfAnyVectorRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pos := change.Positions{}
		for range rapid.IntRange(0, 20).Draw(t, "partitions") {
			p := change.Partition{Topic: rapid.StringN(1, 20, -1).Draw(t, "topic"), Partition: rapid.Int32Range(0, 1<<31-1).Draw(t, "partition")}
			pos[p] = change.Position{Next: rapid.Int64Range(0, 1<<62).Draw(t, "next"), Epoch: rapid.Int32Range(-1, 1<<31-1).Draw(t, "epoch")}
		}
		r := &Record{Version: 1, Txn: "t"}
		r.setPositions(pos, nil)
		text, err := r.Encode()
		require.NoError(t, err)
		back, err := DecodeRecord(text)
		require.NoError(t, err)
		got, err := back.Positions()
		require.NoError(t, err)
		require.Equal(t, pos, got)
		require.True(t, json.Valid([]byte(text)))
	})
}
