// Package merger gives changes their meaning and owns the one commit loop.
//
// The loop is split in two. The core (state.go, step.go) is a pure function
// Step(State, Event) → (State, []Effect): no clock, no I/O, no randomness, no
// goroutine, no map order. The shell (applier.go and the files around it)
// performs the effects against a real table and Kafka; the simulation performs
// the same effects in a seeded world. DESIGN.md tells why.
package merger
