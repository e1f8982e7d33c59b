"""The language servers of one build: one per language, started with its first file and kept until the end.

A server that cannot be started at all fails the build. One that fails later is started again a few times; the file
that it failed on has failed, and so have those that are left when it is given up. They are tried again by the next
build.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Self

from tsuzuki.collectors.codeindex.extract import as_utf8
from tsuzuki.collectors.codeindex.lsp.client import LspClient, OpenDocument, RequestRefused
from tsuzuki.collectors.codeindex.lsp.document_symbols import InvalidAnswer, as_symbols
from tsuzuki.collectors.codeindex.lsp.document_symbols import Parsed as ParserFound
from tsuzuki.collectors.codeindex.lsp.server_process import LspLimits, ServerFailed
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.collectors.codeindex.parsing.parse import (
    ParseLimits,
    content_hash,
    parse_file,
    read_content,
)
from tsuzuki.collectors.codeindex.parsing.parsed_file import (
    FileOutcome,
    FileToParse,
    Parsed,
    ParsedFile,
)
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import ServiceUnreachable

READ_AGAIN_MAX = 3
_ASKED = (FileOutcome.INDEXED, FileOutcome.SYNTAX_ERRORS)
_LANGUAGE_IDS = {"bash": "shellscript", "tsx": "typescriptreact"}


class ServerUnavailable(ServiceUnreachable):
    """A configured language server cannot be started."""

    code = "language_server_unavailable"


class LanguageServers:
    """Use it in a `with`: leaving ends the servers."""

    def __init__(
        self,
        root: Path,
        commands: Mapping[str, ServerCommand],
        *,
        parse_limits: ParseLimits,
        limits: LspLimits,
        tick: Callable[[], None] = lambda: None,
        clock: Clock | None = None,
    ) -> None:
        self._root = root
        self._commands = commands
        self._parse_limits = parse_limits
        self._limits = limits
        self._tick = tick
        self._clock = clock or SystemClock()
        self._servers: dict[str, _Server] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, problem: object, *_rest: object) -> None:
        try:
            for server in self._servers.values():
                if problem is None:
                    server.close()
        finally:
            for server in self._servers.values():
                server.abort()

    def with_symbols(self, parsed: Parsed) -> Parsed:
        """A file that was parsed, with the symbols of its server if its language has one."""
        for _ in range(READ_AGAIN_MAX):
            command = self._command_for(parsed)
            if not isinstance(parsed, ParsedFile) or command is None:
                return parsed
            if parsed.outcome is FileOutcome.FAILED:
                return parsed
            parsed = parsed._replace(extractor=command.extractor)
            if parsed.outcome not in _ASKED:
                return parsed
            content = read_content(self._root, parsed.path, self._parse_limits)
            if content is not None and content_hash(content) == parsed.hash:
                return self._asked(parsed, command, content)
            parsed = parse_file(str(self._root), FileToParse(path=parsed.path), self._parse_limits)
        if not isinstance(parsed, ParsedFile):
            return parsed
        return _failed(parsed, "the file kept changing while it was read")

    def _command_for(self, parsed: Parsed) -> ServerCommand | None:
        language = parsed.language if isinstance(parsed, ParsedFile) else None
        return self._commands.get(language) if language else None

    def _asked(self, parsed: ParsedFile, command: ServerCommand, content: bytes) -> ParsedFile:
        server = self._servers.get(command.language)
        if server is None:
            connect = partial(
                LspClient,
                command,
                root=self._root,
                limits=self._limits,
                clock=self._clock,
                tick=self._tick,
            )
            server = _Server(command, connect, starts_max=self._limits.restarts_max + 1)
            self._servers[command.language] = server
        text = shown_text(content)
        document = OpenDocument(
            path=self._root / parsed.path,
            language_id=_language_id(command.language, parsed.path),
            text=text,
        )
        found = ParserFound(command.language, text.split("\n"), parsed.symbols, parsed.references)
        try:
            answer, encoding = server.document_symbols(document)
            return parsed._replace(symbols=as_symbols(answer, found, encoding=encoding))
        except (InvalidAnswer, RequestRefused, ServerFailed) as problem:
            return _failed(parsed, f"language server {command.words[0]}: {problem}")


class _Server:
    """The server of one language, started again when it failed."""

    def __init__(
        self, command: ServerCommand, connect: Callable[[], LspClient], *, starts_max: int
    ) -> None:
        self._command = command
        self._connect = connect
        self._starts_max = starts_max
        self._client: LspClient | None = None
        self._starts = 0
        self._last_problem = ""

    def document_symbols(self, document: OpenDocument) -> tuple[object, str]:
        """The answer, and in which units its columns are. Raises `RequestRefused` or `ServerFailed`."""
        try:
            client = self._client or self._start()
            return client.document_symbols(document), client.position_encoding
        except ServerFailed as problem:
            self._last_problem = str(problem)
            self.abort()
            raise

    def _start(self) -> LspClient:
        if self._starts >= self._starts_max:
            raise ServerFailed(
                f"skipped after {self._starts} failed starts; last error: {self._last_problem}"
            )
        self._starts += 1
        try:
            client = self._client = self._connect()
            client.start()
        except ServerFailed as problem:
            if self._starts > 1:
                raise
            self.abort()
            raise ServerUnavailable(
                f"cannot start the language server for {self._command.language}: {self._command}: "
                f"{problem}",
                hint="Install it, give its full path, or index without it: --lsp "
                f"{self._command.language}=none",
            ) from None
        return client

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def abort(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.abort()


def shown_text(content: bytes) -> str:
    """The text as a server sees it: of the same lines as ours. To a server a lone carriage return ends a line."""
    text = as_utf8(content).decode("utf-8", "replace")
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\0").replace("\r", " ").replace("\0", "\r\n")


def _language_id(language: str, path: str) -> str:
    if language == "javascript" and path.endswith(".jsx"):
        return "javascriptreact"
    return _LANGUAGE_IDS.get(language, language)


def _failed(parsed: ParsedFile, error: str) -> ParsedFile:
    """Of a file that failed, the index keeps the old symbols and references."""
    return parsed._replace(outcome=FileOutcome.FAILED, error=error, symbols=(), references=())
