package config

// refusal is why a key that looks right is not accepted.
type refusal struct {
	msg, hint string
}

// notYet is the refusal of keys that a later version brings.
var notYet = refusal{"is not supported yet by this version", "remove it"}

// refusedKeys are keys that are refused by name instead of being called
// unknown: those a later version brings, and those that stay out. A * stands
// for any name.
func refusedKeys() map[string]refusal {
	policy := map[string]refusal{
		"retry": notYet,
	}
	pipeline := map[string]refusal{
		"enabled":                  notYet,
		"source.topic_pattern":     notYet,
		"source.filter":            {"is not supported", "filter before the topic, or read the table through a view"},
		"source.format.time_zone":  notYet,
		"target.partitions":        notYet,
		"schema.on_removed_column": notYet,
		"schema.rename":            notYet,
		"columns.drop":             notYet,
		"columns.hash":             notYet,
		"columns.rename":           notYet,
		"index":                    notYet,
		"errors":                   {"is not supported yet by this version", "use on_error and dead_letter"},
		"changelog":                notYet,
		"concurrency":              {"is not needed", "remove it: foreign commits are always absorbed"},
		"labels":                   notYet,
		"overrides":                notYet,
	}
	out := map[string]refusal{
		"schema_registry":          notYet,
		"warehouse.catalog":        notYet,
		"kafka.isolation":          {"is not needed", "remove it: only committed records are read"},
		"server.admin.ui":          {"is not needed", "remove it: the status page is always on"},
		"instance":                 {"is not supported", "remove it: the Kafka consumer group spreads tables over instances"},
		"kafka.sasl.token_url":     {"is not supported", "use mechanism scram-sha-512 or a client certificate"},
		"kafka.sasl.client_id":     {"is not supported", "use mechanism scram-sha-512 or a client certificate"},
		"kafka.sasl.client_secret": {"is not supported", "use mechanism scram-sha-512 or a client certificate"},
	}
	for k, r := range policy {
		out["defaults."+k] = r
		out["pipelines.*."+k] = r
	}
	for k, r := range pipeline {
		out["pipelines.*."+k] = r
	}
	return out
}
