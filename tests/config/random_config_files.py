"""Random but valid configuration files, laid out in every way people lay them out.

Each file knows which of its lines belong to what, so that a test can tell which lines an edit may
touch. Every comment in a file is different from every other.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import strategies as st

WORDS = st.sampled_from(
    ["one", "two words", "drei", "四", "a: b", "# no comment", "-", "", "null", "7"]
)
NAMES = st.sampled_from(["alpha", "beta", "gamma", "delta", "on", "2024", "a.b-c_d"])

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "description": WORDS | st.sampled_from(["first\nsecond", "first\n\n  indented"]),
    "timeout": st.sampled_from(["10m", "1h30m", 5, 0.5]),
    "priority": st.integers(-1000, 1000),
    "max_retries": st.integers(0, 9),
    "enabled": st.booleans(),
    "tags": st.lists(st.sampled_from(["gpu", "fast", "x-1"]), max_size=3),
    "schedule": st.sampled_from(
        [
            {"every": "10m"},
            {"daily_at": "09:00"},
            {"daily_at": ["09:00", "17:30"], "timezone": "Asia/Tokyo"},
            {"weekly": {"day": "monday", "at": "08:00"}},
            "every 10m",
        ]
    ),
    "environment": st.dictionaries(st.sampled_from(["A", "B", "C_D"]), WORDS, max_size=3),
    "arguments": st.dictionaries(
        st.sampled_from(["x", "y z", "1", "key: odd"]),
        st.none() | st.booleans() | st.integers() | WORDS | st.lists(WORDS, max_size=2),
        max_size=3,
    ),
}
COMMAND = st.sampled_from([["echo", "a b"], ["ls"], "echo hello", ["sh", "-c", "a | b"]])


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key of a job: its value, its lines, and how it is laid out."""

    name: str
    value: Any
    lines: list[str]
    is_inline: bool


@dataclass(frozen=True, kw_only=True)
class Job:
    """`lead` stands above the job and is not part of it; `tail` ends it."""

    name: str
    lead: list[str]
    head: str
    keys: list[Key]
    tail: list[str]

    @property
    def lines(self) -> list[str]:
        return [self.head, *(line for key in self.keys for line in key.lines), *self.tail]

    @property
    def body(self) -> dict[str, Any]:
        return {key.name: key.value for key in self.keys}


@dataclass(frozen=True, kw_only=True)
class File:
    top: list[str]
    jobs: list[Job]
    section_tail: list[str]
    bottom: list[str]
    newline: str
    ends_with_newline: bool

    @property
    def lines(self) -> list[str]:
        jobs = [line for job in self.jobs for line in (*job.lead, *job.lines)]
        return [*self.top, *jobs, *self.section_tail, *self.bottom]

    @property
    def content(self) -> bytes:
        text = self.newline.join(self.lines)
        return (text + self.newline if self.ends_with_newline else text).encode()

    def start_of(self, job: Job) -> int:
        """The number of the line with the name of `job`."""
        line = len(self.top)
        for other in self.jobs:
            line += len(other.lead)
            if other is job:
                return line
            line += len(other.lines)
        raise AssertionError

    def lines_of(self, job: Job, key: Key) -> tuple[int, int]:
        """The numbers of the first line of `key` and of the first one behind it."""
        start = self.start_of(job) + 1
        for other in job.keys:
            if other is key:
                return start, start + len(key.lines)
            start += len(other.lines)
        raise AssertionError


class _Writer:
    """Draws the layout of what it is told to write."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._numbers: Iterator[int] = count()

    def comment(self, indent: str) -> str:
        return f"{indent}# comment {next(self._numbers)}."

    def comments(self, indent: str, most: int = 2) -> list[str]:
        return [self.comment(indent) for _ in range(self._draw(st.integers(0, most)))]

    def blanks_and_comments(self, indent: str) -> list[str]:
        blanks = self._draw(st.sampled_from([[], [""], ["", ""], ["  "]]))
        return blanks + self.comments(indent)

    def end_of_line(self) -> str:
        return self._draw(st.sampled_from(["", "", " ", "  "])) + (
            self.comment(" ") if self._draw(st.booleans()) else ""
        )

    def gap(self) -> str:
        return self._draw(st.sampled_from([" ", " ", "   "]))

    def key(self, name: str, value: Any, indent: str, step: str) -> Key:
        as_block = bool(value) and isinstance(value, dict | list) and self._draw(st.booleans())
        if as_block:
            lines = [f"{indent}{name}:{self.end_of_line()}"]
            lines += self._block(value, indent, step)
            lines += self.comments(indent + step, 1)
        elif isinstance(value, str) and "\n" in value and self._draw(st.booleans()):
            content = [f"{indent}{step}{line}" if line else "" for line in value.split("\n")]
            return Key(
                name=name, value=value, lines=[f"{indent}{name}: |-", *content], is_inline=False
            )
        else:
            text = json.dumps(value, ensure_ascii=False)
            lines = [f"{indent}{name}:{self.gap()}{text}{self.end_of_line()}"]
        return Key(name=name, value=value, lines=lines, is_inline=not as_block)

    def _block(self, value: Any, indent: str, step: str) -> list[str]:
        lines: list[str] = []
        if isinstance(value, list):
            inner = self._draw(st.sampled_from([indent, indent + step]))
            parts = [f"-{self.gap()}{json.dumps(item, ensure_ascii=False)}" for item in value]
        else:
            inner = indent + step
            parts = [
                f"{json.dumps(key)}:{self.gap()}{json.dumps(part, ensure_ascii=False)}"
                for key, part in value.items()
            ]
        for part in parts:
            lines += self.comments(inner, 1)
            lines.append(f"{inner}{part}{self.end_of_line()}")
        return lines

    def job(self, name: str, indent: str, step: str) -> Job:
        names = self._draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4, unique=True))
        values = {name: self._draw(VALUES[name]) for name in names}
        values["command"] = self._draw(COMMAND)
        inner = indent + step
        return Job(
            name=name,
            lead=self.blanks_and_comments(indent),
            head=f'{indent}"{name}":{self.end_of_line()}',
            keys=[self.key(key, values[key], inner, step) for key in self._draw(st.permutations(sorted(values)))],
            tail=self.comments(inner),
        )  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> File:
    """A valid file with one to three jobs."""
    writer = _Writer(draw)
    indent, step = draw(st.sampled_from(["  ", "    "])), draw(st.sampled_from(["  ", "    "]))
    top = [*writer.comments(""), "version:  1" + writer.end_of_line()]
    top += [*writer.blanks_and_comments(""), "jobs:" + writer.end_of_line()]
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    bottom = writer.blanks_and_comments("")
    if draw(st.booleans()):
        bottom += ["timezone:   'UTC'" + writer.end_of_line(), *writer.comments("")]
    return File(
        top=top,
        jobs=[writer.job(name, indent, step) for name in names],
        section_tail=writer.comments(indent),
        bottom=bottom,
        newline=draw(st.sampled_from(["\n", "\r\n"])),
        ends_with_newline=draw(st.booleans()),
    )
