"""The messages a collection writes to the log of its run, in the words operators search for. Warnings are also
written to the log of the process, which may be the only one that users of cron read.
"""

from collections.abc import Mapping
from typing import Any, assert_never

from tsuzuki.collectors.books.query_set import short_hash
from tsuzuki.collectors.books.source import BookPage
from tsuzuki.engine.log import log
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.cursor import Cursor, StopReason
from tsuzuki.model.errors import TsuzukiError


class CollectLog:
    def __init__(self, run: RunContext, query_set_hash: str) -> None:
        self._run = run
        self._hash = short_hash(query_set_hash)

    def page(self, number: int, start_index: int, page: BookPage) -> None:
        self._say(
            f"Page {number}: startIndex={start_index}, returned={page.returned}, "
            f"totalItems={page.total_items}"
        )
        unreadable = page.returned - len(page.books)
        if unreadable:
            self._warn(f"{unreadable} of them have no usable ID and were skipped")

    def stop(
        self,
        reason: StopReason,
        cursor: Cursor,
        *,
        total_items: int = 0,
        returned: int = 0,
        max_per_run: int = 0,
    ) -> None:
        at = cursor.start_index
        match reason:
            case StopReason.MAX_PER_RUN:
                self._say(
                    f"Stopped: max_per_run reached ({returned}/{max_per_run}), next startIndex={at}"
                )
            case StopReason.QUOTA:
                self._say(f"Stopped: quota limit reached, next startIndex={at}")
            case StopReason.ERROR:
                self._say(f"Stopped: API error, preserving startIndex={at}")
            case StopReason.EXHAUSTED:
                found = f"startIndex={at} >= totalItems={total_items}"
                if at < total_items:
                    found = f"startIndex={at}, twice nothing although totalItems={total_items}"
                self._warn(f"Exhausted: {found} (query_set_hash={self._hash}...)")
            case _:
                assert_never(reason)

    def skipped(self) -> None:
        self._log_warning(
            f"[{self._run.job_name}] Skipped: exhausted (query_set_hash={self._hash})"
        )

    def busy(self, run_id: int) -> None:
        self._say(f"Skipped: run {run_id} is collecting this search")

    def reshaped(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        self._warn(
            f"The list has changed ({_said(before)} -> {_said(after)}): starting at 0 "
            f"(query_set_hash={self._hash}...)"
        )

    def reopened(self, exhausted_for_seconds: float) -> None:
        days = exhausted_for_seconds / 86_400
        self._say(f"Exhausted {days:.1f} days ago: checking again from startIndex=0")

    def asking_again(self, failure: TsuzukiError, pause_seconds: float) -> None:
        self._say(f"{failure.message}. Retrying in {pause_seconds:.0f} s")

    def _say(self, words: str) -> None:
        self._run.log(f"[google-books][{self._run.job_name}] {words}")

    def _warn(self, words: str) -> None:
        self._log_warning(f"[WARN][google-books][{self._run.job_name}] {words}")

    def _log_warning(self, line: str) -> None:
        self._run.log(line)
        log.warning(line, run=self._run.id)


def _said(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(options.items())) or "no options"
