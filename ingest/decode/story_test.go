package decode

import (
	"fmt"
	"strings"
	"testing"

	"applier/ingest/change"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestDecoder_Stories runs testdata/story: what decoders make of records, told
// record by record. Commands:
//
//	new format=… [key=(a,b)] [order-by=(a,b)] [append] [ignore-deletes] [ignore-record-key] [key-column=…] [keep-raw] [unscaled] [no-placeholder] [meta=(column:source,…)]
//	    columns, separated by semicolons
//	decode [topic=…] [part=…] [offset=…]
//	    the record key, the value, then headers as name: value; "null" is no
//	    bytes at all, "empty" zero bytes
//	unknown
func TestDecoder_Stories(t *testing.T) {
	datadriven.Walk(t, "testdata/story", func(t *testing.T, path string) {
		var (
			d      Decoder
			o      Options
			out    *change.Batch
			offset int64
		)
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			switch c.Cmd {
			case "new":
				var format string
				format, o = storyOptions(t, c)
				var err error
				if d, err = New(format, o); err != nil {
					return err.Error() + "\n"
				}
				out, offset = newBatch(o), 0
				return "ok\n"
			case "restart":
				d.Restart()
				return "ok\n"
			case "decode":
				rec := storyRecord(t, c, &offset)
				out.Reset()
				res, err := d.Decode(rec, out)
				if err != nil {
					require.Zero(t, out.Len())
					require.Zero(t, out.Bytes)
					return "error " + err.Error() + "\n"
				}
				require.Equal(t, out.Len(), res.Rows)
				s := dump(out, o.Fields)
				if res.Skip != SkipNone {
					s += "skip " + string(res.Skip) + "\n"
				}
				if res.Note != "" {
					s += "note: " + res.Note + "\n"
				}
				return s
			case "unknown":
				return strings.Join(d.UnknownColumns(), " ") + "\n"
			}
			c.Fatalf(t, "unknown command %s", c.Cmd)
			return ""
		})
	})
}

func storyOptions(t *testing.T, c *datadriven.TestData) (string, Options) {
	var format string
	var key []string
	o := Options{}
	for _, a := range c.CmdArgs {
		switch a.Key {
		case "format":
			format = a.Vals[0]
		case "key":
			key = a.Vals
		}
	}
	o = options(t, strings.ReplaceAll(c.Input, "\n", " "), key...)
	for _, a := range c.CmdArgs {
		switch a.Key {
		case "format", "key":
		case "append":
			o.Append = true
		case "ignore-deletes":
			o.IgnoreDeletes = true
		case "ignore-record-key":
			o.IgnoreRecordKey = true
		case "key-column":
			o.KeyColumn = a.Vals[0]
		case "keep-raw":
			o.KeepRaw = true
		case "keep-every":
			o.KeepEvery = true
		case "before-images":
			o.BeforeImages = true
		case "unscaled":
			o.UnscaledDecimals = true
		case "order-by":
			for _, name := range a.Vals {
				o.OrderBy = append(o.OrderBy, column(t, o.Fields, name))
			}
		case "no-placeholder":
			o.Unavailable = ""
		case "meta":
			for _, m := range a.Vals {
				col, source, _ := strings.Cut(m, ":")
				o.Columns = append(o.Columns, MetaColumn{column(t, o.Fields, col), source})
			}
		default:
			c.Fatalf(t, "unknown argument %s", a.Key)
		}
	}
	return format, o
}

func storyRecord(t *testing.T, c *datadriven.TestData, offset *int64) *Record {
	lines := strings.Split(c.Input, "\n")
	require.GreaterOrEqual(t, len(lines), 2, "key and value")
	rec := record(lines[0], strings.TrimPrefix(lines[1], "empty"))
	*offset++
	rec.Topic, rec.Part, rec.Partition, rec.Timestamp = "shop.public.t", 0, 0, 1000
	for _, a := range c.CmdArgs {
		switch a.Key {
		case "topic":
			rec.Topic = a.Vals[0]
		case "part":
			_, err := fmt.Sscan(a.Vals[0], &rec.Part)
			require.NoError(t, err)
		case "offset":
			_, err := fmt.Sscan(a.Vals[0], offset)
			require.NoError(t, err)
		default:
			c.Fatalf(t, "unknown argument %s", a.Key)
		}
	}
	rec.Offset = *offset
	for _, h := range lines[2:] {
		name, value, _ := strings.Cut(h, ": ")
		rec.Headers = append(rec.Headers, change.Header{Key: name, Value: []byte(value)})
	}
	return rec
}
