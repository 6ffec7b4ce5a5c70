package tidy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"applier/config"

	composecli "github.com/compose-spec/compose-go/v2/cli"
	composetypes "github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// demoEnv reads the passwords of the demo.
func demoEnv(t *testing.T, dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, "docs", "compose", "demo.env"))
	require.NoError(t, err)
	var env []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			env = append(env, line)
		}
	}
	return env
}

// loadCompose reads docker-compose.yml as docker compose does.
func loadCompose(t *testing.T, env, profiles []string) (*composetypes.Project, error) {
	dir := root(t)
	o, err := composecli.NewProjectOptions([]string{filepath.Join(dir, "docker-compose.yml")}, composecli.WithWorkingDirectory(dir),
		composecli.WithName("applier"), composecli.WithEnv(env), composecli.WithProfiles(profiles))
	require.NoError(t, err)
	return o.LoadProject(t.Context())
}

func composeProject(t *testing.T) *composetypes.Project {
	p, err := loadCompose(t, demoEnv(t, root(t)), []string{"demo"})
	require.NoError(t, err)
	return p
}

func TestCompose_HasTheWholeStackWithPinnedImagesAndLocalPorts(t *testing.T) {
	p := composeProject(t)
	require.ElementsMatch(t, strings.Fields("kafka bucket s3 applier prometheus grafana generator postgres load connect connector"), p.ServiceNames())
	published := map[string]string{}
	for name, s := range p.Services {
		if s.Build != nil {
			require.Equal(t, "applier:local", s.Image, name)
			require.FileExists(t, filepath.Join(s.Build.Context, s.Build.Dockerfile))
			require.True(t, s.ReadOnly, "%s runs on a read-only file system", name)
			require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		} else {
			require.Regexp(t, `^[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(\.Final)?$`, s.Image, "the image of %s is not pinned", name)
		}
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s can be reached from other hosts", name)
			require.Empty(t, published[port.Published], "port %s is published twice", port.Published)
			published[port.Published] = name
		}
	}
	require.Equal(t, map[string]string{"9464": "applier", "9090": "prometheus", "3000": "grafana"}, published)
}

func TestCompose_MountsOnlyWhatIsThere(t *testing.T) {
	p := composeProject(t)
	used := map[string]bool{}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == composetypes.VolumeTypeBind {
				require.FileExists(t, v.Source, name)
				require.True(t, v.ReadOnly, "%s may write %s", name, v.Source)
				used[filepath.Base(v.Source)] = true
				continue
			}
			require.Contains(t, p.Volumes, v.Source, "%s mounts a volume that is not declared", name)
			used[v.Source] = true
		}
	}
	for name := range p.Volumes {
		require.True(t, used[name], "volume %s is not used", name)
	}
	files, err := os.ReadDir(filepath.Join(root(t), "docs", "compose"))
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, used[f.Name()] || f.Name() == "demo.env", "docs/compose/%s is mounted nowhere", f.Name())
	}
}

func TestCompose_StartsInAnOrderThatHealthChecksDecide(t *testing.T) {
	p := composeProject(t)
	for name, s := range p.Services {
		for other, d := range s.DependsOn {
			o := p.Services[other]
			switch d.Condition {
			case composetypes.ServiceConditionHealthy:
				require.NotNil(t, o.HealthCheck, "%s waits for the health of %s, which has no check", name, other)
				require.False(t, o.HealthCheck.Disable, other)
			case composetypes.ServiceConditionCompletedSuccessfully:
				require.NotContains(t, []string{"always", "unless-stopped"}, o.Restart, "%s never ends, and %s waits for it", other, name)
			default:
				t.Errorf("%s does not say what it waits for in %s", name, other)
			}
		}
		if s.HealthCheck == nil {
			require.Contains(t, []string{"bucket", "connector", "load"}, name, "no health check")
		}
	}
	require.Contains(t, p.Services["applier"].DependsOn, "kafka")
	require.Contains(t, p.Services["applier"].DependsOn, "s3")
}

