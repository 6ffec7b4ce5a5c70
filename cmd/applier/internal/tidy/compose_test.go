package tidy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"applier/config"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// composeFile is the part of docker-compose.yml that depends on this tree.
type composeFile struct {
	Services map[string]struct {
		Image string
		Build *struct{ Context, Dockerfile string }
		// Command is what follows the image's entry point, the program.
		Command   []string
		Volumes   []string
		DependsOn map[string]any `yaml:"depends_on"`
	}
	Volumes map[string]any
}

func TestCompose_StartsThisTreeWithAValidConfiguration(t *testing.T) {
	dir := root(t)
	text, err := os.ReadFile(filepath.Join(dir, "docker-compose.yml"))
	require.NoError(t, err)
	var c composeFile
	require.NoError(t, yaml.Unmarshal(text, &c))
	require.ElementsMatch(t, []string{"kafka", "generator", "applier"}, slices.Collect(maps.Keys(c.Services)))
	mounts := map[string]string{} // files of this tree, by their path in the applier's container
	for name, s := range c.Services {
		for other := range s.DependsOn {
			require.Contains(t, c.Services, other, "%s depends on a service that is not there", name)
		}
		for _, v := range s.Volumes {
			from, to, ok := strings.Cut(v, ":")
			require.True(t, ok, v)
			if !strings.HasPrefix(from, "./") {
				require.Contains(t, c.Volumes, from, "%s mounts a volume that is not declared", name)
			} else if name == "applier" {
				mounts[strings.TrimSuffix(to, ":ro")] = from
			}
		}
		if s.Build != nil {
			require.FileExists(t, filepath.Join(dir, s.Build.Context, s.Build.Dockerfile))
		}
	}
	require.NotNil(t, c.Services["applier"].Build)
	require.Equal(t, c.Services["applier"].Image, c.Services["generator"].Image)
	require.Equal(t, "generate", c.Services["generator"].Command[0])

	run := c.Services["applier"].Command
	require.Equal(t, []string{"run", "-c"}, run[:2])
	require.Contains(t, mounts, run[2], "the configuration of the command is not mounted")
	path := filepath.Join(dir, mounts[run[2]])
	yml, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg, err := config.Parse(path, yml, func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	require.Empty(t, cfg.Warnings)
	require.Equal(t, []string{"kafka:9092"}, cfg.Kafka.Brokers)
	kept := false // the warehouse is on a volume, not in the container
	for _, v := range c.Services["applier"].Volumes {
		_, to, _ := strings.Cut(v, ":")
		kept = kept || to == cfg.Warehouse.Path
	}
	require.True(t, kept, "%s is on no volume", cfg.Warehouse.Path)
}

// stage finds the stages of a Dockerfile and what each starts from.
var stage = regexp.MustCompile(`(?m)^FROM (?:--\S+ )*(\S+)`)

func TestDockerfile_EndsInAnImageWithNothingButTheProgram(t *testing.T) {
	dir := root(t)
	text, err := os.ReadFile(filepath.Join(dir, "cmd", "applier", "Dockerfile"))
	require.NoError(t, err)
	stages := stage.FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, stages)
	require.Equal(t, "scratch", stages[len(stages)-1][1])
	last := string(text)[strings.LastIndex(string(text), "\nFROM "):]
	require.Contains(t, last, "\nUSER 65532:65532\n", "the program does not run as root")
	require.Contains(t, last, "ENTRYPOINT [\"/applier\"]")
	require.NotContains(t, last, "\nRUN ", "there is no shell")

	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	require.Regexp(t, `^golang:`+regexp.QuoteMeta(string(goVersion[1]))+`\.`, stages[0][1], "the image builds with the version of go.mod")
}
