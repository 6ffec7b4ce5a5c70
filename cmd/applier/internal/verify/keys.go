package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"applier/batcher"
	"applier/merger/keyindex"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// keyed is a live row by the hash of its key.
type keyed struct {
	hash uint64
	loc  keyindex.Loc
}

// keyTable is the live rows of the latest snapshot, by key.
type keyTable struct {
	v     *verifier
	enc   *types.KeyEncoder
	files []*manifest.Entry // by segment, from 1
	rows  []keyed
	index *keyindex.Index
	dir   string // of the index's files
	ix    *Section
}

// keys checks that no key has two live rows (I2), and that an index built of the
// table finds exactly its rows.
func (v *verifier) keys(ctx context.Context) {
	sec, ix := v.r.section("keys"), v.r.section("index")
	switch {
	case v.Apply == batcher.Append:
		sec.skip("apply: append has no merge key")
		ix.skip("apply: append has no key index")
		return
	case v.last == nil && len(v.chain) == 0:
		sec.skip("there is no snapshot")
		ix.skip("there is no snapshot")
		return
	case v.last == nil:
		sec.unread("the files of the latest snapshot are not known, see above")
		ix.unread("the files of the latest snapshot are not known, see above")
		return
	}
	k := &keyTable{v: v, ix: ix}
	if err := k.open(); err != nil {
		sec.unread("%v", err)
		ix.unread("%v", err)
		return
	}
	defer k.close()
	whole := k.read(ctx, sec)
	sec.count("live rows", int64(len(k.rows)))
	k.duplicates(ctx, sec)
	if !whole {
		ix.unread("the table cannot be read as a whole, see above")
		return
	}
	k.compare(ctx)
	v.compareRunning(ix, int64(len(k.rows)))
}

func (k *keyTable) open() error {
	fields := k.v.Table.Schema().Fields
	key := make([]types.Type, len(k.v.Key))
	for i, c := range k.v.Key {
		key[i] = fields[c].Type
	}
	var err error
	if k.enc, err = types.NewKeyEncoder(key); err != nil {
		return err
	}
	if k.dir, err = os.MkdirTemp("", "applier-verify-"); err != nil {
		return err
	}
	if k.index, err = keyindex.New(keyindex.Options{Class: k.enc.Class(), Dir: k.dir, Seed: 1, ExpectedKeys: k.v.last.rows}); err != nil {
		return fmt.Errorf("building an index: %w", errors.Join(err, os.Remove(k.dir)))
	}
	return nil
}

func (k *keyTable) close() {
	_ = k.index.Close()
	_ = os.RemoveAll(k.dir) // ours: the index leaves nothing in it
}

// read takes the keys of all live rows, also into the index. It returns false if
// some file could not be read.
func (k *keyTable) read(ctx context.Context, sec *Section) bool {
	whole := true
	c := k.v.last
	k.files = []*manifest.Entry{nil}
	for i := range c.files {
		e := &c.files[i]
		dead, err := k.v.vectorOf(ctx, c, e)
		if err == nil {
			err = k.file(ctx, e, dead)
		}
		if err != nil {
			key, _ := k.v.Table.Paths().Location(e)
			sec.readError(key, err)
			whole = false
		}
	}
	return whole
}

func (k *keyTable) file(ctx context.Context, e *manifest.Entry, dead *roaring.Bitmap) error {
	seg, err := k.index.AddSegment(uint32(e.File.Rows))
	if err != nil {
		return err
	}
	for len(k.files) <= int(seg) {
		k.files = append(k.files, nil)
	}
	k.files[seg] = e
	if err := k.index.SetDeleted(seg, dead); err != nil {
		return err
	}
	var keys types.Keys
	pos := uint32(0)
	return k.v.Table.ReadFile(ctx, e, k.v.Key, func(_ int64, b *types.Batch) error {
		keys.Reset()
		k.enc.Append(&keys, b.Cols, 0, b.Len())
		for i := range b.Len() {
			at := pos + uint32(i)
			if !keys.Null.Get(i) && (dead == nil || !dead.Contains(at)) {
				k.rows = append(k.rows, keyed{keys.Hash[i], keyindex.MakeLoc(seg, at)})
			}
		}
		err := k.index.Add(seg, pos, &keys)
		pos += uint32(b.Len())
		return err
	})
}

// duplicates finds rows of one key. Rows of one hash are compared by their values.
func (k *keyTable) duplicates(ctx context.Context, sec *Section) {
	slices.SortFunc(k.rows, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.loc, b.loc)) })
	foreign := k.v.foreignWriters()
	for i := 0; i < len(k.rows); {
		j := i + 1
		for j < len(k.rows) && k.rows[j].hash == k.rows[i].hash {
			j++
		}
		if j > i+1 {
			k.sameHash(ctx, sec, k.rows[i:j], foreign)
		}
		i = j
	}
}

