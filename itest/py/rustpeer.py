"""paimon-rust (pypaimon-rust, DataFusion) as a judge, a foreign writer and a peer of the benchmarks.

Reads go through its table API, statements (INSERT, UPDATE, DELETE, MERGE INTO) through its SQL context. It
always rewrites files, also where deletion vectors are enabled. The protocol is in wire.py.
"""

import importlib.metadata
import json
import os
import resource
import time

import numpy as np
import pyarrow as pa
from pypaimon_rust.datafusion import PaimonCatalog, SQLContext

import mergebench
import rowtext
import wire

LOAD_ROWS = 500_000
MERGE = ("MERGE INTO p.%s AS t USING src AS s ON t.id = s.id "
         "WHEN MATCHED THEN UPDATE SET " + ", ".join("%s = s.%s" % (c, c) for c in mergebench.COLUMNS[1:]) +
         " WHEN NOT MATCHED THEN INSERT (" + ", ".join(mergebench.COLUMNS) + ") VALUES (" +
         ", ".join("s." + c for c in mergebench.COLUMNS) + ")")


def table(request):
    return PaimonCatalog({"warehouse": request["warehouse"]}).get_table(request["table"])


def context(request):
    s = SQLContext()
    s.register_catalog("p", {"warehouse": request["warehouse"]})
    return s


def snapshot_types(t, snapshot):
    """Type texts by column, of the schema that the snapshot was written with."""
    location = t.location().removeprefix("file:")
    if snapshot is None:
        return {f.name(): f.field_type() for f in t.schema().fields()}
    with open(os.path.join(location, "snapshot", "snapshot-%d" % snapshot)) as f:
        schema_id = json.load(f)["schemaId"]
    with open(os.path.join(location, "schema", "schema-%d" % schema_id)) as f:
        return {x["name"]: rowtext.type_text(x["type"]) for x in json.load(f)["fields"]}


def scan(request, each):
    t = table(request)
    snapshot = request.get("snapshot") or None
    options = {"scan.snapshot-id": str(snapshot)} if snapshot else {}
    if request.get("tag"):
        options["scan.tag-name"] = request["tag"]
    if request.get("where"):
        raise NotImplementedError("conditions: use the command sql")
    builder = t.new_read_builder(options)
    types = snapshot_types(t, snapshot)
    columns = request.get("columns") or list(types)
    if request.get("columns"):
        builder = builder.with_projection(columns)
    plan = builder.new_scan().plan()
    if len(plan):
        for batch in builder.new_read().read_arrow(plan.splits()):
            each(rowtext.rows(batch, types))
    return {"columns": columns, "snapshot": plan.snapshot_id() or 0}


def read(request):
    rows = []
    facts = scan(request, lambda texts: rows.extend(map(wire.Raw, texts.to_pylist())))
    limit = request.get("limit")
    return {**facts, "rows": rows[:limit] if limit else rows}


def count(request):
    n = [0]
    facts = scan(request, lambda texts: n.__setitem__(0, n[0] + len(texts)))
    return {**facts, "count": n[0]}


def digest(request):
    d = rowtext.Digest()
    facts = scan(request, d.add)
    return {**facts, "count": d.rows, "digest": d.hex()}


def sql(request):
    """Runs one statement; the warehouse is the catalog p (SELECT … FROM p.db.t)."""
    rows, columns = [], []
    for batch in context(request).sql(request["sql"]):
        columns = batch.schema.names
        rows.extend(map(wire.Raw, rowtext.rows(batch, {}).to_pylist()))
    return {"columns": columns, "rows": rows}


def clock():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), u.ru_utime + u.ru_stime


def bench_merge(request):
    """Loads target rows, then times each merge alone; making the batch is not timed."""
    name, seed = request["table"], request.get("seed", 1)
    target, size, merges = request["target_rows"], request["batch_rows"], request["merges"]
    s = context(request)
    s.sql("CREATE SCHEMA IF NOT EXISTS p.%s" % name.split(".")[0])
    s.sql("CREATE TABLE p.%s (%s) WITH ('bucket' = '-1', 'deletion-vectors.enabled' = 'true')"
          % (name, mergebench.SQL_COLUMNS))
    load_s = load(request, seed, target)
    timed = []
    for number in range(1, merges + 1):
        batch = mergebench.rows(seed, mergebench.batch_ids(seed, target, size, number), number)
        s = context(request)  # a registered name cannot be given again
        s.register_batch("src", batch)
        wall, cpu = clock()
        s.sql(MERGE % name)
        timed.append([round(b - a, 4) for a, b in zip((wall, cpu), clock())])
    return {"load_s": round(load_s, 3), "merges": timed, "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def load(request, seed, target):
    """Appends the initial rows in one commit; returns the seconds of writing alone."""
    builder = table(request).new_batch_write_builder()
    write, total = builder.new_write(), 0.0
    for start in range(0, target, LOAD_ROWS):
        batch = mergebench.rows(seed, np.arange(start, min(start + LOAD_ROWS, target), dtype=np.int64), 0)
        begin = time.perf_counter()
        write.write_arrow(batch)
        total += time.perf_counter() - begin
    begin = time.perf_counter()
    commit = builder.new_commit()
    commit.commit(write.prepare_commit())
    return total + time.perf_counter() - begin


def tables(request):
    c = PaimonCatalog({"warehouse": request["warehouse"]})
    return {"tables": ["%s.%s" % (d, t) for d in c.list_databases() for t in c.list_tables(d)]}


def schema(request):
    s = table(request).schema()
    return {"columns": [{"id": f.id(), "name": f.name(), "type": f.field_type()} for f in s.fields()],
            "partition_keys": s.partition_keys(), "primary_keys": s.primary_keys()}


if __name__ == "__main__":
    wire.serve({"judge": "paimon-rust", "version": importlib.metadata.version("pypaimon-rust"), "pyarrow": pa.__version__},
               {"ping": lambda r: {}, "tables": tables, "schema": schema, "read": read, "count": count,
                "digest": digest, "sql": sql, "bench_merge": bench_merge})
