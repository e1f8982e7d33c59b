"""The database follows the file as it is, never as it was a moment ago."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event, text

from support.databases import opened
from support.factories import add_job, make_schedule_unreadable, spec
from tsuzuki.config import Configuration, load_configuration
from tsuzuki.model.errors import Conflict, NotFound, ScheduleError, Unreachable
from tsuzuki.model.job import JobSource
from tsuzuki.model.schedule import parse_schedule
from tsuzuki.services.jobs import Jobs, SyncState
from tsuzuki.store import jobs as store_jobs
from tsuzuki.store.sql.database import Database


@pytest.fixture
def other_database(database_url: str) -> Iterator[Database]:
    """The same database, as another process has it open."""
    with opened(database_url) as database:
        yield database


def jobs_of(database: Database, reload: Callable[[], Configuration]) -> Jobs:
    return Jobs(database=database, reload=reload, kinds={}, actor="test")


def test_a_job_added_by_another_process_meanwhile_is_not_removed(
    live_database: Database, other_database: Database, tmp_path: Path
) -> None:
    (tmp_path / "tsuzuki.yaml").write_text("jobs: {}\n")
    read = partial(load_configuration, environ={}, cwd=tmp_path)
    theirs = jobs_of(other_database, read)
    waiting = ["theirs"]

    def read_while_others_act() -> Configuration:
        configuration = read()
        while waiting:
            theirs.add(waiting.pop(), {"command": "x"})
        return configuration

    jobs_of(live_database, read_while_others_act).apply()
    (view,) = theirs.find()
    assert (view.name, view.sync_state) == ("theirs", SyncState.APPLIED)


def test_a_job_whose_schedule_cannot_be_read_here_is_listed_with_the_others(
    live_database: Database, tmp_path: Path
) -> None:
    (tmp_path / "tsuzuki.yaml").write_text("jobs: {}\n")
    jobs = jobs_of(live_database, partial(load_configuration, environ={}, cwd=tmp_path))
    job_id = add_job(live_database, spec("far", schedule=parse_schedule("every 1h")))
    add_job(live_database, spec("near", schedule=parse_schedule("every 1h")))
    make_schedule_unreadable(live_database, job_id)
    far, near = jobs.find()
    assert far.schedule_words.startswith("cannot be displayed: ")
    assert "Mars/Olympus" in far.schedule_words
    assert far.next_at is None
    assert near.next_at is not None
    with pytest.raises(ScheduleError, match="cannot be displayed"):
        jobs.next_times("far", 3)
    with live_database.write() as connection:
        stored = store_jobs.get(connection, job_id)
        assert stored is not None
        assert store_jobs.change(connection, job=stored, spec=replace(stored.spec, priority=7))
        changed = store_jobs.get(connection, job_id)
    assert changed is not None
    assert changed.spec.schedule == stored.spec.schedule


def test_one_job_is_shown_without_reading_the_others(
    live_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch of one job among thousands looked at all of them, three times."""
    (tmp_path / "tsuzuki.yaml").write_text("jobs:\n  here:\n    command: x\n")
    jobs = jobs_of(live_database, partial(load_configuration, environ={}, cwd=tmp_path))
    jobs.apply()
    add_job(live_database, spec("stored"))
    whole = {view.name: view.sync_state for view in jobs.find()}
    with monkeypatch.context() as patch:
        patch.setattr(store_jobs, "find", None)
        assert {name: jobs.get(name).sync_state for name in whole} == whole
    with pytest.raises(NotFound, match="stord") as caught:
        jobs.get("stord")
    assert 'Did you mean "stored"?' in str(caught.value.hint)


