"""Which logs leave the database, when, and how much of that happens at a time."""

import tracemalloc
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import delete, insert

from support.factories import create_run, read_run, run_in_state
from support.log_archiving import LOG_DAYS, WORDS, Stage, files_in, folder_stage, line, numbered
from support.moving_clock import MovingClock
from tsuzuki.engine.archive.archivist import Archived
from tsuzuki.engine.archive.log_archive import FolderArchive
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.states import FINAL_STATES, LIVE_STATES
from tsuzuki.store.logs import LogLine
from tsuzuki.store.schema.tables import job_run_logs, job_runs
from tsuzuki.store.sql.database import Database

LINES = numbered(WORDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def stage(database: Database, clock: MovingClock, folder: Path) -> Stage:
    return folder_stage(database, clock, folder)


def test_a_log_that_cannot_be_archived_does_not_hold_up_the_others(
    stage: Stage, folder: Path
) -> None:
    first, second = stage.ended_run(), stage.ended_run()
    stage.days_pass(LOG_DAYS + 1)

    class Picky(FolderArchive):
        def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
            if run_id == first:
                raise Unreachable("not this one")
            return super().write(run_id, finished_at, lines)

    archivist = stage.new_archivist(Picky(folder))
    with pytest.raises(Unreachable):
        archivist.tick(stage.term)

    assert archivist.tick(stage.term) == Archived(runs=1, lines=5)
    assert stage.rows_of(second) == []
    with pytest.raises(Unreachable):
        archivist.tick(stage.term)
    assert stage.rows_of(first) == LINES


def test_a_log_stays_until_its_run_has_been_finished_for_long_enough(stage: Stage) -> None:
    run = stage.started_run()
    stage.days_pass(LOG_DAYS + 1)
    stage.end(run, LINES)
    stage.days_pass(LOG_DAYS - 0.001)

    assert stage.tick() == Archived()
    stage.days_pass(0.002)
    create_run(stage.database, read_run(stage.database, run.id).job_definition_id)

    assert stage.tick() == Archived(runs=1, lines=5)


def test_a_run_that_never_finished_keeps_its_lines(stage: Stage) -> None:
    live = [run_in_state(stage.database, state, stage.term).id for state in sorted(LIVE_STATES)]
    said = {"seq": 1, "at": stage.clock.now(), "stream": "log", "body": "x"}
    with stage.database.write() as connection:
        connection.execute(insert(job_run_logs), [{"run_id": run_id, **said} for run_id in live])
    stage.days_pass(1000)

    assert stage.tick() == Archived()
    assert [len(stage.rows_of(run_id)) for run_id in live] == [1] * len(live)


def test_a_run_that_said_nothing_has_nothing_in_the_archive(stage: Stage, folder: Path) -> None:
    silent = [run_in_state(stage.database, state, stage.term).id for state in sorted(FINAL_STATES)]
    stage.days_pass(1000)

    assert stage.tick() == Archived()
    assert files_in(folder) == []
    assert [stage.ref_of(run_id) for run_id in silent] == [None] * len(silent)


def test_one_tick_looks_at_so_many_runs_and_asks_to_be_called_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.SCANNED_MAX", 2)
    live = stage.started_run()
    stage.say(live, LINES)
    run_ids = [stage.ended_run() for _ in range(4)]
    stage.days_pass(LOG_DAYS + 1)

    assert [stage.tick() for _ in range(4)] == [
        Archived(runs=1, lines=5, more=True),
        Archived(runs=2, lines=10, more=True),
        Archived(runs=1, lines=5),
        Archived(),
    ]
    assert [stage.rows_of(run_id) for run_id in run_ids] == [[]] * 4
    assert stage.rows_of(live.id) == LINES


def test_lines_whose_run_somebody_deleted_are_dropped(stage: Stage, folder: Path) -> None:
    run_id = stage.old_run()
    stage.ended_run()
    stage.days_pass(LOG_DAYS + 1)
    with stage.database.write() as connection:
        connection.execute(delete(job_runs).where(job_runs.c.id == run_id))

    stage.tick()

    assert stage.rows_of(run_id) == []
    assert len(files_in(folder)) == 1


def test_without_an_archive_logs_stay_where_they_are(
    database: Database, clock: MovingClock
) -> None:
    stage = Stage(database, clock, None)
    run_id = stage.old_run()

    assert stage.tick() == Archived()
    assert stage.reader.read(run_id) == LINES


def test_odd_characters_come_back_as_the_database_had_them(stage: Stage) -> None:
    odd = [
        "",
        " ",
        "\x00 and \ud800",
        "a\nb\r\nc\rd\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029",
        "\x1b[31mred\x1b[0m \x07\x08\x7f",
        "続き 🚀 e\u0301 \u202eright to left",
        '{"seq": 1} \\ " \' \t',
        "\ufeff\uffff\U0010ffff",
        "x" * 100_000,
    ]
    run_id = stage.old_run(odd)
    before = stage.reader.read(run_id)
    stage.tick()

    assert stage.rows_of(run_id) == []
    assert stage.reader.read(run_id) == before
    assert [each.body for each in before][3:] == odd[3:]
    assert before[2] == line(3, "\ufffd and ?")


def test_a_huge_log_is_moved_in_little_memory(stage: Stage, folder: Path) -> None:
    run_id = stage.old_run(f"{number} " + "x" * 1_000 for number in range(6_000))

    tracemalloc.start()
    try:
        assert stage.tick() == Archived(runs=1, lines=6_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 3_000_000
    assert [last.seq for last in stage.reader.tail(run_id, 2)] == [5_999, 6_000]
