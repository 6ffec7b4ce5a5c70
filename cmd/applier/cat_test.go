package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

func TestChooseColumns(t *testing.T) {
	open := func(options map[string]string) *paimon.Table {
		b := objstore.NewMem(objstore.MemOptions{})
		s, err := paimon.NewSchema([]types.Field{{Name: "id", Type: types.IntType()}, {Name: "v", Type: types.StringType()}}, nil, options, nil, 1)
		require.NoError(t, err)
		require.NoError(t, paimon.CreateTable(context.Background(), b, s))
		table, err := paimon.OpenTable(context.Background(), b, paimon.Read)
		require.NoError(t, err)
		return table
	}
	plain, tracked := open(nil), open(map[string]string{paimon.OptRowTracking: "true"})
	cols, fields, err := chooseColumns(plain, nil)
	require.NoError(t, err)
	require.Nil(t, cols, "all of the table's own")
	require.Len(t, fields, 2)
	cols, fields, err = chooseColumns(tracked, []string{"_SEQUENCE_NUMBER", "v", "_ROW_ID"})
	require.NoError(t, err)
	require.Equal(t, []int{paimon.SequenceColumn, 1, paimon.RowIDColumn}, cols)
	require.Equal(t, "_SEQUENCE_NUMBER v _ROW_ID", fields[0].Name+" "+fields[1].Name+" "+fields[2].Name)
	_, _, err = chooseColumns(plain, []string{"_ROW_ID"})
	require.ErrorContains(t, err, "no column _ROW_ID: the table has no row tracking")
	_, _, err = chooseColumns(tracked, []string{"V"})
	require.ErrorContains(t, err, `no column "V"`)
}
