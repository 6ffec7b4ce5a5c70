package config

import (
	"slices"
	"strings"
)

// deletedAt is the column that apply: soft_delete sets.
const deletedAt = "deleted_at"

// checkPipeline finds contradictions within a pipeline.
func (c *checker) checkPipeline(p *Pipeline) {
	path := "pipelines." + p.Name
	c.checkSource(p, path+".source")
	c.checkMerge(p, path)
	c.checkKey(p, path)
	c.checkOrder(p, path)
	c.checkTruncate(p, path)
	c.checkColumns(p, path+".columns.add")
	c.checkErrors(p)
	c.checkBatch(p)
}

func (c *checker) checkSource(p *Pipeline, path string) {
	s := p.Source
	_, topic := c.written(path + ".topic")
	_, topics := c.written(path + ".topics")
	_, source := c.written(path)
	switch {
	case topic && topics:
		c.add("contradicts topic", "write one of the two", path+".topics")
	case !topic && !topics && source && c.intact(path) && !c.suggested[path+".topic"] && !c.suggested[path+".topics"]:
		c.add("is missing", "add it: topic: shop.public.orders", path+".topic")
	}
	if s.Format.Type == "json" {
		for _, k := range []string{"unavailable_value", "decimals"} {
			// Switching off what does not exist is no contradiction.
			off := k == "unavailable_value" && s.Format.UnavailableValue == ""
			if at, ok := c.written(path + ".format." + k); ok && !off {
				c.add("has no meaning for format json", "remove it, or use debezium-json", at)
			}
		}
	}
	c.checkStart(s, path+".start")
}

func (c *checker) checkStart(s Source, path string) {
	_, at := c.written(path + ".time")
	_, offset := c.written(path + ".offset")
	if at && offset {
		c.add("contradicts time", "write one of the two", path+".offset")
	}
	if offset && len(s.Topics) > 1 {
		c.add("cannot tell which of the topics it means", "use one topic, or another start", path+".offset")
	}
}

// checkMerge finds what clauses cannot be written beside.
func (c *checker) checkMerge(p *Pipeline, path string) {
	if p.Merge == nil {
		return
	}
	if _, ok := c.written(path + ".apply"); ok {
		c.add("contradicts apply: clauses stand in the place of a preset", "write one of the two", path+".merge")
	}
	if _, ok := c.written(path + ".order_by"); ok {
		c.add("contradicts merge: clauses say themselves which change counts",
			"remove order_by, and write the order into the clauses: MATCHED AND s.updated_at >= t.updated_at THEN UPDATE SET *", path+".order_by")
	}
}

func (c *checker) checkKey(p *Pipeline, path string) {
	if !c.intact(path+".key", path+".apply") {
		return
	}
	switch {
	case p.Apply == ApplyAppend && len(p.Key) > 0:
		c.add("contradicts apply: append, which never looks for a row", "remove key, or choose another apply", path+".key")
	case p.Apply != ApplyAppend && len(p.Key) == 0 && !c.suggested[path+".key"]:
		c.add("is missing", "add it: key: [order_id], the columns that identify a row; only apply: append has none", path+".key")
	}
}

func (c *checker) checkOrder(p *Pipeline, path string) {
	by := p.OrderBy.By
	at := path + ".order_by"
	if p.Merge != nil {
		return // refused as a whole
	}
	if len(by) == 0 {
		if _, ok := c.written(at); ok && c.intact(at, at+".by") && !c.suggested[at+".by"] {
			c.add("is missing", "add it: by: [updated_at], the columns that say which change is newer", at+".by")
		}
		return
	}
	if !c.intact(path + ".apply") {
		return
	}
	remembers := p.OrderBy.RememberDeletes > 0 || !c.intact(at+".remember_deletes")
	switch {
	case p.Apply == ApplyMirror && !remembers:
		c.add("contradicts apply: mirror: a removed row leaves nothing to compare a late change with",
			"add remember_deletes: 7d, use apply: soft_delete (or upsert, which ignores deletes), or remove order_by", at)
	case p.Apply == ApplyInsertOnly:
		c.add("contradicts apply: insert_only, where the first row of a key stays", "remove order_by, or use apply: upsert", at)
	case p.Apply == ApplyAppend:
		c.add("contradicts apply: append, which keeps every change", "remove order_by", at)
	case p.Apply == ApplyUpsert && p.OrderBy.RememberDeletes > 0:
		c.add("has no meaning for apply: upsert, which ignores deletes", "remove it, or use apply: mirror", at+".remember_deletes")
	}
	for i, col := range by {
		if slices.Contains(p.Key, col) {
			c.add(c.quote(col, item(at, i), item(at+".by", i))+" is a key column, which never differs between changes of a row", "name another column", at)
		}
	}
	if _, ok := c.written("state_dir"); !ok && p.OrderBy.RememberDeletes > 0 {
		if _, systemd := c.env("STATE_DIRECTORY"); !systemd {
			c.warn(at+".remember_deletes", "deletes are remembered in a cache folder, "+c.cfg.StateDir+", because state_dir is not set", "set state_dir to a folder that is kept")
		}
	}
}

