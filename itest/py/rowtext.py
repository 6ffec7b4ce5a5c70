"""Arrow columns as the JSON row texts of `applier cat --format jsonl`, and the digest of such rows.

The texts are the same bytes as Go's types.AppendJSON. Whole columns are turned at once where Arrow can do
it; the rest goes value by value.
"""

import codecs
import datetime
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

MASK = (1 << 64) - 1
UNIT_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
NEEDS_ESCAPE = re.compile(r'[\x00-\x1f"\\]')
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
STRING = pa.large_string()
QUOTE, EMPTY = pa.scalar('"', STRING), pa.scalar("", STRING)


def _one_replacement_a_byte(e):
    """Go replaces each bad byte by itself; Python's 'replace' would join some."""
    return "\ufffd", e.start + 1


codecs.register_error("go", _one_replacement_a_byte)


# --- types: only what Arrow does not carry (fraction digits) is taken from Paimon's type text ---

def precision(type_text, otherwise):
    m = re.search(r"\((\d+)\)", type_text or "")
    return int(m.group(1)) if m else otherwise


def split_args(text):
    """The parts between '<' and the last '>', cut at commas outside brackets."""
    inner, out, depth, start = text[text.index("<") + 1:text.rindex(">")], [], 0, 0
    for i, c in enumerate(inner):
        depth += (c in "<(") - (c in ">)")
        if c == "," and depth == 0:
            out.append(inner[start:i])
            start = i + 1
    return [p.strip() for p in out + [inner[start:]]]


def child_types(type_text, n):
    """The type texts of a nested type's n children, or Nones."""
    if not type_text or "<" not in type_text:
        return [None] * n
    parts = split_args(type_text)
    if type_text.upper().startswith("ROW"):
        parts = [re.sub(r"^(`[^`]*`|[^\s:]+):?\s+", "", p) for p in parts]
    return parts if len(parts) == n else [None] * n


def type_text(node):
    """The text of a type in a Paimon schema file, where nested types are objects."""
    if isinstance(node, str):
        return node
    root = node["type"].split(" ")[0]
    if root == "ROW":
        return "ROW<%s>" % ", ".join("`%s` %s" % (f["name"], type_text(f["type"])) for f in node["fields"])
    if root == "MAP":
        return "MAP<%s, %s>" % (type_text(node["key"]), type_text(node["value"]))
    return "%s<%s>" % (root, type_text(node["element"]))


# --- values ---

def quote(s):
    if NEEDS_ESCAPE.search(s):
        s = "".join(ESCAPES.get(c) or ("\\u%04x" % ord(c) if c < " " else c) for c in s)
    return '"' + s + '"'


def go_float(digits, value):
    """Lays out Python's or numpy's shortest digits ('1.5e-07', '12.0') as Go does."""
    sign = "-" if digits.startswith("-") else ""
    mantissa, _, exp = digits.lstrip("-").partition("e")
    whole, _, frac = mantissa.partition(".")
    point = len(whole) + int(exp or 0)
    all_digits = whole + frac
    stripped = all_digits.lstrip("0")
    point -= len(all_digits) - len(stripped)
    d = stripped.rstrip("0")
    if not d:
        return sign + "0"
    a = abs(value)
    if 1e-6 <= a < 1e21:
        if point <= 0:
            return sign + "0." + "0" * -point + d
        if point >= len(d):
            return sign + d + "0" * (point - len(d))
        return sign + d[:point] + "." + d[point:]
    e = point - 1
    return "%s%s%se%s%02d" % (sign, d[0], "." + d[1:] if len(d) > 1 else "", "-" if e < 0 else "+", abs(e))


def float_text(v, single):
    if v is None:
        return "null"
    if v != v:
        return '"NaN"'
    if v in (float("inf"), float("-inf")):
        return '"Infinity"' if v > 0 else '"-Infinity"'
    if not single:
        return go_float(repr(v), v)
    if abs(v) == 2.0 ** -12:  # two shortest texts are equally close; Go takes the other one
        return "-0.00024414063" if v < 0 else "0.00024414063"
    return go_float(np.format_float_scientific(np.float32(v), unique=True), v)


