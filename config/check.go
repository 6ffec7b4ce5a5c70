package config

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// checker finds what no single key shows: contradictions between keys. It also
// fills the defaults that depend on other keys.
type checker struct {
	*loader
	cfg *Config
	env Lookup
	dir string
}

// defaultUnavailable is what Debezium writes unless told otherwise.
const defaultUnavailable = "__debezium_unavailable_value"

// finish fills what the tags cannot say.
func (c *checker) finish() {
	cfg := c.cfg
	if cfg.Warehouse.Path != "" && !cfg.Warehouse.OnS3() {
		cfg.Warehouse.Path = resolvePath(c.dir, cfg.Warehouse.Path)
	}
	if s := cfg.Warehouse.S3; s != nil && s.CA != "" {
		s.CA = resolvePath(c.dir, s.CA)
	}
	if cfg.StateDir == "" {
		cfg.StateDir = c.defaultStateDir()
	}
	cfg.StateDir = resolvePath(c.dir, cfg.StateDir)
	if t := cfg.Kafka.TLS; t != nil {
		for _, f := range []*string{&t.CA, &t.Cert, &t.Key} {
			if *f != "" {
				*f = resolvePath(c.dir, *f)
			}
		}
	}
	for name, p := range cfg.Pipelines {
		if p.ID == "" {
			p.ID = name
		}
		if p.Source.Start.isZero() {
			p.Source.Start.Position = StartEarliest
		}
		if len(p.OrderBy.By) > 0 && p.OrderBy.OnTie == "" {
			p.OrderBy.OnTie = OnTieLast
		}
		if len(p.OrderBy.By) > 0 && p.OrderBy.Late == "" {
			p.OrderBy.Late = LateDrop
		}
		if p.Merge != nil {
			if _, ok := c.written("pipelines." + name + ".apply"); !ok {
				p.Apply = ""
			}
		}
		if p.OnTruncate == "" {
			p.OnTruncate = OnTruncatePause
			if p.Apply == ApplyUpsert || p.Apply == ApplyInsertOnly {
				p.OnTruncate = OnTruncateIgnore
			}
		}
		if !p.DeadLetters() {
			p.DeadLetter = DeadLetter{} // inherited, but not used
		}
		f := &p.Source.Format
		if f.Type == "json" {
			f.Decimals = ""
		} else if _, ok := c.written("pipelines." + name + ".source.format.unavailable_value"); !ok {
			f.UnavailableValue = defaultUnavailable
		}
	}
}

func (s Start) isZero() bool { return s.Position == "" && s.Time.IsZero() && s.Offset == nil }

// defaultStateDir is what systemd gives us, else the user's folder for caches.
func (c *checker) defaultStateDir() string {
	if dir, ok := c.env("STATE_DIRECTORY"); ok && dir != "" {
		first, _, _ := strings.Cut(dir, ":")
		return first
	}
	if dir, ok := c.env("XDG_CACHE_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "applier")
	}
	if dir, ok := c.env("HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, ".cache", "applier")
	}
	return filepath.Join(os.TempDir(), "applier-"+strconv.Itoa(os.Getuid()))
}

// written returns where the first of the paths stands that was written.
func (c *checker) written(paths ...string) (string, bool) {
	for _, p := range paths {
		if _, ok := c.at[p]; ok {
			return p, true
		}
	}
	return "", false
}

// add reports a problem at the first of the paths that was written, or, if none
// was, at the block that would hold the last one.
func (c *checker) add(msg, hint string, paths ...string) {
	path, ok := c.written(paths...)
	if ok {
		c.problem(c.at[path], path, msg, hint)
		return
	}
	path = paths[len(paths)-1]
	for at := path; at != ""; {
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
		if pos, ok := c.at[at]; ok {
			c.problem(pos, path, msg, hint)
			return
		}
	}
	c.problem(position{line: 1, column: 1}, path, msg, hint)
}

// intact reports whether none of the paths was written with a value that was
// refused: what follows from a refused value would be noise.
func (c *checker) intact(paths ...string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool { return c.broken[p] })
}

// check runs every check.
func (c *checker) check() {
	c.checkKafka()
	c.checkServer()
	c.checkFolders()
	c.checkS3()
	names := c.cfg.Names()
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(c.at["pipelines."+a].line, c.at["pipelines."+b].line)
	})
	for _, name := range names {
		c.checkPipeline(c.cfg.Pipelines[name])
	}
	c.checkMaintenance(names)
	c.checkUnique(names)
	c.checkMemory(names)
}

func (c *checker) checkKafka() {
	k := c.cfg.Kafka
	if k.TLS != nil {
		c.checkTLS(*k.TLS)
	}
	if k.SASL == nil || k.SASL.Mechanism != "plain" || k.TLS != nil || !c.intact("kafka.tls") {
		return
	}
	if !k.SASL.AllowPlaintext {
		c.add("plain without TLS shows the password to the network",
			"add kafka.tls, use scram-sha-512, or set kafka.sasl.allow_plaintext: true", "kafka.sasl.mechanism")
		return
	}
	c.warn("kafka.sasl.allow_plaintext", "the password is sent over the network unencrypted", "add kafka.tls")
}

