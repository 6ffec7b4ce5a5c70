package main

import (
	"strconv"

	"applier/itest/harness"
	"applier/storage/types"
)

// recordTime is when the first change "happened"; each one is a millisecond later.
const recordTime = 1_780_000_000_000

// appendKey writes a record's key as Debezium does without schemas.
func appendKey(b []byte, id int64) []byte {
	return append(strconv.AppendInt(append(b, `{"id":`...), id, 10), '}')
}

// appendValue writes a change event of about 264 bytes: a before image of null
// and a small source block, as the design's measurements have it.
func appendValue(b []byte, r harness.MergeRow, n int64, insert bool) []byte {
	b = strconv.AppendInt(append(b, `{"before":null,"after":{"id":`...), r.ID, 10)
	b = strconv.AppendInt(append(b, `,"v":`...), r.V, 10)
	b = append(append(b, `,"name":"`...), r.Name...)
	b = append(append(b, `","city":"`...), r.City...)
	b = types.AppendJSON(append(b, `","score":`...), types.DoubleType(), types.Datum{F: r.Score})
	b = types.AppendDecimal(append(b, `,"amount":"`...), types.Int128From(r.Cents), 2)
	b = strconv.AppendInt(append(b, `","ts":`...), r.Micros, 10)
	b = strconv.AppendInt(append(b, `,"d":`...), r.Day, 10)
	b = strconv.AppendInt(append(b, `},"source":{"ts_ms":`...), recordTime+n, 10)
	op := `},"op":"u"}`
	if insert {
		op = `},"op":"c"}`
	}
	return append(b, op...)
}
