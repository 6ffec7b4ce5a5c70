package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// Names of databases and tables are letters, digits and underscores, wherever they
// come from, and nothing is made outside of the warehouse.
func TestThreat_TableNames(t *testing.T) {
	ctx, parent := context.Background(), t.TempDir()
	root := filepath.Join(parent, "warehouse")
	require.NoError(t, os.Mkdir(root, 0o755))
	c, err := catalog.NewFileSystem(root, objstore.LocalOptions{})
	require.NoError(t, err)
	for _, bad := range []string{
		"..", ".", "", "/", "../../etc", "orders/../../etc", "a/b", `a\b`, "a b", "a\x00", "a\n", "%2e%2e", "ä", "a.b", "-", "*", "~", "$x",
		strings.Repeat("x", 129), "a;drop", "a'", "`a`", "\u202ea",
	} {
		_, err := catalog.ParseName(bad + ".t")
		require.ErrorIs(t, err, catalog.ErrBadName, "%q", bad)
		_, err = catalog.ParseName("d." + bad)
		require.ErrorIs(t, err, catalog.ErrBadName, "%q", bad)
		for _, n := range []catalog.Name{{Database: bad, Table: "t"}, {Database: "d", Table: bad}} {
			_, err = c.Create(ctx, n, schema(t))
			require.ErrorIs(t, err, catalog.ErrBadName, "%q", n)
			_, err = c.Open(ctx, n, paimon.Write)
			require.ErrorIs(t, err, catalog.ErrBadName, "%q", n)
		}
		_, err = c.Tables(ctx, bad)
		require.ErrorIs(t, err, catalog.ErrBadName, "%q", bad)
	}
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	entries, err = os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, entries)
}
