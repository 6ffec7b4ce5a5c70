"""The rows of the merge benchmark, the same as Go's harness.MergeLoad makes.

Everything follows from (seed, id, version) by 64-bit integer arithmetic, so that two programs that never
exchange rows end with the same table, which the digest shows.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
MUL1, MUL2 = U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)
VERSION_STEP = U(0xD1342543DE82EF95)
BASE_MICROS, SPAN_MICROS = 1_600_000_000_000_000, 315_360_000_000_000
BASE_DAY, SPAN_DAYS = 10957, 9000

COLUMNS = ["id", "v", "name", "city", "score", "amount", "ts", "d"]
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64()), ("name", pa.string()), ("city", pa.string()),
                    ("score", pa.float64()), ("amount", pa.decimal128(18, 2)), ("ts", pa.timestamp("us")),
                    ("d", pa.date32())])
SQL_COLUMNS = ("id BIGINT, v BIGINT, name STRING, city STRING, score DOUBLE, amount DECIMAL(18,2), "
               "ts TIMESTAMP(6), d DATE")


def mix(x):
    """The finalizer of splitmix64, on arrays."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> U(30))) * MUL1
        x = (x ^ (x >> U(27))) * MUL2
    return x ^ (x >> U(31))


def rows(seed, ids, version):
    """One record batch: the rows of these ids at one version."""
    with np.errstate(over="ignore"):
        h = mix(U(seed) + ids.astype(U) * GOLDEN + U(version) * VERSION_STEP)
        cell = [mix(h + U(i) * GOLDEN) for i in range(1, 8)]
    # DECIMAL cells are 16 bytes of little-endian two's complement; these are never negative.
    decimals = np.zeros(len(ids) * 2, np.int64)
    decimals[::2] = (cell[4] % U(1_000_000_000_000)).astype(np.int64)
    amount = pa.Array.from_buffers(pa.decimal128(18, 2), len(ids), [None, pa.py_buffer(decimals)])
    return pa.record_batch([
        pa.array(ids, pa.int64()),
        pa.array((cell[0] >> U(1)).astype(np.int64)),
        joined("user-", cell[1]),
        joined("city-", cell[2] % U(1000)),
        pa.array((cell[3] >> U(11)).astype(np.float64) / 9007199254740992.0 * 1000.0),
        amount,
        pa.array((cell[5] % U(SPAN_MICROS)).astype(np.int64) + BASE_MICROS).cast(pa.timestamp("us")),
        pa.array(((cell[6] % U(SPAN_DAYS)).astype(np.int32) + BASE_DAY)).cast(pa.date32()),
    ], schema=SCHEMA)


def joined(prefix, numbers):
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def batch_ids(seed, target, size, number):
    """The ids of batch 1, 2, …: 90 % distinct ids drawn uniformly from what exists, then 10 % new ones."""
    inserts = size // 10
    current = target + (number - 1) * inserts
    updates, drawn = size - inserts, 0
    if updates * 2 > current:
        raise ValueError("a batch of %d is too large for %d rows" % (size, current))
    picked = np.zeros(0, np.int64)
    while len(picked) < updates:
        drawn += updates + updates // 4 + 100
        with np.errstate(over="ignore"):
            stream = mix(U(seed) + (U(number) << U(40)) + np.arange(drawn, dtype=U) * GOLDEN)
        candidates = (stream % U(current)).astype(np.int64)
        _, first = np.unique(candidates, return_index=True)
        picked = candidates[np.sort(first)][:updates]
    return np.concatenate([picked, np.arange(current, current + inserts, dtype=np.int64)])
