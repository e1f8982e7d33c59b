"""What `git log` writes about commits, read as commits.

    NUL id LF parents LF date LF seconds LF name LF e-mail NUL [LF added TAB deleted TAB path NUL …]

Two NULs in a row stand between two commits and nowhere else. A renamed file has an empty path, and its old
and its new one behind it. Any byte but NUL may stand in a path. Git writes a date that is too late for a calendar as
the beginning of 1970; the seconds tell it from that.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator

from tsuzuki.collectors.commits.committed_date import EARLIEST, committed_date, late_date
from tsuzuki.collectors.commits.sources.source import Commit, PathCount
from tsuzuki.outward.errors import SourceRefused

PATH_CHARACTERS_MAX = 512
"""A longer path is stored by its ends, so that it fits into an index of PostgreSQL."""

PATH_CHARACTERS_KEPT = 240
"""Of each end. A hash of the whole path stands between them, so different paths stay different."""

LOG = (
    "log",
    "-z",
    "--numstat",
    "-M",
    "--diff-merges=first-parent",
    "--format=tformat:%x00%H%n%P%n%cd%n%ct%n%an%n%ae",
    "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
    "--encoding=UTF-8",
    "--no-color",
    "--no-ext-diff",
    "--no-mailmap",
    "--no-show-signature",
    "--no-textconv",
    "--diff-algorithm=default",
    "--ignore-submodules=none",
)

_BETWEEN = "\0\0"
_ID = re.compile(r"[0-9a-f]{40,64}")
_VALID_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def read_commits(pieces: Iterable[bytes], notes: dict[str, str]) -> Iterator[list[Commit]]:
    """Commits out of the stream of `git log`; each is whole when the next one has started. `notes` gets, by
    commit id, what was wrong with a date."""
    rest = b""
    for piece in pieces:
        rest += piece
        end = rest.rfind(_BETWEEN.encode()) + 1
        if end:
            yield parse_commits(rest[:end], notes)
            rest = rest[end:]
    yield parse_commits(rest, notes)


def parse_commits(text: bytes, notes: dict[str, str]) -> list[Commit]:
    """The commits of some whole records. What is not UTF-8 is replaced by U+FFFD."""
    if not text:
        return []
    decoded = text.decode("utf-8", "replace").removesuffix("\0")
    return [_commit(record, notes) for record in decoded[1:].split(_BETWEEN)]


def _commit(record: str, notes: dict[str, str]) -> Commit:
    head, _, changes = record.partition("\0")
    try:
        sha, parents, date, seconds, name, email = head.split("\n")
        paths = _paths(changes.removeprefix("\n").split("\0")) if changes else []
    except (ValueError, StopIteration):
        raise _senseless() from None
    if not _ID.fullmatch(sha):
        raise _senseless()
    is_late = date == EARLIEST and seconds.strip("0") != ""
    if is_late or not _VALID_DATE.fullmatch(date):
        date, note = late_date(seconds) if is_late else committed_date(date)
        if note is not None:
            notes[sha] = note
    additions = deletions = 0
    for _path, added, deleted in paths:
        additions += added
        deletions += deleted
    return Commit(sha, name, email, date, additions, deletions, parents, tuple(paths))


def _paths(cells: list[str]) -> list[PathCount]:
    """The counts of a commit. A binary file has `-` for both."""
    found: list[PathCount] = []
    rest = iter(cells)
    for cell in rest:
        added, deleted, path = cell.split("\t", 2)
        if not path:
            _old, path = next(rest), next(rest)
        if len(path) > PATH_CHARACTERS_MAX:
            path = _shortened(path)
        found.append((path, 0, 0) if added == "-" else (path, int(added), int(deleted)))
    if len(found) == 1 or len({path for path, _, _ in found}) == len(found):
        return found
    return _joined(found)


def _joined(counts: list[PathCount]) -> list[PathCount]:
    """Paths that are the same once they are text are one."""
    found: dict[str, PathCount] = {}
    for path, additions, deletions in counts:
        _, added, deleted = found.get(path, (path, 0, 0))
        found[path] = (path, added + additions, deleted + deletions)
    return list(found.values())


def _shortened(path: str) -> str:
    name = hashlib.sha256(path.encode()).hexdigest()[:16]
    return f"{path[:PATH_CHARACTERS_KEPT]}…{name}…{path[-PATH_CHARACTERS_KEPT:]}"


def _senseless() -> SourceRefused:
    return SourceRefused("git returned something that is not a commit", code="git_output")
