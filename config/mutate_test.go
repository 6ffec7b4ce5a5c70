package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"applier/config"
)

// freeNames are the maps whose keys are the user's: no typo can be seen there.
var freeNames = []string{"pipelines", "add", "types", "options", "offset"}

// keyPlace is a key of a document: its map node, and its index in it.
type keyPlace struct {
	block *yaml.Node
	index int
	fixed bool // a key of the contract
}

// places lists every key of a document.
func places(n *yaml.Node, free bool) []keyPlace {
	var out []keyPlace
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		out = append(out, keyPlace{n, i, !free})
		out = append(out, places(n.Content[i+1], slices.Contains(freeNames, n.Content[i].Value))...)
	}
	return out
}

// eachPlace runs f for every key of every good file, each time on a fresh
// document; f changes it and returns what some problem must say.
func eachPlace(t *testing.T, f func(p keyPlace) (want string)) {
	t.Helper()
	tried := 0
	for _, name := range files(t, "*.good.yml") {
		if strings.Contains(name, "anchors") {
			continue // an alias would carry the change to a second place
		}
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		load := func() *yaml.Node {
			var doc yaml.Node
			require.NoError(t, yaml.Unmarshal(data, &doc))
			return &doc
		}
		for i := range places(load().Content[0], false) {
			doc := load()
			p := places(doc.Content[0], false)[i]
			key := p.block.Content[p.index]
			want := f(p)
			if want == "" {
				continue
			}
			tried++
			text, err := yaml.Marshal(doc)
			require.NoError(t, err)
			_, err = config.Parse(filepath.Join("testdata", "a.yml"), text, testEnv)
			var problems config.Problems
			require.True(t, errors.As(err, &problems), "%s in %s: %v", want, name, err)
			found := slices.ContainsFunc(problems, func(pr config.Problem) bool {
				line := strings.Split(string(text), "\n")[max(pr.Line-1, 0)]
				return strings.Contains(pr.String(), want) && strings.Contains(line, key.Value)
			})
			require.True(t, found, "no problem %q on the line of %s:\n%v\n%s", want, key.Value, err, text)
		}
	}
	require.Greater(t, tried, 20)
}

func TestParse_ATypoInAnyKeyNamesTheRightOne(t *testing.T) {
	eachPlace(t, func(p keyPlace) string {
		key := p.block.Content[p.index]
		if !p.fixed || len(key.Value) < 4 {
			return ""
		}
		right := key.Value
		key.Value = right[:1] + right[2:3] + right[1:2] + right[3:] // swap two letters
		if key.Value == right {
			return ""
		}
		return "unknown key; did you mean " + right + "?"
	})
}

func TestParse_AnyKeyWrittenTwiceIsReported(t *testing.T) {
	eachPlace(t, func(p keyPlace) string {
		p.block.Content = append(p.block.Content, p.block.Content[p.index], p.block.Content[p.index+1])
		return "is written twice"
	})
}

func TestParse_AnyValueLeftOutIsReported(t *testing.T) {
	eachPlace(t, func(p keyPlace) string {
		p.block.Content[p.index+1] = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
		return "has no value"
	})
}

func TestParse_AnyValueOfAnotherFormIsReported(t *testing.T) {
	eachPlace(t, func(p keyPlace) string {
		v := p.block.Content[p.index+1]
		if p.block.Content[p.index].Value == "order_by" {
			return "" // a list is its short form, and its element is to blame
		}
		nested := &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.SequenceNode, Content: []*yaml.Node{}}}}
		if v.Kind == yaml.SequenceNode {
			*v = yaml.Node{Kind: yaml.ScalarNode, Value: "text"}
			return ", but must be a list"
		}
		*v = *nested
		return "is a list, but must be "
	})
}

func TestParse_AnyValueWithAMissingVariableNamesIt(t *testing.T) {
	eachPlace(t, func(p keyPlace) string {
		v := p.block.Content[p.index+1]
		if v.Kind != yaml.ScalarNode {
			return ""
		}
		*v = yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: "${env:NOT_THERE}"}
		return "the environment variable NOT_THERE is not set"
	})
}
