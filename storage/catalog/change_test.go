package catalog

import (
	"context"
	"testing"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

func TestFileSystem_DatabasesAndTablesComeAndGo(t *testing.T) {
	ctx := context.Background()
	c, err := NewFileSystem(t.TempDir(), objstore.LocalOptions{})
	require.NoError(t, err)
	require.NoError(t, c.CreateDatabase(ctx, "a"))
	require.ErrorIs(t, c.CreateDatabase(ctx, "a"), ErrDatabaseExists)
	require.ErrorIs(t, c.CreateDatabase(ctx, "../a"), ErrBadName)
	s, err := paimon.NewSchema([]types.Field{{Name: "x", Type: types.IntType()}}, nil, nil, nil, 1)
	require.NoError(t, err)
	_, err = c.Create(ctx, Name{"a", "t"}, s)
	require.NoError(t, err)

	require.ErrorIs(t, c.DropDatabase(ctx, "a", false), ErrNotEmpty)
	require.ErrorIs(t, c.Rename(ctx, Name{"a", "t"}, Name{"b", "t"}), ErrNoDatabase)
	require.NoError(t, c.CreateDatabase(ctx, "b"))
	require.NoError(t, c.Rename(ctx, Name{"a", "t"}, Name{"b", "u"}))
	require.ErrorIs(t, c.Rename(ctx, Name{"a", "t"}, Name{"b", "v"}), ErrNoTable)
	_, err = c.Open(ctx, Name{"b", "u"}, paimon.Read)
	require.NoError(t, err)
	_, err = c.Create(ctx, Name{"b", "v"}, s)
	require.NoError(t, err)
	require.ErrorIs(t, c.Rename(ctx, Name{"b", "v"}, Name{"b", "u"}), ErrTableExists)

	require.NoError(t, c.Drop(ctx, Name{"b", "u"}))
	require.ErrorIs(t, c.Drop(ctx, Name{"b", "u"}), ErrNoTable)
	tables, err := c.Tables(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, []string{"v"}, tables)
	require.NoError(t, c.DropDatabase(ctx, "b", true))
	require.ErrorIs(t, c.DropDatabase(ctx, "b", true), ErrNoDatabase)
	databases, err := c.Databases(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, databases)
}
