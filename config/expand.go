package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Lookup finds an environment variable; os.LookupEnv is one.
type Lookup func(name string) (value string, ok bool)

// maxReferenced bounds a file that ${file:...} names.
const maxReferenced = 64 << 10

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// finding is what is wrong with a value and what to do.
type finding struct{ msg, hint string }

// expander replaces references in texts.
type expander struct {
	env Lookup
	dir string // folder of the configuration: relative files start there
}

// expand replaces each ${env:NAME} and ${file:PATH} of s, and says whether there
// was one; $${ stands for ${. Findings name variables and files, never what
// they hold.
func (x *expander) expand(s string) (text string, referenced bool, bad []finding) {
	var out strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			out.WriteString(s)
			return out.String(), referenced, bad
		}
		if i > 0 && s[i-1] == '$' {
			out.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		out.WriteString(s[:i])
		ref, rest, ok := strings.Cut(s[i+2:], "}")
		if !ok {
			return "", referenced, append(bad, finding{"has ${ without }", "close it, or write $${ for the text ${"})
		}
		s, referenced = rest, true
		value, f := x.resolve(ref)
		if f != nil {
			bad = append(bad, *f)
		}
		out.WriteString(value)
	}
}

// resolve returns what the inside of ${...} stands for.
func (x *expander) resolve(ref string) (string, *finding) {
	scheme, name, _ := strings.Cut(ref, ":")
	switch {
	case scheme == "env" && variablePattern.MatchString(name):
		v, ok := x.env(name)
		if !ok {
			return "", &finding{"the environment variable " + name + " is not set", "set it before starting"}
		}
		return v, nil
	case scheme == "file" && name != "":
		return x.readFile(name)
	}
	return "", &finding{"has a reference that is neither ${env:NAME} nor ${file:PATH}", "write one of these, or $${ for the text ${"}
}

// readFile returns a file's content without its last line end.
func (x *expander) readFile(name string) (string, *finding) {
	f, err := os.Open(resolvePath(x.dir, name))
	if err != nil {
		return "", &finding{fmt.Sprintf("the file %s cannot be read: %s", name, reason(err)), "check the path and its permissions"}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxReferenced+1))
	if err != nil {
		return "", &finding{fmt.Sprintf("the file %s cannot be read: %s", name, reason(err)), "check the path and its permissions"}
	}
	if len(b) > maxReferenced {
		return "", &finding{fmt.Sprintf("the file %s is larger than %s", name, Size(maxReferenced)), "name a file that holds the value only"}
	}
	if s, ok := strings.CutSuffix(string(b), "\n"); ok {
		return strings.TrimSuffix(s, "\r"), nil
	}
	return string(b), nil
}

// reason is an error without the operation and path that os puts before it.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

// resolvePath makes a path absolute, starting at the folder of the configuration.
func resolvePath(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
