"""Spark as a peer of the merge benchmark, on tables of Iceberg or Delta. The protocol is in wire.py.

One session runs all cells, warm: merges into a table of its own come first, untimed. The tables are what their
format recommends for frequent small changes (deletion vectors, no copies of files); everything else is Spark's
default but for what suits a machine of two cores. MERGE alone is timed, its source is a view over a Parquet file.

BENCH_FORMAT is iceberg or delta, BENCH_JARS the folder of the format's jars, BENCH_DIR where tables go.
"""

import os
import shutil
import time

import numpy as np
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession

import mergebench
import rowtext
import wire

FORMAT, DIR = os.environ["BENCH_FORMAT"], os.environ["BENCH_DIR"]
TABLE = {"iceberg": "i.bench.t", "delta": "t"}[FORMAT]
COLUMNS = mergebench.SQL_COLUMNS.replace("TIMESTAMP(6)", "TIMESTAMP_NTZ")
PROPERTIES = {
    "iceberg": {"format-version": "3", "write.merge.mode": "merge-on-read", "write.update.mode": "merge-on-read",
                "write.delete.mode": "merge-on-read"},
    "delta": {"delta.enableDeletionVectors": "true"},
}[FORMAT]
MERGE = ("MERGE INTO %s AS t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
         "WHEN NOT MATCHED THEN INSERT *" % TABLE)
SETTINGS = {
    "spark.driver.memory": "6g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Duser.timezone=UTC",
    "spark.sql.shuffle.partitions": "4", "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.local.dir": os.path.join(DIR, "spark"), "spark.sql.warehouse.dir": os.path.join(DIR, "warehouse"),
}
FORMAT_SETTINGS = {
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.i": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.i.type": "hadoop",
        "spark.sql.catalog.i.warehouse": "file:" + os.path.join(DIR, "iceberg"),
    },
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Meant for clusters: fifty tasks to read the log of a table.
        "spark.databricks.delta.snapshotPartitions": "2",
    },
}[FORMAT]
FILE_ROWS = 1_000_000
WARM_ROWS, WARM_BATCHES = 250_000, [1000, 10_000, 100_000] * 3

session = []


def spark():
    if not session:
        jars = os.environ["BENCH_JARS"]
        builder = SparkSession.builder.master("local[2]").appName("bench")
        builder = builder.config("spark.jars", ",".join(os.path.join(jars, j) for j in sorted(os.listdir(jars))
                                                        if j.endswith(".jar")))
        for name, value in {**SETTINGS, **FORMAT_SETTINGS}.items():
            builder = builder.config(name, value)
        session.append(builder.getOrCreate())
        session[0].sparkContext.setLogLevel("ERROR")
        if FORMAT == "iceberg":
            session[0].sql("CREATE NAMESPACE IF NOT EXISTS i.bench")
        warm_up()
    return session[0]


def warm_up():
    create(1, WARM_ROWS)
    for number, size in enumerate(WARM_BATCHES, 1):
        merge(1, WARM_ROWS, size, number)
    drop()


def path(name):
    return os.path.join(DIR, name)


def write_parquet(name, batches):
    os.makedirs(path(name), exist_ok=True)
    for i, batch in enumerate(batches):
        with pq.ParquetWriter(os.path.join(path(name), "%d.parquet" % i), mergebench.SCHEMA) as w:
            w.write_batch(batch)


def create(seed, target):
    """Makes the table of the initial rows by Spark's own INSERT; returns its seconds."""
    write_parquet("base", (mergebench.rows(seed, np.arange(start, min(start + FILE_ROWS, target), dtype=np.int64), 0)
                           for start in range(0, target, FILE_ROWS)))
    begin = time.perf_counter()
    spark().sql("CREATE TABLE %s (%s) USING %s TBLPROPERTIES (%s)" % (
        TABLE, COLUMNS, FORMAT, ", ".join("'%s'='%s'" % p for p in PROPERTIES.items())))
    spark().sql("INSERT INTO %s SELECT * FROM parquet.`%s`" % (TABLE, path("base")))
    took = time.perf_counter() - begin
    shutil.rmtree(path("base"))
    return took


def merge(seed, target, size, number):
    """Merges one batch; returns [seconds, CPU seconds of the JVM] of MERGE alone."""
    source = "batch-%d" % number  # a folder of its own: Spark remembers files
    write_parquet(source, [mergebench.rows(seed, mergebench.batch_ids(seed, target, size, number), number)])
    spark().read.parquet(path(source)).createOrReplaceTempView("s")
    wall, cpu = clock()
    spark().sql(MERGE)
    took = [round(b - a, 4) for a, b in zip((wall, cpu), clock())]
    shutil.rmtree(path(source))
    return took


def drop():
    spark().sql("DROP TABLE %s%s" % (TABLE, " PURGE" if FORMAT == "iceberg" else ""))


def jvm(name):
    """A file of /proc about the JVM."""
    with open("/proc/%d/%s" % (spark().sparkContext._jvm.java.lang.ProcessHandle.current().pid(), name)) as f:
        return f.read()


def clock():
    fields = jvm("stat").rpartition(")")[2].split()
    return time.perf_counter(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb():
    return next(int(line.split()[1]) for line in jvm("status").splitlines() if line.startswith("VmHWM:")) // 1024


def digest():
    """Of the table as Spark reads it, through a copy in Parquet: rows would pass through Python's memory otherwise."""
    spark().table(TABLE).write.parquet(path("copy"))
    d = rowtext.Digest()
    for name in sorted(os.listdir(path("copy"))):
        if name.endswith(".parquet"):
            for batch in pq.ParquetFile(os.path.join(path("copy"), name)).iter_batches(batch_size=200_000):
                d.add(rowtext.rows(batch, {}))
    shutil.rmtree(path("copy"))
    return {"count": d.rows, "digest": d.hex()}


def bench_merge(request):
    """Loads target rows, then times each merge alone, and reads the table; making the batch is not timed."""
    seed, target, size = request.get("seed", 1), request["target_rows"], request["batch_rows"]
    spark()
    load_s = create(seed, target)
    try:
        merges = [merge(seed, target, size, number) for number in range(1, request["merges"] + 1)]
        return {"load_s": round(load_s, 3), "merges": merges, "rss_mb": peak_mb(), **digest()}
    finally:
        drop()


if __name__ == "__main__":
    wire.serve({"judge": "spark-" + FORMAT, "version": pyspark.__version__}, {"ping": lambda r: {}, "bench_merge": bench_merge})