def day_text(days):
    """Any day; datetime only knows the years 1 to 9999."""
    if -719162 <= days <= 2932896:
        return datetime.date.fromordinal(days + 719163).isoformat()
    z = days + 719468
    era, doe = divmod(z, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    year = yoe + era * 400 + (month <= 2)
    y = "-%04d" % -year if year < 0 else "+%d" % year if year > 9999 else "%04d" % year
    return "%s-%02d-%02d" % (y, month, doy - (153 * mp + 2) // 5 + 1)


def clock_text(nanos, p):
    s, frac = divmod(nanos, 1_000_000_000)
    text = "%02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60)
    return text + (".%09d" % frac)[:p + 1] if p else text


def stamp_text(nanos, p, zone):
    days, rest = divmod(nanos, 86_400_000_000_000)
    return '"' + day_text(days) + "T" + clock_text(rest, p) + zone + '"'


def decimal_text(v, scale):
    if v is None:
        return "null"
    sign, digits, _ = v.as_tuple()
    d = "".join(map(str, digits)).rjust(scale + 1, "0")
    return '"' + ("-" if sign and d.strip("0") else "") + (d[:-scale] + "." + d[-scale:] if scale else d) + '"'


# --- columns ---

def by_value(arr, f):
    return pa.array([("null" if v is None else f(v)) for v in arr.to_pylist()], STRING)


def with_nulls(arr, texts):
    return pc.fill_null(texts.cast(STRING), "null") if arr.null_count else texts.cast(STRING)


def quoted(arr, texts):
    return with_nulls(arr, pc.binary_join_element_wise(QUOTE, texts.cast(STRING), QUOTE, EMPTY))


def text_column(arr):
    raw = arr.cast(pa.large_binary())
    plain = None
    try:
        plain = raw.cast(STRING)
        plain.validate(full=True)
    except pa.ArrowInvalid:
        return by_value(raw, lambda b: quote(b.decode("utf-8", "go")))
    if pc.any(pc.match_substring_regex(plain, '[\\x00-\\x1f"\\\\]')).as_py():
        return by_value(plain, quote)
    return quoted(arr, plain)


def stamp_column(arr, type_, name):
    unit = type_.unit
    p = precision(name, UNIT_DIGITS[unit])
    zone = "Z" if type_.tz else ""
    ints = arr.cast(pa.int64())
    per_day = 86_400_000_000_000 // UNIT_NANOS[unit]
    lo, hi = (pc.min(ints).as_py() or 0), (pc.max(ints).as_py() or 0)
    if p == UNIT_DIGITS[unit] and -719162 * per_day <= lo and hi < 2932897 * per_day:
        text = pc.replace_substring(ints.cast(pa.timestamp(unit)).cast(STRING), " ", "T")
        return quoted(arr, pc.binary_join_element_wise(text, pa.scalar(zone, STRING), EMPTY) if zone else text)
    return by_value(ints, lambda v: stamp_text(v * UNIT_NANOS[unit], p, zone))


def float_column(arr, single):
    """Where Arrow writes plain digits they are the same as Go's; NaN fails both tests."""
    a = pc.abs(arr)
    plain = pc.or_(pc.and_(pc.greater_equal(a, 1e-3), pc.less(a, 1e7)), pc.equal(a, 0))
    if pc.all(plain).as_py() in (True, None):
        return with_nulls(arr, arr.cast(pa.string()))
    return pa.array([float_text(v, single) for v in arr.to_pylist()], STRING)


def nested_column(arr, type_, name):
    """Children are turned as whole columns and cut by offsets."""
    valid = arr.is_valid().to_pylist()
    if pa.types.is_struct(type_):
        kids = child_types(name, type_.num_fields)
        cols = [texts(arr.field(i), kids[i]).to_pylist() for i in range(type_.num_fields)]
        heads = [quote(type_.field(i).name) + ":" for i in range(type_.num_fields)]
        rows = ["{" + ",".join(h + c[r] for h, c in zip(heads, cols)) + "}" if valid[r] else "null" for r in range(len(arr))]
        return pa.array(rows, STRING)
    offsets = arr.offsets.to_pylist()
    if pa.types.is_map(type_):
        kids = child_types(name, 2)
        keys, items = texts(arr.keys, kids[0]).to_pylist(), texts(arr.items, kids[1]).to_pylist()
        is_text = pa.types.is_string(type_.key_type) or pa.types.is_large_string(type_.key_type)
        pairs = [k + ":" + v if is_text else "[" + k + "," + v + "]" for k, v in zip(keys, items)]
        opening, closing = "{}" if is_text else "[]"
    else:
        pairs = texts(arr.values, child_types(name, 1)[0]).to_pylist()
        opening, closing = "[]"
    return pa.array([opening + ",".join(pairs[offsets[r]:offsets[r + 1]]) + closing if valid[r] else "null"
                     for r in range(len(arr))], STRING)


def texts(arr, name=None):
    """The JSON texts of one array; name is the Paimon type's text, if known."""
    t, ty = arr.type, pa.types
    if ty.is_dictionary(t):
        return texts(arr.dictionary_decode(), name)
    if ty.is_null(t):
        return pa.array(["null"] * len(arr), STRING)
    if ty.is_boolean(t):
        return with_nulls(arr, pc.if_else(arr, "true", "false"))
    if ty.is_integer(t):
        return with_nulls(arr, arr.cast(pa.string()))
    if ty.is_floating(t):
        return float_column(arr, t.bit_width == 32)
    if ty.is_decimal(t):
        if t.scale <= 6:
            return quoted(arr, arr.cast(pa.string()))
        return pa.array([decimal_text(v, t.scale) for v in arr.to_pylist()], STRING)
    if ty.is_date32(t):
        ints = arr.cast(pa.int32())
        if -719162 <= (pc.min(ints).as_py() or 0) and (pc.max(ints).as_py() or 0) <= 2932896:
            return quoted(arr, arr.cast(pa.string()))
        return by_value(ints, lambda d: '"' + day_text(d) + '"')
    if ty.is_time(t):
        per, p = UNIT_NANOS[t.unit], precision(name, UNIT_DIGITS[t.unit])
        ints = arr.cast(pa.int32() if ty.is_time32(t) else pa.int64())
        return by_value(ints, lambda v: '"' + clock_text(v * per, p) + '"')
    if ty.is_timestamp(t):
        return stamp_column(arr, t, name)
    if ty.is_string(t) or ty.is_large_string(t) or ty.is_string_view(t):
        return text_column(arr)
    if ty.is_binary(t) or ty.is_large_binary(t) or ty.is_fixed_size_binary(t) or ty.is_binary_view(t):
        return by_value(arr, lambda b: '"' + b.hex() + '"')
    return nested_column(arr, t, name)


def rows(batch, types):
    """The row texts of a record batch as one large_string array; types maps column names to type texts."""
    parts, lead = [], "{"
    for name, arr in zip(batch.schema.names, batch.columns):
        parts += [pa.scalar(lead + quote(name) + ":", STRING), texts(arr, types.get(name))]
        lead = ","
    return pc.binary_join_element_wise(*parts, pa.scalar("}", STRING), EMPTY)


class Digest:
    """The number of rows and the sum modulo 2^64 of the XXH64 of each row's text."""

    def __init__(self):
        self.rows = 0
        self.sum = 0

    def add(self, texts_of_rows):
        a, h = texts_of_rows, xxhash.xxh64_intdigest
        if not len(a):
            return
        offsets = np.frombuffer(a.buffers()[1], np.int64)[a.offset:a.offset + len(a) + 1].tolist()
        data = memoryview(a.buffers()[2])
        self.sum = (self.sum + sum(h(data[offsets[i]:offsets[i + 1]]) for i in range(len(a)))) & MASK
        self.rows += len(a)

    def hex(self):
        return "%016x" % self.sum
