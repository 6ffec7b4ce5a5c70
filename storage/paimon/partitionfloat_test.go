package paimon

import (
	"bufio"
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// testdata/java/floats17.txt is what Java 17 printed of values, by their bits.
func TestOldJavaFloat_IsJava17s(t *testing.T) {
	n, differ := 0, 0
	for s := bufio.NewScanner(bytes.NewReader(javaFile(t, "floats17.txt"))); s.Scan(); n++ {
		p := strings.Split(s.Text(), "\t")
		require.Len(t, p, 3)
		bits, err := strconv.ParseUint(p[1], 16, 64)
		require.NoError(t, err)
		f, typ, size := math.Float64frombits(bits), types.DoubleType(), 64
		if p[0] == "float" {
			f, typ, size = float64(math.Float32frombits(uint32(bits))), types.FloatType(), 32
		}
		require.Equal(t, p[2], oldJavaFloat(f, size), "%s %s", p[0], p[1])
		if err := sameFolder(typ, types.FloatDatum(f)); javaFloat(f, size) == p[2] {
			require.NoError(t, err, p[2])
		} else {
			require.ErrorIs(t, err, ErrPartitionValue, p[2])
			require.NotContains(t, err.Error(), p[2], "errors hold no values")
			differ++
		}
	}
	require.Equal(t, 63, n)
	require.Greater(t, differ, 8)
}

// What the Javadoc of Double.toString says since Java 19: the nearest of the shortest
// decimals, which have two digits at least.
func TestJavaFloat_IsTheShortestOfTwoDigitsOrMore(t *testing.T) {
	for want, f := range map[string]float64{
		"4.9E-324": math.SmallestNonzeroFloat64, "9.9E-323": 1e-322, "0.002": 2e-3, "2.0E23": 2e23, "1.0E23": 1e23, "8.41E21": 8.41e21,
		"2.98E25": 2.98e25, "1.0E7": 1e7, "9999999.0": 9999999, "0.001": 0.001, "9.0E-4": 0.0009,
	} {
		require.Equal(t, want, javaFloat(f, 64))
	}
	require.Equal(t, "1.4E-45", javaFloat(math.SmallestNonzeroFloat32, 32))
	require.Equal(t, "1.1754944E-38", javaFloat(float64(math.Float32frombits(0x00800000)), 32))
}

// A value whose folder depends on the Java that reads is an error of its row, and not
// written.
func TestDataFileWriter_RefusesFoldersThatDependOnJava(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.DoubleType())}, []string{"p"})
	check := f.tab.PartitionCondition(0)
	good, bad := types.FloatDatum(1e20), types.FloatDatum(2.9799999999999996e25)
	require.NoError(t, check(good))
	require.NoError(t, check(types.Null))
	require.ErrorIs(t, check(bad), ErrPartitionValue)
	files := f.insert([]types.Datum{types.IntDatum(1), good})
	key, err := f.tab.Paths().Data(&files[0])
	require.NoError(t, err)
	require.Contains(t, key, "p=1.0E20/")

	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(t, err)
	b := f.batch([]types.Datum{types.IntDatum(1), bad})
	p, err := f.tab.PartitionOf(b, 0)
	require.NoError(t, err)
	_, err = w.Write(p, b, []uint32{0})
	require.ErrorIs(t, err, ErrPartitionValue)
}

// A table whose folders are named in a time zone is written once a file shows the zone.
func TestOpenTable_WantsProofOfTheTimeZone(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.TimestampLTZType(3))}, []string{"p"})
	f.insert([]types.Datum{types.IntDatum(1), types.IntDatum(1_767_322_800_000_000)}) // 2026-01-02 03:00
	f.insert([]types.Datum{types.IntDatum(2), types.Null})
	keys := func() (out []string) {
		f.bucket.Walk(func(key string, _ []byte) {
			if strings.HasPrefix(key, "p=") {
				out = append(out, key)
			}
		})
		return out
	}
	require.Contains(t, strings.Join(keys(), " "), "p=2026-01-02T03%3A00/")

	options := func(s *Schema) { s.Options = map[string]string{OptBucket: "-1", OptPartitionLegacyName: "false"} }
	s := *f.tab.Schema()
	options(&s)
	require.ErrorContains(t, Refuse(&s, Create), "time zone of each writer")
	require.NoError(t, Refuse(&s, Write))
	data, err := s.Encode()
	require.NoError(t, err)
	require.NoError(t, f.bucket.Replace(bg, Paths{}.Schema(0), data))

	_, err = OpenTable(bg, f.bucket, Write) // the folder has another name, as in another zone
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "another time zone than UTC")
	require.ErrorContains(t, err, string(CodePartitionType))
	_, err = OpenTable(bg, f.bucket, Read)
	require.NoError(t, err)

	for _, key := range keys() {
		data, err := f.bucket.Get(bg, key)
		require.NoError(t, err)
		require.NoError(t, f.bucket.Replace(bg, strings.Replace(key, "p=2026-01-02T03%3A00/", "p=2026-01-02 03%3A00%3A00.000/", 1), data))
	}
	_, err = OpenTable(bg, f.bucket, Write)
	require.NoError(t, err)

	// A table that was emptied has the proof as long as the files are there.
	f.reopen()
	files, err := f.tab.Files(bg, f.st, nil)
	require.NoError(t, err)
	f.commit(Changes{Delete: files}, OperationDelete)
	_, err = OpenTable(bg, f.bucket, Write)
	require.NoError(t, err)
	for _, key := range keys() {
		require.NoError(t, f.bucket.Delete(bg, key))
	}
	_, err = OpenTable(bg, f.bucket, Write)
	require.ErrorContains(t, err, "no file shows that it is UTC")
}

func TestOpenTable_HasNoProofOfTheTimeZoneInAnEmptyTable(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.TimestampLTZType(3))}, []string{"p"})
	f.insert([]types.Datum{types.IntDatum(2), types.Null})
	s := *f.tab.Schema()
	s.Options = map[string]string{OptBucket: "-1", OptPartitionLegacyName: "false"}
	data, err := s.Encode()
	require.NoError(t, err)
	require.NoError(t, f.bucket.Replace(bg, Paths{}.Schema(0), data))
	_, err = OpenTable(bg, f.bucket, Write)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "no file shows that it is UTC")
}
