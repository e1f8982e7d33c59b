"""Requests without an answer: after two in a row an account is left for the rest of the run.

A time-out, a refused or broken connection and an error of the server (5xx) count the same, whatever was asked. A 429
does not: it is an answer, and says when the account may be used again.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tsuzuki.collectors.feeds.channels.protocol import LookUpImpossible
from tsuzuki.outward.errors import SourceFailed, SourceUnavailable

UNANSWERED_MAX = 2


class UnansweredRequests:
    """The unanswered requests of one run, by account. `log` is told once of each account that is left."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._in_a_row: Counter[str] = Counter()

    @property
    def silent_accounts(self) -> list[str]:
        """The accounts that are left for the rest of the run."""
        return [name for name, count in self._in_a_row.items() if count >= UNANSWERED_MAX]

    def is_silent(self, account: str) -> bool:
        return self._in_a_row[account] >= UNANSWERED_MAX

    @contextmanager
    def counted(self, account: str, *, ends_silence: bool = True) -> Iterator[None]:
        """Count a request. An answer starts the count anew, unless it does not prove that the server is well: one
        that hangs on every post may still list the old ones."""
        try:
            yield
        except SourceFailed as failed:
            is_answer = isinstance(failed, LookUpImpossible) or not isinstance(
                failed, SourceUnavailable
            )
            self._count(account, is_answer=is_answer, ends_silence=ends_silence)
            raise
        self._count(account, is_answer=True, ends_silence=ends_silence)

    def _count(self, account: str, *, is_answer: bool, ends_silence: bool) -> None:
        if is_answer:
            if ends_silence:
                self._in_a_row[account] = 0
            return
        self._in_a_row[account] += 1
        if self._in_a_row[account] == UNANSWERED_MAX:
            self._log(f"{silence_of(account)}; skipping it for the rest of this run")


def silence_of(account: str) -> str:
    return f"Account {account} did not respond {UNANSWERED_MAX} times in a row"
