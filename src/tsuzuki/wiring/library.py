"""Joins what the library calls: the application, and transactions on its database.

A program stores its own rows beside its runs, as one. No other interface is given a connection.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tsuzuki.config import parse_job
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.store.sql.caller_connections import CallerConnection, SyncConnection, borrowed
from tsuzuki.store.sql.database import Connection, ConnectionUse, Database
from tsuzuki.store.sql.write_hold import LockUser
from tsuzuki.wiring.application import Application, configuration_reader
from tsuzuki.wiring.collectors import BUILT_IN_KINDS, installed_collectors
from tsuzuki.wiring.resources import open_resources

__all__ = [
    "CallerConnection",
    "Connection",
    "LibraryResources",
    "SyncConnection",
    "check_definition",
    "opened_for_library",
]


@dataclass(frozen=True, kw_only=True)
class LibraryResources:
    application: Application
    transaction: Callable[[], AbstractContextManager[Connection]]
    """Committed at the end of the block, rolled back if it raises."""

    borrowed: Callable[[CallerConnection], AbstractContextManager[Connection]]
    """A caller's own connection, while the block runs."""


def check_definition(name: str, body: Mapping[str, Any]) -> None:
    """Raises `ConfigurationError` if a job's definition is wrong. Opens nothing."""
    is_built_in = body.get("type", "python") in BUILT_IN_KINDS
    parse_job(name, body, kinds={} if is_built_in else installed_collectors().kinds)


@contextmanager
def opened_for_library(
    *,
    config_file: Path | None,
    database_url: str | None,
    environ: Mapping[str, str] = os.environ,
    cwd: Path | None = None,
    clock: Clock | None = None,
    actor: str,
) -> Iterator[LibraryResources]:
    """Ready to use, with the database at this version."""
    read = configuration_reader(config_file, database_url, environ, cwd)
    with open_resources(read(), clock=clock or SystemClock(), environ=environ) as resources:
        application = Application(resources, reload=read, actor=actor)
        application.maintenance.upgrade()
        yield LibraryResources(
            application=application,
            transaction=partial(_transaction, resources.database),
            borrowed=partial(borrowed, database=resources.database),
        )


@contextmanager
def _transaction(database: Database) -> Iterator[Connection]:
    user = LockUser(purpose="app.transaction()")
    with database.used_for(ConnectionUse.UNBOUNDED), database.write(user=user) as connection:
        yield connection
