package app

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"applier/cmd/applier/internal/verify"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// healthy is a table that a pipeline wrote, with deletion vectors, and the files it
// consists of; damages work on copies.
type healthy struct {
	w     *world
	dir   string // of the table
	files []string
}

func newHealthy(t *testing.T) *healthy {
	w, _ := presetWorld(t, "mirror")
	w.cfg.Pipelines["p"].Batch.IdleFlush = 300 * time.Millisecond // so that a round is a batch
	h := &history{rng: rand.New(rand.NewPCG(3, 3)), exact: true}
	r := w.run()
	for range 4 {
		w.changes(h, 40)
		r.records(t, 80)
	}
	r.stop()
	x := &healthy{w: w, dir: filepath.Join(w.dir, "warehouse/shop.db/orders")}
	require.NoError(t, filepath.WalkDir(x.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			key, _ := filepath.Rel(x.dir, path)
			x.files = append(x.files, filepath.ToSlash(key))
		}
		return err
	}))
	report, text := w.verified(false)
	require.Equal(t, verify.OK, report.Verdict, text)
	require.Positive(t, report.Count("vectors", "deleted rows"), text)
	return x
}

// kind sorts the files by what they are.
func kind(key string) string {
	switch name := filepath.Base(key); {
	case strings.HasSuffix(name, ".parquet"):
		return "data"
	case strings.HasPrefix(key, "index/"):
		return "vectors"
	case strings.HasPrefix(name, "index-manifest-"):
		return "index manifest"
	case strings.HasPrefix(name, "manifest-list-"):
		return "list"
	case strings.HasPrefix(name, "manifest-"):
		return "manifest"
	case strings.HasPrefix(name, "snapshot-"):
		return "snapshot"
	case strings.HasPrefix(name, "schema-"):
		return "schema"
	}
	return "other"
}

// copied is a copy of the table in a warehouse of its own.
type copied struct {
	*world
	dir   string
	table *paimon.Table
}

func (x *healthy) copy(t *testing.T) *copied {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "warehouse"), os.DirFS(filepath.Join(x.w.dir, "warehouse"))))
	cfg := *x.w.cfg
	cfg.Warehouse.Path = filepath.Join(dir, "warehouse")
	w := &world{t: t, broker: x.w.broker, dir: x.w.dir, cfg: &cfg}
	c := &copied{world: w, dir: filepath.Join(dir, "warehouse/shop.db/orders")}
	return c
}

func (c *copied) open() {
	name, err := catalog.ParseName("shop.orders")
	require.NoError(c.t, err)
	c.table, err = c.catalog().Open(testContext(c.t), name, paimon.Write)
	require.NoError(c.t, err)
}

func (c *copied) path(key string) string { return filepath.Join(c.dir, filepath.FromSlash(key)) }

func (c *copied) get(key string) []byte {
	b, err := os.ReadFile(c.path(key))
	require.NoError(c.t, err)
	return b
}

func (c *copied) put(key string, b []byte) { require.NoError(c.t, os.WriteFile(c.path(key), b, 0o644)) }

// found verifies and tells whether the damage was found with the file's name. A
// table that cannot even be opened is found by the error.
func (c *copied) found(key string, full, offline bool) (bool, string) {
	kafka := c.kafka()
	k := &kafka
	if offline {
		k = nil
	}
	r, err := Verify(testContext(c.t), c.cfg, "p", k, "left out", nil, full, discard())
	if err != nil {
		return strings.Contains(strings.ReplaceAll(err.Error(), "schema 0", "schema-0"), filepath.Base(key)), err.Error()
	}
	var text bytes.Buffer
	r.Print(&text)
	for _, s := range r.Sections {
		for _, f := range s.Findings {
			if f.File == key || strings.Contains(f.What, key) {
				require.Equal(c.t, verify.Failed, r.Verdict, text.String())
				return true, text.String()
			}
		}
		if strings.Contains(s.Reason, key) {
			require.NotEqual(c.t, verify.OK, r.Verdict, text.String())
			return true, text.String()
		}
	}
	return false, text.String()
}

