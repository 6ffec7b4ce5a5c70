"""A local Spark session: Spark's own SQL, on tables of Iceberg too. The protocol is in wire.py.

The catalog i, which is the current one, is Iceberg's, in a temporary folder; spark_catalog holds Spark's own
tables. Rows come in the texts of rowtext.py; a session keeps its temporary views between requests.

SPARK_ICEBERG names the folder of Iceberg's jar.
"""

import logging
import os
import tempfile

import pyspark
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import rowtext
import wire

session = []
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.timezone=UTC -Dfile.encoding=UTF-8"


def spark():
    if not session:
        home, jars = tempfile.mkdtemp(prefix="spark-"), os.environ["SPARK_ICEBERG"]
        settings = {
            "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "2g", "spark.driver.extraJavaOptions": JVM + " -Dderby.system.home=" + home + " -XX:ErrorFile=" + home + "/crash.log",
            "spark.jars": ",".join(os.path.join(jars, j) for j in sorted(os.listdir(jars)) if j.endswith(".jar")),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.i": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.i.type": "hadoop",
            "spark.sql.catalog.i.warehouse": "file:" + os.path.join(home, "iceberg"), "spark.sql.defaultCatalog": "i",
            "spark.sql.warehouse.dir": os.path.join(home, "warehouse"), "spark.sql.session.timeZone": "UTC",
            # One task at a time: rows keep their order, and what fails first does so every time.
            "spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false",
            # Compiling costs many times what a statement on a few rows does; a test may SET it.
            "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.ui.showConsoleProgress": "false",
        }
        builder = SparkSession.builder.master("local[1]").appName("itest")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session.append(builder.getOrCreate())
        session[0].sparkContext.setLogLevel("OFF")  # what is expected to fail would fill the log
        logging.getLogger("SQLQueryContextLogger").disabled = True
        session[0].sql("CREATE NAMESPACE IF NOT EXISTS i.default")
        session[0].sql("USE i.default")
    return session[0]


def sql(request):
    table = spark().sql(request["sql"]).toArrow()
    rows = []
    for batch in table.to_batches():
        rows.extend(map(wire.Raw, rowtext.rows(batch, {}).to_pylist()))
    return {"columns": table.schema.names, "rows": rows}


def condition(error):
    """The error condition nearest to the outside that Spark gives the error, or the innermost Java class, or Python's."""
    origin = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if origin is None:
        return (error.getCondition() if isinstance(error, PySparkException) else None) or type(error).__name__
    gateway = spark().sparkContext._gateway
    while origin is not None:
        if is_instance_of(gateway, origin, "org.apache.spark.SparkThrowable") and origin.getCondition():
            return origin.getCondition()
        name, origin = origin.getClass().getSimpleName(), origin.getCause()
    return name


def answer(statement):
    try:
        frame = spark().sql(statement)
        if not frame.columns:  # a statement that changes something, and has
            return {}
        types = [[f.name, f.dataType.simpleString()] for f in frame.schema.fields]
        table = frame.toArrow().combine_chunks()
        cells = [rowtext.texts(c.chunk(0)).to_pylist() if c.num_chunks else [] for c in table.columns]
    except (OSError, Py4JNetworkError):  # the JVM is gone
        raise
    except Exception as e:
        return {"error": {"class": condition(e), "message": str(e)[:600]}}
    return {"columns": types, "rows": [[wire.Raw(v) for v in row] for row in zip(*cells)]}


def run(request):
    """Runs statements in order and gives each one's answer, as `applier sql --format json` does."""
    return {"answers": [answer(s) for s in request["statements"]]}


if __name__ == "__main__":
    wire.serve({"judge": "spark", "version": pyspark.__version__}, {"ping": lambda r: {}, "sql": sql, "run": run})
