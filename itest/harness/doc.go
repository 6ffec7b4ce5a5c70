// Package harness starts the real parts that the integration tests judge with:
// Apache Kafka, Paimon's Java library, pypaimon, paimon-rust, Flink, Spark, and
// the applier binary itself. It is the only code of the project that starts
// processes. Every part is fetched by itest/fetch.sh; a part that cannot be had
// fails the test that asked for it, it never skips it.
//
// Judges (Java, PyPaimon, Rust, Flink, Spark) are warm processes, started once a
// test binary and shared by its tests; a test binary closes them by
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
//
// Whatever happens to the test binary, nothing outlives it: judges end with
// their standard input, and on Linux every child gets SIGKILL when its parent
// dies.
package harness