// checkTruncate: the rows can go only where deletes remove rows, where they are all of
// the table that was emptied, and where it is known which of them are older.
func (c *checker) checkTruncate(p *Pipeline, path string) {
	at := path + ".on_truncate"
	if p.OnTruncate != OnTruncateApply || !c.intact(at, path+".apply", path+".merge") {
		return
	}
	switch {
	case p.Merge != nil:
		c.add("apply contradicts merge: clauses say what a change does to rows of its key, and a truncate has none", "use on_truncate: pause or ignore", at)
	case p.Apply != ApplyMirror:
		c.add("apply contradicts apply: "+string(p.Apply)+", under which no row is removed", "use on_truncate: pause or ignore", at)
	}
	if len(p.Source.Topics) > 1 {
		c.add("apply contradicts several topics: each is of a table of its own, and rows of all would go", "use on_truncate: pause, or a pipeline and a target for each topic", at)
	}
	for _, col := range p.OrderBy.By {
		if _, ok := p.Columns.Add[col]; !ok {
			c.add("apply needs the place of the record in the order, which has no row to take "+col+" from", "fill it from metadata: columns: {add: {"+col+": source.lsn}}, or use on_truncate: pause", at)
		}
	}
}

func (c *checker) checkColumns(p *Pipeline, path string) {
	for col, source := range p.Columns.Add {
		at := join(path, col)
		if p.Source.Format.Type == "json" && (source == "ts_ms" || strings.HasPrefix(source, "source.")) {
			c.add("needs a Debezium envelope, which format json has not", "use kafka.timestamp or header.NAME", at)
		}
		if p.Apply == ApplySoftDelete && col == deletedAt {
			c.add("is set by apply: soft_delete itself", "remove it", at)
		}
	}
}

func (c *checker) checkErrors(p *Pipeline) {
	topicPaths := inherited(p.Name, "dead_letter.topic")
	_, written := c.written(topicPaths...)
	order := "pipelines." + p.Name + ".order_by"
	for _, sender := range []struct {
		sends bool
		paths []string
	}{
		{p.OnError == OnErrorDeadLetter, inherited(p.Name, "on_error")},
		{p.OrderBy.Late == LateDeadLetter, []string{order + ".late"}},
		{p.OrderBy.OnTie == OnTieDeadLetter, []string{order + ".on_tie"}},
	} {
		if sender.sends && p.DeadLetter.Topic == "" && !written {
			c.add("is dead_letter without a topic", "add dead_letter: {topic: applier.dlq}", sender.paths...)
		}
	}
	if !p.DeadLetters() && c.intact(append(inherited(p.Name, "on_error"), order+".late", order+".on_tie")...) {
		if at, ok := c.written(topicPaths[0]); ok {
			c.add("is never used, because on_error is "+string(p.OnError), "set on_error: dead_letter, or remove it", at)
		}
	}
}

func (c *checker) checkBatch(p *Pipeline) {
	b := p.Batch
	idle := inherited(p.Name, "batch.idle_flush")
	if _, ok := c.written(idle...); ok && b.IdleFlush > b.Interval {
		c.add("is longer than batch.interval, so it never happens", "use a shorter one, or 0s to switch it off", idle...)
	}
	largest := inherited(p.Name, "max_record_bytes")
	if _, ok := c.written(largest...); ok && p.MaxRecordBytes > b.Bytes {
		c.add("is larger than batch.bytes", "lower it, or raise batch.bytes", largest...)
	}
}
