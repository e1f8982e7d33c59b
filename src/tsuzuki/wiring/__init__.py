"""The only place where parts are joined. Here: configuration, database and services; the engine, which
most commands do not need, is joined in `wiring.engine`."""

import getpass
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tsuzuki.collectors.books import BOOKS
from tsuzuki.collectors.books.service import Books
from tsuzuki.collectors.collector import Collector
from tsuzuki.collectors.commits import COMMITS
from tsuzuki.collectors.commits.service.bulk_runs import BulkRuns
from tsuzuki.collectors.commits.service.commits import Commits
from tsuzuki.config import Configuration, JobKind, load_configuration
from tsuzuki.engine.archive.log_archive import DeferredArchive, LogArchive
from tsuzuki.engine.coordination.protocol import Coordination, NoCoordination, connect
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.services.audit import Audit
from tsuzuki.services.due import DueNow
from tsuzuki.services.events import Events
from tsuzuki.services.jobs import Jobs
from tsuzuki.services.logs import RunLogs
from tsuzuki.services.maintenance import Maintenance
from tsuzuki.services.runs import Runs
from tsuzuki.services.settings import Settings
from tsuzuki.services.workers import Workers
from tsuzuki.store.schema.migrate import ENGINE, Component
from tsuzuki.store.sql.database import Database, open_database

COLLECTORS: tuple[Collector, ...] = (COMMITS, BOOKS)
"""Every collector, named here and nowhere else."""

COMPONENTS: tuple[Component, ...] = (ENGINE, *(collector.component for collector in COLLECTORS))
"""Everything that keeps tables."""

JOB_KINDS: Mapping[str, JobKind] = {collector.kind.name: collector.kind for collector in COLLECTORS}
"""Kinds of job beside `command` and `python`."""


@dataclass(frozen=True, kw_only=True)
class Application:
    """All that a face calls, joined for one configuration and one actor."""

    configuration: Configuration
    database: Database
    jobs: Jobs
    runs: Runs
    events: Events
    workers: Workers
    logs: RunLogs
    due: DueNow
    commits: Commits
    bulk_runs: BulkRuns
    settings: Settings
    audit: Audit
    maintenance: Maintenance
    books: Books
    coordination: Callable[[], Coordination]
    """Connected when first asked for: most commands need none, and its library is slow to load."""


@contextmanager
def opened(
    *,
    config_file: Path | None = None,
    database_url: str | None = None,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    clock: Clock | None = None,
    actor: str | None = None,
    migrate: bool = True,
) -> Iterator[Application]:
    """An application, ready to use; `migrate` brings its database to this version first."""
    read = partial(
        load_configuration,
        file=config_file,
        database_url=database_url,
        environ=environ,
        cwd=cwd or Path.cwd(),
        kinds=JOB_KINDS,
    )
    configuration = read()
    database = open_database(configuration.database_url, clock=clock or SystemClock())
    coordination = cache(partial(coordination_of, configuration, database))
    try:
        application = join(
            configuration,
            database,
            reload=read,
            actor=actor or local_actor(),
            coordination=coordination,
        )
        if migrate:
            application.maintenance.upgrade()
        yield application
    finally:
        if coordination.cache_info().currsize:
            coordination().close()
        database.close()


def join(
    configuration: Configuration,
    database: Database,
    *,
    reload: partial[Configuration],
    actor: str,
    coordination: Callable[[], Coordination],
) -> Application:
    def wake_others(names: Collection[str]) -> None:
        # A wake-up is a hint for what is stored already; a wrong URL is reported where an engine starts.
        with suppress(ConfigurationError):
            coordination().wake(names)

    jobs = Jobs(database=database, reload=reload, kinds=JOB_KINDS, actor=actor)
    runs = Runs(database=database, actor=actor, wake_others=wake_others)
    return Application(
        configuration=configuration,
        database=database,
        jobs=jobs,
        runs=runs,
        events=Events(database=database, wake_others=wake_others),
        workers=Workers(database=database, actor=actor),
        logs=RunLogs(database=database, archive=log_archive_of(configuration, database)),
        due=DueNow(database=database),
        commits=Commits(
            database=database,
            workspace=configuration.workspace,
            section=partial(configuration.section, COMMITS.kind.name),
            actor=actor,
        ),
        bulk_runs=BulkRuns(database=database, job_service=jobs, run_service=runs, actor=actor),
        settings=Settings(database=database, actor=actor),
        audit=Audit(database=database),
        maintenance=Maintenance(
            database=database, components=COMPONENTS, folder=configuration.workspace
        ),
        books=Books(
            database=database, section=partial(configuration.section, BOOKS.kind.name), actor=actor
        ),
        coordination=coordination,
    )


def coordination_of(configuration: Configuration, database: Database) -> Coordination:
    if configuration.redis_url is None:
        return NoCoordination()
    return connect(configuration.redis_url, database.clock)


def log_archive_of(configuration: Configuration, database: Database) -> LogArchive | None:
    """Where old logs go: as configured; for SQLite else beside the workspace's file. For PostgreSQL
    there is no such default, because a folder of one machine is not there for the others."""
    if configuration.log_archive is not None:
        return DeferredArchive(configuration.log_archive)
    if database.is_sqlite:
        return DeferredArchive(str(configuration.workspace / ".tsuzuki" / "logs"))
    return None


def local_actor() -> str:
    """Who acts at this terminal, for the audit log."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"cli:uid-{os.getuid()}"
