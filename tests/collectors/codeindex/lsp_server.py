"""A small language server for tests: `python lsp_server.py MODE`. It defines what lines with `def` or `class` say.

A file with `bad` in its name is where the mode shows; every other file is answered well. With the mode `by-name` the
file says it: `bad-dies.py`.
"""

import json
import os
import re
import subprocess
import sys
import time
from typing import Any

MODE = sys.argv[1]
INPUT, OUTPUT = sys.stdin.buffer, sys.stdout.buffer
NAMED = re.compile(r"^(\s*)(?:def|class) (\w+)")
TEXTS: dict[str, str] = {}
ENCODING = MODE if MODE.startswith("utf-") else None
SIZES = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


def send(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    OUTPUT.write(b"Content-Length: %d\r\nContent-Type: x\r\n\r\n%s" % (len(body), body))
    OUTPUT.flush()


def receive() -> dict[str, Any]:
    length = 0
    while (line := INPUT.readline()) != b"\r\n":
        if not line:
            if MODE == "stays":
                time.sleep(600)
            sys.exit(1)
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    message: dict[str, Any] = json.loads(INPUT.read(length))
    return message


def units(text: str) -> int:
    coded = text.encode(SIZES[ENCODING or "utf-16"])
    return len(coded) // {"utf-8": 1, "utf-16": 2, "utf-32": 4}[ENCODING or "utf-16"]


def symbols(uri: str) -> list[dict[str, Any]]:
    """A class has what is indented below it, and a field that no parser finds."""
    found: list[dict[str, Any]] = []
    lines = TEXTS[uri].split("\n")
    for number, line in enumerate(lines):
        named = NAMED.match(line)
        if not named:
            continue
        where = {"line": number, "character": units(line[: named.start(2)])}
        selection = {"start": where, "end": where}
        whole = {
            "start": {"line": number, "character": 0},
            "end": {"line": min(number + 1, len(lines) - 1), "character": 0},
        }
        symbol = {"name": named[2], "kind": 12 if "def" in line else 5, "range": whole}
        if MODE == "flat":
            del symbol["range"]
            symbol["location"] = {"uri": uri, "range": whole}
            symbol["containerName"] = "Shop"
        else:
            symbol["selectionRange"] = selection
            symbol["children"] = [{**symbol, "name": "served", "kind": 8}]
        found.append(symbol)
    return found


def mode_of(uri: str) -> str:
    if "bad" not in uri.rpartition("/")[2]:
        return "good"
    return uri.rpartition("bad-")[2].removesuffix(".py") if MODE == "by-name" else MODE


def wrong(uri: str, mode: str) -> Any:
    """What the mode answers about a bad file."""
    place = {"line": 0, "character": 0}
    far = {"line": 900, "character": 0}
    spans = {
        "range": {"start": place, "end": place},
        "selectionRange": {"start": place, "end": place},
    }
    deep: dict[str, Any] = {"name": "x", "kind": 12, **spans}
    for _ in range(150):
        deep = {"name": "x", "kind": 5, **spans, "children": [deep]}
    return {
        "null": None,
        "text": "no symbols",
        "far": [{"name": "x", "kind": 12, "range": {"start": place, "end": far}}],
        "outside": [
            {"name": "x", "kind": 12, **spans, "selectionRange": {"start": far, "end": far}}
        ],
        "nameless": [{"kind": 12, **spans}],
        "deep": [deep],
    }.get(mode, symbols(uri))


RAW = {
    "garbage": b"Segmentation fault\n\n",
    "no-json": b"Content-Length: 5\r\n\r\n{oops",
    "huge": b"Content-Length: 99999999999\r\n\r\n",
}
NOTES = {
    "floods": ({"method": "window/logMessage", "params": {"message": "x" * 10_000}}, 0.0),
    "trickles": ({"method": "$/progress", "params": {}}, 0.05),
}


def show_mode(mode: str, number: int) -> None:
    """What the mode does instead of an answer; it returns if there is one all the same."""
    if mode == "dies":
        os.write(2, b"out of memory\n")
        os._exit(7)
    if mode == "hangs":
        time.sleep(600)
    if mode == "refuses":
        send({"id": number, "error": {"code": -32603, "message": "it\nbroke"}})
    if mode == "asks":
        ask()
    OUTPUT.write(RAW.get(mode, b""))
    OUTPUT.flush()
    while mode in NOTES:
        note, seconds = NOTES[mode]
        send(note)
        time.sleep(seconds)


def ask() -> None:
    """Ask everything, and go on only if the replies are right."""
    questions = {
        "workspace/configuration": ({"items": [{}, {}]}, [None, None]),
        "client/registerCapability": ({"registrations": []}, None),
        "window/workDoneProgress/create": ({"token": 1}, None),
        "workspace/applyEdit": ({"edit": {}}, {"applied": False}),
    }
    for method, (params, expected) in questions.items():
        send({"id": method, "method": method, "params": params})
        reply = receive()
        if reply.get("id") != method or "result" not in reply or reply["result"] != expected:
            sys.exit(f"{method} was answered with {reply}")
    send({"id": 5, "method": "workspace/semanticTokens/refresh"})
    if receive().get("error", {}).get("code") != -32601:
        sys.exit("a question that is not known was not refused")


def introduce(number: int) -> None:
    can: dict[str, Any] = {"documentSymbolProvider": MODE != "cannot"}
    if ENCODING:
        can["positionEncoding"] = ENCODING
    send({"id": number, "result": {"capabilities": can}})
    if MODE == "talks":  # without reading, until all is written
        for _ in range(100):
            send({"method": "window/logMessage", "params": {"message": "x" * 20_000}})
    if MODE == "always-dies":
        sys.exit(3)


def handle(message: dict[str, Any]) -> None:
    document = (message.get("params") or {}).get("textDocument", {})
    match message.get("method"):
        case "initialize":
            introduce(message["id"])
        case "textDocument/didOpen":
            TEXTS[document["uri"]] = document["text"]
        case "textDocument/documentSymbol":
            mode = mode_of(document["uri"])
            show_mode(mode, message["id"])
            send({"id": message["id"], "result": wrong(document["uri"], mode)})
        case "shutdown":
            send({"id": message["id"], "result": None})
        case "exit" if MODE not in ("stays", "child"):
            sys.exit(0)


if MODE == "child":
    subprocess.Popen(["sleep", "600"])
while True:
    handle(receive())
