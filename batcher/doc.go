// Package batcher cuts a pipeline's changes into micro-batches and keeps one
// change per merge key in each. It knows neither Kafka nor tables: time and
// positions are passed in. One goroutine owns a Batcher; the Budget is shared
// by the whole process.
package batcher
