package config

import (
	"fmt"
	"log/slog"
)

// redacted is what a Secret shows of itself.
const redacted = "***"

// Secret is a text that must not leave the process: printing, logging and
// marshalling show "***". The zero value is "not set". Comparing two Secrets
// with == compares nothing useful; compare what Reveal returns.
type Secret struct {
	// A pointer, because fmt prints unexported fields of an enclosing struct
	// without asking their methods: it then shows an address, not the text.
	value *string
	again *func() (string, bool) // reads it where it came from, if not from the file itself
}

// NewSecret returns a Secret that holds s.
func NewSecret(s string) Secret { return Secret{value: &s} }

// Reveal returns the text, empty if not set. It is the only way to it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Reload returns the text as it is now where ${file:PATH} refers to; the text as
// it was read first where that cannot be read, or where it stands in the file.
func (s Secret) Reload() string {
	if s.again != nil {
		if text, ok := (*s.again)(); ok {
			return text
		}
	}
	return s.Reveal()
}

// IsSet reports whether there is a text that is not empty.
func (s Secret) IsSet() bool { return s.Reveal() != "" }

// String returns "***".
func (s Secret) String() string { return redacted }

// GoString returns "***".
func (s Secret) GoString() string { return redacted }

// Format writes "***" for every verb, also those that do not fit a text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText returns "***".
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON returns "***" in quotes.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalYAML returns "***".
func (s Secret) MarshalYAML() (any, error) { return redacted, nil }

// LogValue implements slog.LogValuer with "***".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// UnmarshalText takes the text. It never fails.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
