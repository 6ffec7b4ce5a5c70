package catalog_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

func schema(t *testing.T) *paimon.Schema {
	s, err := paimon.NewSchema([]types.Field{{Name: "k", Type: types.IntType()}}, nil,
		map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}, nil, time.Now().UnixMilli())
	require.NoError(t, err)
	return s
}

func TestFileSystem_CreatesAndFindsTables(t *testing.T) {
	ctx, root := context.Background(), t.TempDir()
	c, err := catalog.NewFileSystem(root, objstore.LocalOptions{})
	require.NoError(t, err)
	n, err := catalog.ParseName("sales.orders")
	require.NoError(t, err)

	_, err = c.Open(ctx, n, paimon.Read)
	require.ErrorIs(t, err, catalog.ErrNoTable)
	_, err = c.Tables(ctx, "sales")
	require.ErrorIs(t, err, catalog.ErrNoDatabase)

	_, err = c.Create(ctx, n, schema(t))
	require.NoError(t, err)
	_, err = c.Create(ctx, n, schema(t))
	require.ErrorIs(t, err, catalog.ErrTableExists)

	tab, err := c.Open(ctx, n, paimon.Write)
	require.NoError(t, err)
	require.Equal(t, "k", tab.Schema().Fields[0].Name)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sales.db", "no_schema"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "other"), 0o755))
	dbs, err := c.Databases(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"sales"}, dbs)
	tables, err := c.Tables(ctx, "sales")
	require.NoError(t, err)
	require.Equal(t, []string{"orders"}, tables)
}

func TestFileSystem_NeverBringsADroppedTableBack(t *testing.T) {
	ctx, root := context.Background(), t.TempDir()
	c, err := catalog.NewFileSystem(root, objstore.LocalOptions{})
	require.NoError(t, err)
	n := catalog.Name{Database: "d", Table: "t"}
	tab, err := c.Create(ctx, n, schema(t))
	require.NoError(t, err)
	dir := filepath.Join(root, "d.db", "t")
	require.NoError(t, os.RemoveAll(dir))
	err = tab.Bucket().PutAll(ctx, []objstore.Object{{Key: "bucket-0/x.parquet", Data: []byte("x")}})
	require.Error(t, err)
	require.NoDirExists(t, dir)
}

func TestParseName_RefusesWhatCouldLeaveTheFolder(t *testing.T) {
	for _, s := range []string{"", "a", "a.", ".b", "a.b.c", "../x.y", "a/b.c", "a.b/../c", "a.b\x00", "a b.c", "ä.b"} {
		_, err := catalog.ParseName(s)
		require.ErrorIs(t, err, catalog.ErrBadName, "%q", s)
	}
}

func TestNewFileSystem_NeedsTheWarehouse(t *testing.T) {
	_, err := catalog.NewFileSystem(filepath.Join(t.TempDir(), "missing"), objstore.LocalOptions{})
	require.ErrorIs(t, err, objstore.ErrNotExist)
}
