// Package itest holds the integration tests on real parts: Apache Kafka, Paimon's
// own Java library, pypaimon, paimon-rust, Flink. They need the build tag itest
// and are described in README.md; the package harness starts the parts.
package itest
