"""The line of a program's error output that names the cause: the exception of a traceback, else the last line.

Knows the tracebacks of Python, Node.js, Java, .NET, Go, Ruby and Rust. Everything else, such as a shell, is expected
to end with its error.
"""

import re
from collections.abc import Sequence

TRAILING_MAX = 20
"""Lines that may follow a traceback. More of them are output of their own, and the traceback was only logged."""

_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):")
_FRAME = re.compile(r"\s+at \S|\s*\.\.\. \d+ (?:more|lines)")
_EXCEPTION = re.compile(r"(?:[\w$]+(?:\.|::))*[\w$]*(?:Error|Exception|Throwable)\b")
_GO = re.compile(r"(?:panic|fatal error): ")
_RUST = re.compile(r"thread '.*' (?:\(\d+\) )?panicked at (?P<said>'.*', )?")
_RUBY = re.compile(r"\S+:\d+:in [`'].*?': (?P<said>.*\([A-Z]\w*(?:::\w+)*\))$")
_INTRODUCTION = re.compile(
    r"""(?:Caused\ by:\ |Exception\ in\ thread\ ".*?"\ |Unhandled\ [Ee]xception[.:]\ |Uncaught\ )+""",
    re.VERBOSE,
)
_EPILOGUE = re.compile(r"(?:exit status \d+|Node\.js v[\d.]+|note: run with `RUST_BACKTRACE.*)$")


def error_line(output: str) -> str:
    """The line of an error output that names the cause; empty if nothing was written."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    for index in range(len(lines) - 1, -1, -1):
        found = _exception_at(lines, index)
        if found is not None:
            return _INTRODUCTION.sub("", found.strip(), count=1)
    said = [line for line in lines if not _EPILOGUE.match(line)] or lines
    return said[-1].strip() if said else ""


def _exception_at(lines: Sequence[str], index: int) -> str | None:
    """The exception line of the traceback whose mark is this line; None if it has none."""
    line = lines[index]
    if _GO.match(line):
        return line
    if rust := _RUST.match(line):
        said = rust["said"]
        return said.rstrip(", ").strip("'") if said else next(iter(lines[index + 1 :]), None)
    if ruby := _RUBY.match(line):
        return ruby["said"] if _is_near_end(lines, index + 1) else None
    if _TRACEBACK.match(line):
        return _of_python(lines, index + 1)
    if _FRAME.match(line) and index and not _FRAME.match(lines[index - 1]):
        return _above_frames(lines, index)
    return None


def _of_python(lines: Sequence[str], start: int) -> str | None:
    for index in range(start, len(lines)):
        if not lines[index][0].isspace():
            return lines[index] if _is_near_end(lines, index + 1) else None
    return None


def _above_frames(lines: Sequence[str], index: int) -> str | None:
    """The exception above the frames of a stack: its message may have several lines."""
    if not _is_near_end(lines, index):
        return None
    for above in range(index - 1, max(index - 1 - TRAILING_MAX, -1), -1):
        if _EXCEPTION.match(_INTRODUCTION.sub("", lines[above], count=1)):
            return lines[above]
    return lines[index - 1]


def _is_near_end(lines: Sequence[str], start: int) -> bool:
    """Whether hardly anything but indented lines, such as frames, follows."""
    return sum(not line[0].isspace() for line in lines[start:]) <= TRAILING_MAX