// content reads everything a reader of the latest snapshot sees.
func (c *copied) content() (string, error) {
	name, err := catalog.ParseName("shop.orders")
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	t, err := c.catalog().Open(ctx, name, paimon.Read)
	if err != nil {
		return "", err
	}
	var lines []string
	ids, err := paimon.ListSnapshotIDs(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return "", err
	}
	for _, id := range ids {
		s, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), id)
		if err != nil {
			return "", err
		}
		st, err := t.State(ctx, s)
		if err != nil {
			return "", err
		}
		err = t.Scan(ctx, st, paimon.ScanOptions{}, func(b *types.Batch) error {
			for i := range b.Len() {
				line := strconv.FormatInt(id, 10)
				for col, f := range t.Schema().Fields {
					line += " " + string(types.AppendJSON(nil, f.Type, b.Cols[col].Datum(i)))
				}
				lines = append(lines, line)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// TestDamage_EveryChangedBitIsFound changes one bit of a file at a time. It is found
// and the file named, or the bit is one that no reader can tell: everything reads as
// before.
func TestDamage_EveryChangedBitIsFound(t *testing.T) {
	x := newHealthy(t)
	want, err := x.copy(t).content()
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(5, 5))
	byKind := map[string][]string{}
	for _, f := range x.files {
		byKind[kind(f)] = append(byKind[kind(f)], f)
	}
	c := x.copy(t)
	for kind, flips := range map[string]int{"data": 150, "vectors": 80, "manifest": 100, "list": 100, "index manifest": 100, "snapshot": 250} {
		t.Run(kind, func(t *testing.T) {
			require.NotEmpty(t, byKind[kind])
			found := 0
			for range flips {
				key := byKind[kind][rng.IntN(len(byKind[kind]))]
				old := c.get(key)
				b := bytes.Clone(old)
				at := rng.IntN(8 * len(b))
				b[at/8] ^= 1 << (at % 8)
				c.put(key, b)
				ok, text := c.found(key, true, true)
				if ok {
					found++
				} else {
					require.NotContains(t, []string{"snapshot", "data"}, kind, "bit %d of %s: %s", at, key, text)
					got, err := c.content()
					require.NoError(t, err, "bit %d of %s", at, key)
					require.Equal(t, want, got, "bit %d of %s changes rows and is not found:\n%s", at, key, text)
				}
				c.put(key, old)
			}
			t.Logf("%d of %d found; the others change nothing that a reader sees", found, flips)
			require.Greater(t, found*2, flips)
		})
	}
}

// TestDamage_MissingAndShortFilesAreFound takes every file away, then parts of it.
func TestDamage_MissingAndShortFilesAreFound(t *testing.T) {
	x := newHealthy(t)
	c := x.copy(t)
	checked := map[string]int{}
	for _, key := range x.files {
		if kind(key) == "other" {
			continue // hints and pins
		}
		old := c.get(key)
		for name, damage := range map[string]func(){
			"missing": func() { require.NoError(t, os.Remove(c.path(key))) },
			"short":   func() { c.put(key, old[:len(old)-1]) },
			"empty":   func() { c.put(key, nil) },
			"half":    func() { c.put(key, old[:len(old)/2]) },
			"longer":  func() { c.put(key, append(bytes.Clone(old), 'x')) },
		} {
			if name == "missing" && (kind(key) == "schema" || key == "snapshot/snapshot-1") {
				continue // then there is no table at all; the oldest snapshot may have expired
			}
			damage()
			ok, text := c.found(key, false, true)
			require.True(t, ok, "%s %s:\n%s", name, key, text)
			c.put(key, old)
			checked[kind(key)]++
		}
	}
	t.Log(checked)
	require.Len(t, checked, 7)
}

// latest is the newest snapshot of the copy.
func (c *copied) latest() *paimon.Snapshot {
	c.open()
	id, err := paimon.LatestSnapshotID(testContext(c.t), c.table.Bucket(), c.table.Paths())
	require.NoError(c.t, err)
	s, err := paimon.ReadSnapshot(testContext(c.t), c.table.Bucket(), c.table.Paths(), id)
	require.NoError(c.t, err)
	return s
}

// rewriteDelta writes the newest snapshot's own manifest again with other entries,
// and everything above it so that sizes agree: what a faulty writer would make. It
// returns the manifest's key.
func (c *copied) rewriteDelta(change func(entries []manifest.Entry) []manifest.Entry) string {
	t, ctx := c.t, testContext(c.t)
	s := c.latest()
	codec, err := manifest.NewCodec(manifest.Options{Compression: "zstd", Level: 1})
	require.NoError(t, err)
	metas, err := c.table.ManifestList(ctx, s.DeltaManifestList, s.DeltaManifestListSize)
	require.NoError(t, err)
	require.Len(t, metas, 1)
	entries, err := c.table.Entries(ctx, metas[0])
	require.NoError(t, err)
	entries = change(slices.Clone(entries))
	data, err := codec.EncodeEntries(entries)
	require.NoError(t, err)
	key := "manifest/" + metas[0].Name
	c.put(key, data)
	m, err := manifest.Summarise(metas[0].Name, int64(len(data)), entries, nil)
	require.NoError(t, err)
	m.PartitionStats = metas[0].PartitionStats
	list, err := codec.EncodeList([]manifest.Meta{m})
	require.NoError(t, err)
	c.put("manifest/"+s.DeltaManifestList, list)
	c.editSnapshot(s.ID, func(text string) string {
		return strings.Replace(text, `"deltaManifestListSize" : `+strconv.FormatInt(*s.DeltaManifestListSize, 10),
			`"deltaManifestListSize" : `+strconv.Itoa(len(list)), 1)
	})
	return key
}

func (c *copied) editSnapshot(id int64, change func(text string) string) string {
	key := "snapshot/snapshot-" + strconv.FormatInt(id, 10)
	old := string(c.get(key))
	text := change(old)
	c.put(key, []byte(text))
	return key
}

// addFile adds a data file with rows to the newest snapshot's manifest.
func (c *copied) addFile(rows ...[]types.Datum) (manifestKey, dataKey string) {
	c.open()
	ch, objects := c.peer(c.table).files(rows)
	require.Len(c.t, objects, 1)
	require.NoError(c.t, c.table.Bucket().PutAll(testContext(c.t), objects))
	manifestKey = c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
		added := ch.Add[0]
		added.Kind = manifest.Add
		return append(e, added)
	})
	return manifestKey, objects[0].Key
}

