package paimon

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// defaultText brings a default's value into the notation of defaults.txt.
func defaultText(t types.Type, d *types.Datum) string {
	if d == nil {
		return "NULL"
	}
	switch t.Kind {
	case types.Boolean:
		return strconv.FormatBool(d.I != 0)
	case types.Float:
		if math.IsNaN(d.F) {
			return "7fc00000"
		}
		return fmt.Sprintf("%08x", math.Float32bits(float32(d.F)))
	case types.Double:
		if math.IsNaN(d.F) {
			return "7ff8000000000000"
		}
		return fmt.Sprintf("%016x", math.Float64bits(d.F))
	case types.Decimal:
		if t.Precision > 18 {
			return d.D.Big().String()
		}
	case types.Char, types.VarChar, types.Binary, types.VarBinary:
		return "x" + hex.EncodeToString(d.B)
	case types.Timestamp, types.TimestampLTZ:
		millis := types.FloorDiv(d.I, 1000)
		return fmt.Sprintf("%d.%d", millis, (d.I-millis*1000)*1000+int64(d.N))
	}
	return strconv.FormatInt(d.I, 10)
}

func tooFarOrTwice(text, java string) bool {
	ms, err := strconv.ParseInt(strings.Split(java, ".")[0], 10, 64)
	far := err == nil && (ms > math.MaxInt64/1000 || ms < math.MinInt64/1000) || strings.Contains(text, "922337203685477580")
	return far || strings.Contains(text, " ") && strings.Contains(text, "T")
}

// testdata/java/defaults.txt has what Paimon's own classes make of default texts.
// Where ours refuses what Java takes is listed here.
func TestDefaultValue_IsJavas(t *testing.T) {
	// What Java takes and we refuse.
	stricter := map[types.Kind]func(text, java string) bool{
		types.Decimal: func(text, _ string) bool { // digits of other scripts
			return strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
		},
		types.Time: func(_, java string) bool { // no time of day
			ms, err := strconv.ParseInt(java, 10, 64)
			return err == nil && (ms < 0 || ms >= millisPerDay)
		},
		// Beyond microseconds in 64 bits (of an epoch number Java makes something
		// else then), or a time twice.
		types.Timestamp:    tooFarOrTwice,
		types.TimestampLTZ: tooFarOrTwice,
	}
	lines, refused := 0, 0
	s := bufio.NewScanner(bytes.NewReader(javaFile(t, "defaults.txt")))
	for ; s.Scan(); lines++ {
		part := strings.Split(s.Text(), "\t")
		require.Len(t, part, 3)
		typ, err := types.ParseType(part[0])
		if err != nil {
			require.Contains(t, part[0], "MULTISET")
			continue
		}
		text, err := strconv.Unquote(part[1])
		require.NoError(t, err)
		d, err := DefaultValue(types.Field{Name: "c", Type: typ, Default: &text})
		if err != nil {
			require.ErrorIs(t, err, ErrDefault)
			if f := stricter[typ.Kind]; f == nil || !f(text, part[2]) {
				assert.Equal(t, "ERR", part[2], "%s: %v", s.Text(), err)
			} else {
				refused++
			}
			continue
		}
		assert.Equal(t, part[2], defaultText(typ, d), s.Text())
	}
	require.Greater(t, lines, 3000)
	require.Greater(t, refused, 10)
}
