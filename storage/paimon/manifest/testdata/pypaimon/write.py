"""Wrote the files of this folder with fastavro and the schemas of pypaimon 2.1.0, as its manifest
managers do (fastavro.writer(buffer, SCHEMA, records, codec=...)). Argument: the unpacked package."""
import ast, sys, fastavro

root = sys.argv[1] + "/pypaimon/manifest/"
env = {}
for name in ["schema/simple_stats.py", "schema/data_file_meta.py", "schema/manifest_entry.py", "schema/manifest_file_meta.py", "index_manifest_file.py"]:
    for node in ast.parse(open(root + name).read()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id.lstrip("_").endswith(("SCHEMA", "FIELDS")):
            exec(compile(ast.Module([node], []), name, "exec"), env)

empty = bytes(12)
row = lambda v: bytes.fromhex("000000010000000000000000") + v.to_bytes(8, "little")
stats = {"_MIN_VALUES": row(1), "_MAX_VALUES": row(3), "_NULL_COUNTS": [0]}
none = {"_MIN_VALUES": empty, "_MAX_VALUES": empty, "_NULL_COUNTS": []}

def entry(i):
    return {"_VERSION": 2, "_KIND": i % 2, "_PARTITION": empty, "_BUCKET": 0, "_TOTAL_BUCKETS": -1, "_FILE": {
        "_FILE_NAME": f"data-{i}.parquet", "_FILE_SIZE": 700 + i, "_ROW_COUNT": 3, "_MIN_KEY": empty, "_MAX_KEY": empty,
        "_KEY_STATS": none, "_VALUE_STATS": stats, "_MIN_SEQUENCE_NUMBER": 0, "_MAX_SEQUENCE_NUMBER": 2, "_SCHEMA_ID": 0, "_LEVEL": 0,
        "_EXTRA_FILES": [], "_CREATION_TIME": 1767225600123, "_DELETE_ROW_COUNT": 0, "_EMBEDDED_FILE_INDEX": None, "_FILE_SOURCE": 0,
        "_VALUE_STATS_COLS": ["a"], "_EXTERNAL_PATH": None, "_FIRST_ROW_ID": None, "_WRITE_COLS": None, "_WRITE_COLS_SEQUENCES": None}}

def meta(extra, total):
    return {"_VERSION": 2, "_FILE_NAME": "manifest-1", "_FILE_SIZE": 9, "_NUM_ADDED_FILES": 2, "_NUM_DELETED_FILES": 1, "_PARTITION_STATS": none,
            "_SCHEMA_ID": 0, "_MIN_BUCKET": None, "_MAX_BUCKET": None, "_MIN_LEVEL": None, "_MAX_LEVEL": None, "_MIN_ROW_ID": 5, "_MAX_ROW_ID": 7,
            "_TOTAL_BUCKETS": total, "_EXTRA_FILES": extra}

index = {"_VERSION": 1, "_KIND": 0, "_PARTITION": empty, "_BUCKET": 0, "_INDEX_TYPE": "DELETION_VECTORS", "_FILE_NAME": "index-1", "_FILE_SIZE": 40,
         "_ROW_COUNT": 1, "_DELETIONS_VECTORS_RANGES": [{"f0": "data-0.parquet", "f1": 1, "f2": 22, "_CARDINALITY": 1}], "_EXTERNAL_PATH": None, "_GLOBAL_INDEX": None}

for codec in ["zstandard", "snappy", "deflate", "null"]:
    for kind, schema, records in [("manifest", env["MANIFEST_ENTRY_SCHEMA"], [entry(i) for i in range(3)]),
                                  ("list", env["MANIFEST_FILE_META_SCHEMA"], [meta(None, None), meta(["s.sidecar"], 4)]),
                                  ("index", env["INDEX_MANIFEST_ENTRY_SCHEMA"], [index])]:
        with open(f"{kind}-{codec}", "wb") as f:
            fastavro.writer(f, fastavro.parse_schema(schema), records, codec=codec)