func TestDamage_WhatAFaultyWriterMakesIsFound(t *testing.T) {
	x := newHealthy(t)
	snapshots := len(slices.DeleteFunc(slices.Clone(x.files), func(k string) bool { return kind(k) != "snapshot" }))
	newest := "snapshot/snapshot-" + strconv.Itoa(snapshots)
	inserted := func(e []manifest.Entry) int {
		return slices.IndexFunc(e, func(e manifest.Entry) bool { return e.Kind == manifest.Add })
	}
	for _, d := range []struct {
		name    string
		section string
		full    bool
		damage  func(c *copied) (file string)
		want    string
	}{
		{"wrong count in a manifest", "counts", false, func(c *copied) string {
			c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
				e[inserted(e)].File.Rows++
				return e
			})
			return newest
		}, "its files have"},
		{"wrong count in a manifest, and the file", "rows", true, func(c *copied) (file string) {
			c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
				i := inserted(e)
				e[i].File.Rows++
				file, _ = c.table.Paths().Data(&e[i])
				return e
			})
			return file
		}, "the manifest says"},
		{"wrong size in a manifest", "files", false, func(c *copied) (file string) {
			c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
				i := inserted(e)
				e[i].File.Size += 7
				file, _ = c.table.Paths().Data(&e[i])
				return e
			})
			return file
		}, "were written"},
		{"doubled entry", "files", false, func(c *copied) string {
			c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry { return append(e, e[inserted(e)]) })
			return "manifest/" + c.latest().DeltaManifestList
		}, "ADD behind ADD"},
		{"wrong NULL count", "rows", true, func(c *copied) (file string) {
			c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
				i := inserted(e)
				e[i].File.ValueStats.NullCounts = slices.Clone(e[i].File.ValueStats.NullCounts)
				e[i].File.ValueStats.NullCounts[1] += 3
				file, _ = c.table.Paths().Data(&e[i])
				return e
			})
			return file
		}, "statistics of column note"},
		{"bounds that leave a row out", "rows", true, func(c *copied) (file string) {
			c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
				i := inserted(e)
				f := &e[i].File
				f.ValueStats.Max = f.ValueStats.Min
				file, _ = c.table.Paths().Data(&e[i])
				return e
			})
			return file
		}, "bounds"},
		{"a file path that leaves the table", "files", false, func(c *copied) string {
			c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
				e[inserted(e)].File.Name = "../../../../etc/passwd"
				return e
			})
			return "manifest/" + c.latest().DeltaManifestList
		}, "bad file name"},
		{"a row count edited by hand", "snapshots", false, func(c *copied) string {
			return c.editSnapshot(2, func(s string) string {
				return regexp.MustCompile(`"totalRecordCount" : \d+`).ReplaceAllString(s, `"totalRecordCount" : 12345`)
			})
		}, "seal"},
		{"a row count edited by hand, counted", "counts", false, func(c *copied) string {
			return c.editSnapshot(2, func(s string) string {
				return regexp.MustCompile(`"totalRecordCount" : \d+`).ReplaceAllString(s, `"totalRecordCount" : 12345`)
			})
		}, "it says 12345"},
		{"a position record that is lost", "snapshots", false, func(c *copied) string {
			return c.editSnapshot(int64(snapshots), func(s string) string { return strings.Replace(s, "applier.p", "somebody.p", 1) })
		}, "holds no position record of its own"},
		{"all position records lost", "positions", false, func(c *copied) string {
			for id := range snapshots {
				c.editSnapshot(int64(id+1), func(s string) string { return strings.Replace(s, "applier.p", "somebody.p", 1) })
			}
			return "consumer/consumer-applier-p"
		}, "T-OFFSET-LOST"},
		{"a position record that goes back", "positions", false, func(c *copied) string {
			return c.editSnapshot(int64(snapshots), func(s string) string {
				return regexp.MustCompile(`\\"seq\\":\d+`).ReplaceAllString(s, `\"seq\":2`)
			})
		}, "is commit 2"},
		{"a range that leaves records out", "positions", false, func(c *copied) string {
			return c.editSnapshot(int64(snapshots), func(s string) string {
				return regexp.MustCompile(`(\\"range\\":{\\"shop.orders\\":{\\"\d\\":\[\d+)`).ReplaceAllString(s, `${1}9`)
			})
		}, "on, but the table stood at"},
		{"a base that is another snapshot", "snapshots", false, func(c *copied) string {
			return c.editSnapshot(3, func(s string) string {
				return regexp.MustCompile(`\\"base\\":\\"[0-9a-f]{4}`).ReplaceAllString(s, `\"base\":\"0000`)
			})
		}, "it was built on the snapshot 0000"},
		{"the hash of the applied ranges", "hash chain", false, func(c *copied) string {
			return c.editSnapshot(int64(snapshots), func(s string) string {
				return regexp.MustCompile(`\\"chain\\":\\"[0-9a-f]{4}`).ReplaceAllString(s, `\"chain\":\"0000`)
			})
		}, "they are not those that were applied"},
		{"a doubled key", "keys", false, func(c *copied) string {
			var row []types.Datum
			c.open()
			p := c.peer(c.table)
			p.live(p.latest(testContext(t)), func(_ paimon.FileKey, _ uint32, r []types.Datum) {
				if row == nil {
					row = []types.Datum{r[0], types.StringDatum("twice"), types.IntDatum(1)}
				}
			})
			_, file := c.addFile(row)
			return file
		}, "2 live rows"},
		{"a row that no record makes", "records", false, func(c *copied) string {
			_, file := c.addFile([]types.Datum{types.IntDatum(missingKey(c)), types.StringDatum("from nowhere"), types.IntDatum(1)})
			return file
		}, "the records make no row"},
		{"a value that no record makes", "records", false, otherValue, "the records make"},
		{"a file that only a tag needs", "files", false, func(c *copied) (file string) {
			ctx := testContext(t)
			s := c.latest()
			require.NoError(t, paimon.CreateTag(ctx, c.table.Bucket(), c.table.Paths(), "kept", &paimon.Tag{Snapshot: *s}))
			c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
				file, _ = c.table.Paths().Data(&e[inserted(e)])
				return e
			})
			require.NoError(t, os.Remove(c.path(file)))
			require.NoError(t, os.Remove(c.path("snapshot/snapshot-"+strconv.Itoa(snapshots))))
			require.NoError(t, os.Remove(c.path("snapshot/LATEST")))
			return file
		}, "the file is missing"},
		{"a vector of a file that is gone", "vectors", false, func(c *copied) string {
			return c.rewriteIndex(func(e []manifest.IndexEntry) { e[0].Vectors[0].DataFile = "data-gone.parquet" })
		}, "which is not live"},
		{"a wrong cardinality", "vectors", false, func(c *copied) (file string) {
			c.rewriteIndex(func(e []manifest.IndexEntry) {
				e[0].Vectors[0].Cardinality = new(*e[0].Vectors[0].Cardinality + 1)
				file = "index/" + e[0].Name
			})
			return file
		}, "the index manifest says"},
	} {
		t.Run(d.name, func(t *testing.T) {
			c := x.copy(t)
			file := d.damage(c)
			kafka := c.kafka()
			r, err := Verify(testContext(t), c.cfg, "p", &kafka, "", nil, d.full, discard())
			require.NoError(t, err)
			var text bytes.Buffer
			r.Print(&text)
			require.Equal(t, verify.Failed, r.Verdict, text.String())
			hit := false
			for _, s := range r.Sections {
				for _, f := range s.Findings {
					hit = hit || s.Name == d.section && f.File == file && strings.Contains(f.What, d.want)
				}
			}
			require.True(t, hit, "want %q of %s in section %s:\n%s", d.want, file, d.section, text.String())
		})
	}
}

