"""The end of the faults: wait until all that was served has arrived, as long as more arrives."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from soak.counts import missing
from soak.event_log import EventLog
from soak.operator import Operator
from soak.outside import Outside
from soak.waits import waits
from tsuzuki.model.errors import Unreachable
from tsuzuki.store.sql.database import Database

STEP_SECONDS = 0.5
STUCK_SECONDS = 90.0
LOST_SECONDS = 40.0
"""When nothing waits but runs, so that what is missing is known to no table any more."""


@dataclass(kw_only=True)
class Settling:
    """`restart` starts again what gave up, and raises if a process ended in any other way."""

    database: Database
    outside: Outside
    operator: Operator
    events: EventLog
    restart: Callable[[], None]

    def settle(self) -> None:
        pause, told, expected = threading.Event(), ["nothing was asked yet"], ["an answer"]
        moved_at = time.monotonic()
        self.operator.look()
        while told:
            before = told
            self.restart()
            self.operator.step()
            with suppress(Unreachable):  # a connection from before the database crashed
                told = missing(self.database, self.outside) + self.operator.quota.missing()
                expected = waits(self.database) if told else []
            if told != before:
                moved_at = time.monotonic()
                short = "; ".join(line.partition(", such as ")[0] for line in told)
                self.events.add(f"settling: {short or 'all is there'}")
            is_lost = all(line.startswith("run ") for line in expected)
            stuck_seconds = LOST_SECONDS if is_lost else STUCK_SECONDS
            problem = ["nothing more arrives:", *told, "it waits for:", *expected]
            assert time.monotonic() - moved_at < stuck_seconds, "\n".join(problem)
            pause.wait(STEP_SECONDS)
