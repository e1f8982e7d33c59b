"""Attempts at a branch: transient failures are retried; a permanent failure is the result of that branch.

One branch's failure never stops the others. Exceptions that stop the run itself are raised.
"""

from collections.abc import Callable, Sequence
from contextlib import closing

from tsuzuki.collectors.commits.branch import BranchCollection
from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.sources.host_pool import HostPool
from tsuzuki.collectors.commits.sources.rate_gate import RateGate
from tsuzuki.collectors.commits.sources.source import CommitSource
from tsuzuki.engine.executors.failures import traceback_lines
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import ConfigurationError, Conflict, TsuzukiError, Unreachable
from tsuzuki.outward.errors import RateLimited, SourceFailed, SourceUnavailable
from tsuzuki.outward.redaction import redacted

BACKOFF_SECONDS = 1.0
BACKOFF_LONGEST_SECONDS = 60.0
PAUSE_SECONDS = 60.0
"""The pause after a rate limit that names no time."""


class BranchAttempts:
    """How the branches of one run are tried."""

    def __init__(self, *, run: RunContext, pool: HostPool, section: CommitsSection) -> None:
        self._run = run
        self._pool = pool
        self._section = section

    def collect(
        self, branch: BranchCollection, open_source: Callable[[], CommitSource], gate: RateGate
    ) -> None:
        """Collect one branch, or store why it could not be."""
        try:
            with closing(open_source()) as source:
                self._retry(branch, source, gate)
        except (SourceFailed, ConfigurationError) as problem:
            branch.fail(sentence_of(problem, self._secrets()))
        except (Conflict, Unreachable):
            raise  # the run is no longer ours, or the database is away: nothing can be written
        except Exception as problem:  # noqa: BLE001 -- a bug met on one branch is that branch's
            for line in traceback_lines(problem):
                self._run.log(redacted(line, secrets=self._secrets()))
            words = f"unexpected {type(problem).__name__}: {problem}"
            branch.fail(redacted(words, secrets=self._secrets()))

    def _retry(self, branch: BranchCollection, source: CommitSource, gate: RateGate) -> None:
        """Try again after a rate limit for as long as the section allows, after any other passing
        failure a few times without a page in between."""
        tries, seen, seconds_left = 0, 0, self._section.rate_limit_patience
        while True:
            gate.wait_until_open()
            try:
                branch.collect(source)
            except RateLimited as limit:
                seconds = limit.retry_after_seconds or PAUSE_SECONDS
                seconds_left -= seconds
                if seconds_left < 0:
                    raise
                self._run.log(f"a host asks for a pause of {seconds:.0f} s: {limit.message}")
                gate.close(seconds)
            except SourceUnavailable as problem:
                tries = 1 if branch.pages_stored > seen else tries + 1
                seen = branch.pages_stored
                if tries >= self._section.tries:
                    raise
                backoff = problem.retry_after_seconds or BACKOFF_SECONDS * 2 ** (tries - 1)
                self._pool.wait(min(backoff, BACKOFF_LONGEST_SECONDS))
            else:
                return

    def _secrets(self) -> list[str]:
        token = self._section.gitlab.token
        return [token.get_secret_value()] if token else []


def sentence_of(problem: TsuzukiError, secrets: Sequence[str]) -> str:
    """What a person reads in the result."""
    hint = f" ({problem.hint})" if problem.hint else ""
    return redacted(f"{problem.message}{hint}", secrets=secrets)
