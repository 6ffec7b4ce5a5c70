"""The line protocol of the judges: one JSON request a line on stdin, one JSON response a line on stdout.

{"id":n,"cmd":"…",…} is answered by {"id":n,"ok":true,…} or {"id":n,"ok":false,"error":class,"message":…}.
The process ends when its standard input does, so it cannot outlive the test that started it.
"""

import json
import os
import sys
import traceback


class Raw(str):
    """Text that already is JSON."""


def dumps(value):
    """Like json.dumps, with Raw spliced in."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(k) + ":" + dumps(v) for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(dumps, value)) + "]"
    return json.dumps(value)


def describe(error):
    chain, e = [], error
    while e is not None:
        chain.append("%s: %s" % (type(e).__name__, e))
        root, e = e, e.__cause__ or (None if e.__suppress_context__ else e.__context__)
    stack = [line.strip() for line in traceback.format_tb(root.__traceback__)[-6:]]
    return {"ok": False, "error": type(root).__name__, "message": " <- ".join(chain), "stack": stack}


def integer(text):
    """Minus zero is a number of its own."""
    return text if text == "-0" else int(text)


def serve(hello, commands):
    """Answers until standard input ends; commands maps a name to a function of the request."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not reach the protocol

    def send(response):
        out.write(dumps(response) + "\n")
        out.flush()

    send({"id": 0, "ok": True, **hello})
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        request_id = None
        try:
            request = json.loads(line, parse_float=str, parse_int=integer)
            request_id = request.get("id")
            if request.get("cmd") not in commands:
                raise ValueError("unknown command %r" % request.get("cmd"))
            response = {"ok": True, **(commands[request["cmd"]](request) or {})}
        except BaseException as e:  # a panic of a native library is a BaseException too
            if isinstance(e, KeyboardInterrupt):
                raise
            response = describe(e)
        send({"id": request_id, **response})
