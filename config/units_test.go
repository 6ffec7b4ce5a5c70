package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseSize_ReadsUnits(t *testing.T) {
	for text, want := range map[string]Size{
		"0B": 0, "1B": 1, "1KiB": 1024, "64MiB": 64 << 20, "3GiB": 3 << 30, "2TiB": 2 << 40,
		"1kB": 1000, "5MB": 5e6, "7GB": 7e9, "1TB": 1e12, "1_024KiB": 1 << 20,
		"9223372036854775807B": 1<<63 - 1, "8388607TiB": 8388607 << 40,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseSize_RefusesWhatIsNoSize(t *testing.T) {
	for text, want := range map[string]error{
		"": errSize, "MiB": errSize, "64": errSizeUnit, "64mb": errSize, "64 MiB": errSize, "-1MiB": errSize,
		"1.5GiB": errSize, "0x10B": errSize, "010B": errSize, "1__0B": errSize, "1iB": errSize, "1KB": errSize,
		"8388608TiB": errSizeBig, "9223372036854775808B": errSize, "99999999999999999999B": errSize, "1MiB\n": errSize,
	} {
		_, err := ParseSize(text)
		require.ErrorIs(t, err, want, "%q", text)
	}
}

func TestSize_TextReadsBackAsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]int64{1, 1000, 1024, 1 << 20, 1e6, 1 << 30, 1 << 40}).Draw(t, "unit")
		s := Size(rapid.Int64Range(0, (1<<63-1)/unit).Draw(t, "n") * unit)
		text, err := s.MarshalText()
		require.NoError(t, err)
		var got Size
		require.NoError(t, got.UnmarshalText(text), string(text))
		require.Equal(t, s, got)
	})
}

func TestParseInt_RefusesOctalsSignsAndBadGroups(t *testing.T) {
	for _, text := range []string{"", "+1", "01", "0o7", "0x1", "1_", "_1", "1__1", "1e3", " 1", "9223372036854775808"} {
		_, err := parseInt(text)
		require.Error(t, err, "%q", text)
	}
	for text, want := range map[string]int64{"0": 0, "-1": -1, "50_000": 50000, "1_0_0": 100} {
		got, err := parseInt(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
