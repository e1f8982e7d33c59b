"""Search by a regular expression of a caller from outside, in a process of its own that is ended after a time.

An expression can take years for one line, and Python holds its lock meanwhile: a server would stand still.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from tsuzuki.collectors.codeindex.answers.text_search import FoundLine, TextQuery, search_text
from tsuzuki.model.errors import UsageError

SECONDS_MAX = 5.0
EXPRESSION_LENGTH_MAX = 500
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tsuzuki.collectors.codeindex.answers.regex_process import main; main()"
)


def search_regex_in_process(
    root: Path,
    query: TextQuery,
    *,
    limit: int,
    scanned: Iterable[str],
    listed: Iterable[str],
    seconds_max: float = SECONDS_MAX,
) -> tuple[list[FoundLine], bool]:
    """As `search_text`. Raises `UsageError` if it takes longer than `seconds_max`."""
    if len(query.text) > EXPRESSION_LENGTH_MAX:
        raise UsageError(
            f"a regular expression can have at most {EXPRESSION_LENGTH_MAX} characters",
            code="bad_regex",
        )
    wanted = [path for path in scanned if query.path_filter(path)]
    asked = {
        "root": os.fspath(root),
        "text": query.text,
        "ignore_case": query.ignore_case,
        "limit": limit,
        "scanned": wanted,
        "listed": [*{*listed}.intersection(wanted)],
    }
    process = subprocess.Popen(  # noqa: S603 -- our own program
        [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with process:
        try:
            told, _ = process.communicate(json.dumps(asked).encode("ascii"), timeout=seconds_max)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):  # with the git that it may have started
                os.killpg(process.pid, signal.SIGKILL)
            raise _refusal(f"took longer than {seconds_max:g} s") from None
    if process.returncode:
        raise _refusal("could not be searched")
    found = json.loads(told)
    return [FoundLine(**line) for line in found["lines"]], found["has_more"]


def _refusal(what: str) -> UsageError:
    return UsageError(
        f"the regular expression {what}",
        hint="Simplify it, or narrow the paths.",
        code="regex_slow",
    )


def main() -> None:
    """The program of that process."""
    asked = json.load(sys.stdin)
    query = TextQuery(text=asked["text"], is_regex=True, ignore_case=asked["ignore_case"])
    lines, has_more = search_text(
        Path(asked["root"]),
        query,
        limit=asked["limit"],
        scanned=asked["scanned"],
        listed=asked["listed"],
    )
    json.dump({"lines": [asdict(line) for line in lines], "has_more": has_more}, sys.stdout)
