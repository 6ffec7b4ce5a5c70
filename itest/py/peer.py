"""pypaimon as a judge: reads tables, and appends to them. The protocol is in wire.py.

Predicates are pushed down where pypaimon can; it filters the rest itself.
"""

import datetime
import decimal
import importlib.metadata

import pyarrow as pa
from pypaimon import CatalogFactory

import rowtext
import wire

BATCH_ROWS = 65536
OPERATORS = {"=": "equal", "!=": "not_equal", "<": "less_than", "<=": "less_or_equal", ">": "greater_than",
             ">=": "greater_or_equal", "is null": "is_null", "is not null": "is_not_null", "in": "is_in",
             "not in": "is_not_in", "between": "between", "starts with": "startswith"}


def catalog(request):
    # A new one each time: nothing may be cached between two looks at a table.
    return CatalogFactory.create({"warehouse": request["warehouse"]})


def table(request):
    t = catalog(request).get_table(request["table"])
    options = dict(request.get("dynamic_options") or {})
    if request.get("snapshot"):
        options["scan.snapshot-id"] = str(request["snapshot"])
    if request.get("tag"):
        options["scan.tag-name"] = request["tag"]
    return t.copy(options) if options else t


def type_texts(t):
    return {f.name: str(f.type) for f in t.fields}


def arrow_types(t):
    from pypaimon.schema.data_types import PyarrowFieldParser
    return PyarrowFieldParser.from_paimon_schema(t.fields)


def where(request, t, builder):
    conditions = request.get("where") or []
    if not conditions:
        return None
    schema = arrow_types(t)
    all_of = []
    for c in conditions:
        name, type_ = c["column"], schema.field(c["column"]).type
        args = [name]
        if c["op"] in ("in", "not in"):
            args.append([literal(v, type_) for v in c["values"]])
        elif c["op"] == "between":
            args += [literal(v, type_) for v in c["values"]]
        elif "value" in c:
            args.append(literal(c["value"], type_))
        all_of.append(getattr(builder, OPERATORS[c["op"]])(*args))
    return builder.and_predicates(all_of)


def scan(request, each):
    """Calls each with the row texts of every batch; returns the number of files and the columns."""
    t = table(request)
    builder = t.new_read_builder()
    predicate = where(request, t, builder.new_predicate_builder())
    if predicate is not None:
        builder = builder.with_filter(predicate)
    if request.get("columns"):
        builder = builder.with_projection(request["columns"])
    splits = builder.new_scan().plan().splits()
    types, columns = type_texts(t), request.get("columns") or [f.name for f in t.fields]
    if splits:
        for batch in builder.new_read().to_arrow_batch_reader(splits):
            for start in range(0, batch.num_rows, BATCH_ROWS):
                each(rowtext.rows(batch.slice(start, BATCH_ROWS), types))
    return {"files": sum(len(s.files) for s in splits), "columns": columns}


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


def literal(v, type_):
    """A JSON value as the Python object that pyarrow takes for the type."""
    ty = pa.types
    if v is None:
        return None
    if ty.is_decimal(type_):
        return decimal.Decimal(str(v)).quantize(decimal.Decimal(1).scaleb(-type_.scale), context=decimal.Context(prec=38))
    if ty.is_floating(type_):
        return float(v)
    if ty.is_integer(type_):
        return int(v)
    if ty.is_binary(type_) or ty.is_large_binary(type_) or ty.is_fixed_size_binary(type_):
        return bytes.fromhex(v)
    if ty.is_date(type_):
        return datetime.date.fromisoformat(v)
    if ty.is_time(type_):
        return datetime.time.fromisoformat(v)
    if ty.is_timestamp(type_):
        return stamp(v, type_)
    if ty.is_struct(type_):
        return {f.name: literal(v.get(f.name), f.type) for f in type_}
    if ty.is_map(type_):
        pairs = v.items() if isinstance(v, dict) else v
        return [(literal(k, type_.key_type), literal(x, type_.item_type)) for k, x in pairs]
    if ty.is_list(type_) or ty.is_large_list(type_):
        return [literal(x, type_.value_type) for x in v]
    return v


def stamp(v, type_):
    """Nanoseconds do not fit into datetime: pyarrow parses the text itself."""
    text = v[:-1] if v.endswith("Z") else v
    return pa.scalar(text).cast(pa.timestamp(type_.unit)).cast(pa.int64()).cast(type_).as_py() \
        if type_.unit != "ns" else pa.scalar(text).cast(pa.timestamp("ns")).value


def insert(request):
    t = table(request)
    schema = arrow_types(t)
    columns = [pa.array([literal(r.get(f.name), f.type) for r in request["rows"]], f.type) for f in schema]
    builder = t.new_batch_write_builder()
    if "overwrite" in request:
        builder = builder.overwrite(request["overwrite"])
    write, commit = builder.new_write(), builder.new_commit()
    try:
        write.write_arrow(pa.Table.from_arrays(columns, schema=schema))
        commit.commit(write.prepare_commit())
    finally:
        write.close()
        commit.close()
    return {"inserted": len(request["rows"])}


def tables(request):
    c = catalog(request)
    return {"tables": ["%s.%s" % (d, t) for d in c.list_databases() for t in c.list_tables(d)]}


def schema(request):
    t = table(request)
    return {"columns": [{"id": f.id, "name": f.name, "type": str(f.type)} for f in t.fields],
            "partition_keys": list(t.partition_keys), "primary_keys": list(t.primary_keys)}


if __name__ == "__main__":
    wire.serve({"judge": "pypaimon", "version": importlib.metadata.version("pypaimon")},
               {"ping": lambda r: {}, "tables": tables, "schema": schema, "read": read, "count": count,
                "digest": digest, "insert": insert})
