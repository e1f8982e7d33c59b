"""A log leaves the database in steps. Wherever they stop, nothing is lost, and the next leader goes on."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from support.archiving_faults import POINTS, TRANSACTIONS, Crash, Interposed, Writes, arrange
from support.factories import depose_and_take
from support.log_archiving import WORDS, Stage, files_in, folder_stage, numbered
from support.moving_clock import MovingClock
from tsuzuki.engine.archive.archivist import Archived
from tsuzuki.engine.archive.log_archive import FolderArchive, open_archive
from tsuzuki.engine.log import FIELDS
from tsuzuki.model.errors import ConfigurationError, Unreachable
from tsuzuki.store.logs import LogLine
from tsuzuki.store.sql.database import Database

LINES = numbered(WORDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def stage(
    database: Database, clock: MovingClock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Stage:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.PAGE_LINES", 2)
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.SLICE_LINES", 2)
    return folder_stage(database, clock, folder)


def assert_archived(stage: Stage, folder: Path, run_id: int) -> None:
    assert stage.rows_of(run_id) == []
    assert f"folder:{files_in(folder)[0].relative_to(folder)}" == stage.ref_of(run_id)
    assert len(files_in(folder)) == 1
    assert stage.reader.read(run_id) == LINES


def test_an_old_log_moves_to_the_archive_and_reads_the_same(stage: Stage, folder: Path) -> None:
    run_id = stage.old_run()

    assert stage.tick() == Archived(runs=1, lines=5)

    assert_archived(stage, folder, run_id)


@pytest.mark.parametrize("point", POINTS)
def test_interrupted_anywhere_nothing_is_lost_and_the_next_leader_finishes(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run_id = stage.old_run()
    with monkeypatch.context() as patch:
        doomed = stage.new_archivist(arrange(point, stage, patch))
        with pytest.raises(Crash):
            doomed.tick(stage.term)
    assert stage.reader.read(run_id) == LINES

    term = depose_and_take(stage.database)
    stage.new_archivist().tick(term)

    assert_archived(stage, folder, run_id)


def test_after_a_failure_the_same_leader_comes_back_to_the_log(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stage.old_run()
    archivist = stage.new_archivist()
    with monkeypatch.context() as patch:
        arrange("before the second rows go", stage, patch)
        with pytest.raises(Crash):
            archivist.tick(stage.term)

    archivist.tick(stage.term)  # the end of this round
    archivist.tick(stage.term)

    assert_archived(stage, folder, run_id)


@pytest.mark.parametrize("point", POINTS)
def test_a_leader_deposed_at_any_step_changes_nothing_more(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run_id = stage.old_run()

    with monkeypatch.context() as patch:
        archive = arrange(point, stage, patch, lambda: depose_and_take(stage.database))
        late = stage.new_archivist(archive)
        late.tick(stage.term)

    assert stage.reader.read(run_id) == LINES
    assert (stage.ref_of(run_id) is None) == (not point.endswith("rows go"))
    assert len(stage.rows_of(run_id)) == {
        "before the second rows go": 3,
        "before the last rows go": 1,
    }.get(point, 5)


def another_leads_and_finishes(stage: Stage) -> None:
    term = depose_and_take(stage.database)
    assert stage.new_archivist().tick(term) == Archived(runs=1, lines=5)


def test_a_late_leader_that_finds_half_of_the_rows_replaces_nothing(
    database: Database, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.PAGE_LINES", 2)
    archive = open_archive("memory:///")
    stage = Stage(database, clock, archive)
    run_id = stage.old_run()
    written: list[str] = []
    late = stage.new_archivist(
        Interposed(
            archive,
            after_first_line=lambda: another_leads_and_finishes(stage),
            after=lambda: written.append("half"),
        )
    )

    assert late.tick(stage.term) == Archived()

    assert written == ["half"]
    assert stage.reader.read(run_id) == LINES


def test_a_late_leader_in_the_same_folder_is_stopped_and_replaces_nothing(
    stage: Stage, folder: Path
) -> None:
    run_id = stage.old_run()
    assert stage.archive is not None
    late = stage.new_archivist(
        Interposed(stage.archive, after_first_line=lambda: another_leads_and_finishes(stage))
    )

    with pytest.raises(Unreachable, match="cannot be written"):
        late.tick(stage.term)

    assert_archived(stage, folder, run_id)


def test_readers_notice_nothing_at_any_step(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stage.old_run()
    assert stage.archive is not None
    seen: list[bool] = []

    def look() -> None:
        reader = stage.reader
        pages = [reader.read(run_id, after_seq=seq, limit=2) for seq in (0, 2, 4)]
        seen.append(
            reader.read(run_id) == LINES
            and list(chain(*pages)) == LINES
            and reader.tail(run_id, 2) == LINES[-2:]
            and list(reader.follow(run_id, wait=lambda _: pytest.fail("it has ended"))) == LINES
        )

    writes = Writes(stage.database, monkeypatch)
    for number in TRANSACTIONS.values():
        writes.before(number, look)
    archive = Interposed(stage.archive, before=look, after_first_line=look, after=look)
    stage.new_archivist(archive).tick(stage.term)
    look()

    assert seen == [True] * 8
    assert_archived(stage, folder, run_id)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "of other lines"])
def test_rows_go_only_if_the_archive_still_has_them(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    run_id = stage.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        stage.new_archivist(arrange("before the first rows go", stage, patch)).tick(stage.term)
    (path,) = files_in(folder)
    match damage:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(path.read_bytes()[:-5])
        case "of other lines":
            other = FolderArchive(folder).write(run_id, stage.clock.now(), LINES[:2])
            (folder / other.removeprefix("folder:")).replace(path)

    stage.new_archivist().tick(stage.term)

    assert_archived(stage, folder, run_id)


def test_if_the_archive_lost_a_log_half_of_which_has_left_the_other_half_is_saved(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stage.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        stage.new_archivist(arrange("before the second rows go", stage, patch)).tick(stage.term)
    (path,) = files_in(folder)
    path.unlink()

    stage.new_archivist().tick(stage.term)

    assert stage.rows_of(run_id) == []
    assert stage.reader.read(run_id) == LINES[2:]


def test_an_archive_that_does_not_answer_is_not_mistaken_for_a_lost_log(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stage.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        stage.new_archivist(arrange("before the second rows go", stage, patch)).tick(stage.term)

    class Mute(FolderArchive):
        def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
            raise Unreachable("no answer")

    with pytest.raises(Unreachable):
        stage.new_archivist(Mute(folder)).tick(stage.term)

    assert len(stage.rows_of(run_id)) == 3
    assert stage.reader.read(run_id) == LINES


def test_a_log_that_another_archive_has_is_left_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stage.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        stage.new_archivist(arrange("before the second rows go", stage, patch)).tick(stage.term)
    with pytest.raises(ConfigurationError, match="another archive"):
        stage.new_archivist(open_archive("memory:///")).tick(stage.term)

    assert len(stage.rows_of(run_id)) == 3
    assert stage.reader.read(run_id) == LINES


def test_its_log_goes_where_the_engines_log_goes_and_not_to_stdout(
    stage: Stage,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_id = stage.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        stage.new_archivist(arrange("before the second rows go", stage, patch)).tick(stage.term)
    (path,) = files_in(folder)
    path.unlink()
    stage.new_archivist().tick(stage.term)
    (warning,) = [record for record in caplog.records if record.name == "tsuzuki"]
    assert getattr(warning, FIELDS)["run"] == run_id
    assert capfd.readouterr().out == ""
