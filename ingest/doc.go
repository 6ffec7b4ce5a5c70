// Package ingest reads Kafka: client, group membership, positions, decoding,
// dead letters. It knows neither batches nor tables: decoded changes go into a
// Collector, positions come from whoever owns the table.
package ingest
