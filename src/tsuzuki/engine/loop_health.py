"""Reports the loops of a process that keep failing: to its metrics and `/readyz` at once, and through the database
to `doctor`.

It has a loop of its own: a report that waits for the database delays none of the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tsuzuki.engine.loop import Loop
from tsuzuki.model.loop_failure import LoopFailure
from tsuzuki.store import failing_loops
from tsuzuki.store.sql.database import Database

REPORT_SECONDS = 5.0
"""How often failing loops are stored. Nothing is stored while none is failing."""

ERROR_CHARACTERS_MAX = 500


class LoopHealth:
    """`process` names this process; `hide_secrets` masks what is stored of errors."""

    def __init__(
        self, *, database: Database, process: str, hide_secrets: Callable[[str], str]
    ) -> None:
        self._database = database
        self._process = process
        self._hide_secrets = hide_secrets
        self._may_be_stored = False
        self.loops: Sequence[Loop] = ()

    def failing(self) -> list[LoopFailure]:
        """The loops that are failing now."""
        failures = [loop.failure for loop in self.loops]
        return [
            replace(failure, error=self._hide_secrets(failure.error)[:ERROR_CHARACTERS_MAX])
            for failure in failures
            if failure is not None
        ]

    def step(self) -> float:
        """Store them, or delete what was stored of loops that have recovered."""
        failing = self.failing()
        if failing or self._may_be_stored:
            self._may_be_stored = True
            with self._database.write() as connection:
                failing_loops.replace(connection, process=self._process, failures=failing)
            self._may_be_stored = bool(failing)
        return REPORT_SECONDS
