"""The blocks of a document, and a small shell that executes them.

Commands of `tsuzuki` run in this process, as a shell would start them. A comment right before a block may say how it
is meant:

    <!-- not run: REASON -->    only its syntax is checked, and that its commands exist
    <!-- exit code: 4 -->       its last command ends so
    <!-- in the background -->  its command is started, and ends with the document
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import click
import pytest

from tsuzuki.cli import run_cli
from tsuzuki.cli.root import ROOT

REPOSITORY = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<mark>[^\n]+?) -->\n(?P=indent))?```(?P<language>\w+)(?: (?P<name>[\w.-]+))?\n"
    r"(?P<text>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
ENDLESS = {"demo", "mcp", "sandbox", "up", "web", "worker", "index watch"}
"""Commands that end with a signal only. They are read, not started."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block. `mark` is the comment before it."""

    place: str
    language: str
    name: str
    text: str
    mark: str

    @property
    def exit_code(self) -> int:
        found = re.fullmatch(r"exit code: (\d+)", self.mark)
        return int(found[1]) if found else 0

    @property
    def is_run(self) -> bool:
        return not self.mark.startswith("not run: ")

    def with_command(self, line: str) -> "Block":
        return replace(self, language="sh", text=line, mark="")

    @property
    def lines(self) -> list[str]:
        """Command lines without blank ones; a backslash at the end continues a line."""
        return [line for line in self.text.replace("\\\n", " ").splitlines() if line.strip()]


