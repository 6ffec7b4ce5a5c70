package config

import (
	"regexp"
	"strconv"
)

var plainKey = regexp.MustCompile(`^(\*|[A-Za-z0-9_-]+)$`)

// join appends a key to a path: a.b, or a["b.c"] for a key with other letters.
func join(path, name string) string {
	switch {
	case !plainKey.MatchString(name):
		return path + "[" + strconv.QuoteToASCII(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// item returns the path of an element of a list.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
