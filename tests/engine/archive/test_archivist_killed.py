"""Real processes, killed without warning in the middle of moving a log or pruning a run."""

import os
import signal
from datetime import datetime
from pathlib import Path

import pytest

from support.archiving_faults import Interposed, Writes
from support.databases import opened
from support.factories import depose_and_take
from support.forked_program import forking
from support.log_archiving import ArchivingFixture, files_in, folder_archiving, numbered
from support.moving_clock import MovingClock
from tsuzuki.engine.archive.archivist import Archivist
from tsuzuki.engine.archive.log_archive import FolderArchive
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

BODIES = [f"line {number}" for number in range(4_500)]
LINES = numbered(BODIES)
TIMEOUT_SECONDS = 60.0

# The transactions of moving a log of this length: its ref, then three slices of rows; of pruning
# the run afterwards: the mark, then the run itself.
WHILE_WRITING, BETWEEN_ROWS, BEFORE_RUN_GOES = 0, 4, 2


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def archive_and_die(
    url: str, now: datetime, folder: Path, term: Term, settings: EngineSettings, point: int
) -> None:
    with opened(url, ManualClock(now)) as database:
        writes = Writes(database, pytest.MonkeyPatch())
        writes.before(point, die)
        archive = FolderArchive(folder)
        Archivist(
            database=database,
            settings=lambda: settings,
            archive=Interposed(archive, after_first_line=die)
            if point == WHILE_WRITING
            else archive,
            clock=ManualClock(now),
        ).tick(term)


def run_until_killed(fixture: ArchivingFixture, url: str, folder: Path, point: int) -> None:
    process = forking.Process(
        target=archive_and_die,
        args=(url, fixture.clock.now(), folder, fixture.term, fixture.settings, point),
    )
    process.start()
    process.join(TIMEOUT_SECONDS)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("point", [WHILE_WRITING, BETWEEN_ROWS])
def test_a_log_survives_the_killing_of_its_archivist_and_the_next_one_finishes(
    database: Database, database_url: str, clock: MovingClock, tmp_path: Path, point: int
) -> None:
    fixture = folder_archiving(database, clock, tmp_path)
    run_id = fixture.old_run(BODIES)
    run_until_killed(fixture, database_url, tmp_path, point)
    assert fixture.reader.read(run_id, limit=10_000) == LINES

    fixture.new_archivist().tick(depose_and_take(database))

    assert fixture.rows_of(run_id) == []
    assert fixture.reader.read(run_id, limit=10_000) == LINES
    assert len(files_in(tmp_path)) == 1


def test_a_run_that_was_being_pruned_when_its_archivist_was_killed_goes_with_the_next_one(
    database: Database, database_url: str, clock: MovingClock, tmp_path: Path
) -> None:
    fixture = folder_archiving(database, clock, tmp_path)
    run_id = fixture.old_run()
    fixture.tick()
    fixture.settings = EngineSettings(run_retention_days=1)
    run_until_killed(fixture, database_url, tmp_path, BEFORE_RUN_GOES)
    assert files_in(tmp_path) == []
    assert fixture.left_of(run_id) == {"tsuzuki_job_runs", "tsuzuki_job_run_transitions"}

    fixture.new_archivist().tick(depose_and_take(database))

    assert fixture.left_of(run_id) == set()
