"""The context shared by the branches of one collection."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from tsuzuki.collectors.commits.queries import ledger
from tsuzuki.collectors.commits.queries.ledger import SettledTarget
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Fenced
from tsuzuki.store.sql.database import Connection, Database


@dataclass(frozen=True, kw_only=True)
class CollectionContext:
    """The run, and whether it may go on."""

    run: RunContext
    collection_id: str
    database: Database
    overlap: timedelta
    stopping: Callable[[], bool]

    @property
    def clock(self) -> Clock:
        return self.database.clock

    def settle(self, connection: Connection, target: Target, settled: SettledTarget) -> None:
        ledger.settle(connection, self.collection_id, target, settled, now=self.clock.now())

    def require_ours(self, connection: Connection) -> None:
        """Raise `Fenced` if the collection was cancelled or is another run's."""
        if not ledger.is_held_by(connection, self.collection_id, job_run_id=self.run.id):
            raise Fenced(
                f"this run no longer owns collection {self.collection_id}; nothing was written"
            )
