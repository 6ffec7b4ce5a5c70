package ingest

import (
	"fmt"

	"applier/ingest/change"
	"applier/storage/mutant"
)

// Log is what Kafka says of a pipeline's partitions at one moment.
type Log struct {
	Cluster
	Starts, Ends map[change.Partition]int64 // first offset, and the one behind the last
	// EpochEnds are the offsets where the leader epochs of the positions end, as
	// far as a broker knows.
	EpochEnds map[change.Partition]int64
}

// Problem compares a table's positions with the log: cluster, topic ids,
// partitions, log start and end, and the leader epochs' ends (a log that was cut
// and grew again is seen only by them). nil: reading may go on there. It is pure,
// and all that decides it: the simulation of the commit loop uses it too.
func (l *Log) Problem(topics []string, pos change.Positions, ids map[string]string, cluster string) *Problem {
	if p := identityProblem(&l.Cluster, topics, pos, ids, cluster); p != nil {
		return p
	}
	if gone, found := goneFrom(&l.Cluster, pos); found {
		return problem("K-RECREATED", "partition %s is gone", gone)
	}
	for _, p := range pos.Sorted() {
		next := pos[p].Next
		if found := rangeProblem(p, next, l.Starts[p], l.Ends[p]); found != nil {
			return found
		}
		if end, known := l.EpochEnds[p]; known && end < next && !mutant.On(mutant.EpochEnds) {
			return problem("K-TRUNCATED", "%s: leader epoch %d ends at offset %d, but records up to %d of it are applied: the log was cut",
				p, pos[p].Epoch, end, next)
		}
	}
	return nil
}

// Added returns the partitions that positions do not know yet, in order.
func (c *Cluster) Added(pos change.Positions) (added []change.Partition) {
	for _, p := range c.Partitions {
		if _, known := pos[p]; !known {
			added = append(added, p)
		}
	}
	return added
}

// Unassigned finds partitions that the group did not give us: then somebody else
// reads a part of the table, and nothing may be read here.
func Unassigned(pos change.Positions, added []change.Partition, assigned map[change.Partition]bool) error {
	if mutant.On(mutant.AllPartitions) {
		return nil
	}
	for _, p := range pos.Sorted() {
		if !assigned[p] {
			return problem("K-PARTIAL", "partition %s is not assigned to this instance", p)
		}
	}
	for _, p := range added {
		if !assigned[p] {
			return fmt.Errorf("partition %s is new and not assigned yet", p)
		}
	}
	return nil
}