def blocks_of(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    return [
        Block(
            place=f"{document.relative_to(REPOSITORY)}:{text.count(chr(10), 0, found.start()) + 1}",
            language=found["language"],
            name=found["name"] or "",
            text=dedent(found["text"]),
            mark=found["mark"] or "",
        )
        for found in BLOCK.finditer(text)
    ]


@dataclass(kw_only=True)
class Shell:
    """Executes command lines one after another. `values` maps texts of a document to their replacements here, such
    as an address or an id."""

    cwd: Path
    environ: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)
    lookups: dict[str, Callable[["Shell"], str]] = field(default_factory=dict)
    """Replacements like `values` that are looked up on first use."""

    refusals: dict[str, str] = field(default_factory=dict)
    """Command lines that have nothing to act on here, with the code of the error that says so."""

    has_file_of_its_own: bool = True
    """Whether a YAML block replaces `tsuzuki.yaml`; otherwise it is checked separately."""

    start: Callable[[list[str], "Shell"], None] = lambda words, shell: None
    last: str = ""

    def execute(self, block: Block) -> None:
        for line in block.lines:
            is_last = line == block.lines[-1]
            code = self._line(line, in_background=block.mark == "in the background")
            refusal = next((v for k, v in self.refusals.items() if line.startswith(k)), None)
            if refusal is not None:
                assert f"error[{refusal}]" in self.last, f"{block.place}: {line}\n{self.last}"
                continue
            wanted = block.exit_code if is_last else 0
            assert code == wanted, f"{block.place}: {line}\n{self.last}"

    def _line(self, line: str, *, in_background: bool) -> int:
        code = 0
        for words in _split(self._words(line), "&&"):
            if in_background:
                self.start(words[1:], self)
            elif code == 0:
                code = self._piped(words)
        return code

    def filled_in(self, text: str) -> str:
        for written, value in self.values.items():
            text = text.replace(written, value)
        return text

    def _words(self, line: str) -> list[str]:
        for written in [one for one in self.lookups if one in line]:
            self.values[written] = self.lookups.pop(written)(self)
        substituted = re.sub(r"\$\(tsuzuki ([^)]*)\)", self._output_of, self.filled_in(line))
        reader = shlex.shlex(substituted, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        return [self._expanded(word) for word in reader]

    def _output_of(self, found: "re.Match[str]") -> str:
        """Output that replaces `$(tsuzuki …)`."""
        code, out = self._tsuzuki(shlex.split(found[1]), "")
        assert code == 0, self.last
        return out.strip()

    def _expanded(self, word: str) -> str:
        """Expand `~` and known variables; leave others to the command."""
        if word.startswith("~/"):
            word = self.environ["HOME"] + word[1:]
        known = {**self.environ, "PWD": str(self.cwd)}
        return re.sub(r"\$\{?(\w+)\}?", lambda found: known.get(found[1], found[0]), word)

    def _piped(self, words: list[str]) -> int:
        target = words.index(">") if ">" in words else len(words)
        *before, command = _split(words[:target], "|")
        text = f"{before[0][-1]}\n" if before else ""
        code, out = self._command(command, text)
        if target < len(words):
            (self.cwd / words[target + 1]).write_text(out, encoding="utf-8")
        return code

    def _command(self, words: list[str], text: str) -> tuple[int, str]:
        match words:
            case ["tsuzuki", *rest] if is_endless(rest):
                parse(rest)
            case ["tsuzuki", *rest]:
                return self._tsuzuki(rest, text)
            case ["cd", folder]:
                self.cwd = self.cwd / folder
                assert self.cwd.is_dir(), f"there is no folder {self.cwd}"
            case ["export", *pairs]:
                self.environ.update(pair.split("=", 1) for pair in pairs)  # type: ignore[misc]  # pairs of text
            case ["curl", *rest]:
                self.last = fetch(rest)
            case ["make", target, *_]:
                makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"no target {target}"
            case _:
                return self._other(words, text)
        return 0, ""

    def data(self, *words: str) -> Any:
        """The JSON output of a command."""
        code, out = self._tsuzuki(["--output", "json", *words], "")
        assert code == 0, self.last
        return json.loads(out)

    def _tsuzuki(self, words: list[str], text: str) -> tuple[int, str]:
        with captured(text) as (out, err):
            code = run_cli(words, environ=self.environ, cwd=self.cwd)
        self.last = err() + out()
        return code, out()

    def _other(self, words: list[str], text: str) -> tuple[int, str]:
        done = subprocess.run(
            words,
            cwd=self.cwd,
            env=self.environ,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        self.last = done.stderr + done.stdout
        return done.returncode, done.stdout


@contextmanager
def captured(text: str) -> Iterator[tuple[Callable[[], str], Callable[[], str]]]:
    """Capture stdout and stderr of this process; `text` is the input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            yield (
                lambda: out.buffer.getvalue().decode(),  # type: ignore[attr-defined]  # a BytesIO
                lambda: err.buffer.getvalue().decode(),  # type: ignore[attr-defined]  # a BytesIO
            )
    finally:
        sys.stdin = before


def fetch(words: list[str]) -> str:
    """A request as `curl` sends it. With -N the answer is a stream: its first event."""
    options: dict[str, list[str]] = {"-X": [], "-H": [], "-d": []}
    rest = [*words]
    while len(rest) > 1:
        word = rest.pop(0)
        if word in options:
            options[word].append(rest.pop(0))
        else:
            assert word == "-N", f"the shell of documents does not know curl {word}"
    body = options["-d"][0].encode() if options["-d"] else None
    headers = dict(header.split(": ", 1) for header in options["-H"])
    method = (options["-X"] or ["POST" if body else "GET"])[0]
    request = Request(rest[0], data=body, headers=headers, method=method)
    try:
        with urlopen(request, timeout=60) as answer:
            return str(answer.readline() if "-N" in words else answer.read(), "utf-8")
    except HTTPError as refusal:
        pytest.fail(f"{method} {rest[0]}: {refusal.code} {refusal.read().decode()}")


def is_endless(words: list[str]) -> bool:
    nouns = [word for word in words if not word.startswith("-")]
    if nouns[:1] == ["worker"]:
        return len(nouns) == 1
    if nouns[:2] == ["web", "link"]:
        return False
    return bool({nouns[0] if nouns else "", " ".join(nouns[:2])} & ENDLESS)


def parse(words: list[str]) -> click.Context:
    """The context of the command that these words call. Raises `click.UsageError` if they call none."""
    context, command, rest = (
        click.Context(ROOT, info_name="tsuzuki", **ROOT.context_settings),
        ROOT,
        [*words],
    )  # type: click.Context, click.Command, list[str]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name} in: tsuzuki {' '.join(words)}"
        command, parent = found, context
        context = click.Context(found, info_name=name, parent=parent)
    return command.make_context(command.name, rest, parent=context.parent)


def _split(words: list[str], mark: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == mark:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def shell_environment(home: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "LOGNAME": "alice",
        **more,
    }
