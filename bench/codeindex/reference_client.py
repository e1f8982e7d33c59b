"""A language server that is asked for references and definitions: the oracle for ours."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from tsuzuki.collectors.codeindex.lsp.client import LspClient
from tsuzuki.collectors.codeindex.lsp.document_symbols import column_of
from tsuzuki.collectors.codeindex.lsp.framing import Message
from tsuzuki.collectors.codeindex.lsp.server_process import LspLimits
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.model.clock import SystemClock

Place = tuple[str, int, int]
"""A path in the tree, a line counted from 1, and a column in characters."""

_REQUEST_SECONDS_MAX = 300.0


class ReferenceClient(LspClient):
    """A conversation about the files below a root. Paths are relative to it; columns count characters."""

    def __init__(self, command: ServerCommand, *, root: Path) -> None:
        limits = LspLimits(
            start_seconds_max=_REQUEST_SECONDS_MAX, request_seconds_max=_REQUEST_SECONDS_MAX
        )
        super().__init__(command, root=root, limits=limits, clock=SystemClock(), tick=lambda: None)
        self._language = command.language
        self._lines: dict[str, list[str]] = {}
        self._opened: set[str] = set()
        self._has_listed_files = command.language != "python"

    def start(self) -> None:
        super().start()
        # basedpyright else reports the references in files that are open or imported.
        deadline = SystemClock().monotonic() + _REQUEST_SECONDS_MAX
        while not self._has_listed_files:
            message = self._process.receive(deadline)
            said = str(message.get("params"))
            self._has_listed_files = re.search(r"Found \d+ source files", said) is not None
            if "method" in message:
                self._reply(message)

    def _introduction(self) -> Message:
        # typescript-language-server else answers from single files until it has loaded the project.
        options = {"tsserver": {"useSyntaxServer": "never"}}
        more = {"initializationOptions": options} if self._language == "typescript" else {}
        return {**super()._introduction(), **more}

    def line(self, path: str, number: int) -> str:
        """The text of a line."""
        if path not in self._lines:
            self._lines[path] = (self._root / path).read_text("utf-8").split("\n")
        return self._lines[path][number - 1]

    def references(self, place: Place) -> set[Place]:
        """The places that refer to the definition in a place."""
        found = self._ask("references", place, context={"includeDeclaration": False})
        return {one for one in found if one is not None}

    def definitions(self, place: Place) -> set[tuple[str, int]]:
        """The files and lines that a place refers to."""
        return {one[:2] for one in self._ask("definition", place) if one is not None}

    def _ask(self, what: str, place: Place, **more: Any) -> list[Place | None]:
        path, line, column = place
        self._open(path)
        before = self.line(path, line)[:column]
        asked = {
            "textDocument": {"uri": (self._root / path).as_uri()},
            "position": {"line": line - 1, "character": self._units(before)},
            **more,
        }
        found: Any = self._request(f"textDocument/{what}", asked, is_about_file=True) or []
        return [self._place(one) for one in (found if isinstance(found, list) else [found])]

    def _open(self, path: str) -> None:
        if path in self._opened:
            return
        self._opened.add(path)
        opened = {
            "uri": (self._root / path).as_uri(),
            "languageId": self._language,
            "version": 1,
            "text": (self._root / path).read_text("utf-8"),
        }
        self._notify("textDocument/didOpen", {"textDocument": opened})

    def _units(self, text: str) -> int:
        match self.position_encoding:
            case "utf-32":
                return len(text)
            case "utf-8":
                return len(text.encode())
        return len(text.encode("utf-16-le")) // 2

    def _place(self, found: Any) -> Place | None:
        """None for a place outside the root."""
        file = Path(unquote(urlparse(found["uri"]).path))
        if not file.is_relative_to(self._root):
            return None
        path, start = file.relative_to(self._root).as_posix(), found["range"]["start"]
        line = start["line"] + 1
        column = column_of(self.line(path, line), start["character"], self.position_encoding)
        return path, line, column


@contextmanager
def reference_client(command: ServerCommand, *, root: Path) -> Iterator[ReferenceClient]:
    """A started server, which is ended at the end."""
    client = ReferenceClient(command, root=root.resolve())
    try:
        client.start()
        yield client
    finally:
        client.close()
