package sqlparse

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is a statement that Spark was given, with the class of its error if
// it could not parse it.
type recorded struct {
	SQL   string `json:"sql"`
	Error string `json:"error"`
}

func corpus(t testing.TB) []recorded {
	f, err := os.Open("testdata/corpus.jsonl.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var list []recorded
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var r recorded
		require.NoError(t, json.Unmarshal(s.Bytes(), &r))
		list = append(list, r)
	}
	require.NoError(t, s.Err())
	return list
}

// refusedHere are statements that Spark has and this dialect refuses, by class.
var refusedHere = map[string]string{
	"ANALYZE TABLE c COMPUTE STATISTICS FOR ALL COLUMNS": ClassUnsupported,
}

// sparkClass maps our finer classes to the ones Spark reported.
var sparkClass = map[string]string{ClassInsertArity: "_LEGACY_ERROR_TEMP_0006"}

func TestParse_AcceptsAndRefusesWhatSparkDid(t *testing.T) {
	parsed, refused := 0, 0
	for _, r := range corpus(t) {
		s, err := Parse(r.SQL)
		want := r.Error
		if c, ok := refusedHere[r.SQL]; ok {
			want = c
		}
		if want == "" {
			require.NoError(t, err, r.SQL)
			require.NotNil(t, s)
			parsed++
			continue
		}
		var e *Error
		require.True(t, errors.As(err, &e), "%s: refused by Spark with %s", r.SQL, want)
		class := e.Class
		if c, ok := sparkClass[class]; ok {
			class = c
		}
		require.Equal(t, want, class, r.SQL)
		refused++
	}
	require.Greater(t, parsed, 2300)
	t.Logf("%d statements parsed, %d refused, as recorded", parsed, refused)
}

func TestFormat_RoundTripsEveryRecordedStatement(t *testing.T) {
	for _, r := range corpus(t) {
		s, err := Parse(r.SQL)
		if err != nil {
			continue
		}
		requireRoundTrip(t, s)
	}
}
