package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// walk calls f for every key of the contract, the short-only ones too.
func walk(b *block, path string, f func(path string, k *key)) {
	keys := b.keys
	if b.shortOnly {
		keys = append([]*key{b.short}, keys...)
	}
	for _, k := range keys {
		sub := join(path, k.name)
		f(sub, k)
		if k.kind == kindBlocks {
			sub = join(sub, "*")
		}
		if k.block != nil {
			walk(k.block, sub, f)
		}
	}
}

func TestContract_EveryKeyIsDescribedAndItsTagsAreSound(t *testing.T) {
	n := 0
	walk(contract(), "", func(path string, k *key) {
		n++
		require.NotEmpty(t, k.doc(), path)
		for _, name := range []string{k.check, k.keys} {
			if name != "" {
				require.Contains(t, checks, name, path)
			}
		}
		if k.def != "" {
			_, f := convert(k, k.def)
			require.Nil(t, f, "default of %s", path)
		}
		for _, limit := range []string{k.min, k.max} {
			if limit != "" {
				_, f := convert(&key{kind: k.kind}, limit)
				require.Nil(t, f, "range of %s", path)
			}
		}
		if k.kind == kindStrings || k.kind == kindBlocks {
			require.NotEmpty(t, k.keys, "%s needs a check of its names", path)
		}
		for _, word := range append(append([]string{}, k.later...), k.never...) {
			require.NotContains(t, k.enum, word, path)
		}
		require.False(t, k.required && k.def != "", path)
	})
	require.Greater(t, n, 50)
}

// A key that a later version accepts must leave the list of refusals.
func TestContract_RefusedKeysAreNotKeys(t *testing.T) {
	known := map[string]bool{}
	walk(contract(), "", func(path string, _ *key) { known[path] = true })
	for path, r := range refusedKeys() {
		require.False(t, known[path], path)
		require.NotEmpty(t, r.msg)
		require.NotEmpty(t, r.hint)
		if i := strings.LastIndexByte(path, '.'); i > 0 && !strings.HasSuffix(path[:i], "*") {
			require.True(t, known[path[:i]], "the block of %s does not exist", path)
		}
	}
}

func TestNearest_FindsTyposOnly(t *testing.T) {
	names := []string{"brokers", "client_id", "tls", "sasl", "ca", "interval"}
	for word, want := range map[string]string{
		"broker": "brokers", "borkers": "brokers", "tsl": "tls", "client-id": "client_id", "clientid": "client_id",
		"cas": "ca", "intervall": "interval", "xyz": "", "": "", "password": "", strings.Repeat("brokers", 20): "",
	} {
		require.Equal(t, want, nearest(word, names), word)
	}
}

func TestDistance_IsSymmetricAndCountsSwapsOnce(t *testing.T) {
	require.Equal(t, 1, distance("ab", "ba"))
	require.Equal(t, 3, distance("", "abc"))
	require.Equal(t, 0, distance("abc", "abc"))
	require.Equal(t, distance("kitten", "sitting"), distance("sitting", "kitten"))
	require.Equal(t, 3, distance("kitten", "sitting"))
}

func TestJoin_QuotesNamesThatAreNotPlain(t *testing.T) {
	require.Equal(t, "a", join("", "a"))
	require.Equal(t, "a.b-c", join("a", "b-c"))
	require.Equal(t, `a["b.c"]`, join("a", "b.c"))
	require.Equal(t, `a["\x00\u00fc"]`, join("a", "\x00ü"))
}
