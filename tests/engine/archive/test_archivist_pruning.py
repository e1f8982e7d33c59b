"""Finished runs are pruned after their time, with all that belongs to them, in an order that a crash
cannot turn into a reference to nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select, update

from support.archiving_faults import Crash, Interposed, Writes, crash
from support.factories import depose_and_take, new_run, read_run, run_in_state
from support.log_archiving import WORDS, ArchivingFixture, files_in, folder_archiving, numbered
from support.moving_clock import MovingClock
from tsuzuki.engine.archive.archivist import Archived
from tsuzuki.engine.archive.log_archive import open_archive
from tsuzuki.model.errors import NotFound, Unreachable
from tsuzuki.model.settings import EngineSettings
from tsuzuki.model.states import FINAL_STATES, LIVE_STATES, Trigger
from tsuzuki.store.runs import runs
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

LINES = numbered(WORDS)
RUN_DAYS = 30
ALL = {"tsuzuki_job_runs", "tsuzuki_job_run_transitions", "tsuzuki_job_run_logs"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def fixture(
    database: Database, clock: MovingClock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> ArchivingFixture:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.SLICE_LINES", 3)
    fixture = folder_archiving(database, clock, folder)
    fixture.settings = EngineSettings(run_retention_days=RUN_DAYS)
    return fixture


def archived_run(fixture: ArchivingFixture) -> int:
    """A run past its time, whose log is in the archive."""
    run_id = fixture.old_run()
    fixture.tick()
    assert fixture.ref_of(run_id) is not None
    fixture.days_pass(RUN_DAYS + 1)
    return run_id


def run_with_rows(fixture: ArchivingFixture) -> int:
    """A run past its time, whose lines are still in the table."""
    run_id = fixture.ended_run()
    fixture.settings = EngineSettings(run_retention_days=2)
    fixture.days_pass(3)
    return run_id


def test_a_run_past_its_time_goes_with_its_history_and_its_archived_log(
    fixture: ArchivingFixture, folder: Path
) -> None:
    run_id = archived_run(fixture)

    assert fixture.tick() == Archived(pruned=1)

    assert fixture.left_of(run_id) == set()
    assert files_in(folder) == []
    with pytest.raises(NotFound, match="there is no run"):
        fixture.reader.read(run_id)


def test_a_run_past_its_time_goes_with_lines_that_never_left_the_table(
    fixture: ArchivingFixture, folder: Path
) -> None:
    run_id = run_with_rows(fixture)

    assert fixture.tick() == Archived(pruned=1)

    assert fixture.left_of(run_id) == set()
    assert files_in(folder) == []


def test_zero_days_keep_runs_for_ever(fixture: ArchivingFixture) -> None:
    fixture.settings = EngineSettings(run_retention_days=0)
    run_id = fixture.ended_run()
    fixture.days_pass(36_000)

    fixture.tick()

    assert read_run(fixture.database, run_id).log_ref is not None


def test_a_run_stays_until_it_has_been_finished_for_long_enough(fixture: ArchivingFixture) -> None:
    run = fixture.started_run()
    fixture.days_pass(RUN_DAYS + 1)
    fixture.end(run)
    fixture.days_pass(RUN_DAYS - 0.001)

    assert fixture.tick() == Archived()
    fixture.days_pass(0.002)
    assert fixture.tick() == Archived(pruned=1)


def test_whatever_a_run_ended_as_it_goes_and_no_unfinished_one_does(
    fixture: ArchivingFixture,
) -> None:
    ended = [run_in_state(fixture.database, state, fixture.term).id for state in FINAL_STATES]
    live = [run_in_state(fixture.database, state, fixture.term).id for state in LIVE_STATES]
    fixture.days_pass(1000)

    assert fixture.tick() == Archived(pruned=len(ended))

    assert [fixture.left_of(run_id) for run_id in ended] == [set()] * len(ended)
    assert all("tsuzuki_job_runs" in fixture.left_of(run_id) for run_id in live)


def test_a_run_goes_although_its_retry_still_waits(fixture: ArchivingFixture) -> None:
    run_id = fixture.ended_run([])
    job_id = read_run(fixture.database, run_id).job_definition_id
    retry = new_run(fixture.database, job_id, trigger=Trigger.RETRY, retry_of=run_id, attempt=2)
    with fixture.database.write() as connection:
        (retry_id,) = runs.create(connection, [retry])
    assert retry_id is not None
    fixture.days_pass(RUN_DAYS + 1)

    assert fixture.tick() == Archived(pruned=1)
    assert read_run(fixture.database, retry_id).retry_of == run_id


def test_one_tick_prunes_so_many_runs_oldest_first_and_asks_to_be_called_again(
    fixture: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.PRUNED_MAX", 2)
    first, second, third = (fixture.ended_run([]) for _ in range(3))
    fixture.days_pass(RUN_DAYS + 1)

    assert fixture.tick() == Archived(pruned=2, more=True)
    assert (fixture.left_of(first), fixture.left_of(second)) == (set(), set())
    assert "tsuzuki_job_runs" in fixture.left_of(third)
    assert fixture.tick() == Archived(pruned=1)


def no_reference_dangles(fixture: ArchivingFixture) -> bool:
    """Every log that a run names can be read in full."""
    with fixture.database.read() as connection:
        refs = connection.execute(select(job_runs.c.log_ref)).scalars().all()
    assert fixture.archive is not None
    return all(
        list(fixture.archive.read(ref)) == LINES
        for ref in refs
        if ref is not None and not ref.startswith("pruned:")
    )


@pytest.mark.parametrize("transaction", [1, 2])
def test_interrupted_anywhere_no_archived_log_is_named_that_is_not_there(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch, transaction: int
) -> None:
    run_id = archived_run(fixture)
    with monkeypatch.context() as patch:
        Writes(fixture.database, patch).before(transaction, crash)
        with pytest.raises(Crash):
            fixture.new_archivist().tick(fixture.term)
    assert len(files_in(folder)) == 2 - transaction
    assert no_reference_dangles(fixture)

    fixture.new_archivist().tick(depose_and_take(fixture.database))

    assert fixture.left_of(run_id) == set()
    assert files_in(folder) == []


@pytest.mark.parametrize(("transaction", "rows"), [(1, 5), (2, 5), (3, 2), (4, 0)])
def test_interrupted_anywhere_no_half_of_a_log_is_shown(
    fixture: ArchivingFixture, monkeypatch: pytest.MonkeyPatch, transaction: int, rows: int
) -> None:
    run_id = run_with_rows(fixture)
    with monkeypatch.context() as patch:
        Writes(fixture.database, patch).before(transaction, crash)
        with pytest.raises(Crash):
            fixture.new_archivist().tick(fixture.term)
    assert len(fixture.rows_of(run_id)) == rows
    if transaction == 1:
        assert fixture.reader.read(run_id) == LINES
    else:
        with pytest.raises(NotFound, match="was deleted"):
            fixture.reader.read(run_id)

    fixture.new_archivist().tick(depose_and_take(fixture.database))

    assert fixture.left_of(run_id) == set()


@pytest.mark.parametrize("arrangement", [archived_run, run_with_rows])
def test_a_deposed_leader_prunes_nothing(
    fixture: ArchivingFixture, folder: Path, arrangement: Callable[[ArchivingFixture], int]
) -> None:
    run_id = arrangement(fixture)
    files = files_in(folder)
    depose_and_take(fixture.database)

    assert fixture.tick() == Archived()

    assert fixture.reader.read(run_id) == LINES
    assert fixture.left_of(run_id) >= {"tsuzuki_job_runs", "tsuzuki_job_run_transitions"}
    assert files_in(folder) == files


def test_rows_of_a_run_marked_before_retention_was_turned_off_still_leave(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_with_rows(fixture)
    with monkeypatch.context() as patch:
        Writes(fixture.database, patch).before(2, crash)
        with pytest.raises(Crash):
            fixture.tick()
    fixture.settings = EngineSettings(run_retention_days=0)
    fixture.days_pass(30)

    fixture.tick()

    assert fixture.left_of(run_id) == ALL - {"tsuzuki_job_run_logs"}
    assert files_in(folder) == []


def test_an_archive_that_does_not_answer_keeps_what_it_has_and_the_run(
    fixture: ArchivingFixture, folder: Path
) -> None:
    run_id = archived_run(fixture)

    class Away(Interposed):
        def delete(self, ref: str) -> None:
            raise Unreachable("no response")

    assert fixture.archive is not None
    with pytest.raises(Unreachable):
        fixture.new_archivist(Away(fixture.archive)).tick(fixture.term)

    assert "tsuzuki_job_runs" in fixture.left_of(run_id)
    assert len(files_in(folder)) == 1


def test_a_failing_archive_does_not_keep_runs_without_one(fixture: ArchivingFixture) -> None:
    pruned = run_with_rows(fixture)
    kept = fixture.old_run()
    fixture.settings = EngineSettings(run_retention_days=RUN_DAYS - 20)
    assert fixture.archive is not None

    def fail() -> None:
        raise Unreachable("no room")

    with pytest.raises(Unreachable, match="no room"):
        fixture.new_archivist(Interposed(fixture.archive, before=fail)).tick(fixture.term)

    assert fixture.left_of(pruned) == set()
    assert fixture.reader.read(kept) == LINES


@pytest.mark.parametrize("ref", [None, "folder:../../etc/passwd"])
def test_a_log_out_of_reach_for_good_does_not_keep_its_run(
    fixture: ArchivingFixture, folder: Path, ref: str | None
) -> None:
    run_id = archived_run(fixture)
    with fixture.database.write() as connection:
        if ref is not None:
            connection.execute(update(job_runs).values(log_ref=ref))

    fixture.new_archivist(open_archive("memory:///")).tick(fixture.term)

    assert fixture.left_of(run_id) == set()
    assert len(files_in(folder)) == 1


def test_without_an_archive_runs_are_pruned_all_the_same(
    database: Database, clock: MovingClock
) -> None:
    fixture = ArchivingFixture(database, clock, None)
    fixture.settings = EngineSettings(run_retention_days=RUN_DAYS)
    run_id = fixture.ended_run()
    fixture.days_pass(RUN_DAYS + 1)

    assert fixture.tick() == Archived(pruned=1)
    assert fixture.left_of(run_id) == set()
