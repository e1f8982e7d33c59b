"""Collections as every interface asks for them: one at a time, taken over when left, told how they go."""

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update

from support.databases import all_components
from support.factories import add_worker, take_lead
from support.git_histories import straight
from support.processes import in_processes
from tsuzuki.collectors.commits.queries import ledger
from tsuzuki.collectors.commits.service import CommitsService
from tsuzuki.collectors.commits.service.collections import JOB, Collections
from tsuzuki.collectors.commits.tables import CollectionStatus
from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.run import RunRef
from tsuzuki.model.states import RunState
from tsuzuki.store.runs import moves
from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.schema.tables import workers
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application, opened

Opened = partial[AbstractContextManager[Application]]


def in_place(url: str, folder: Path) -> Opened:
    return partial(opened, database_url=url, environ={}, cwd=folder, actor="test")


@pytest.fixture
def components() -> Sequence[Component]:
    return all_components()


@pytest.fixture
def application(database_url: str, tmp_path: Path) -> Iterator[Application]:
    straight(tmp_path / "one.git", 4)
    straight(tmp_path / "two.git", 4)
    with in_place(database_url, tmp_path)() as joined:
        joined.service("commits").commits.add_target("one.git", None, base=tmp_path)
        joined.service("commits").commits.add_target("two.git", "main", base=tmp_path)
        yield joined


def collections_of(application: Application) -> Collections:
    service: CommitsService = application.service("commits")
    return service.collections


def start_on_a_worker(database: Database, job_run_id: int, *, pid: int) -> None:
    """As if a process of this machine had started the run and had not been heard of since."""
    term, worker = take_lead(database), add_worker(database, "here-1-abcdef")
    with database.write() as connection:
        connection.execute(update(workers).values(host=socket.gethostname(), pid=pid))
        ref = RunRef(id=job_run_id, version=1)
        assignment = moves.Assignment(run=ref, worker_id=worker)
        assert moves.assign(connection, term=term, assignments=[assignment])
        assert moves.start(connection, worker_id=worker, runs=[RunRef(id=job_run_id, version=2)])


def a_dead_pid() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def state_of(application: Application, job_run_id: int) -> RunState:
    return application.runs.get(job_run_id).run.state


def start_in(url: str, folder: str) -> tuple[str, str]:
    with in_place(url, Path(folder))() as application:
        try:
            return "began", collections_of(application).start().collection_id
        except Conflict as refused:
            return refused.specific_code, refused.message


def test_of_two_processes_that_start_at_once_one_starts_and_the_other_is_refused(
    application: Application, database_url: str, tmp_path: Path
) -> None:
    answers = dict(in_processes(start_in, [[database_url, str(tmp_path)]] * 2))
    assert set(answers) == {"began", "already_running"}
    assert answers["began"] in answers["already_running"]
    assert len(collections_of(application).summaries()) == 1


def test_a_collection_and_its_run_are_born_together(application: Application) -> None:
    started = collections_of(application).start()
    run = application.runs.get(started.job_run_id).run
    assert (run.job_name, run.arguments) == (JOB, {"collection_id": started.collection_id})
    view = collections_of(application).show(started.collection_id)
    assert (view.summary.total_targets, view.summary.pending_count) == (2, 2)
    assert view.job_run_id == started.job_run_id


def test_only_some_targets_may_be_asked_for(application: Application) -> None:
    started = collections_of(application).start(["two"], branch="main")
    (result,) = collections_of(application).show(started.collection_id).results
    assert result.path.endswith("two.git")
    collections_of(application).cancel()
    with pytest.raises(NotFound, match="no project 'three'"):
        collections_of(application).start(["three"])


def test_who_is_at_work_is_not_taken_over(
    application: Application, live_database: Database
) -> None:
    started = collections_of(application).start()
    start_on_a_worker(live_database, started.job_run_id, pid=os.getpid())
    with pytest.raises(Conflict, match=started.collection_id):
        collections_of(application).start()
    with pytest.raises(Conflict, match=started.collection_id):
        collections_of(application).retry(started.collection_id)


def test_who_was_killed_here_is_taken_over_at_once_and_fenced(
    application: Application, live_database: Database
) -> None:
    started = collections_of(application).start()
    start_on_a_worker(live_database, started.job_run_id, pid=a_dead_pid())
    again = collections_of(application).start()
    assert (again.collection_id, again.is_takeover) == (started.collection_id, True)
    assert again.job_run_id != started.job_run_id
    assert state_of(application, started.job_run_id) is RunState.CANCELED
    with live_database.read() as connection:
        owner = ledger.owner(connection, started.collection_id)
    assert owner is not None
    assert owner.job_run_id == again.job_run_id
    assert application.liveness.term_of_leader_that_died_here() is None


def test_cancelled_it_stops_its_run_and_leaves_the_rest_pending(application: Application) -> None:
    started = collections_of(application).start()
    summary = collections_of(application).cancel()
    assert (summary.run_status, summary.pending_count) == (CollectionStatus.CANCELLED, 2)
    assert state_of(application, started.job_run_id) is RunState.CANCELED
    retried = collections_of(application).retry(started.collection_id)
    assert retried.total_targets == 2
    assert collections_of(application).show(retried.collection_id).retry_of == started.collection_id


def test_a_run_that_is_cancelled_takes_its_collection_with_it(application: Application) -> None:
    started = collections_of(application).start()
    application.runs.cancel(started.job_run_id)
    progress = collections_of(application).progress(started.collection_id)
    assert progress.summary.run_status is CollectionStatus.CANCELLED
    assert not collections_of(application).start().is_takeover


def test_a_job_that_is_switched_off_collects_nothing(application: Application) -> None:
    collections_of(application).start()
    collections_of(application).cancel()
    application.jobs.set_enabled(JOB, False)
    with pytest.raises(Conflict, match="disabled"):
        collections_of(application).start()
