// Package config reads the YAML file that says which Kafka topics go into which
// tables: load, defaults, and validation that reports every problem at once
// with its line and what to do about it.
//
// The contract is the structs of model.go: one field with tags and a comment is
// one key, and the checks, docs/config.md and the JSON Schema all follow from
// it. The package imports no other room; rooms take their own options.
package config
