package main

import (
	"regexp"
	"strings"
	"testing"

	"applier/merger"

	"github.com/stretchr/testify/require"
)

func TestHaltTexts_NameCommandsThatExist(t *testing.T) {
	command := regexp.MustCompile("`applier ([^`]+)`")
	found := 0
	for _, info := range merger.Codes() {
		for _, text := range []string{info.Means, info.Do} {
			for _, m := range command.FindAllStringSubmatch(text, -1) {
				found++
				args := strings.Fields(m[1])
				root := rootCommand()
				c, rest, err := root.Find(args)
				require.NoError(t, err, "%s: applier %s", info.Code, m[1])
				require.NotEqual(t, root, c, "%s: applier %s", info.Code, m[1])
				require.NotNil(t, c.RunE, "%s: applier %s is only a group", info.Code, m[1])
				require.NoError(t, c.ParseFlags(rest), "%s: applier %s", info.Code, m[1])
				if c.Args != nil {
					require.NoError(t, c.Args(c, c.Flags().Args()), "%s: applier %s", info.Code, m[1])
				}
			}
		}
	}
	require.Greater(t, found, 15)
}
