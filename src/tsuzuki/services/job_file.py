"""Apply the configuration file while an engine is running, and report problems with it.

An invalid or missing file changes nothing: the jobs stay as they were last applied.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsuzuki.config.yaml.source import FileStatus, file_status
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import FileUnusable, TsuzukiError, Unreachable
from tsuzuki.services.acting import ActingService
from tsuzuki.services.jobs import Jobs

if TYPE_CHECKING:
    from tsuzuki.config import Configuration

LOOK_INTERVAL_SECONDS = 1.0
STOP_SECONDS = 5.0
READ_AT_START = ("database_url", "database_direct_url", "redis_url", "log_archive", "contact")
"""What a running process does not read again, beside the sections."""


class JobFile(ActingService):
    """`applied` is the configuration that this process started with, whose file had the `status`. `read` reads the same
    file again."""

    def __init__(
        self,
        jobs: Jobs,
        *,
        applied: "Configuration",
        status: FileStatus | None,
        read: "Callable[[], Configuration]",
        clock: Clock,
    ) -> None:
        self._jobs = jobs
        self._applied = applied
        self._read = read
        self._clock = clock
        self._done = self._seen = status

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at the file in a thread of its own, until the end of the block."""
        from tsuzuki.engine.loop import Loop  # noqa: PLC0415 -- loads structlog; only an engine needs it

        loop = Loop("job-file", self.tick, clock=self._clock, on_error=lambda _name: None)
        loop.start()
        try:
            yield
        finally:
            loop.stop()
            loop.join(STOP_SECONDS)

    def tick(self) -> float:
        """Apply the file if it has changed and is not being written any more. Returns how long to pause."""
        status = file_status(self._applied.file)
        if status is None or status == self._done:
            return LOOK_INTERVAL_SECONDS
        if status == self._seen:
            self._apply()
            self._done = status
        self._seen = status
        return LOOK_INTERVAL_SECONDS

    def _apply(self) -> None:
        """Raises `Unreachable` if the database does not answer: then it is tried again."""
        from tsuzuki.engine.log import log  # noqa: PLC0415 -- loads structlog; only an engine needs it

        try:
            changes = self._jobs.apply()
            waiting = self._keys_that_wait(self._read())
        except TsuzukiError as problem:
            if isinstance(problem, Unreachable) and not isinstance(problem, FileUnusable):
                raise
            for one in getattr(problem, "problems", ()) or (problem,):
                log.warning("file not applied, jobs unchanged", **_facts(one))
            return
        for change in changes:
            log.info("job from the file applied", job=change.name, change=str(change.kind))
        if waiting:
            hint = "Restart this process: these keys are read only at startup."
            log.warning("file changed outside its jobs", keys=", ".join(waiting), hint=hint)

    def _keys_that_wait(self, found: "Configuration") -> list[str]:
        """The keys that differ from those of the start."""
        keys = [key for key in READ_AT_START if getattr(found, key) != getattr(self._applied, key)]
        return keys + [
            name
            for name, section in found.sections.items()
            if section.written != self._applied.sections[name].written
        ]


def _facts(problem: TsuzukiError) -> dict[str, Any]:
    place = str(problem.place) if problem.place else None
    return {
        "code": problem.specific_code,
        "error": problem.message,
        "place": place,
        "hint": problem.hint,
    }
