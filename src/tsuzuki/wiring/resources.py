"""What is open for one application: configuration, database, coordination. Only `wiring` sees it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tsuzuki.collectors.collector import CollectorContext
from tsuzuki.config import Configuration
from tsuzuki.engine.archive.log_archive import DeferredArchive, LogArchive
from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination, connect
from tsuzuki.model.clock import Clock
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.wiring.collectors import InstalledCollectors, installed_collectors


@dataclass(frozen=True, kw_only=True)
class Resources:
    configuration: Configuration
    database: Database
    collectors: InstalledCollectors
    coordination: Callable[[], Coordination]
    """Connected when first called: most commands need none, and its library is slow to load."""
    environ: Mapping[str, str]

    @property
    def workspace(self) -> Path:
        return self.configuration.workspace

    def collector_context(self, name: str) -> CollectorContext:
        return CollectorContext(
            database=self.database,
            workspace=self.workspace,
            section=partial(self.configuration.section, name),
        )

    def log_archive(self) -> LogArchive | None:
        """Where old logs go: as configured; for SQLite else beside the workspace's file. For PostgreSQL
        there is no such default, because a folder of one machine is not there for the others."""
        if self.configuration.log_archive is not None:
            return DeferredArchive(self.configuration.log_archive)
        if self.database.is_sqlite:
            return DeferredArchive(str(self.workspace / ".tsuzuki" / "logs"))
        return None


@contextmanager
def open_resources(
    configuration: Configuration, *, clock: Clock, environ: Mapping[str, str]
) -> Iterator[Resources]:
    """Closed at the end of the block."""
    database = open_database(configuration.database_url, clock=clock)
    coordination = cache(partial(_connect_coordination, configuration, database))
    try:
        yield Resources(
            configuration=configuration,
            database=database,
            collectors=installed_collectors(),
            coordination=coordination,
            environ=environ,
        )
    finally:
        if coordination.cache_info().currsize:
            coordination().close()
        database.close()


def _connect_coordination(configuration: Configuration, database: Database) -> Coordination:
    if configuration.redis_url is None:
        return NoCoordination()
    return connect(configuration.redis_url, database.clock)
