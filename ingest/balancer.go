package ingest

import (
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// affineBalancer gives all partitions of a table's topics to one member: one
// instance owns a table. Every pipeline is a group of its own, so tables spread
// over the instances; a member that has the partitions keeps them, for a table
// that moves rebuilds its index.
//
// Every rebalance takes everything from everybody first, and the client forgets
// with that what it had; so each member's balancer remembers its last
// assignment. It is a claim for the choice of the owner only.
type affineBalancer struct {
	mu   sync.Mutex
	last map[string][]int32
}

func (*affineBalancer) ProtocolName() string { return "applier-table-affine" }

func (*affineBalancer) IsCooperative() bool { return false }

func (a *affineBalancer) JoinGroupMetadata(topics []string, current map[string][]int32, generation int32) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if generation < 0 {
		a.last = nil // put out of the group: somebody else has it by now
	}
	if len(current) == 0 {
		current = a.last
	}
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Version = 2
	meta.Topics = topics
	meta.Generation = generation
	for _, topic := range topics {
		if parts := current[topic]; len(parts) > 0 {
			owned := kmsg.NewConsumerMemberMetadataOwnedPartition()
			owned.Topic, owned.Partitions = topic, parts
			meta.OwnedPartitions = append(meta.OwnedPartitions, owned)
		}
	}
	return meta.AppendTo(nil)
}

func (a *affineBalancer) ParseSyncAssignment(b []byte) (map[string][]int32, error) {
	assigned, err := kgo.ParseConsumerSyncAssignment(b)
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.last = map[string][]int32{}
		for topic, parts := range assigned {
			a.last[topic] = slices.Clone(parts)
		}
	}
	return assigned, err
}

func (a *affineBalancer) MemberBalancer(members []kmsg.JoinGroupResponseMember) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	b, err := kgo.NewConsumerBalancer(a, members)
	if err != nil {
		return nil, nil, err
	}
	return b, b.MemberTopics(), nil
}

// Balance implements kgo.ConsumerBalancerBalance.
func (*affineBalancer) Balance(b *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	plan := b.NewPlan()
	owner := chooseOwner(b)
	if owner == nil {
		return plan
	}
	for topic, n := range topics {
		parts := make([]int32, n)
		for i := range parts {
			parts[i] = int32(i)
		}
		plan.AddPartitions(owner, topic, parts)
	}
	return plan
}

// chooseOwner takes the member that had most partitions in the newest
// generation; without one, the highest hash of (group, member) wins, so that
// different groups choose different members.
func chooseOwner(b *kgo.ConsumerBalancer) *kmsg.JoinGroupResponseMember {
	var owner *kmsg.JoinGroupResponseMember
	var generation int32
	var owned int
	var hash uint64
	b.EachMember(func(m *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
		n := 0
		for _, o := range meta.OwnedPartitions {
			n += len(o.Partitions)
		}
		g := meta.Generation
		if n == 0 {
			g = -1
		}
		h := xxhash.Sum64String(b.Info().Group + "\x00" + m.MemberID)
		better := owner == nil || g > generation || g == generation && (n > owned || n == owned && h > hash)
		if better {
			owner, generation, owned, hash = m, g, n, h
		}
	})
	return owner
}
