package config

import (
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// A named check: what the tags "check" and "keys" refer to. It returns what is
// wrong with a text and what to do, both empty if nothing is. pattern is a
// regular expression for the JSON Schema, empty if none says it well.
type check struct {
	pattern string
	find    func(s string) (msg, hint string)
}

var (
	namePattern  = `^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$`
	tablePattern = `^[A-Za-z0-9_]{1,128}\.[A-Za-z0-9_]{1,128}$`
	topicPattern = `^[A-Za-z0-9._-]{1,249}$`
	metaPattern  = `^(op|ts_ms|kafka\.(topic|partition|offset|timestamp)|(source|header)\..+)$`

	windowPattern = `^(([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9])?$`

	optionPattern = `^[A-Za-z0-9_.-]{1,255}$`

	nameRegexp   = regexp.MustCompile(namePattern)
	tableRegexp  = regexp.MustCompile(tablePattern)
	topicRegexp  = regexp.MustCompile(topicPattern)
	metaRegexp   = regexp.MustCompile(metaPattern)
	windowRegexp = regexp.MustCompile(windowPattern)
	optionRegexp = regexp.MustCompile(optionPattern)
)

// checks are the named checks.
var checks = map[string]check{
	"name":      {namePattern, checkName},
	"table":     {tablePattern, checkTable},
	"topic":     {topicPattern, checkTopic},
	"meta":      {metaPattern, checkMeta},
	"column":    {"", checkColumn},
	"option":    {optionPattern, checkOption},
	"broker":    {"", checkBroker},
	"listen":    {"", checkListen},
	"warehouse": {"", checkWarehouse},
	"endpoint":  {"", checkEndpoint},
	"version":   {"", checkVersion},
	"window":    {windowPattern, checkWindow},
}

func checkName(s string) (string, string) {
	if !nameRegexp.MatchString(s) {
		return "is not a valid name", "use 1 to 128 letters (a-z), digits, _ and -, not starting with -"
	}
	return "", ""
}

func checkTable(s string) (string, string) {
	if !tableRegexp.MatchString(s) {
		return "is not a table name", "write database.table, each of 1 to 128 letters (a-z), digits and _"
	}
	return "", ""
}

func checkTopic(s string) (string, string) {
	if !topicRegexp.MatchString(s) || s == "." || s == ".." {
		return "is not a Kafka topic name", "use 1 to 249 letters (a-z), digits, '.', _ and -"
	}
	return "", ""
}

func checkMeta(s string) (string, string) {
	if !metaRegexp.MatchString(s) {
		return "is not a source of a column", "use op, ts_ms, source.NAME, kafka.topic, kafka.partition, kafka.offset, kafka.timestamp or header.NAME"
	}
	return "", ""
}

// maxColumnName is longer than any engine accepts.
const maxColumnName = 255

func checkColumn(s string) (string, string) {
	if s == "" || len(s) > maxColumnName || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "is not a column name", "use 1 to 255 bytes without control characters"
	}
	return "", ""
}

func checkOption(s string) (string, string) {
	if !optionRegexp.MatchString(s) {
		return "is not the name of a table option", "use letters, digits, '.', _ and -"
	}
	return "", ""
}

func checkWindow(s string) (string, string) {
	from, to, _ := strings.Cut(s, "-")
	if !windowRegexp.MatchString(s) || s != "" && from == to {
		return "is not a span of the day", "write two different times, such as 22:00-06:00"
	}
	return "", ""
}

func checkBroker(s string) (string, string) {
	const hint = "write host:port, such as kafka-1:9092"
	if strings.Contains(s, "://") || strings.ContainsAny(s, "/, \t") {
		return "is not a broker address", hint
	}
	if !strings.Contains(s, ":") {
		return "", ""
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || !validPort(port, 1) {
		return "is not a broker address", hint
	}
	return "", ""
}

func checkListen(s string) (string, string) {
	host, port, err := net.SplitHostPort(s)
	if err != nil || !validPort(port, 0) || strings.ContainsAny(host, "/ \t") {
		return "is not an address to listen on", "write host:port or :port, such as 127.0.0.1:9465"
	}
	return "", ""
}

func validPort(s string, lowest int64) bool {
	n, err := parseInt(s)
	return err == nil && n >= lowest && n <= 65535
}

func checkWarehouse(s string) (string, string) {
	scheme, _, ok := strings.Cut(s, "://")
	switch {
	case !ok:
		return "", ""
	case scheme == "file":
		return "is not a path", "write the folder without file://"
	case scheme == "s3":
		if u, err := url.Parse(s); err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Port() != "" {
			return "is no folder of a bucket", "write s3://BUCKET/FOLDER, and keys and endpoint under warehouse.s3"
		}
		return "", ""
	case scheme == "s3a" || scheme == "s3n":
		return "is the spelling of Hadoop", "write s3://BUCKET/FOLDER"
	}
	return "is in a kind of store that is not supported yet by this version", "use a local folder or s3://BUCKET/FOLDER"
}

func checkEndpoint(s string) (string, string) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Path != "" && u.Path != "/" {
		return "is no URL of a store", "write https://HOST:PORT"
	}
	return "", ""
}

// formatVersion is the version of the file's format that this code reads.
const formatVersion = 1

func checkVersion(s string) (string, string) {
	if s != strconv.Itoa(formatVersion) {
		return "is a version of the format that this program does not read", "write version: 1"
	}
	return "", ""
}
