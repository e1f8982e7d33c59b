"""Finished runs are forgotten after their time, with all that belongs to them, in an order that a crash
cannot turn into a reference to nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select, update

from support.archiving_faults import Crash, Interposed, Writes, crash
from support.factories import depose_and_take, new_run, read_run, run_in_state
from support.log_archiving import WORDS, Stage, files_in, folder_stage, numbered
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
ALL = {"job_runs", "job_run_transitions", "job_run_logs"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def stage(
    database: Database, clock: MovingClock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Stage:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.SLICE_LINES", 3)
    stage = folder_stage(database, clock, folder)
    stage.settings = EngineSettings(run_retention_days=RUN_DAYS)
    return stage


def archived_run(stage: Stage) -> int:
    """A run past its time, whose log is in the archive."""
    run_id = stage.old_run()
    stage.tick()
    assert stage.ref_of(run_id) is not None
    stage.days_pass(RUN_DAYS + 1)
    return run_id


def run_with_rows(stage: Stage) -> int:
    """A run past its time, whose lines are still in the table."""
    run_id = stage.ended_run()
    stage.settings = EngineSettings(run_retention_days=2)
    stage.days_pass(3)
    return run_id


def test_a_run_past_its_time_goes_with_its_history_and_its_archived_log(
    stage: Stage, folder: Path
) -> None:
    run_id = archived_run(stage)

    assert stage.tick() == Archived(pruned=1)

    assert stage.left_of(run_id) == set()
    assert files_in(folder) == []
    with pytest.raises(NotFound, match="there is no run"):
        stage.reader.read(run_id)


def test_a_run_past_its_time_goes_with_lines_that_never_left_the_table(
    stage: Stage, folder: Path
) -> None:
    run_id = run_with_rows(stage)

    assert stage.tick() == Archived(pruned=1)

    assert stage.left_of(run_id) == set()
    assert files_in(folder) == []


def test_zero_days_keep_runs_for_ever(stage: Stage) -> None:
    stage.settings = EngineSettings(run_retention_days=0)
    run_id = stage.ended_run()
    stage.days_pass(36_000)

    stage.tick()

    assert read_run(stage.database, run_id).log_ref is not None


def test_a_run_stays_until_it_has_been_finished_for_long_enough(stage: Stage) -> None:
    run = stage.started_run()
    stage.days_pass(RUN_DAYS + 1)
    stage.end(run)
    stage.days_pass(RUN_DAYS - 0.001)

    assert stage.tick() == Archived()
    stage.days_pass(0.002)
    assert stage.tick() == Archived(pruned=1)


def test_whatever_a_run_ended_as_it_goes_and_no_unfinished_one_does(stage: Stage) -> None:
    ended = [run_in_state(stage.database, state, stage.term).id for state in FINAL_STATES]
    live = [run_in_state(stage.database, state, stage.term).id for state in LIVE_STATES]
    stage.days_pass(1000)

    assert stage.tick() == Archived(pruned=len(ended))

    assert [stage.left_of(run_id) for run_id in ended] == [set()] * len(ended)
    assert all("job_runs" in stage.left_of(run_id) for run_id in live)


def test_a_run_goes_although_its_retry_still_waits(stage: Stage) -> None:
    run_id = stage.ended_run([])
    job_id = read_run(stage.database, run_id).job_definition_id
    retry = new_run(stage.database, job_id, trigger=Trigger.RETRY, retry_of=run_id, attempt=2)
    with stage.database.write() as connection:
        (retry_id,) = runs.create(connection, [retry])
    assert retry_id is not None
    stage.days_pass(RUN_DAYS + 1)

    assert stage.tick() == Archived(pruned=1)
    assert read_run(stage.database, retry_id).retry_of == run_id


def test_one_tick_forgets_so_many_runs_oldest_first_and_asks_to_be_called_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.PRUNED_MAX", 2)
    first, second, third = (stage.ended_run([]) for _ in range(3))
    stage.days_pass(RUN_DAYS + 1)

    assert stage.tick() == Archived(pruned=2, more=True)
    assert (stage.left_of(first), stage.left_of(second)) == (set(), set())
    assert "job_runs" in stage.left_of(third)
    assert stage.tick() == Archived(pruned=1)


def no_reference_dangles(stage: Stage) -> bool:
    """Every log that a run names can be read in full."""
    with stage.database.read() as connection:
        refs = connection.execute(select(job_runs.c.log_ref)).scalars().all()
    assert stage.archive is not None
    return all(
        list(stage.archive.read(ref)) == LINES
        for ref in refs
        if ref is not None and not ref.startswith("pruned:")
    )


@pytest.mark.parametrize("transaction", [1, 2])
def test_interrupted_anywhere_no_archived_log_is_named_that_is_not_there(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch, transaction: int
) -> None:
    run_id = archived_run(stage)
    with monkeypatch.context() as patch:
        Writes(stage.database, patch).before(transaction, crash)
        with pytest.raises(Crash):
            stage.new_archivist().tick(stage.term)
    assert len(files_in(folder)) == 2 - transaction
    assert no_reference_dangles(stage)

    stage.new_archivist().tick(depose_and_take(stage.database))

    assert stage.left_of(run_id) == set()
    assert files_in(folder) == []


@pytest.mark.parametrize(("transaction", "rows"), [(1, 5), (2, 5), (3, 2), (4, 0)])
def test_interrupted_anywhere_no_half_of_a_log_is_shown(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, transaction: int, rows: int
) -> None:
    run_id = run_with_rows(stage)
    with monkeypatch.context() as patch:
        Writes(stage.database, patch).before(transaction, crash)
        with pytest.raises(Crash):
            stage.new_archivist().tick(stage.term)
    assert len(stage.rows_of(run_id)) == rows
    if transaction == 1:
        assert stage.reader.read(run_id) == LINES
    else:
        with pytest.raises(NotFound, match="was deleted"):
            stage.reader.read(run_id)

    stage.new_archivist().tick(depose_and_take(stage.database))

    assert stage.left_of(run_id) == set()


@pytest.mark.parametrize("arrangement", [archived_run, run_with_rows])
def test_a_deposed_leader_forgets_nothing(
    stage: Stage, folder: Path, arrangement: Callable[[Stage], int]
) -> None:
    run_id = arrangement(stage)
    files = files_in(folder)
    depose_and_take(stage.database)

    assert stage.tick() == Archived()

    assert stage.reader.read(run_id) == LINES
    assert stage.left_of(run_id) >= {"job_runs", "job_run_transitions"}
    assert files_in(folder) == files


def test_rows_of_a_run_marked_before_retention_was_turned_off_still_leave(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_with_rows(stage)
    with monkeypatch.context() as patch:
        Writes(stage.database, patch).before(2, crash)
        with pytest.raises(Crash):
            stage.tick()
    stage.settings = EngineSettings(run_retention_days=0)
    stage.days_pass(30)

    stage.tick()

    assert stage.left_of(run_id) == ALL - {"job_run_logs"}
    assert files_in(folder) == []


def test_an_archive_that_does_not_answer_keeps_what_it_has_and_the_run(
    stage: Stage, folder: Path
) -> None:
    run_id = archived_run(stage)

    class Away(Interposed):
        def delete(self, ref: str) -> None:
            raise Unreachable("no answer")

    assert stage.archive is not None
    with pytest.raises(Unreachable):
        stage.new_archivist(Away(stage.archive)).tick(stage.term)

    assert "job_runs" in stage.left_of(run_id)
    assert len(files_in(folder)) == 1


def test_a_failing_archive_does_not_keep_runs_without_one(stage: Stage) -> None:
    forgotten = run_with_rows(stage)
    kept = stage.old_run()
    stage.settings = EngineSettings(run_retention_days=RUN_DAYS - 20)
    assert stage.archive is not None

    def fail() -> None:
        raise Unreachable("no room")

    with pytest.raises(Unreachable, match="no room"):
        stage.new_archivist(Interposed(stage.archive, before=fail)).tick(stage.term)

    assert stage.left_of(forgotten) == set()
    assert stage.reader.read(kept) == LINES


@pytest.mark.parametrize("ref", [None, "folder:../../etc/passwd"])
def test_a_log_out_of_reach_for_good_does_not_keep_its_run(
    stage: Stage, folder: Path, ref: str | None
) -> None:
    run_id = archived_run(stage)
    with stage.database.write() as connection:
        if ref is not None:
            connection.execute(update(job_runs).values(log_ref=ref))

    stage.new_archivist(open_archive("memory:///")).tick(stage.term)

    assert stage.left_of(run_id) == set()
    assert len(files_in(folder)) == 1


def test_without_an_archive_runs_are_forgotten_all_the_same(
    database: Database, clock: MovingClock
) -> None:
    stage = Stage(database, clock, None)
    stage.settings = EngineSettings(run_retention_days=RUN_DAYS)
    run_id = stage.ended_run()
    stage.days_pass(RUN_DAYS + 1)

    assert stage.tick() == Archived(pruned=1)
    assert stage.left_of(run_id) == set()