// missingKey is a key of ours that has no row.
func missingKey(c *copied) int64 {
	c.open()
	p := c.peer(c.table)
	has := map[int64]bool{}
	p.live(p.latest(testContext(c.t)), func(_ paimon.FileKey, _ uint32, r []types.Datum) { has[r[0].I] = true })
	for id := range int64(30) {
		if !has[id] {
			return id
		}
	}
	require.FailNow(c.t, "every key has a row")
	return 0
}

// otherValue replaces the newest data file by one with another value in a row, and
// makes everything else agree with it.
func otherValue(c *copied) (file string) {
	c.open()
	p := c.peer(c.table)
	st := p.latest(testContext(c.t))
	var rows [][]types.Datum
	var name string
	c.rewriteDelta(func(e []manifest.Entry) []manifest.Entry {
		i := slices.IndexFunc(e, func(e manifest.Entry) bool { return e.Kind == manifest.Add })
		name = e[i].File.Name
		p.live(st, func(f paimon.FileKey, _ uint32, r []types.Datum) {
			if f.Name == name {
				rows = append(rows, []types.Datum{r[0], types.BytesDatum(bytes.Clone(r[1].B)), r[2]})
				rows[len(rows)-1][1].Null = r[1].Null
			}
		})
		rows[0][1] = types.StringDatum("another")
		ch, objects := p.files(rows)
		f := ch.Add[0].File
		f.Name = name
		e[i].File = f
		file, _ = c.table.Paths().Data(&e[i])
		c.put(file, objects[0].Data)
		return e
	})
	return file
}

