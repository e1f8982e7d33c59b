"""The client's side of the Language Server Protocol, as much of it as `textDocument/documentSymbol` needs.

One request at a time. What the server asks meanwhile is answered: with no settings, with the folder of the tree, and
with an error where we cannot do what it wants. What it only tells is ignored.
"""

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tsuzuki.collectors.codeindex.lsp.framing import Message
from tsuzuki.collectors.codeindex.lsp.server_process import (
    LspLimits,
    ServerFailed,
    ServerProcess,
)
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.model.clock import Clock

POSITION_ENCODINGS = ("utf-32", "utf-8", "utf-16")
"""What we understand, best first: of UTF-32, units are characters, as in the index."""

METHOD_NOT_FOUND = -32601
ASK_AGAIN = frozenset({-32800, -32801, -32802})
"""The server cancelled the request by itself, or its content changed."""

ASK_AGAIN_MAX = 3


class RequestRefused(Exception):
    """The server answered a request with an error. It can be asked about other files."""


@dataclass(frozen=True, kw_only=True)
class OpenDocument:
    """A file as it is shown to the server."""

    path: Path
    language_id: str
    text: str


class LspClient:
    """A conversation with one server. `start` it first, `close` it at the end."""

    def __init__(
        self,
        command: ServerCommand,
        *,
        root: Path,
        limits: LspLimits,
        clock: Clock,
        tick: Callable[[], None],
    ) -> None:
        self._root = root
        self._limits = limits
        self._clock = clock
        self._tick = tick
        self._numbers = itertools.count(1)
        self._has_answered = False
        self._started_seconds = clock.monotonic()
        self._process = ServerProcess(command, root=root, limits=limits, clock=clock, tick=tick)
        self.position_encoding = "utf-16"

    def start(self) -> None:
        """Agree on what both sides can do. Raises `ServerFailed`."""
        try:
            answer = self._request("initialize", self._introduction())
        except RequestRefused as problem:
            raise ServerFailed(f"failed to start: {problem}") from None
        can = answer.get("capabilities") if isinstance(answer, dict) else None
        if not isinstance(can, dict):
            raise ServerFailed("did not report its capabilities")
        provider = can.get("documentSymbolProvider")
        if provider is None or provider is False:
            raise ServerFailed("does not support textDocument/documentSymbol")
        encoding = can.get("positionEncoding") or "utf-16"
        if encoding not in POSITION_ENCODINGS:
            raise ServerFailed(f"counts columns in {encoding!r}, which was not offered")
        self.position_encoding = encoding
        self._notify("initialized", {})

    def document_symbols(self, document: OpenDocument) -> Any:
        """The server's answer as it came. Raises `RequestRefused`, or `ServerFailed`."""
        uri = document.path.as_uri()
        opened = {
            "uri": uri,
            "languageId": document.language_id,
            "version": 1,
            "text": document.text,
        }
        self._notify("textDocument/didOpen", {"textDocument": opened})
        try:
            answer = self._request(
                "textDocument/documentSymbol", {"textDocument": {"uri": uri}}, is_about_file=True
            )
        except RequestRefused:
            self._notify("textDocument/didClose", {"textDocument": {"uri": uri}})
            raise
        self._notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        return answer

    def close(self) -> None:
        """Ask the server to end, and end it."""
        try:
            if self._has_answered:
                deadline = self._clock.monotonic() + self._limits.end_seconds_max
                self._answer_to("shutdown", None, deadline)
                self._notify("exit", None)
                self._process.flush()
        except (RequestRefused, ServerFailed, TimeoutError):
            return
        finally:
            self._process.end()

    def abort(self) -> None:
        """End the server without asking."""
        self._process.end()

    def _introduction(self) -> Message:
        uri = self._root.as_uri()
        return {
            "processId": os.getpid(),
            "clientInfo": {"name": "tsuzuki"},
            "rootUri": uri,
            "rootPath": str(self._root),
            "workspaceFolders": [{"uri": uri, "name": self._root.name}],
            "capabilities": {
                "general": {"positionEncodings": list(POSITION_ENCODINGS)},
                "workspace": {"configuration": True, "workspaceFolders": True},
                "textDocument": {
                    "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
                    "synchronization": {},
                },
            },
        }

    def _request(self, method: str, params: Any, *, is_about_file: bool = False) -> Any:
        for attempt in itertools.count(1):
            now = self._clock.monotonic()
            deadline = now + self._limits.request_seconds_max
            if not self._has_answered:
                deadline = max(deadline, self._started_seconds + self._limits.start_seconds_max)
            try:
                answer = self._answer_to(method, params, deadline)
            except TimeoutError:
                raise ServerFailed(
                    f"did not answer {method} within {deadline - now:g} seconds"
                ) from None
            error = answer.get("error")
            if error is None:
                self._has_answered = self._has_answered or is_about_file
                return answer.get("result")
            code = error.get("code") if isinstance(error, dict) else None
            if code not in ASK_AGAIN or attempt >= ASK_AGAIN_MAX:
                raise RequestRefused(f"{method}: {_error_words(error)}")
        raise AssertionError("the loop has no end of its own")

    def _answer_to(self, method: str, params: Any, deadline: float) -> Message:
        """The response to a request; other messages may come before it."""
        number = next(self._numbers)
        request: Message = {"id": number, "method": method}
        self._process.send(request if params is None else {**request, "params": params})
        self._process.expect_answer()
        while True:
            message = self._process.receive(deadline)
            if "method" in message:
                self._reply(message)
            elif message.get("id") == number:
                return message

    def _notify(self, method: str, params: Any) -> None:
        message: Message = {"method": method}
        self._process.send(message if params is None else {**message, "params": params})

    def _reply(self, message: Message) -> None:
        """Answer what the server asks."""
        if "id" not in message:
            return
        method, params = message["method"], message.get("params")
        reply: Message = {"id": message["id"]}
        match method:
            case "workspace/configuration":
                items = params.get("items") if isinstance(params, dict) else None
                reply["result"] = [None] * (len(items) if isinstance(items, list) else 0)
            case "workspace/workspaceFolders":
                reply["result"] = [{"uri": self._root.as_uri(), "name": self._root.name}]
            case "workspace/applyEdit":
                reply["result"] = {"applied": False}
            case (
                "client/registerCapability"
                | "client/unregisterCapability"
                | "window/workDoneProgress/create"
                | "window/showMessageRequest"
            ):
                reply["result"] = None
            case _:
                reply["error"] = {"code": METHOD_NOT_FOUND, "message": f"{method} is not known"}
        self._process.send(reply)


def _error_words(error: Any) -> str:
    """An error of the server in one short line."""
    if not isinstance(error, dict):
        return ascii(error)[:200]
    return f"{' '.join(str(error.get('message')).split())[:200]} ({error.get('code')})"
