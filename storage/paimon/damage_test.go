package paimon

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/types"
)

// damaged is a table of which one file has other bytes.
type damaged struct {
	objstore.Bucket
	key  string
	data []byte
}

func (d *damaged) Get(ctx context.Context, key string) ([]byte, error) {
	if key == d.key {
		return bytes.Clone(d.data), nil
	}
	return d.Bucket.Get(ctx, key)
}

func (d *damaged) Open(ctx context.Context, key string, size int64) (objstore.Reader, error) {
	if key == d.key {
		return memReader{bytes.NewReader(d.data)}, nil
	}
	return d.Bucket.Open(ctx, key, size)
}

type memReader struct{ *bytes.Reader }

func (memReader) Close() error { return nil }

// damageCase is a golden table with what it has.
type damageCase struct {
	name  string
	local objstore.Bucket
	files map[string][]byte
	keys  []string // of files, sorted
	want  string
}

func damageCases(t require.TestingT, tables ...string) []*damageCase {
	var out []*damageCase
	for _, name := range tables {
		fixture, table, _ := strings.Cut(name, ".")
		dir := filepath.Join("testdata/golden", fixture, "warehouse", fixture+".db", table)
		c := &damageCase{name: name, files: map[string][]byte{}}
		var err error
		c.local, err = objstore.NewLocal(dir, objstore.LocalOptions{})
		require.NoError(t, err)
		require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			key, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			c.files[key], err = os.ReadFile(path)
			c.keys = append(c.keys, key)
			return err
		}))
		c.want, err = readAll(c.local)
		require.NoError(t, err)
		require.NotEmpty(t, c.want)
		out = append(out, c)
	}
	return out
}

// readAll reads the latest snapshot of a table in all ways that there are, and
// returns its rows as text.
func readAll(b objstore.Bucket) (string, error) {
	tab, err := OpenTable(bg, b, Read)
	if err != nil {
		return "", err
	}
	id, err := LatestSnapshotID(bg, b, tab.Paths())
	if err != nil {
		return "", err
	}
	s, err := ReadSnapshot(bg, b, tab.Paths(), id)
	if err != nil {
		return "", err
	}
	st, err := tab.State(bg, s)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	rows := int64(0)
	err = tab.Scan(bg, st, ScanOptions{}, func(b *types.Batch) error {
		rows += int64(b.Len())
		for i := range b.Len() {
			for c, f := range tab.Schema().Fields {
				fmt.Fprintf(&out, "%s ", types.AppendJSON(nil, f.Type, b.Cols[c].Datum(i)))
			}
			out.WriteByte('\n')
		}
		return nil
	})
	// What follows must not panic either; what it finds may be wrong where the
	// schema or the bounds are.
	n, countErr := tab.CountRows(bg, st)
	if err == nil && countErr == nil && n != rows {
		return "", fmt.Errorf("%d rows counted, %d read", n, rows)
	}
	for col := range tab.Schema().Fields {
		for _, op := range []Compare{Equal, IsNull} {
			_ = tab.Scan(bg, st, ScanOptions{Where: []Condition{{Column: col, Op: op}}}, func(*types.Batch) error { return nil })
		}
	}
	_, _ = tab.Delta(bg, s)
	if err == nil {
		err = countErr
	}
	return out.String(), err
}

// checkDamage reads a table with a damaged file. Nothing panics. Damage of
// manifests, lists and index files is found, or changes no row: sizes, counts,
// identities, checksums and the data files' own row counts see to that. In an index
// manifest the name of a data file may become another one's: a vector of a file
// that is not there, which is none to readers, and deleted rows come back. Schemas,
// snapshots, and the pages of data files have nothing that tells.
func (c *damageCase) checkDamage(t require.TestingT, key string, data []byte) (found bool) {
	got, err := readAll(&damaged{c.local, key, data})
	switch {
	case err != nil:
		return true
	case strings.HasPrefix(key, "manifest/index-manifest-"):
		lines := strings.Split(got, "\n")
		for _, line := range strings.Split(c.want, "\n") {
			at := slices.Index(lines, line)
			require.GreaterOrEqual(t, at, 0, "%s: %s lost %s", c.name, key, line)
			lines = slices.Delete(lines, at, at+1)
		}
	case strings.HasPrefix(key, "manifest/"), strings.HasPrefix(key, "index/"):
		require.Equal(t, c.want, got, "%s: %s", c.name, key)
	}
	return false
}

var damageTables = []string{"spec_dv.my_table", "compacted_dv.t", "evolved_dv.t", "partitions_dv.t", "types_dv.t", "merge_clauses.t", "nested_dv.t", "many_commits.t", "spec_cow.my_table"}

// damages is what a minute of `make test` allows under the race detector; `make
// itest-full` tries ten times as many.
var damages = flag.Int("damages", 250, "how many damages of each table are tried")