// rewriteIndex writes the newest index manifest again.
func (c *copied) rewriteIndex(change func(e []manifest.IndexEntry)) string {
	s := c.latest()
	entries, err := c.table.Index(testContext(c.t), s)
	require.NoError(c.t, err)
	require.NotEmpty(c.t, entries)
	change(entries)
	codec, err := manifest.NewCodec(manifest.Options{Compression: "zstd", Level: 1})
	require.NoError(c.t, err)
	data, err := codec.EncodeIndex(entries)
	require.NoError(c.t, err)
	key := "manifest/" + *s.IndexManifest
	c.put(key, data)
	return key
}

func TestDamage_AnIndexThatLiesIsFound(t *testing.T) {
	x := newHealthy(t)
	target, err := Audited(testContext(t), x.w.cfg, "p", nil, "left out")
	require.NoError(t, err)
	r, err := verify.Run(testContext(t), target, verify.Options{})
	require.NoError(t, err)
	live := r.Count("keys", "live rows")
	for _, c := range []struct {
		keys, snapshot int64
		want           verify.Status
	}{{live, r.Latest, verify.OK}, {live - 1, r.Latest, verify.Failed}, {live - 1, r.Latest - 1, verify.OK}} {
		target.Running = &verify.Running{Snapshot: c.snapshot, Keys: c.keys}
		r, err := verify.Run(testContext(t), target, verify.Options{})
		require.NoError(t, err)
		require.Equal(t, c.want, r.Verdict)
	}
}

func TestVerify_SaysWhatItCouldNotRead(t *testing.T) {
	x := newHealthy(t)
	c := x.copy(t)
	c.broker.Close()
	r, text := c.verified(false)
	require.Equal(t, verify.NotChecked, r.Verdict, text)
	require.Contains(t, text, "Kafka:")
	r, text = c.verified(true)
	require.Equal(t, verify.OK, r.Verdict, text)
	_, err := Audited(testContext(t), c.cfg, "q", nil, "")
	require.True(t, Unknown(err))
}

// The comparison with Kafka's records reads the table's rows. Bytes that are wrong there
// are damage and not something that Kafka could not be asked for.
func TestVerify_DamageThatTheComparisonOfRecordsMeetsIsDamage(t *testing.T) {
	x := newHealthy(t)
	met := 0
	for _, key := range x.files {
		if kind(key) != "data" {
			continue
		}
		c := x.copy(t)
		b := bytes.Clone(c.get(key))
		clear(b[20 : len(b)/2]) // pages; the footer stays
		c.put(key, b)
		kafka := c.kafka()
		r, err := Verify(testContext(t), c.cfg, "p", &kafka, "", nil, false, discard())
		require.NoError(t, err)
		var text bytes.Buffer
		r.Print(&text)
		require.NotContains(t, text.String(), "Kafka: data file")
		if strings.Contains(text.String(), "corrupt") {
			met++
			require.Equal(t, verify.Failed, r.Verdict, text.String())
		}
	}
	require.NotZero(t, met)
}