// A password is somebody's decision, but for those of the demo's own services.
func TestCompose_HasNoDefaultPasswordsOutsideTheDemo(t *testing.T) {
	env := demoEnv(t, root(t))
	for i := range env {
		without := slices.Concat(env[:i:i], env[i+1:])
		_, err := loadCompose(t, without, nil)
		require.Error(t, err, "docker-compose.yml has a default for %s, or does not use it", env[i])
	}
	text, err := os.ReadFile(filepath.Join(root(t), "docker-compose.yml"))
	require.NoError(t, err)
	p, err := loadCompose(t, env, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, strings.Fields("kafka bucket s3 applier prometheus grafana"), p.ServiceNames())
	for name, s := range p.Services {
		for k, v := range s.Environment {
			if v != nil && regexp.MustCompile(`PASSWORD|SECRET|ACCESS_KEY`).MatchString(k) {
				require.NotContains(t, string(text), *v, "%s of %s", k, name)
			}
		}
	}
	for _, m := range regexp.MustCompile(`\$\{(\w+):-`).FindAllStringSubmatch(string(text), -1) {
		require.Equal(t, "POSTGRES_PASSWORD", m[1], "a default outside of the demo's services")
	}
}

func TestCompose_StartsThisTreeWithAValidConfiguration(t *testing.T) {
	p := composeProject(t)
	s := p.Services["applier"]
	run := []string(s.Command)
	require.Equal(t, []string{"run", "-c"}, run[:2])
	path := ""
	for _, v := range s.Volumes {
		if v.Target == run[2] {
			path = v.Source
		}
	}
	require.NotEmpty(t, path, "the configuration of the command is not mounted")
	yml, err := os.ReadFile(path)
	require.NoError(t, err)
	asked := map[string]bool{}
	cfg, err := config.Parse(path, yml, func(name string) (string, bool) {
		asked[name] = true
		v := s.Environment[name]
		if v == nil {
			return "", false
		}
		return *v, true
	})
	require.NoError(t, err)
	require.Len(t, cfg.Warnings, 1)
	require.Contains(t, cfg.Warnings[0].String(), "unencrypted", "within the stack's own network")
	for name := range s.Environment {
		require.True(t, asked[name], "applier gets %s, which its configuration does not use", name)
	}
	require.Equal(t, []string{"kafka:9092"}, cfg.Kafka.Brokers)
	require.Equal(t, "http://s3:7070", cfg.Warehouse.S3.Endpoint)
	require.Equal(t, "generate", p.Services["generator"].Command[0])
	var topics []string
	for _, name := range cfg.Names() {
		topics = append(topics, cfg.Pipelines[name].Source.TopicList()...)
	}
	var connector map[string]string
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "compose", "connector.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &connector))
	require.ElementsMatch(t, []string{connector["topic.prefix"] + "." + connector["table.include.list"], "shop.public.my_table"}, topics)
	require.Equal(t, "${env:POSTGRES_PASSWORD}", connector["database.password"])
	require.Contains(t, p.Services["connect"].Environment, "POSTGRES_PASSWORD")
	require.Equal(t, *p.Services["postgres"].Environment["POSTGRES_USER"], connector["database.user"])
}

func TestCompose_PrometheusAndGrafanaFindWhatTheyShow(t *testing.T) {
	p := composeProject(t)
	mounted := func(service, target string) string {
		for _, v := range p.Services[service].Volumes {
			if v.Target == target {
				return v.Source
			}
		}
		return ""
	}
	var prom struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read := func(path string, into any) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, into))
	}
	read(mounted("prometheus", "/etc/prometheus/prometheus.yml"), &prom)
	require.Equal(t, []string{"applier:9464"}, prom.ScrapeConfigs[0].StaticConfigs[0].Targets)
	require.Len(t, prom.RuleFiles, 1)
	require.Equal(t, filepath.Join(root(t), "metrics", "alerts.yml"), mounted("prometheus", prom.RuleFiles[0]))
	var sources struct{ Datasources []struct{ Type, URL string } }
	read(mounted("grafana", "/etc/grafana/provisioning/datasources/applier.yml"), &sources)
	require.Equal(t, "http://prometheus:9090", sources.Datasources[0].URL)
	var boards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	read(mounted("grafana", "/etc/grafana/provisioning/dashboards/applier.yml"), &boards)
	require.Equal(t, filepath.Join(root(t), "metrics", "dashboard.json"), mounted("grafana", boards.Providers[0].Options.Path+"/applier.json"))
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
	require.Contains(t, last, "\nHEALTHCHECK ")
	require.Contains(t, last, "\nLABEL org.opencontainers.image.title=")
	require.Contains(t, string(text), "CGO_ENABLED=0", "the program is static")
	require.NotContains(t, last, "\nRUN ", "there is no shell")

	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	require.Regexp(t, `^golang:`+regexp.QuoteMeta(string(goVersion[1]))+`\.`, stages[0][1], "the image builds with the version of go.mod")
}