// foreignWriters lists the retained snapshots in which others may have brought rows.
func (v *verifier) foreignWriters() []string {
	var out []string
	for _, s := range v.chain {
		if s.ours() == nil && s.s.CommitKind != paimon.CommitCompact && s.s.CommitKind != paimon.CommitAnalyze {
			out = append(out, fmt.Sprint(s.id))
		}
	}
	return out
}

func (k *keyTable) sameHash(ctx context.Context, sec *Section, rows []keyed, foreign []string) {
	byKey := map[string][]keyindex.Loc{}
	for _, r := range rows {
		text, err := k.keyAt(ctx, r.loc)
		if err != nil {
			sec.unread("%v", err)
			return
		}
		byKey[text] = append(byKey[text], r.loc)
	}
	for _, text := range sortedKeys(byKey) {
		locs := byKey[text]
		if len(locs) < 2 {
			continue
		}
		var where []string
		for _, l := range locs {
			file, _ := k.v.Table.Paths().Location(k.files[l.Segment()])
			where = append(where, fmt.Sprintf("%s row %d", file, l.Pos()))
		}
		if len(foreign) > 0 {
			sec.count("keys with several rows", 1)
			if len(sec.Notes) < maxFindings {
				sec.note("key %s has %d live rows (%s); other writers have brought rows in snapshots %s", text, len(locs), strings.Join(where, ", "), strings.Join(foreign, ", "))
			}
			continue
		}
		what := "no other writer is known in the retained snapshots"
		if k.v.chain[0].id > 1 {
			what += "; if one has brought them before snapshot " + fmt.Sprint(k.v.chain[0].id) + ", that is where they come from"
		}
		sec.fail(strings.Fields(where[len(where)-1])[0], text, "%d live rows: %s; %s", len(locs), strings.Join(where, ", "), what)
	}
}

// keyAt reads the key of a row as text.
func (k *keyTable) keyAt(ctx context.Context, l keyindex.Loc) (string, error) {
	fields := make([]types.Field, len(k.v.Key))
	for i, c := range k.v.Key {
		fields[i] = k.v.Table.Schema().Fields[c]
	}
	b := types.NewBatch(fields)
	if err := k.v.Table.ReadRows(ctx, k.files[l.Segment()], k.v.Key, []uint32{l.Pos()}, b); err != nil {
		return "", err
	}
	return keyText(fields, b.Row(0)), nil
}

// compare asks the index for the key of every row.
func (k *keyTable) compare(ctx context.Context) {
	var keys types.Keys
	var m keyindex.Matches
	slices.SortFunc(k.rows, func(a, b keyed) int { return cmp.Compare(a.loc, b.loc) })
	at := 0
	for seg := 1; seg < len(k.files); seg++ {
		e := k.files[seg]
		file, _ := k.v.Table.Paths().Location(e)
		pos := uint32(0)
		err := k.v.Table.ReadFile(ctx, e, k.v.Key, func(_ int64, b *types.Batch) error {
			keys.Reset()
			k.enc.Append(&keys, b.Cols, 0, b.Len())
			if err := k.index.Lookup(&keys, nil, &m); err != nil {
				return err
			}
			for i := range b.Len() {
				loc := keyindex.MakeLoc(uint32(seg), pos+uint32(i))
				live := at < len(k.rows) && k.rows[at].loc == loc
				if live {
					at++
				}
				if found := slices.Contains(m.Rows(i), loc); found != live {
					k.ix.fail(file, "", "row %d is live: %t, the index finds it: %t", loc.Pos(), live, found)
				}
			}
			pos += uint32(b.Len())
			return nil
		})
		if err != nil {
			k.ix.readError(file, err)
			return
		}
	}
	k.ix.count("rows looked up", int64(at))
	if n := k.index.Stats().Live; n != int64(len(k.rows)) {
		k.ix.fail("", "", "the index has %d live rows, the table %d", n, len(k.rows))
	}
}

// compareRunning compares the size of a running process's index.
func (v *verifier) compareRunning(ix *Section, live int64) {
	r := v.Running
	switch {
	case r == nil:
		ix.note("built afresh from the table, as every start does; no process runs whose index could be compared")
	case r.Snapshot != v.last.snap.id:
		ix.note("the running process stands at snapshot %d meanwhile, so its index is not compared", r.Snapshot)
	case r.Keys != live:
		ix.fail("", "", "the index of the running process has %d live rows at snapshot %d, the table has %d; `applier resume` after a halt with I-MISMATCH builds it again", r.Keys, r.Snapshot, live)
	default:
		ix.count("rows in the index of the running process", r.Keys)
	}
}

// keyText is a key for people, and the identity of a key: equal exactly if SQL
// says so.
func keyText(fields []types.Field, key []types.Datum) string {
	var b []byte
	for i, f := range fields {
		if i > 0 {
			b = append(b, ", "...)
		}
		d := key[i]
		switch {
		case d.Null:
		case f.Type.Kind == types.Char:
			d.B = bytes.TrimRight(d.B, " ")
		case d.F == 0:
			d.F = 0 // -0.0 is the same key
		}
		b = append(append(append(b, f.Name...), '='), types.AppendJSON(nil, f.Type, d)...)
	}
	return string(b)
}
