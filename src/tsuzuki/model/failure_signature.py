"""Failure signatures: by which failures of one cause are one group.

What differs from run to run is left out of the error: addresses, paths, ids, numbers and quoted sentences. A quoted
name stays, because it often is the cause (`KeyError: 'customer_id'`). The signature says nothing about the job, so
that one cause that hits several jobs is one group.
"""

import hashlib
import re
from typing import NamedTuple

from tsuzuki.model.error_line import error_line
from tsuzuki.model.states import Reason

READ_MAX = 2_000
"""Characters of an error that are looked at."""
TEXT_MAX = 200
ID_LENGTH = 16

_TRACEBACK = "Traceback "
_EXIT = re.compile(r"(?:exit code \d+|ended by signal \w+)(?:$|: )")
_QUOTED = re.compile(r"(?<!\w)(['\"`])([^'\"`]*)\1(?!\w)")
_SENTENCE = re.compile(r"\S\s+\S")
_REPLACED = (
    (re.compile(r"\w+://[^\s'\"`<>]+"), "<url>"),
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
    said = _cause(error or "")
    is_said = said and reason == Reason.HANDLER_FAILED
    text = said if is_said else f"{reason or 'failed'}: {said}".removesuffix(": ")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return FailureSignature(digest[:ID_LENGTH], text)


def _cause(error: str) -> str:
    """What a command wrote as its error; its exit code if it wrote nothing."""
    ended = _EXIT.match(error)
    if ended is None:
        return normalised(error)
    return normalised(error[ended.end() :]) or ended[0].removesuffix(": ")


def normalised(error: str) -> str:
    """The line of an error that names the cause, without what differs from run to run."""
    line = _QUOTED.sub(_quoted, _first_line(error)[:READ_MAX])
    for pattern, replacement in _REPLACED:
        line = pattern.sub(replacement, line)
    return line.strip()[:TEXT_MAX].strip()


def _quoted(found: re.Match[str]) -> str:
    """A quoted sentence is left out; of a single word the rest of the rules decides."""
    return "<text>" if _SENTENCE.search(found[2]) else found[0]


def _first_line(error: str) -> str:
    """The first line; of a traceback the one that names the exception."""
    if error.lstrip().startswith(_TRACEBACK):
        return error_line(error)
    return next((line.strip() for line in error.splitlines() if line.strip()), "")
