"""Which logs leave the database, when, and how much of that happens at a time."""

import tracemalloc
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import delete, insert

from support.factories import create_run, read_run, run_in_state
from support.log_archiving import (
    LOG_DAYS,
    WORDS,
    ArchivingFixture,
    files_in,
    folder_archiving,
    line,
    numbered,
)
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
def fixture(database: Database, clock: MovingClock, folder: Path) -> ArchivingFixture:
    return folder_archiving(database, clock, folder)


def test_a_log_that_cannot_be_archived_does_not_hold_up_the_others(
    fixture: ArchivingFixture, folder: Path
) -> None:
    first, second = fixture.ended_run(), fixture.ended_run()
    fixture.days_pass(LOG_DAYS + 1)

    class Picky(FolderArchive):
        def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
            if run_id == first:
                raise Unreachable("not this one")
            return super().write(run_id, finished_at, lines)

    archivist = fixture.new_archivist(Picky(folder))
    with pytest.raises(Unreachable):
        archivist.tick(fixture.term)

    assert archivist.tick(fixture.term) == Archived(runs=1, lines=5)
    assert fixture.rows_of(second) == []
    with pytest.raises(Unreachable):
        archivist.tick(fixture.term)
    assert fixture.rows_of(first) == LINES


def test_a_log_stays_until_its_run_has_been_finished_for_long_enough(
    fixture: ArchivingFixture,
) -> None:
    run = fixture.started_run()
    fixture.days_pass(LOG_DAYS + 1)
    fixture.end(run, LINES)
    fixture.days_pass(LOG_DAYS - 0.001)

    assert fixture.tick() == Archived()
    fixture.days_pass(0.002)
    create_run(fixture.database, read_run(fixture.database, run.id).job_definition_id)

    assert fixture.tick() == Archived(runs=1, lines=5)


def test_a_run_that_never_finished_keeps_its_lines(fixture: ArchivingFixture) -> None:
    live = [run_in_state(fixture.database, state, fixture.term).id for state in sorted(LIVE_STATES)]
    values = {"seq": 1, "at": fixture.clock.now(), "stream": "log", "body": "x"}
    with fixture.database.write() as connection:
        connection.execute(insert(job_run_logs), [{"run_id": run_id, **values} for run_id in live])
    fixture.days_pass(1000)

    assert fixture.tick() == Archived()
    assert [len(fixture.rows_of(run_id)) for run_id in live] == [1] * len(live)


def test_a_run_without_log_lines_has_nothing_in_the_archive(
    fixture: ArchivingFixture, folder: Path
) -> None:
    silent = [
        run_in_state(fixture.database, state, fixture.term).id for state in sorted(FINAL_STATES)
    ]
    fixture.days_pass(1000)

    assert fixture.tick() == Archived()
    assert files_in(folder) == []
    assert [fixture.ref_of(run_id) for run_id in silent] == [None] * len(silent)


def test_one_tick_looks_at_so_many_runs_and_asks_to_be_called_again(
    fixture: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.SCANNED_MAX", 2)
    live = fixture.started_run()
    fixture.say(live, LINES)
    run_ids = [fixture.ended_run() for _ in range(4)]
    fixture.days_pass(LOG_DAYS + 1)

    assert [fixture.tick() for _ in range(4)] == [
        Archived(runs=1, lines=5, more=True),
        Archived(runs=2, lines=10, more=True),
        Archived(runs=1, lines=5),
        Archived(),
    ]
    assert [fixture.rows_of(run_id) for run_id in run_ids] == [[]] * 4
    assert fixture.rows_of(live.id) == LINES


def test_lines_of_a_run_that_was_deleted_are_dropped(
    fixture: ArchivingFixture, folder: Path
) -> None:
    run_id = fixture.old_run()
    fixture.ended_run()
    fixture.days_pass(LOG_DAYS + 1)
    with fixture.database.write() as connection:
        connection.execute(delete(job_runs).where(job_runs.c.id == run_id))

    fixture.tick()

    assert fixture.rows_of(run_id) == []
    assert len(files_in(folder)) == 1


def test_without_an_archive_logs_stay_where_they_are(
    database: Database, clock: MovingClock
) -> None:
    fixture = ArchivingFixture(database, clock, None)
    run_id = fixture.old_run()

    assert fixture.tick() == Archived()
    assert fixture.reader.read(run_id) == LINES


def test_odd_characters_come_back_as_the_database_had_them(fixture: ArchivingFixture) -> None:
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
    run_id = fixture.old_run(odd)
    before = fixture.reader.read(run_id)
    fixture.tick()

    assert fixture.rows_of(run_id) == []
    assert fixture.reader.read(run_id) == before
    assert [each.body for each in before][3:] == odd[3:]
    assert before[2] == line(3, "\ufffd and \ufffd")


def test_a_huge_log_is_moved_in_little_memory(fixture: ArchivingFixture, folder: Path) -> None:
    run_id = fixture.old_run(f"{number} " + "x" * 1_000 for number in range(6_000))

    tracemalloc.start()
    try:
        assert fixture.tick() == Archived(runs=1, lines=6_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 3_000_000
    assert [last.seq for last in fixture.reader.tail(run_id, 2)] == [5_999, 6_000]
