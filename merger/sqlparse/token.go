package sqlparse

import "strings"

// kind is the class of a token.
type kind uint8

const (
	tokEOF kind = iota
	tokIllegal
	tokIdent  // a bare word, keyword or not
	tokQuoted // `word`
	tokString // 'text', "text", r'text'
	tokInt    // digits
	tokNumber // any other numeric literal
	tokOp     // operator or punctuation
)

// token is a piece of the text.
type token struct {
	kind kind
	pos  Pos
	// text is the token as written.
	text string
	// kw is the word in upper case if the word is a keyword, the operator of a
	// tokOp, else "".
	kw string
	// err tells why a token is illegal.
	err *Error
}

// end returns the offset behind the token.
func (t token) end() int { return t.pos.Offset + len(t.text) }

// keywords are the words that the grammar gives a meaning somewhere. All of
// them are also legal names where the grammar leaves no doubt.
var keywords = wordSet(`ADD AFTER ALL ALTER ALWAYS ANALYZE AND ANTI ANY AS ASC AT BETWEEN BOTH BY CALL
	CASCADE CASE CAST CATALOG CHANGE CLUSTER CLUSTERED COLLATE COLUMN COLUMNS COMMENT COMPUTE CREATE CROSS
	CUBE CURRENT DATABASE DATABASES DATEADD DATEDIFF DATE_ADD DATE_DIFF DBPROPERTIES DEFAULT DELETE DESC
	DESCRIBE DISTINCT DISTRIBUTE DIV DROP ELSE END ESCAPE EVOLUTION EXCEPT EXISTS EXPLAIN EXTENDED EXTRACT
	FALSE FILTER FIRST FOLLOWING FOR FORMATTED FROM FULL FUNCTION FUNCTIONS GENERATED GLOBAL GROUP GROUPING
	HAVING IF IGNORE ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LAST LATERAL LEADING LEFT LIKE
	LIMIT LOCATION MATCHED MERGE MINUS NAME NAMESPACE NAMESPACES NATURAL NOT NULL NULLS OF OFFSET ON OPTIONS
	OR ORDER OUTER OVER OVERLAY OVERWRITE PARTITION PARTITIONED PARTITIONS PIVOT PLACING POSITION PURGE
	REGEXP RENAME REPLACE RESET RESPECT RESTRICT RIGHT RLIKE ROLLUP ROW ROWS SCHEMA SCHEMAS SELECT SEMI SET
	SETS SHOW SOME SORT SOURCE STATISTICS STORED SUBSTR SUBSTRING SYSTEM_TIME SYSTEM_VERSION TABLE TABLES
	TABLESAMPLE TARGET TBLPROPERTIES TEMP TEMPORARY THEN TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TO TRAILING
	TRIM TRUE TRUNCATE TRY_CAST TYPE UNION UNKNOWN UNPIVOT UNSET UPDATE USE USING VALUES VERSION VIEW VIEWS
	WHEN WHERE WINDOW WITH WITHIN`)

// noAlias are the words that cannot follow an expression or a table as a bare
// alias: they begin or belong to the next clause. Behind AS most of them may be
// names.
var noAlias = wordSet(`ANTI AS CLUSTER CROSS DISTRIBUTE EXCEPT FOR FROM FULL GROUP HAVING INNER INTERSECT
	INTO JOIN LATERAL LEFT LIMIT MINUS NATURAL OFFSET ON ORDER OUTER PIVOT RIGHT SELECT SEMI SET SORT TABLESAMPLE
	UNION UNPIVOT USING VALUES WHEN WHERE WINDOW`)

// strict are the words that are no names at all unless quoted, because a table
// could be followed by them (Spark's strict non-reserved words).
var strict = wordSet(`ANTI CROSS EXCEPT FULL INNER INTERSECT JOIN LATERAL LEFT NATURAL ON RIGHT SEMI UNION USING MINUS`)

// noOperand are words that cannot begin an expression unless quoted: reading
// them as a column would only move the error to a worse place.
var noOperand = wordSet(`AND AS ASC BETWEEN BY CROSS DESC DISTINCT ELSE END ESCAPE EXCEPT FROM FULL GROUP
	HAVING ILIKE IN INNER INTERSECT INTO IS JOIN LATERAL LIKE LIMIT MINUS NATURAL OF OFFSET ON OR ORDER OVER
	REGEXP RLIKE SELECT SEMI SET THEN TO UNION USING WHEN WHERE WITH`)

func wordSet(words string) map[string]string {
	m := map[string]string{}
	for _, w := range strings.Fields(words) {
		m[w] = w
	}
	return m
}

// keyword returns the upper-case form of a keyword and "" for other words,
// without allocating.
func keyword(word string) string {
	var b [16]byte
	if len(word) > len(b) {
		return ""
	}
	for i := range len(word) {
		c := word[i]
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		b[i] = c
	}
	return keywords[string(b[:len(word)])]
}
