"""An answer that quotes one state of the tree.

It is made from one snapshot of the index and from files that are read once each. If git rewrote the tree or a quoted
file was written meanwhile, the answer is thrown away and made again, and so is a refusal: what was not found may have
been between two places. If the tree does not come to rest the last answer is given, and marked as made from a changing
tree.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar, cast

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles, ParsedFiles
from tsuzuki.collectors.codeindex.answers.git_state import (
    GitState,
    git_state,
    lock_age_seconds,
)
from tsuzuki.collectors.codeindex.queries import lookups
from tsuzuki.collectors.codeindex.tree.git_folder import git_folder_of
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import TsuzukiError

Value = TypeVar("Value")
SECONDS_MAX = 10.0
LOCK_WAIT_SECONDS = 0.05
LOCK_WAITS_MAX = 100
ABANDONED_LOCK_SECONDS = 60.0
ASK_AGAIN = "The files of this tree were being rewritten: ask again."


@dataclass(frozen=True)
class ConsistentAnswer(Generic[Value]):
    """The answer, the files it was made from, and whether the tree kept still meanwhile."""

    value: Value
    files: FreshFiles
    is_settled: bool


def answer_consistently(
    root: Path,
    connection: sqlite3.Connection | None,
    make: Callable[[FreshFiles], Value],
    *,
    clock: Clock,
    prepare: Callable[[], None] = lambda: None,
) -> ConsistentAnswer[Value]:
    """Call `make` until the tree was the same before and after it, for ten seconds at most. `prepare` is called each
    time before the index is read."""
    folder = git_folder_of(root)
    deadline = clock.monotonic() + SECONDS_MAX
    parsed: ParsedFiles = {}
    while True:
        before = _wait_for_git(folder, clock)
        files = FreshFiles(root, connection, parsed)
        prepare()
        refusal, value = None, None
        with _snapshot(connection):
            try:
                value = make(files)
            except TsuzukiError as problem:
                refusal = problem
        is_settled = not before.locked and git_state(folder) == before and files.settled()
        if is_settled or before.locked or clock.monotonic() >= deadline:
            break
    if refusal is not None:
        raise refusal if is_settled else _not_at_rest(refusal)
    return ConsistentAnswer(cast("Value", value), files, is_settled)


def _not_at_rest(refusal: TsuzukiError) -> TsuzukiError:
    refusal.hint = " ".join(filter(None, (ASK_AGAIN, refusal.hint)))
    return refusal


def _wait_for_git(folder: Path | None, clock: Clock) -> GitState:
    """The state once git has let go of the tree, or with its lock if it does not within five seconds."""
    never = threading.Event()
    for _ in range(LOCK_WAITS_MAX):
        state = git_state(folder)
        if folder is None or not state.locked or _is_abandoned(folder, clock):
            break
        clock.wait(never, LOCK_WAIT_SECONDS)
    return state


def _is_abandoned(folder: Path, clock: Clock) -> bool:
    """A git that was killed leaves its lock. It is told of, but not waited for with every question."""
    return lock_age_seconds(folder, now=clock.now().timestamp()) > ABANDONED_LOCK_SECONDS


@contextmanager
def _snapshot(connection: sqlite3.Connection | None) -> Iterator[None]:
    if connection is None:
        yield
        return
    lookups.begin_reading(connection)
    try:
        yield
    finally:
        lookups.end_reading(connection)
