package objstore

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxName is the longest part of a key, in bytes: what local file systems allow.
const maxName = 255

// CheckKey returns an error that is ErrBadKey unless key may name an object.
// Every Bucket checks its keys with it, so no key leaves the bucket's root.
func CheckKey(key string) error {
	bad := func(why string) error {
		if len(key) > 2*maxName {
			return fmt.Errorf("%w: %q… %s", ErrBadKey, key[:maxName], why)
		}
		return fmt.Errorf("%w: %q %s", ErrBadKey, key, why)
	}
	if key == "" {
		return fmt.Errorf("%w: it is empty", ErrBadKey)
	}
	for part := range strings.SplitSeq(key, "/") {
		switch {
		case part == "":
			return bad("has an empty part")
		case part == "." || part == "..":
			return bad("has a relative part")
		case len(part) > maxName:
			return bad("has a part of more than 255 bytes")
		}
	}
	if strings.IndexByte(key, 0) >= 0 {
		return bad("has a NUL")
	}
	if !utf8.ValidString(key) {
		return bad("is not UTF-8")
	}
	return nil
}

// checkPrefix checks the folder of a listing and returns it without a slash at its end.
func checkPrefix(prefix string) (string, error) {
	if prefix == "" {
		return "", nil
	}
	dir := strings.TrimSuffix(prefix, "/")
	return dir, CheckKey(dir)
}

// folderOf returns the folder of a key, "" for the root.
func folderOf(key string) string {
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[:i]
	}
	return ""
}

// nameOf returns the last part of a key.
func nameOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// join puts a name into a folder.
func join(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// tempKey returns the hidden name under which an object is staged: in the same
// folder, ".<name>.<id>.tmp", as Paimon's Java writers do. It must begin with a
// dot: Java parses every name that begins with "snapshot-" as a number. Long
// names are cut so that the temporary one still fits.
func tempKey(key, id string) string {
	name := nameOf(key)
	if room := maxName - len(".."+".tmp") - len(id); len(name) > room {
		for name = name[:room]; !utf8.ValidString(name); {
			name = name[:len(name)-1]
		}
	}
	return join(folderOf(key), "."+name+"."+id+".tmp")
}

// IsTemp reports whether a key names an unfinished object: staged by a Bucket of
// this package or by Paimon's Java writers and left behind by a crash. Only a
// sweeper that knows its age may delete it.
func IsTemp(key string) bool {
	name := nameOf(key)
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}
