package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"applier/config"
)

func TestReference_IsThePageInDocs(t *testing.T) {
	golden(t, filepath.Join("..", "docs", "config.md"), config.Reference())
}

// The first example of the page must load, and every key must have a meaning.
func TestReference_ExampleLoadsAndEveryKeyHasAText(t *testing.T) {
	page := config.Reference()
	_, rest, ok := strings.Cut(page, "```yaml\n")
	require.True(t, ok)
	example, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	_, err := config.Parse("example.yml", []byte(example), testEnv)
	require.NoError(t, err)

	rows := 0
	for line := range strings.SplitSeq(page, "\n") {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) < 4 {
			continue
		}
		rows++
		text := strings.TrimSuffix(cells[3], " |")
		require.Greater(t, len(text), 5, line)
		require.Regexp(t, `\.$`, text, line)
	}
	require.Greater(t, rows, 40)
}

func TestSchema_IsStable(t *testing.T) {
	got, err := config.Schema()
	require.NoError(t, err)
	golden(t, filepath.Join("testdata", "schema.json"), string(got))
}

func TestSchema_AcceptsEveryGoodFile(t *testing.T) {
	for _, name := range files(t, "*.good.yml") {
		require.NoError(t, againstSchema(t, name), name)
	}
}

func TestSchema_RefusesFilesWithWrongForms(t *testing.T) {
	for _, name := range []string{
		"unknown_keys", "types", "missing", "ranges", "not_yet", "list", "no_pipelines", "nulls",
	} {
		require.Error(t, againstSchema(t, filepath.Join("testdata", name+".bad.yml")), name)
	}
}

func againstSchema(t *testing.T, name string) error {
	t.Helper()
	raw, err := config.Schema()
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(raw, &schema))
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	var doc any
	require.NoError(t, yaml.Unmarshal(data, &doc))
	return validate(schema, jsonForm(doc), "$")
}

// jsonForm gives maps text keys, as a JSON Schema sees a YAML file.
func jsonForm(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			x[k] = jsonForm(e)
		}
	case map[any]any:
		out := map[string]any{}
		for k, e := range x {
			b, _ := json.Marshal(k)
			out[strings.Trim(string(b), `"`)] = jsonForm(e)
		}
		return out
	case []any:
		for i, e := range x {
			x[i] = jsonForm(e)
		}
	case int:
		return float64(x)
	case interface{ Format(string) string }:
		return x.Format("2006-01-02T15:04:05Z07:00")
	}
	return v
}

type invalid string

func (e invalid) Error() string { return string(e) }

// validate is as much of JSON Schema as Schema uses; a keyword it does not know
// fails the test, so that nothing is skipped silently.
func validate(s map[string]any, v any, path string) error {
	for keyword, arg := range s {
		if err := keywordError(keyword, arg, s, v, path); err != nil {
			return err
		}
	}
	return nil
}

func keywordError(keyword string, arg any, s map[string]any, v any, path string) error {
	bad := func(ok bool) error {
		if ok {
			return nil
		}
		return invalid(path + ": " + keyword)
	}
	str, isText := v.(string)
	num, isNum := v.(float64)
	switch keyword {
	case "$schema", "title", "description", "default", "format":
		return nil
	case "type":
		return bad(hasType(arg, v))
	case "enum":
		for _, e := range arg.([]any) {
			if e == v {
				return nil
			}
		}
		return bad(false)
	case "pattern":
		return bad(!isText || regexp.MustCompile(arg.(string)).MatchString(str))
	case "minLength":
		return bad(!isText || float64(len(str)) >= arg.(float64))
	case "exclusiveMinimum":
		return bad(!isNum || num > arg.(float64))
	case "minimum":
		return bad(!isNum || num >= arg.(float64))
	case "maximum":
		return bad(!isNum || num <= arg.(float64))
	case "anyOf":
		for _, sub := range arg.([]any) {
			if validate(sub.(map[string]any), v, path) == nil {
				return nil
			}
		}
		return bad(false)
	}
	return containerError(keyword, arg, s, v, path, bad)
}

func containerError(keyword string, arg any, s map[string]any, v any, path string, bad func(bool) error) error {
	obj, _ := v.(map[string]any)
	list, _ := v.([]any)
	switch keyword {
	case "minItems":
		return bad(list == nil || float64(len(list)) >= arg.(float64))
	case "minProperties":
		return bad(obj == nil || float64(len(obj)) >= arg.(float64))
	case "uniqueItems":
		seen := map[any]bool{}
		for _, e := range list {
			if text, ok := e.(string); ok && seen[text] {
				return bad(false)
			} else if ok {
				seen[text] = true
			}
		}
		return nil
	case "items":
		for _, e := range list {
			if err := validate(arg.(map[string]any), e, path+"[]"); err != nil {
				return err
			}
		}
		return nil
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := obj[name.(string)]; obj != nil && !ok {
				return bad(false)
			}
		}
		return nil
	case "properties":
		for name, sub := range arg.(map[string]any) {
			if e, ok := obj[name]; ok {
				if err := validate(sub.(map[string]any), e, path+"."+name); err != nil {
					return err
				}
			}
		}
		return nil
	case "propertyNames":
		for name := range obj {
			if err := validate(arg.(map[string]any), name, path+"."+name); err != nil {
				return err
			}
		}
		return nil
	case "additionalProperties":
		return additional(arg, s, obj, path)
	}
	return invalid("unknown keyword " + keyword)
}

func additional(arg any, s, obj map[string]any, path string) error {
	props, _ := s["properties"].(map[string]any)
	for name, e := range obj {
		if _, ok := props[name]; ok {
			continue
		}
		sub, ok := arg.(map[string]any)
		if !ok {
			return invalid(path + "." + name + ": additionalProperties")
		}
		if err := validate(sub, e, path+"."+name); err != nil {
			return err
		}
	}
	return nil
}

func hasType(arg, v any) bool {
	if alternatives, ok := arg.([]any); ok {
		for _, a := range alternatives {
			if hasType(a, v) {
				return true
			}
		}
		return false
	}
	switch x := v.(type) {
	case string:
		return arg == "string"
	case bool:
		return arg == "boolean"
	case float64:
		return arg == "number" || (arg == "integer" && x == float64(int64(x)))
	case []any:
		return arg == "array"
	case map[string]any:
		return arg == "object"
	}
	return false
}
