package tombstones

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"applier/storage/objstore"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var ctx = context.Background()

func testLog(b objstore.Bucket) *Log { return &Log{Bucket: b, Folder: "p.deletes", Layout: "keys"} }

// chainOf writes n deltas, each with a key of its own and one that all share.
func chainOf(t require.TestingT, l *Log, n int) (head string, p *Path, s *Set) {
	p, s = &Path{}, &Set{}
	for i := range n {
		d := &Delta{}
		d.Put(fmt.Append(nil, "k", i), fmt.Append(nil, i), int64(i))
		d.Put([]byte("shared"), fmt.Append(nil, i), int64(i))
		if i > 0 {
			d.Remove(fmt.Append(nil, "k", i-1))
		}
		id := fmt.Sprint("t", i)
		size, err := l.Write(ctx, id, head, int64(i), d)
		require.NoError(t, err)
		s.Apply(d)
		p.Add(id, size)
		head = id
	}
	return head, p, s
}

func TestLog_LoadsWhatAHeadStandsFor(t *testing.T) {
	b := objstore.NewMem(objstore.MemOptions{})
	l := testLog(b)
	head, path, want := chainOf(t, l, 5)
	s, p, err := l.Load(ctx, head, 0)
	require.NoError(t, err)
	require.Equal(t, contents(t, want), contents(t, s))
	require.Equal(t, path, p)
	require.Equal(t, head, p.Head())

	older, _, err := l.Load(ctx, "t1", 0) // the table was rolled back to there
	require.NoError(t, err)
	require.Equal(t, map[string]modelDelete{"k1": {"1", 1}, "shared": {"1", 1}}, contents(t, older))

	none, p, err := l.Load(ctx, "", 0)
	require.NoError(t, err)
	require.Zero(t, none.Len())
	require.Empty(t, p.Head())
}

func TestLog_AnAttemptThatCameToNothingIsOnNoPath(t *testing.T) {
	l := testLog(objstore.NewMem(objstore.MemOptions{}))
	head, _, want := chainOf(t, l, 2)
	lost := &Delta{}
	lost.Put([]byte("never"), []byte("9"), 9)
	_, err := l.Write(ctx, "attempt-1", head, 9, lost)
	require.NoError(t, err)
	second := &Delta{}
	second.Put([]byte("won"), []byte("9"), 9)
	_, err = l.Write(ctx, "attempt-2", head, 9, second)
	require.NoError(t, err)
	want.Apply(second)
	s, _, err := l.Load(ctx, "attempt-2", 0)
	require.NoError(t, err)
	require.Equal(t, contents(t, want), contents(t, s))
	_, err = l.Write(ctx, "attempt-2", head, 9, lost)
	require.ErrorIs(t, err, objstore.ErrExist, "an id is used once")
}

func TestLog_CompactsToABaseAndKeepsTheWayBack(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	b := objstore.NewMem(objstore.MemOptions{Now: func() time.Time { return now }})
	l := testLog(b)
	head, path, s := chainOf(t, l, 3)
	base, err := l.Compact(ctx, path, 3, s)
	require.NoError(t, err)
	require.Equal(t, head, base.Head())
	again, err := l.Compact(ctx, path, 3, s)
	require.NoError(t, err, "a restart does the same once more")
	require.Equal(t, base, again)
	got, p, err := l.Load(ctx, head, 0)
	require.NoError(t, err)
	require.Equal(t, contents(t, s), contents(t, got))
	require.Equal(t, base, p)
	_, _, err = l.Load(ctx, "t1", 0)
	require.NoError(t, err, "the way back is still there")

	stray := &Delta{}
	stray.Put([]byte("x"), nil, 1)
	_, err = l.Write(ctx, "stray", head, 1, stray)
	require.NoError(t, err)
	require.NoError(t, l.Sweep(ctx, nil, []*Path{base, path}, now.Add(-time.Hour)))
	require.Equal(t, []string{"stray.delta", "t0.delta", "t1.delta", "t2.base", "t2.delta"}, names(b), "nothing is old enough")
	require.NoError(t, l.Sweep(ctx, path, []*Path{base}, now.Add(-time.Hour)))
	require.Equal(t, []string{"stray.delta", "t2.base"}, names(b), "what was superseded is known to be of no use")
	now = now.Add(2 * time.Hour)
	require.NoError(t, l.Sweep(ctx, nil, []*Path{base}, now.Add(-time.Hour)))
	require.Equal(t, []string{"t2.base"}, names(b))
	_, _, err = l.Load(ctx, "t1", 0)
	require.ErrorIs(t, err, ErrLost)
	got, _, err = l.Load(ctx, head, 0)
	require.NoError(t, err)
	require.Equal(t, contents(t, s), contents(t, got))
}

func names(b *objstore.Mem) (out []string) {
	b.Walk(func(key string, _ []byte) {
		if !objstore.IsTemp(key) {
			out = append(out, strings.TrimPrefix(key, "p.deletes/"))
		}
	})
	slices.Sort(out)
	return out
}

