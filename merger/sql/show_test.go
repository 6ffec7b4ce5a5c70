package sql

import (
	"testing"

	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

// What SHOW CREATE TABLE prints makes the same table again.
func TestShowCreateTable_MakesTheSameTable(t *testing.T) {
	s, _ := newSession(t)
	for _, sql := range []string{
		"CREATE TABLE t (id BIGINT NOT NULL COMMENT 'it''s', s STRUCT<aB: INT NOT NULL COMMENT 'x', `b c`: ARRAY<STRUCT<X: STRING>>>, m MAP<STRING, DECIMAL(10, 2)> DEFAULT MAP('k', 1.5)) COMMENT 'c'",
		"CREATE TABLE t (`a b` CHAR(4) DEFAULT 'x', `select` VARCHAR(9), d DATE DEFAULT DATE'2024-01-02', at TIMESTAMP, n TIMESTAMP_NTZ, p STRING DEFAULT 'it''s', q BOOLEAN) " +
			"PARTITIONED BY (p, q) TBLPROPERTIES ('deletion-vectors.enabled'='true', 'row-tracking.enabled'='true')",
		"CREATE TABLE t (a TINYINT, b SMALLINT, c FLOAT, d DOUBLE, e BINARY, l ARRAY<STRING> DEFAULT ARRAY('a', 'b')) TBLPROPERTIES ('bucket'='2', 'bucket-key'='a')",
	} {
		must(t, s, "DROP TABLE IF EXISTS t", sql)
		schema := func() *paimon.Schema {
			_, tab, err := (&run{Session: s}).open(t.Context(), nameOf("t"), paimon.Read)
			require.NoError(t, err)
			c := *tab.Schema()
			c.TimeMillis = 0
			return &c
		}
		want, text := schema(), rows(t, s, "SHOW CREATE TABLE t")[0]
		must(t, s, "DROP TABLE t", text)
		require.Equal(t, want, schema(), text)
	}
}