// warn adds a warning at a path that was written.
func (c *checker) warn(path, msg, hint string) {
	at := c.at[path]
	c.warnings = append(c.warnings, Problem{c.file, at.line, at.column, path, msg, hint})
}

func (c *checker) checkTLS(t TLS) {
	const base = "kafka.tls"
	if t.Cert != "" && t.Key == "" && c.intact(base+".key") {
		c.add("is set without key", "add kafka.tls.key", base+".cert")
	}
	if t.Key != "" && t.Cert == "" && c.intact(base+".cert") {
		c.add("is set without cert", "add kafka.tls.cert", base+".key")
	}
	if t.Insecure {
		if t.CA != "" {
			c.add("contradicts ca: nothing is verified with it", "remove one of the two", base+".insecure")
		}
		c.warn(base+".insecure", "the brokers' certificates are not verified", "use ca instead")
	}
	if _, err := t.roots(); err != nil {
		c.add(err.Error(), "check the path and its content", base+".ca")
	}
	if t.Cert != "" && t.Key != "" {
		if _, err := t.certificate(); err != nil {
			c.add(err.Error(), "check the paths and their content", base+".cert")
		}
	}
}

// minToken is the least length of a token that cannot be guessed.
const minToken = 16

func (c *checker) checkServer() {
	s := c.cfg.Server
	token := s.Admin.Token
	if n := len(token.Reveal()); token.IsSet() && n < minToken {
		c.add("is shorter than 16 characters", "use a long random one", "server.admin.token")
	}
	if !isLoopback(s.Admin.Listen) && !token.IsSet() && c.intact("server.admin.listen", "server.admin.token") {
		c.add("is reachable from other hosts, but without server.admin.token every request from there is refused",
			"set server.admin.token, or listen on 127.0.0.1:9465", "server.admin.listen")
	}
	if overlap(s.Listen, s.Admin.Listen) {
		c.add("is the same port as server.listen", "use two ports", "server.admin.listen", "server.listen")
	}
}

func isLoopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.Unmap().IsLoopback())
}

// overlap reports whether two addresses cannot both be listened on.
func overlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	every := []string{"", "0.0.0.0", "::"}
	return portA == portB && portA != "0" &&
		(hostA == hostB || slices.Contains(every, hostA) || slices.Contains(every, hostB))
}

func (c *checker) checkFolders() {
	warehouse, state := c.cfg.Warehouse.Path, c.cfg.StateDir
	if warehouse == "" || c.cfg.Warehouse.OnS3() || !c.intact("state_dir") {
		return
	}
	if within(state, warehouse) {
		c.add("lies inside the warehouse, where other engines look for tables", "use a folder outside of it", "state_dir", "warehouse.path", "warehouse")
	}
	if within(warehouse, state) && warehouse != state {
		c.add("lies inside state_dir, whose files may be removed at any time", "use a folder outside of it", "warehouse.path", "warehouse")
	}
}

// within reports whether path is dir or below it. Both are absolute and clean.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// checkUnique finds pipelines that would disturb each other.
func (c *checker) checkUnique(names []string) {
	ids, targets, sources := map[string]string{}, map[string]string{}, map[string]string{}
	for _, name := range names {
		p := c.cfg.Pipelines[name]
		path := "pipelines." + name
		if other, ok := ids[p.ID]; ok {
			c.add(c.quote(p.ID, path+".id")+" is the identity of pipeline "+other+" too",
				"give each pipeline its own id; it names the positions in the table and the consumer group", path+".id", path)
		} else {
			ids[p.ID] = name
		}
		if t := p.Target.Table; t == "" {
			continue
		} else if other, ok := targets[t]; ok {
			c.add(c.quote(t, path+".target", path+".target.table")+" is the target of pipeline "+other+" too",
				"let one pipeline write a table; it can read several topics", path+".target", path)
		} else {
			targets[t] = name
		}
		for _, t := range p.Source.TopicList() {
			sources[t] = name
		}
	}
	for _, name := range names {
		p := c.cfg.Pipelines[name]
		if reader, ok := sources[p.DeadLetter.Topic]; ok && p.DeadLetter.Topic != "" {
			c.add("is a topic that pipeline "+reader+" reads", "use a topic that no pipeline reads",
				inherited(name, "dead_letter.topic")...)
		}
	}
}

// quote shows a value unless a reference brought it.
func (c *checker) quote(s string, paths ...string) string {
	for _, p := range paths {
		if lit, ok := c.literal[p]; ok {
			s = lit
		}
	}
	return strconv.Quote(s)
}

// inherited returns where a pipeline's setting may be written.
func inherited(name, path string) []string {
	return []string{"pipelines." + name + "." + path, "defaults." + path}
}

// checkMemory finds batches that together are larger than the memory.
func (c *checker) checkMemory(names []string) {
	if !c.intact("memory") {
		return
	}
	var sum Size
	for _, name := range names {
		if !c.intact(inherited(name, "batch.bytes")...) {
			return
		}
		sum += c.cfg.Pipelines[name].Batch.Bytes
	}
	if sum > c.cfg.Memory {
		c.add("is "+c.cfg.Memory.String()+", but the batches of all pipelines may take "+sum.String(),
			"raise memory, or lower batch.bytes", "memory")
	}
}
