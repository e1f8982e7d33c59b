"""Fixtures: the two databases, fresh for every test, and the clock that moves them."""

import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import hypothesis
import pytest

from support.databases import PostgresServer, SqliteFolder, opened
from support.memory_folder import use_memory
from support.moving_clock import MovingClock
from support.open_sites import put_back_after
from tsuzuki.store.schema.migrate import ENGINE, Component
from tsuzuki.store.sql.database import Database

if TYPE_CHECKING:
    from support.chromium import OneChromium

use_memory()
# The same examples in every run, so that a change is judged by what it changed; `make test-full` draws new ones.
# Without a deadline, which a busy machine would miss.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("new", derandomize=False, deadline=None, print_blob=True)
hypothesis.settings.load_profile("same")

pytest_plugins = ["support.suite"]

DIALECTS = ["sqlite", "postgresql"]


@pytest.fixture(autouse=True)
def _log_set_up_again() -> Iterator[None]:
    """A command sets the log up for its process; the next test must not write to that one's stderr."""
    logger, root = logging.getLogger("tsuzuki"), logging.getLogger()
    handlers, level, propagate = logger.handlers, logger.level, logger.propagate
    others, raises = [*root.handlers], logging.raiseExceptions
    hooks = threading.excepthook, sys.unraisablehook
    yield
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)
    root.handlers, logging.raiseExceptions = others, raises
    threading.excepthook, sys.unraisablehook = hooks
    logging.captureWarnings(False)


@pytest.fixture(autouse=True)
def _shared_sites_as_they_were() -> Iterator[None]:
    with put_back_after():
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def sqlite_folder(tmp_path_factory: pytest.TempPathFactory) -> SqliteFolder:
    return SqliteFolder(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def one_chromium() -> Iterator["OneChromium"]:
    from support.chromium import OneChromium  # noqa: PLC0415 -- most test processes need no browser

    chromium = OneChromium()
    yield chromium
    chromium.close()


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def components() -> Sequence[Component]:
    """Whose tables the database of a test has: the engine's. The tests of a collector add its own."""
    return (ENGINE,)


@pytest.fixture
def database_url(
    dialect: str, components: Sequence[Component], request: pytest.FixtureRequest
) -> Iterator[str]:
    """A migrated database without any row."""
    yield from fresh_database(dialect, components, request)


@pytest.fixture
def empty_database_url(dialect: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database without any table."""
    yield from fresh_database(dialect, (), request)


def fresh_database(
    dialect: str, components: Sequence[Component], request: pytest.FixtureRequest
) -> Iterator[str]:
    if dialect == "sqlite":
        folder: SqliteFolder = request.getfixturevalue("sqlite_folder")
        yield folder.create(components)
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.create(components)
    yield url
    server.drop(url)


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def database(database_url: str, clock: MovingClock) -> Iterator[Database]:
    """A database whose time stands still until the test moves it."""
    with opened(database_url, clock) as database:
        clock.drive(database)
        yield database


@pytest.fixture
def live_database(database_url: str) -> Iterator[Database]:
    """A database on the machine's own clock."""
    with opened(database_url) as database:
        yield database
