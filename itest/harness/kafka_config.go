package harness

import (
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// newClusterID is Kafka's text of a random UUID: URL-safe base64 without padding.
// One that begins with a hyphen would be an option to Kafka's own format tool.
func newClusterID() string {
	for {
		id := uuid.New()
		if s := base64.RawURLEncoding.EncodeToString(id[:]); s[0] != '-' {
			return s
		}
	}
}

// properties makes a node's server.properties, and what else its format command
// needs (SCRAM users).
func (c *Cluster) properties(i int, dir string) (props map[string]string, format []string, err error) {
	n := c.nodes[i]
	var voters []string
	for k, v := range c.nodes {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", k+1, v.controller))
	}
	replicas := fmt.Sprint(min(3, len(c.nodes)))
	plain := fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", n.port)
	props = map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        fmt.Sprint(i + 1),
		"controller.quorum.voters":       strings.Join(voters, ","),
		"listeners":                      fmt.Sprintf("%s,CONTROLLER://127.0.0.1:%d", plain, n.controller),
		"advertised.listeners":           plain,
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "PLAINTEXT",
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs":                       filepath.Join(dir, "data"),

		"offsets.topic.replication.factor":                 replicas,
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            "1",
		// One partition each: a test's start should not wait for fifty.
		"offsets.topic.num.partitions":                 "1",
		"transaction.state.log.num.partitions":         "1",
		"share.coordinator.state.topic.num.partitions": "1",

		// A broker that was killed comes back when its old registration has lapsed.
		"broker.session.timeout.ms":             "4000",
		"broker.heartbeat.interval.ms":          "500",
		"controller.quorum.fetch.timeout.ms":    "1500",
		"controller.quorum.election.timeout.ms": "700",
		"controlled.shutdown.retry.backoff.ms":  "500",
		"group.initial.rebalance.delay.ms":      "0",
		"group.min.session.timeout.ms":          "1000", // tests kill members often
		"auto.create.topics.enable":             "false",
		"log.retention.check.interval.ms":       "1000", // retention is tested
		"log.segment.delete.delay.ms":           "1000",
		"file.delete.delay.ms":                  "1000",
	}
	if c.opts.Secure != nil {
		extra, args, err := c.opts.Secure.properties(dir)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(props, extra)
		secure := fmt.Sprintf(",SECURE://127.0.0.1:%d", n.secure)
		props["listeners"] += secure
		props["advertised.listeners"] += secure
		props["listener.security.protocol.map"] += ",SECURE:" + c.opts.Secure.protocol()
		format = args
	}
	maps.Copy(props, c.opts.Properties)
	return props, format, nil
}
