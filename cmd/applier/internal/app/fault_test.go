package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"applier/merger"

	"github.com/stretchr/testify/require"
)

// The clocks of TestFault_D1 and D2 of merger, as the daemon sees them.
func TestClockWatch_JumpIsTheWallClockAgainstWhatPassed(t *testing.T) {
	const day = 24 * time.Hour
	wall := time.Unix(1_800_000_000, 0)
	c := clockWatch{wall: wall}
	require.Zero(t, c.jump(wall.Add(5*time.Second), 5*time.Second), "time that passed is no jump")
	require.Equal(t, day, c.jump(wall.Add(day+10*time.Second), 10*time.Second))
	require.Zero(t, c.jump(wall.Add(day+15*time.Second), 15*time.Second), "told once")
	require.Equal(t, -day, c.jump(wall.Add(20*time.Second), 20*time.Second))
}

// A23: the waiting grows, and a commit or a long life ends it.
func TestStarts_WaitLongerTheMoreOftenNothingCameOfThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.running")
	log := slog.New(slog.DiscardHandler)
	var delays []time.Duration
	for range 14 { // each dies without a commit
		s := newStarts(path)
		s.read(log)
		s.begin(log)
		delays = append(delays, s.delay())
	}
	require.Equal(t, []time.Duration{0, 0, 0, 1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 64e9, 128e9, 256e9, maxDelay, maxDelay}, delays)
	s := newStarts(path)
	s.read(log)
	s.begin(log)
	require.EqualValues(t, 1<<20, s.limit(64<<20), "at most six times half")
	require.EqualValues(t, 64<<10, s.limit(64<<10), "never below the least batch")
	s.committed(log) // and then dies
	s = newStarts(path)
	s.read(log)
	s.begin(log)
	require.Zero(t, s.delay(), "the one before committed")
	require.Equal(t, 15, s.now.Unclean)
	s.sound(log) // lives long, and then dies
	s = newStarts(path)
	s.read(log)
	s.begin(log)
	require.Equal(t, ends{}, s.now)
	require.EqualValues(t, 64<<20, s.limit(64<<20))
	s.stopped(log)
	require.NoFileExists(t, path)
	s = newStarts(path)
	s.read(log)
	s.begin(log)
	require.Equal(t, ends{}, s.now, "the first start of all")
	require.NoError(t, os.WriteFile(path, []byte(`{"unclean":`), 0o600))
	s = newStarts(path)
	s.read(log)
	s.begin(log)
	require.Equal(t, ends{Unclean: 1}, s.now, "cut off while it was written")
}

func TestStarts_AFolderThatCannotBeWrittenCostsNothingElse(t *testing.T) {
	s := newStarts(filepath.Join(t.TempDir(), "missing", "p.running"))
	log := slog.New(slog.DiscardHandler)
	s.read(log)
	s.begin(log)
	s.committed(log)
	s.stopped(log)
	require.Zero(t, s.delay())
}

// A16: a step is stuck while neither it nor its rows change.
func TestStuckStep_ProgressIsAnotherStepOrMoreRows(t *testing.T) {
	var s stuckStep
	at := time.Now()
	busy := merger.Busy{Step: "sync", Since: at}
	require.Zero(t, s.age(&busy, at))
	require.Equal(t, time.Minute, s.age(&busy, at.Add(time.Minute)))
	busy.Rows = 1000 // an index is built
	require.Zero(t, s.age(&busy, at.Add(2*time.Minute)))
	require.Equal(t, time.Minute, s.age(&busy, at.Add(3*time.Minute)))
	require.Zero(t, s.age(nil, at.Add(4*time.Minute)), "between steps")
	require.Zero(t, s.age(&busy, at.Add(5*time.Minute)))
	next := merger.Busy{Step: "sync", Since: at.Add(6 * time.Minute)}
	require.Zero(t, s.age(&next, at.Add(6*time.Minute)), "the same step of another batch")
}

// I7: a pause is told every hour.
func TestForgotten_TellsOfAPauseEveryHour(t *testing.T) {
	var f forgotten
	from := time.Now()
	for _, c := range []struct {
		paused bool
		at     time.Duration
		tell   bool
	}{
		{true, 0, false},
		{true, 59 * time.Minute, false},
		{true, time.Hour, true},
		{true, 61 * time.Minute, false},
		{true, 2 * time.Hour, true},
		{false, 2 * time.Hour, false},
		{true, 3 * time.Hour, false},
		{true, 4 * time.Hour, true},
	} {
		d, tell := f.look(c.paused, from.Add(c.at))
		require.Equal(t, c.tell, tell, c.at)
		if tell && c.at == 4*time.Hour {
			require.Equal(t, time.Hour, d)
		}
	}
}
