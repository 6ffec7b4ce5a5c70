package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// member makes a group member that had parts of the topic in a generation.
func member(id string, generation int32, parts ...int32) kmsg.JoinGroupResponseMember {
	b := &affineBalancer{last: map[string][]int32{topic: parts}}
	m := kmsg.NewJoinGroupResponseMember()
	m.MemberID = id
	m.ProtocolMetadata = b.JoinGroupMetadata([]string{topic}, nil, generation)
	return m
}

// balance returns what each member gets.
func balance(t *testing.T, partitions int32, members ...kmsg.JoinGroupResponseMember) map[string][]int32 {
	b, topics, err := (&affineBalancer{}).MemberBalancer(members)
	require.NoError(t, err)
	require.Contains(t, topics, topic)
	sync, err := b.(*kgo.ConsumerBalancer).BalanceOrError(map[string]int32{topic: partitions})
	require.NoError(t, err)
	got := map[string][]int32{}
	for _, a := range sync.IntoSyncAssignment() {
		parsed, err := (&affineBalancer{}).ParseSyncAssignment(a.MemberAssignment)
		require.NoError(t, err)
		if parts := parsed[topic]; len(parts) > 0 {
			got[a.MemberID] = parts
		}
	}
	return got
}

func TestBalancer_GivesAllToOne(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []kmsg.JoinGroupResponseMember
		owner   string // empty: any, but only one
	}{
		{"alone", []kmsg.JoinGroupResponseMember{member("a", -1)}, "a"},
		{"nobody had it", []kmsg.JoinGroupResponseMember{member("a", -1), member("b", -1), member("c", -1)}, ""},
		{"who has it keeps it", []kmsg.JoinGroupResponseMember{member("a", 4), member("b", 4, 0, 1, 2), member("c", 4)}, "b"},
		{"the newer generation wins", []kmsg.JoinGroupResponseMember{member("a", 3, 0, 1, 2), member("b", 4, 0, 1, 2)}, "b"},
		{"the larger part wins", []kmsg.JoinGroupResponseMember{member("a", 4, 0), member("b", 4, 1, 2)}, "b"},
		{"new generation without partitions", []kmsg.JoinGroupResponseMember{member("a", 3, 0, 1, 2), member("b", 9)}, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := balance(t, 4, c.members...)
			require.Len(t, got, 1)
			for id, parts := range got {
				require.ElementsMatch(t, []int32{0, 1, 2, 3}, parts)
				if c.owner != "" {
					require.Equal(t, c.owner, id)
				}
			}
		})
	}
}

func TestBalancer_TheOrderOfMembersDoesNotMatter(t *testing.T) {
	ab := balance(t, 2, member("a", -1), member("b", -1))
	ba := balance(t, 2, member("b", -1), member("a", -1))
	require.Equal(t, ab, ba)
}

func TestBalancer_RemembersWhatItHadUntilItIsPutOut(t *testing.T) {
	b := &affineBalancer{}
	plan := kmsg.NewConsumerMemberAssignment()
	at := kmsg.NewConsumerMemberAssignmentTopic()
	at.Topic, at.Partitions = topic, []int32{0, 1}
	plan.Topics = append(plan.Topics, at)
	_, err := b.ParseSyncAssignment(plan.AppendTo(nil))
	require.NoError(t, err)
	owned := func(generation int32) int {
		var meta kmsg.ConsumerMemberMetadata
		require.NoError(t, meta.ReadFrom(b.JoinGroupMetadata([]string{topic}, nil, generation)))
		require.Equal(t, generation, meta.Generation)
		n := 0
		for _, o := range meta.OwnedPartitions {
			n += len(o.Partitions)
		}
		return n
	}
	require.Equal(t, 2, owned(3))
	require.Equal(t, 2, owned(4))
	require.Zero(t, owned(-1))
	require.Zero(t, owned(5), "and it stays forgotten")
	_, err = b.ParseSyncAssignment([]byte{1})
	require.Error(t, err)
	require.Equal(t, "applier-table-affine", b.ProtocolName())
	require.False(t, b.IsCooperative())
}
