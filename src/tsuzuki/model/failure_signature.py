"""Failure signatures: by which failures of one cause are one group.

What differs from run to run is left out of the error: quoted text, addresses, paths, ids and numbers. The signature
says nothing about the job, so that one cause that hits several jobs is one group.
"""

import hashlib
import re
from typing import NamedTuple

READ_MAX = 2_000
"""Characters of an error that are looked at."""
TEXT_MAX = 200
ID_LENGTH = 16

_TRACEBACK = "Traceback "
_REPLACED = (
    (re.compile(r"\w+://[^\s'\"`<>]+"), "<url>"),
    (re.compile(r"(?<!\w)(['\"`])[^'\"`]*\1(?!\w)"), "<text>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[/\\][\w.+@~-]+)+[/\\]?"), "<path>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"[^\W_]*\d\w*(?:[.:,+-]\d\w*)*"), "<n>"),
    (re.compile(r"\b[a-fA-F]{8,}\b"), "<n>"),
    (re.compile(r"(<\w+>)(?:\W{0,2}\1)+"), r"\1"),
    (re.compile(r"\s+"), " "),
)


class FailureSignature(NamedTuple):
    """`id` names the group, `text` is what its failures have in common."""

    id: str
    text: str


def signature_of(reason: str | None, error: str | None) -> FailureSignature:
    """The signature of a run that failed for a reason with an error; either may be missing."""
    text = f"{reason or 'failed'}: {normalised(error or '')}".removesuffix(": ")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return FailureSignature(digest[:ID_LENGTH], text)


def normalised(error: str) -> str:
    """The telling line of an error without what differs from run to run."""
    line = _telling_line(error)[:READ_MAX]
    for pattern, replacement in _REPLACED:
        line = pattern.sub(replacement, line)
    return line.strip()[:TEXT_MAX].strip()


def _telling_line(error: str) -> str:
    """The first line; of a Python traceback the last one, which names the exception."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1] if lines[0].startswith(_TRACEBACK) else lines[0]
