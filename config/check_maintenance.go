package config

// checkMaintenance finds settings of maintenance that switch nothing on.
func (c *checker) checkMaintenance(names []string) {
	blocks := make([]string, 0, len(names)+1)
	for _, name := range names {
		blocks = append(blocks, "pipelines."+name+".maintenance")
	}
	for _, block := range blocks {
		c.checkUpkeep(block, block, "defaults.maintenance")
	}
	c.checkUpkeep("defaults.maintenance", append(blocks, "defaults.maintenance")...)
}

// checkUpkeep checks a block whose settings are used where one of others says so.
// A switch that is off was at least thought of.
func (c *checker) checkUpkeep(block string, others ...string) {
	if _, ok := c.written(block); !ok || !c.intact(block) {
		return
	}
	says := func(keys ...string) bool {
		for _, o := range others {
			for _, k := range keys {
				if _, ok := c.written(o + "." + k); ok || c.suggested[o+"."+k] {
					return true
				}
			}
		}
		return false
	}
	if !says("compact", "expire", "orphans") {
		c.add("switches nothing on", "add compact: true, expire: true or orphans: true, or remove it", block)
		return
	}
	for _, k := range []string{"window", "rate", "deleted_ratio"} {
		if _, ok := c.written(block + "." + k); ok && !says("compact") {
			c.add("has no meaning without compact", "add compact: true, or remove it", block+"."+k)
		}
	}
}
