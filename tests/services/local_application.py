"""An application with one job, in whose process an engine may be started."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.factories import WORKER, add_worker, take_lead
from support.waiting import TIMEOUT_SECONDS
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application, opened


@contextmanager
def hello_application(database_url: str, folder: Path) -> Iterator[Application]:
    """Its engine, if one was started, is stopped at the end."""
    environ = {"PATH": os.environ["PATH"]}
    with opened(database_url=database_url, environ=environ, cwd=folder) as application:
        application.jobs.define("hello", {"command": ["true"]})
        yield application
        application.local_engine.stop(at_once=True)


def lead_and_work_elsewhere(database: Database) -> None:
    add_worker(database)
    take_lead(database, WORKER)


def run_hello(application: Application) -> RunState:
    run_id = application.runs.submit(Request(job="hello")).run_id
    return application.runs.wait(run_id, timeout_seconds=TIMEOUT_SECONDS).state