func TestPath_IsLongWhenABaseIsWorthIt(t *testing.T) {
	p := Path{Base: "b", BaseBytes: 1000}
	for range minDeltas {
		require.False(t, p.Long())
		p.Add("d", 1)
	}
	require.False(t, p.Long(), "a few small ones")
	p.Add("d", 1000)
	require.True(t, p.Long(), "as much as the base")
	p = Path{Base: "b", BaseBytes: 1 << 30}
	for range maxDeltas {
		require.False(t, p.Long())
		p.Add("d", 1)
	}
	require.True(t, p.Long(), "very many")
}

func TestLog_ALossIsTold(t *testing.T) {
	for name, damage := range map[string]func(*objstore.Mem){
		"all gone":        func(b *objstore.Mem) { require.NoError(t, b.RemoveAll("p.deletes")) },
		"one gone":        func(b *objstore.Mem) { require.NoError(t, b.RemoveAll("p.deletes/t1.delta")) },
		"the head is cut": func(b *objstore.Mem) { overwrite(t, b, "t2.delta", func(x []byte) []byte { return x[:len(x)-1] }) },
		"one is zeros": func(b *objstore.Mem) {
			overwrite(t, b, "t0.delta", func(x []byte) []byte { return make([]byte, len(x)) })
		},
		"another's name": func(b *objstore.Mem) {
			other, err := b.Get(ctx, "p.deletes/t0.delta")
			require.NoError(t, err)
			overwrite(t, b, "t1.delta", func([]byte) []byte { return other })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := objstore.NewMem(objstore.MemOptions{})
			l := testLog(b)
			head, _, _ := chainOf(t, l, 3)
			damage(b)
			_, _, err := l.Load(ctx, head, 0)
			require.ErrorIs(t, err, ErrLost)
		})
	}
	b := objstore.NewMem(objstore.MemOptions{})
	head, _, _ := chainOf(t, testLog(b), 3)
	other := testLog(b)
	other.Layout = "other keys"
	_, _, err := other.Load(ctx, head, 0)
	require.ErrorIs(t, err, ErrLost)
	for _, id := range []string{"../x", "a/b", "A", strings.Repeat("a", 65), "never-was"} {
		_, _, err := testLog(b).Load(ctx, id, 0)
		require.ErrorIs(t, err, ErrLost, id)
	}
}

func overwrite(t require.TestingT, b *objstore.Mem, name string, change func([]byte) []byte) {
	x, err := b.Get(ctx, "p.deletes/"+name)
	require.NoError(t, err)
	require.NoError(t, b.Replace(ctx, "p.deletes/"+name, change(slices.Clone(x))))
}

func TestLog_ADamagedBaseIsNoLossWhileItsDeltasAreThere(t *testing.T) {
	b := objstore.NewMem(objstore.MemOptions{})
	l := testLog(b)
	head, path, s := chainOf(t, l, 3)
	_, err := l.Compact(ctx, path, 3, s)
	require.NoError(t, err)
	overwrite(t, b, "t2.base", func(x []byte) []byte { return x[:len(x)-3] })
	got, p, err := l.Load(ctx, head, 0)
	require.NoError(t, err)
	require.Equal(t, contents(t, s), contents(t, got))
	require.Equal(t, path, p)
	require.NoError(t, b.RemoveAll("p.deletes/t1.delta"))
	_, _, err = l.Load(ctx, head, 0)
	require.ErrorIs(t, err, ErrLost)
}

// What cannot be read now is not lost: the caller tries again.
func TestLog_AnErrorOfTheDiskIsNoLoss(t *testing.T) {
	b := objstore.NewMem(objstore.MemOptions{})
	head, path, s := chainOf(t, testLog(b), 3)
	_, err := testLog(b).Compact(ctx, path, 3, s)
	require.NoError(t, err)
	for _, op := range []string{"open", "read"} {
		f := objstore.NewFaulty(b, objstore.Rule{Op: op, Nth: 1, Err: syscall.EIO})
		_, _, err := testLog(f).Load(ctx, head, 0)
		require.ErrorIs(t, err, syscall.EIO, op)
		require.NotErrorIs(t, err, ErrLost, op)
		_, _, err = testLog(f).Load(ctx, head, 0)
		require.NoError(t, err)
	}
	f := objstore.NewFaulty(b, objstore.Rule{Op: "put_all", Nth: 1, Err: objstore.ErrFull}, objstore.Rule{Op: "write", Nth: 1, Err: objstore.ErrFull})
	_, err = testLog(f).Write(ctx, "full", head, 1, &Delta{})
	require.ErrorIs(t, err, objstore.ErrFull)
	_, err = testLog(f).WriteBase(ctx, "full", 1, s)
	require.ErrorIs(t, err, objstore.ErrFull)
}

