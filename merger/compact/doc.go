// Package compact keeps a table in shape: it joins small files, purges deleted
// rows, removes old snapshots and finds files that nothing names.
//
// Everything here is a writer like any other: it reads a snapshot, writes files,
// and publishes a snapshot if nobody was faster. So it may run in the daemon beside
// the commit loop, from the command line beside a daemon, or against another
// engine. A commit that came in between is not lost: rows that it has deleted are
// marked in the new files, and where it has replaced a file the join is given up.
//
// Killed anywhere it leaves a right table, and at most files that nothing names.
package compact