def test_a_job_that_has_not_changed_is_not_parsed_again(
    live_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the list parsed every definition, for each actor anew."""
    jobs = jobs_of(live_database, partial(load_configuration, environ={}, cwd=tmp_path))
    same, changed, removed = (add_job(live_database, spec(name)) for name in "abc")
    assert [view.name for view in jobs.find()] == ["a", "b", "c"]
    with live_database.write() as connection:
        stored = store_jobs.get_many(connection, [changed, removed], known={})
        edited = replace(stored[changed].spec, priority=7)
        assert store_jobs.change(connection, job=stored[changed], spec=edited)
        assert store_jobs.remove(connection, job=stored[removed])
    added = add_job(live_database, spec("d"))
    parsed: list[int] = []
    real = store_jobs.job_from
    monkeypatch.setattr(store_jobs, "job_from", lambda row: parsed.append(row["id"]) or real(row))
    found = {view.name: view.job for view in jobs.acting_as("another").find()}
    assert sorted(parsed) == [changed, added]
    assert found["b"] is not None
    assert (found["b"].id, found["b"].spec.priority) == (changed, 7)
    assert {name: job.id for name, job in found.items() if job} == {
        "a": same,
        "b": changed,
        "d": added,
    }


def test_jobs_of_a_handler_are_those_of_the_whole_list(
    live_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file or the database may say another handler: the one that counts is asked for."""
    names = ("file", "changed", "changed-to", "own", "own-too")
    (tmp_path / "tsuzuki.yaml").write_text(
        "jobs:\n"
        + "".join(f"  {name}: {{command: x}}\n" for name in ("file", "changed-to", "own"))
        + "  changed: {python: 'os:getpid'}\n"
    )
    jobs = jobs_of(live_database, partial(load_configuration, environ={}, cwd=tmp_path))
    for name, handler in zip(names[1:], ("command", "python", "python", "command"), strict=True):
        source = JobSource.FILE if name.startswith("changed") else JobSource.DATABASE
        with live_database.write() as connection:
            store_jobs.add(connection, replace(spec(name), handler=handler), source=source)
    whole = jobs.find()
    monkeypatch.setattr(store_jobs, "find", lambda _connection: pytest.fail("all were read"))
    for handler, expected in (
        ("command", ["changed-to", "file", "own-too"]),
        ("python", ["changed", "own"]),
        ("feeds", []),
    ):
        found = jobs.find_by_handler(handler)
        assert found == [view for view in whole if view.spec.handler == handler]
        assert [view.name for view in found] == expected


def make_read_only(database: Database) -> None:
    """As a standby is, or a snapshot of a file: a transaction begins, and refuses to write."""
    if database.is_sqlite:
        event.listen(
            database.engine, "connect", lambda raw, _: raw.execute("PRAGMA query_only = ON")
        )
    else:
        name = database.engine.url.database
        with database.write() as connection:
            connection.execute(
                text(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            )
    database.engine.dispose()


CHANGES_OF_THE_FILE: dict[str, Callable[[Jobs], object]] = {
    "add": lambda jobs: jobs.add("new", {"command": "x"}),
    "update": lambda jobs: jobs.update("here", {"command": "y"}),
    "disable": lambda jobs: jobs.set_enabled("here", False),
    "remove": lambda jobs: jobs.remove("here"),
}


@pytest.mark.parametrize("change", CHANGES_OF_THE_FILE)
def test_a_database_that_cannot_be_written_refuses_before_the_file_is_changed(
    live_database: Database, tmp_path: Path, change: str
) -> None:
    file = tmp_path / "tsuzuki.yaml"
    file.write_text("jobs:\n  here:\n    command: x\n")
    before = file.read_bytes()
    jobs = jobs_of(live_database, partial(load_configuration, environ={}, cwd=tmp_path))
    jobs.apply()
    make_read_only(live_database)
    with pytest.raises(Unreachable, match="is read-only"):
        CHANGES_OF_THE_FILE[change](jobs)
    assert file.read_bytes() == before


def test_a_job_of_the_file_that_is_not_applied_yet_is_none_of_the_database(
    live_database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "tsuzuki.yaml"
    file.write_text("jobs:\n  waiting: {command: x}\n")
    jobs = jobs_of(live_database, partial(load_configuration, environ={}, cwd=tmp_path))
    for change in (
        lambda: jobs.create("waiting", {"command": "y"}),
        lambda: jobs.edit("waiting", {"command": "y"}, version=None),
        lambda: jobs.discard("waiting", version=None),
    ):
        with pytest.raises(Conflict) as refused:
            change()
        assert refused.value.specific_code == "job_source"
    with live_database.read() as connection:
        assert store_jobs.get_by_name(connection, "waiting") is None


def test_a_name_that_the_api_has_taken_is_refused_before_the_file_is_changed(
    live_database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "tsuzuki.yaml"
    file.write_text("jobs: {}\n")
    jobs = jobs_of(live_database, partial(load_configuration, environ={}, cwd=tmp_path))
    jobs.define("taken", {"command": "x"})
    for dry_run in (True, False):
        with pytest.raises(Conflict, match="already exists"):
            jobs.add("taken", {"command": "x"}, dry_run=dry_run)
    assert file.read_text() == "jobs: {}\n"