func TestLog_RefusesWhatDoesNotFitItsMemory(t *testing.T) {
	l := testLog(objstore.NewMem(objstore.MemOptions{}))
	d := &Delta{}
	for i := range 20_000 {
		d.Put(fmt.Append(nil, i), []byte("order"), 1)
	}
	size, err := l.Write(ctx, "a", "", 1, d)
	require.NoError(t, err)
	_, _, err = l.Load(ctx, "a", 100<<10)
	require.ErrorIs(t, err, ErrMemory)
	s, p, err := l.Load(ctx, "a", 100<<20)
	require.NoError(t, err)
	require.Equal(t, size, p.DeltaBytes)
	_, err = l.Compact(ctx, p, 1, s)
	require.NoError(t, err)
	_, _, err = l.Load(ctx, "a", 100<<10)
	require.ErrorIs(t, err, ErrMemory)
}

// A power cut at any operation of the disk: what Write or Compact said is durable
// is there, and so is everything that was before.
func TestLog_CrashAtEveryOperation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for survive := 0.0; survive <= 1; survive += 0.5 {
		for at := int64(1); ; at++ {
			disk := objstore.NewMem(objstore.MemOptions{})
			before, _, set := chainOf(t, testLog(disk), 2)
			crashing := disk.Attach(objstore.MemOptions{Fault: func(o objstore.Op) objstore.Fault {
				return objstore.Fault{Crash: o.N == at, Applied: o.N == at && at%2 == 0}
			}})
			want := map[string]map[string]modelDelete{before: contents(t, set)}
			finished := work(testLog(crashing), before, set, func(head string) { want[head] = contents(t, set) })
			after := disk.Crash(rng, survive)
			for head, content := range want {
				s, _, err := testLog(after).Load(ctx, head, 0)
				require.NoError(t, err, "operation %d, %s", at, head)
				require.Equal(t, content, contents(t, s))
			}
			if finished {
				break
			}
			require.Less(t, at, int64(1000))
		}
	}
}

// work writes, compacts and sweeps until something fails; durable is told what was said
// to be.
func work(l *Log, head string, s *Set, durable func(head string)) (finished bool) {
	path := &Path{Deltas: []string{"t0", head}}
	for i := range 3 {
		d := &Delta{}
		d.Put(fmt.Append(nil, "more", i), []byte("1"), 5)
		d.Remove([]byte("shared"))
		id := fmt.Sprint("w", i)
		size, err := l.Write(ctx, id, head, 5, d)
		if err != nil {
			return false
		}
		s.Apply(d)
		path.Add(id, size)
		head = id
		durable(head)
		next, err := l.Compact(ctx, path, 5, s)
		if err != nil {
			return false
		}
		if l.Sweep(ctx, nil, []*Path{next, path}, time.Time{}) != nil {
			return false
		}
		path = next
	}
	return true
}

// Histories with attempts, rollbacks, compactions, sweeps and restarts: a head
// that was recorded stands for the set it stood for, or is told to be lost, and
// that only where a sweep was asked for what led to it.
func TestLog_RapidHeadsStandForTheirSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.UnixMilli(1_800_000_000_000)
		l := testLog(objstore.NewMem(objstore.MemOptions{Now: func() time.Time { return now }}))
		sets := map[string]map[string]modelDelete{"": {}}
		heads := []string{""}
		s, p := &Set{}, &Path{}
		var previous *Path
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { require.Equal(t, sets[p.Head()], contents(t, s)) },
			"commit": func(t *rapid.T) {
				d := &Delta{}
				for range rapid.IntRange(1, 4).Draw(t, "changes") {
					k := fmt.Append(nil, rapid.IntRange(0, 9).Draw(t, "key"))
					if rapid.Bool().Draw(t, "deleted") {
						d.Put(k, fmt.Append(nil, n), now.UnixMilli())
					} else {
						d.Remove(k)
					}
				}
				n++
				id := fmt.Sprint("t", n)
				size, err := l.Write(ctx, id, p.Head(), now.UnixMilli(), d)
				require.NoError(t, err)
				if rapid.IntRange(0, 3).Draw(t, "lost race") == 0 {
					return
				}
				s.Apply(d)
				p.Add(id, size)
				sets[id] = contents(t, s)
				heads = append(heads, id)
			},
			"compact": func(t *rapid.T) {
				if p.Head() == "" || p.Head() == p.Base {
					return
				}
				next, err := l.Compact(ctx, p, now.UnixMilli(), s)
				require.NoError(t, err)
				require.NoError(t, l.Sweep(ctx, previous, []*Path{next, p}, now.Add(-24*time.Hour)))
				previous, p = p, next
				now = now.Add(time.Hour)
			},
			"restart or roll back": func(t *rapid.T) {
				head := p.Head()
				if rapid.Bool().Draw(t, "back") {
					head = rapid.SampledFrom(heads).Draw(t, "head")
				}
				got, path, err := l.Load(ctx, head, 0)
				if errors.Is(err, ErrLost) {
					require.NotEqual(t, p.Head(), head, "the newest is never swept")
					return
				}
				require.NoError(t, err)
				require.Equal(t, sets[head], contents(t, got))
				s, p, previous = got, path, nil
			},
		})
	})
}
