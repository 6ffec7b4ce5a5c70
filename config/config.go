package config

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/v2"
)

// delimiter joins koanf's paths. It cannot occur in a key: every key that koanf
// sees is a name of the contract or was checked by checkName.
const delimiter = "\x00"

// Load reads the configuration at path. References to variables are looked up
// with env (os.LookupEnv in production); relative paths in the file start at
// the file's folder.
//
// The error is a Problems with everything that is wrong, unless the file
// cannot be read.
func Load(path string, env Lookup) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return Parse(path, data, env)
}

// Parse is Load for the content of a file; file names it in problems and its
// folder is where relative paths start.
func Parse(file string, data []byte, env Lookup) (*Config, error) {
	if len(data) > maxFileBytes {
		return nil, Problems{{File: file, Msg: "is larger than " + Size(maxFileBytes).String(), Hint: "split it"}}
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("resolving the folder of the configuration: %w", err)
	}
	p := &loader{
		file: file, expand: expander{env, dir}, refused: refusedKeys(),
		at: map[string]position{}, literal: map[string]string{}, broken: map[string]bool{}, suggested: map[string]bool{},
	}
	root := koanf.New(delimiter)
	if err := root.Load(fixed{values: defaultsOf(contract())}, nil); err != nil {
		return nil, fmt.Errorf("loading defaults: %w", err)
	}
	if err := root.Load(fixed{data: data}, p); err != nil {
		return nil, err
	}
	cfg, err := decode(root, p)
	if err != nil && len(p.problems) == 0 {
		return nil, fmt.Errorf("decoding the configuration: %w", err)
	}
	c := &checker{loader: p, cfg: cfg, env: env, dir: dir}
	c.finish()
	c.check()
	if len(p.problems) > 0 {
		return nil, p.problems.sort()
	}
	cfg.Warnings = p.warnings.sort()
	p.keepSource(cfg)
	for name, pl := range cfg.Pipelines {
		if pl.Create != nil {
			pl.Create.order = p.orderOf(pl.Create.Types, join(join(join(join("", "pipelines"), name), "create"), "types"))
		}
	}
	return cfg, nil
}

// keepSource lets the password of Kafka be read again: it may be replaced while
// the program runs.
func (p *loader) keepSource(cfg *Config) {
	written, referenced := p.literal[join(join(join("", "kafka"), "sasl"), "password")]
	if cfg.Kafka.SASL == nil || !referenced {
		return
	}
	read := func() (string, bool) {
		text, _, bad := p.expand.expand(written)
		return text, len(bad) == 0
	}
	cfg.Kafka.SASL.Password.again = &read
}

// orderOf returns the keys of a map in the order they were written.
func (p *loader) orderOf(m map[string]string, path string) []string {
	names := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(names, func(a, b string) int {
		x, y := p.at[join(path, a)], p.at[join(path, b)]
		return cmp.Or(cmp.Compare(x.line, y.line), cmp.Compare(x.column, y.column))
	})
	return names
}

// decode fills the structs: a pipeline is its own defaults, under the file's
// defaults, under what it says itself.
func decode(root *koanf.Koanf, p *loader) (*Config, error) {
	cfg := &Config{Pipelines: map[string]*Pipeline{}}
	policy := root.Cut("defaults")
	pipeline := contract().find("pipelines").block
	names := root.MapKeys("pipelines")
	own := map[string]*koanf.Koanf{}
	for _, name := range names {
		own[name] = root.Cut("pipelines" + delimiter + name)
	}
	root.Delete("pipelines")
	if err := unmarshal(root, cfg); err != nil {
		return cfg, err
	}
	for _, name := range names {
		k := koanf.New(delimiter)
		// Fresh values each time: koanf merges into the maps it is given.
		if err := k.Load(fixed{values: defaultsOf(pipeline)}, nil); err != nil {
			return cfg, err
		}
		if err := k.Merge(policy); err != nil {
			return cfg, err
		}
		if err := k.Merge(own[name]); err != nil {
			return cfg, err
		}
		pl := &Pipeline{Name: name}
		if err := unmarshal(k, pl); err != nil {
			return cfg, fmt.Errorf("pipeline %s: %w", name, err)
		}
		cfg.Pipelines[name] = pl
	}
	return cfg, nil
}

// unmarshal fills a struct from koanf. Nothing is converted and nothing may be
// left over: the loader has checked both, so an error here is a bug.
func unmarshal(k *koanf.Koanf, out any) error {
	return k.UnmarshalWithConf("", out, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		ErrorUnused: true,
		MatchName:   func(key, field string) bool { return key == field },
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(),
			mapstructure.TextUnmarshallerHookFunc(),
		),
	}})
}

// defaultsOf returns the values of the tags "default" of a block and the blocks
// in it, except blocks that are off when absent.
func defaultsOf(b *block) map[string]any {
	out := map[string]any{}
	for _, k := range b.keys {
		switch {
		case k.kind == kindBlock && !k.optional:
			if sub := defaultsOf(k.block); len(sub) > 0 {
				out[k.name] = sub
			}
		case k.def != "":
			out[k.name], _ = convert(k, k.def)
		}
	}
	return out
}

// fixed is a koanf.Provider of what is in memory already.
type fixed struct {
	data   []byte
	values map[string]any
}

// ReadBytes implements koanf.Provider.
func (f fixed) ReadBytes() ([]byte, error) { return f.data, nil }

// Read implements koanf.Provider.
func (f fixed) Read() (map[string]any, error) { return f.values, nil }

// Names returns the names of the pipelines in order.
func (c *Config) Names() []string {
	names := make([]string, 0, len(c.Pipelines))
	for name := range c.Pipelines {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TopicList returns the topics of the source, however they were written.
func (s Source) TopicList() []string {
	if s.Topic != "" {
		return []string{s.Topic}
	}
	return s.Topics
}
