package decode

import "strings"

// source is what a value means before it meets its column: the semantic type of
// its schema, or, without a schema, the rules of the format.
type source uint8

const (
	srcDebezium source = iota // no schema, Debezium's default modes
	srcPlain                  // no schema, plain JSON
	srcBoolean
	srcInteger
	srcFloating
	srcString
	srcBytes
	srcNested
	srcDate           // days since 1970-01-01
	srcIsoDate        // text, with a decorative Z
	srcMilliTime      // milliseconds of day
	srcMicroTime      // microseconds of day; a duration in MySQL
	srcNanoTime       // nanoseconds of day
	srcIsoTime        // text, with a decorative Z
	srcZonedTime      // text, normalised to UTC
	srcMilliTimestamp // milliseconds, wall clock read as UTC
	srcMicroTimestamp // microseconds, wall clock read as UTC
	srcNanoTimestamp  // nanoseconds, wall clock read as UTC
	srcIsoTimestamp   // text, wall clock with a decorative Z
	srcZonedTimestamp // text, an instant
	srcDecimal        // base64 of the unscaled integer, scale in the schema
	srcVariable       // {"scale":…,"value":base64}
	srcBits           // base64 of a bit string, least significant byte first
	srcUUID
)

// semantic says how a known type name is read and which literal it needs.
type semantic struct {
	source  source
	literal literal
}

// semantics are the type names of Debezium 3 and Kafka Connect (their sources:
// io.debezium.time, io.debezium.data, org.apache.kafka.connect.data).
// Names whose literal already says everything map to that literal's source.
var semantics = map[string]semantic{
	"org.apache.kafka.connect.data.Date":      {srcDate, litInteger},
	"org.apache.kafka.connect.data.Time":      {srcMilliTime, litInteger},
	"org.apache.kafka.connect.data.Timestamp": {srcMilliTimestamp, litInteger},
	"org.apache.kafka.connect.data.Decimal":   {srcDecimal, litBytes},

	"io.debezium.time.Date":           {srcDate, litInteger},
	"io.debezium.time.IsoDate":        {srcIsoDate, litString},
	"io.debezium.time.Time":           {srcMilliTime, litInteger},
	"io.debezium.time.MicroTime":      {srcMicroTime, litInteger},
	"io.debezium.time.NanoTime":       {srcNanoTime, litInteger},
	"io.debezium.time.IsoTime":        {srcIsoTime, litString},
	"io.debezium.time.ZonedTime":      {srcZonedTime, litString},
	"io.debezium.time.Timestamp":      {srcMilliTimestamp, litInteger},
	"io.debezium.time.MicroTimestamp": {srcMicroTimestamp, litInteger},
	"io.debezium.time.NanoTimestamp":  {srcNanoTimestamp, litInteger},
	"io.debezium.time.IsoTimestamp":   {srcIsoTimestamp, litString},
	"io.debezium.time.ZonedTimestamp": {srcZonedTimestamp, litString},
	"io.debezium.time.Year":           {srcInteger, litInteger},
	"io.debezium.time.MicroDuration":  {srcInteger, litInteger},
	"io.debezium.time.NanoDuration":   {srcInteger, litInteger},
	"io.debezium.time.Interval":       {srcString, litString},

	"io.debezium.data.VariableScaleDecimal": {srcVariable, litStruct},
	"io.debezium.data.Bits":                 {srcBits, litBytes},
	"io.debezium.data.Uuid":                 {srcUUID, litString},
	"io.debezium.data.Json":                 {srcString, litString},
	"io.debezium.data.Xml":                  {srcString, litString},
	"io.debezium.data.Ltree":                {srcString, litString},
	"io.debezium.data.Tsvector":             {srcString, litString},
	"io.debezium.data.Enum":                 {srcString, litString},
	"io.debezium.data.EnumSet":              {srcString, litString},
	"io.debezium.data.DoubleVector":         {srcNested, litArray},
	"io.debezium.data.FloatVector":          {srcNested, litArray},
	"io.debezium.data.SparseVector":         {srcNested, litStruct},
	"io.debezium.data.geometry.Point":       {srcNested, litStruct},
	"io.debezium.data.geometry.Geometry":    {srcNested, litStruct},
	"io.debezium.data.geometry.Geography":   {srcNested, litStruct},
	"io.debezium.data.geometry.Circle":      {srcNested, litStruct},
	"io.debezium.data.geometry.Line":        {srcNested, litStruct},
}

// structuredTimes is the prefix of the types of Debezium's temporal mode
// "structured"; they go into text columns only.
const structuredTimes = "io.debezium.time.Structured"

var literalSources = [...]source{
	litBoolean: srcBoolean, litInteger: srcInteger, litSingle: srcFloating, litFloating: srcFloating, litString: srcString,
	litBytes: srcBytes, litArray: srcNested, litMap: srcNested, litStruct: srcNested,
}

// source returns how the node's values are read, and false for a type name that
// is not known (new Debezium versions bring new ones): its literal decides then.
func (n *node) source() (source, bool) {
	plain := literalSources[n.literal]
	if n.name == "" {
		return plain, true
	}
	name := semanticName(n.name)
	known, ok := semantics[name]
	switch {
	case ok && known.literal == n.literal && (known.source != srcDecimal || n.scale != noScale):
		return known.source, true
	case !ok && n.literal == litStruct && !strings.HasPrefix(name, "io.debezium."):
		return plain, true // a struct's name is its schema's, often the table's
	case strings.HasPrefix(name, structuredTimes):
		return plain, true
	}
	return plain, false
}