func TestFault_B7_DamagedMetadataIsFoundOrHarmless(t *testing.T) {
	rng := rand.New(rand.NewPCG(77, 78))
	tried, found := 0, 0
	for _, c := range damageCases(t, damageTables...) {
		for range *damages {
			key := c.keys[rng.IntN(len(c.keys))]
			data := bytes.Clone(c.files[key])
			if len(data) == 0 {
				continue
			}
			switch rng.IntN(4) {
			case 0: // cut off
				data = data[:rng.IntN(len(data))]
			case 1: // a run of zeros, as of a block that was not written
				from := rng.IntN(len(data))
				clear(data[from:min(from+1+rng.IntN(512), len(data))])
			default: // flipped bits
				for range 1 + rng.IntN(3) {
					data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
				}
			}
			tried++
			if c.checkDamage(t, key, data) {
				found++
			}
		}
	}
	require.Greater(t, found, tried/4)
}

// An Avro file that ends behind a block is complete in itself.
func TestState_FindsFilesThatEndTooEarly(t *testing.T) {
	for _, c := range damageCases(t, "many_commits.t") {
		tab, err := OpenTable(bg, c.local, Read)
		require.NoError(t, err)
		id, err := LatestSnapshotID(bg, c.local, tab.Paths())
		require.NoError(t, err)
		s, err := ReadSnapshot(bg, c.local, tab.Paths(), id)
		require.NoError(t, err)
		st, err := tab.State(bg, s)
		require.NoError(t, err)
		names := []string{s.BaseManifestList, s.DeltaManifestList}
		for _, m := range st.Manifests {
			names = append(names, m.Name)
		}
		for _, name := range names {
			key := "manifest/" + name
			data := c.files[key]
			sync := data[len(data)-16:]
			head := bytes.Index(data, sync) + 16
			if head == len(data) {
				continue // an empty list
			}
			_, err := readAll(&damaged{c.local, key, data[:head]})
			require.ErrorIs(t, err, ErrCorrupt, name)
		}
	}
}

func FuzzScanDamagedTable(f *testing.F) {
	cases := damageCases(f, "spec_dv.my_table", "evolved_dv.t", "nested_dv.t")
	for i, c := range cases {
		for k := range min(len(c.keys), 12) {
			f.Add(uint(i), uint(k), uint(10*k), byte(1), uint(0))
		}
	}
	f.Fuzz(func(t *testing.T, table, file, at uint, flip byte, keep uint) {
		c := cases[table%uint(len(cases))]
		key := c.keys[file%uint(len(c.keys))]
		data := bytes.Clone(c.files[key])
		if len(data) == 0 {
			return
		}
		data[at%uint(len(data))] ^= flip
		if keep > 0 {
			data = data[:keep%uint(len(data)+1)]
		}
		c.checkDamage(t, key, data)
	})
}

func FuzzDefaultValue(f *testing.F) {
	kinds := []types.Type{
		types.BooleanType(), types.TinyIntType(), types.SmallIntType(), types.IntType(), types.BigIntType(), types.FloatType(), types.DoubleType(), types.DecimalType(5, 2), types.DecimalType(38, 10), types.CharType(4),
		types.VarCharType(3), types.StringType(), types.BinaryType(4), types.BytesType(), types.DateType(), types.TimeType(3), types.TimestampType(0), types.TimestampType(3), types.TimestampType(6), types.TimestampType(9), types.TimestampLTZType(6),
		types.ArrayType(types.IntType()), types.CharType(types.MaxLength),
	}
	for i, text := range []string{"5", "'x'", "", "'", "-.5", "0x1p3", "1e400", "NaN", "12.345e-7", "2024-02-30", "03:04:05.1235+01:00", "2024-01-02T03:04:05.123456789", "-1", "+12345-01-01", "ARRAY(1)", "\xff\xfe", "1e-400", "99999999999999999999999999999999999999.5"} {
		for k := range kinds {
			if (i+k)%3 == 0 {
				f.Add(uint(k), text)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint, text string) {
		typ := kinds[kind%uint(len(kinds))]
		d, err := DefaultValue(types.Field{Name: "c", Type: typ, Default: &text})
		if err != nil {
			require.ErrorIs(t, err, ErrDefault)
			require.Nil(t, d)
			return
		}
		if d == nil {
			require.Equal(t, types.Decimal, typ.Kind, "only a DECIMAL may be too large")
			return
		}
		// It is a value of its column: it is written as one and read again.
		v := types.NewVector(typ)
		v.AppendDatum(*d)
		require.Zero(t, types.CompareDatums(typ, *d, v.Datum(0)))
		switch typ.Kind {
		case types.Decimal:
			if typ.Precision <= 18 {
				require.True(t, types.Int128From(d.I).FitsPrecision(typ.Precision))
			} else {
				require.True(t, d.D.FitsPrecision(typ.Precision))
			}
		case types.Time:
			require.True(t, d.I >= 0 && d.I < millisPerDay)
		case types.Binary:
			require.Len(t, d.B, typ.Length)
		case types.Timestamp, types.TimestampLTZ:
			require.Equal(t, d.I, types.TruncateMicros(d.I, typ.Precision))
			require.True(t, d.N >= 0 && d.N < 1000)
		}
	})
}
