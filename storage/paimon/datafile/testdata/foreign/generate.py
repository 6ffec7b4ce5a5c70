# Writes the files of this folder with Arrow C++ (pyarrow) and arrow-rs
# (datafusion). The Go test holds the same formulas.
# Needs: pyarrow 26.0.1, datafusion 55.0.0. Run in this folder.
import decimal
import pyarrow as pa
import pyarrow.parquet as pq

N = 120
decimal.getcontext().prec = 60
dec = lambda unscaled, scale: decimal.Decimal(unscaled).scaleb(-scale)


def column(c, typ, f):
    return pa.array([None if (i + c) % 7 == 0 else f(i) for i in range(N)], typ)


types = [
    ("bo", pa.bool_(), lambda i: i % 2 == 0),
    ("i8", pa.int8(), lambda i: i * 37 % 256 - 128),
    ("i16", pa.int16(), lambda i: i * 111 - 6000),
    ("i32", pa.int32(), lambda i: i * 7_000_000 - 400_000_000),
    ("i64", pa.int64(), lambda i: i * 10**15 - 6 * 10**16),
    ("f32", pa.float32(), lambda i: i / 4 - 10),
    ("f64", pa.float64(), lambda i: i / 8 - 10),
    ("d9", pa.decimal128(9, 2), lambda i: dec(i * 12345 - 700_000, 2)),
    ("d18", pa.decimal128(18, 4), lambda i: dec(i * 10**14 - 6 * 10**15, 4)),
    ("d38", pa.decimal128(38, 18), lambda i: dec((i - 60) * 10**35, 18)),
    ("s", pa.string(), lambda i: f"text-{i % 20}" * (i % 3)),
    ("b", pa.binary(), lambda i: bytes([i]) * (i % 5)),
    ("fb", pa.binary(3), lambda i: i.to_bytes(3, "big")),
    ("da", pa.date32(), lambda i: i * 100 - 6000),
    ("tm", pa.time32("ms"), lambda i: i * 1001),
    ("tu", pa.time64("us"), lambda i: i * 1000123),
    ("ms", pa.timestamp("ms"), lambda i: i * 10**9 - 6 * 10**10),
    ("us", pa.timestamp("us"), lambda i: (i * 10**9 - 6 * 10**10) * 1000 + i),
    ("ns", pa.timestamp("ns"), lambda i: i * 10**15 - 6 * 10**16 + i),
    ("lz", pa.timestamp("us", "UTC"), lambda i: i - 60),
    ("li", pa.list_(pa.int32()), lambda i: [i, None, i + 1][: i % 4]),
    ("ma", pa.map_(pa.string(), pa.int64()), lambda i: [(f"k{j}", i * j) for j in range(i % 3)]),
    ("st", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
     lambda i: {"x": None if i % 5 == 0 else i, "y": None if i % 3 == 0 else ["v"] * (i % 2)}),
    ("ls", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())])),
     lambda i: [None if j == 1 else {"a": i * j, "b": f"b{j}"} for j in range(i % 4)]),
]
table = pa.table({n: column(c, t, f) for c, (n, t, f) in enumerate(types)})


def write(name, **kw):
    pq.write_table(table, name + ".parquet", store_schema=False, row_group_size=70, data_page_size=256, **kw)


write("arrow_dictionary", compression="zstd", write_page_checksum=True, write_page_index=True)
write("arrow_plain_old_names", compression="snappy", use_dictionary=False, use_compliant_nested_type=False, version="1.0",
      coerce_timestamps="us", allow_truncated_timestamps=True)
write("arrow_v2_pages", compression="gzip", data_page_version="2.0", store_decimal_as_integer=True)
write("arrow_int96", compression="lz4", use_deprecated_int96_timestamps=True)
delta = {n: "DELTA_BINARY_PACKED" for n in ["i8", "i16", "i32", "i64", "da", "tm", "tu", "ms", "us", "ns", "lz"]}
delta |= {"s": "DELTA_BYTE_ARRAY", "b": "DELTA_LENGTH_BYTE_ARRAY", "bo": "RLE", "fb": "DELTA_BYTE_ARRAY",
          "f32": "BYTE_STREAM_SPLIT", "f64": "BYTE_STREAM_SPLIT", "li.list.element": "DELTA_BINARY_PACKED", "d38": "BYTE_STREAM_SPLIT"}
write("arrow_delta", compression="none", use_dictionary=False, data_page_version="2.0", column_encoding=delta)
write("arrow_brotli", compression="brotli")

import datafusion

ctx = datafusion.SessionContext()
ctx.from_arrow(table).write_parquet("arrow_rs.parquet", compression="zstd", compression_level=1)
