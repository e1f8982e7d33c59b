"""What is open for one application: configuration, database, coordination. Only `wiring` sees it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsuzuki.config import Configuration
from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination, connect
from tsuzuki.model.built_in_jobs import BUILT_IN
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.outward.user_agent import set_contact
from tsuzuki.services.collector_tables import CollectorTables
from tsuzuki.store.sql.database import Database, open_database
from tsuzuki.wiring.collector import Collector, CollectorContext
from tsuzuki.wiring.collectors import InstalledCollectors, brief, installed_collectors, refusal

if TYPE_CHECKING:
    from tsuzuki.engine.archive.log_archive import LogArchive


@dataclass(frozen=True, kw_only=True)
class Resources:
    configuration: Configuration
    database: Database
    collectors: InstalledCollectors
    refused: dict[str, ConfigurationError]
    """Why a collector cannot be used with this database; grows when the tables of one cannot be upgraded."""
    tables: CollectorTables
    coordination: Callable[[], Coordination]
    """Connected when first called: most commands need none, and its library is slow to load."""
    environ: Mapping[str, str]

    @property
    def workspace(self) -> Path:
        return self.configuration.workspace

    def usable_collectors(self) -> dict[str, Collector]:
        return {n: c for n, c in self.collectors.usable.items() if n not in self.refused}

    def built_in_jobs(self) -> frozenset[str]:
        """The names of the jobs that we define for work that people ask for by hand."""
        of_collectors = (one.own_jobs for one in self.collectors.usable.values())
        return BUILT_IN.union(*of_collectors)

    def dry_run_arguments(self) -> dict[str, Mapping[str, Any]]:
        """The arguments of dry runs, by kind of job, of those that declare them."""
        return {
            name: collector.dry_run_arguments
            for name, collector in self.usable_collectors().items()
            if collector.dry_run_arguments is not None
        }

    def collector_context(self, name: str) -> CollectorContext:
        return CollectorContext(
            database=self.database,
            workspace=self.workspace,
            read_section=partial(self.configuration.section, name),
        )

    def log_archive(self) -> "LogArchive | None":
        """Where old logs go; None if they stay in the database."""
        from tsuzuki.engine.archive.log_archive import DeferredArchive  # noqa: PLC0415 -- most commands read no log

        location = self.configuration.archive_location
        return None if location is None else DeferredArchive(location)


@contextmanager
def open_resources(
    configuration: Configuration, *, clock: Clock, environ: Mapping[str, str]
) -> Iterator[Resources]:
    """Closed at the end of the block."""
    set_contact(configuration.contact)
    database = open_database(
        configuration.database_url, clock=clock, direct_url=configuration.database_direct_url
    )
    coordination = cache(partial(_connect_coordination, configuration, database))
    collectors = installed_collectors()
    refused = dict(collectors.refused)

    def refuse(name: str, problem: BaseException) -> ConfigurationError:
        """Do without a collector of another distribution from now on."""
        refused[name] = refusal(name, collectors.distributions[name], brief(problem))
        return refused[name]

    try:
        yield Resources(
            configuration=configuration,
            database=database,
            collectors=collectors,
            refused=refused,
            tables=CollectorTables(
                database=database,
                components=collectors.components,
                plug_ins=collectors.distributions,
                refuse=refuse,
            ),
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
