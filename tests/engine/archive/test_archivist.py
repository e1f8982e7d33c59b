"""A log leaves the database in steps. Wherever they stop, nothing is lost, and the next leader goes on."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from support.archiving_faults import POINTS, TRANSACTIONS, Crash, Interposed, Writes, arrange
from support.factories import depose_and_take
from support.log_archiving import WORDS, ArchivingFixture, files_in, folder_archiving, numbered
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
def fixture(
    database: Database, clock: MovingClock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> ArchivingFixture:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.PAGE_LINES", 2)
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.SLICE_LINES", 2)
    return folder_archiving(database, clock, folder)


def assert_archived(fixture: ArchivingFixture, folder: Path, run_id: int) -> None:
    assert fixture.rows_of(run_id) == []
    assert f"folder:{files_in(folder)[0].relative_to(folder)}" == fixture.ref_of(run_id)
    assert len(files_in(folder)) == 1
    assert fixture.reader.read(run_id) == LINES


def test_an_old_log_moves_to_the_archive_and_reads_the_same(
    fixture: ArchivingFixture, folder: Path
) -> None:
    run_id = fixture.old_run()

    assert fixture.tick() == Archived(runs=1, lines=5)

    assert_archived(fixture, folder, run_id)


@pytest.mark.parametrize("point", POINTS)
def test_interrupted_anywhere_nothing_is_lost_and_the_next_leader_finishes(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run_id = fixture.old_run()
    with monkeypatch.context() as patch:
        crashing = fixture.new_archivist(arrange(point, fixture, patch))
        with pytest.raises(Crash):
            crashing.tick(fixture.term)
    assert fixture.reader.read(run_id) == LINES

    term = depose_and_take(fixture.database)
    fixture.new_archivist().tick(term)

    assert_archived(fixture, folder, run_id)


def test_after_a_failure_the_same_leader_comes_back_to_the_log(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = fixture.old_run()
    archivist = fixture.new_archivist()
    with monkeypatch.context() as patch:
        arrange("before the second rows go", fixture, patch)
        with pytest.raises(Crash):
            archivist.tick(fixture.term)

    archivist.tick(fixture.term)  # the end of this round
    archivist.tick(fixture.term)

    assert_archived(fixture, folder, run_id)


@pytest.mark.parametrize("point", POINTS)
def test_a_leader_deposed_at_any_step_changes_nothing_more(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run_id = fixture.old_run()

    with monkeypatch.context() as patch:
        archive = arrange(point, fixture, patch, lambda: depose_and_take(fixture.database))
        late = fixture.new_archivist(archive)
        late.tick(fixture.term)

    assert fixture.reader.read(run_id) == LINES
    assert (fixture.ref_of(run_id) is None) == (not point.endswith("rows go"))
    assert len(fixture.rows_of(run_id)) == {
        "before the second rows go": 3,
        "before the last rows go": 1,
    }.get(point, 5)


def another_leads_and_finishes(fixture: ArchivingFixture) -> None:
    term = depose_and_take(fixture.database)
    assert fixture.new_archivist().tick(term) == Archived(runs=1, lines=5)


def test_a_late_leader_that_finds_half_of_the_rows_replaces_nothing(
    database: Database, clock: MovingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.engine.archive.archivist.PAGE_LINES", 2)
    archive = open_archive("memory:///")
    fixture = ArchivingFixture(database, clock, archive)
    run_id = fixture.old_run()
    written: list[str] = []
    late = fixture.new_archivist(
        Interposed(
            archive,
            after_first_line=lambda: another_leads_and_finishes(fixture),
            after=lambda: written.append("half"),
        )
    )

    assert late.tick(fixture.term) == Archived()

    assert written == ["half"]
    assert fixture.reader.read(run_id) == LINES


def test_a_late_leader_in_the_same_folder_is_stopped_and_replaces_nothing(
    fixture: ArchivingFixture, folder: Path
) -> None:
    run_id = fixture.old_run()
    assert fixture.archive is not None
    late = fixture.new_archivist(
        Interposed(fixture.archive, after_first_line=lambda: another_leads_and_finishes(fixture))
    )

    with pytest.raises(Unreachable, match="cannot write"):
        late.tick(fixture.term)

    assert_archived(fixture, folder, run_id)


def test_readers_notice_nothing_at_any_step(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = fixture.old_run()
    assert fixture.archive is not None
    seen: list[bool] = []

    def check() -> None:
        reader = fixture.reader
        pages = [reader.read(run_id, after_seq=seq, limit=2) for seq in (0, 2, 4)]
        seen.append(
            reader.read(run_id) == LINES
            and list(chain(*pages)) == LINES
            and reader.tail(run_id, 2) == LINES[-2:]
            and list(reader.follow(run_id, wait=lambda _: pytest.fail("it has ended"))) == LINES
        )

    writes = Writes(fixture.database, monkeypatch)
    for number in TRANSACTIONS.values():
        writes.before(number, check)
    archive = Interposed(fixture.archive, before=check, after_first_line=check, after=check)
    fixture.new_archivist(archive).tick(fixture.term)
    check()

    assert seen == [True] * 8
    assert_archived(fixture, folder, run_id)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "of other lines"])
def test_rows_go_only_if_the_archive_still_has_them(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    run_id = fixture.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        fixture.new_archivist(arrange("before the first rows go", fixture, patch)).tick(
            fixture.term
        )
    (path,) = files_in(folder)
    match damage:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(path.read_bytes()[:-5])
        case "of other lines":
            other = FolderArchive(folder).write(run_id, fixture.clock.now(), LINES[:2])
            (folder / other.removeprefix("folder:")).replace(path)

    fixture.new_archivist().tick(fixture.term)

    assert_archived(fixture, folder, run_id)


def test_if_the_archive_lost_a_log_half_of_which_has_left_the_other_half_is_saved(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = fixture.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        fixture.new_archivist(arrange("before the second rows go", fixture, patch)).tick(
            fixture.term
        )
    (path,) = files_in(folder)
    path.unlink()

    fixture.new_archivist().tick(fixture.term)

    assert fixture.rows_of(run_id) == []
    assert fixture.reader.read(run_id) == LINES[2:]


def test_an_archive_that_does_not_answer_is_not_mistaken_for_a_lost_log(
    fixture: ArchivingFixture, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = fixture.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        fixture.new_archivist(arrange("before the second rows go", fixture, patch)).tick(
            fixture.term
        )

    class Mute(FolderArchive):
        def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
            raise Unreachable("no response")

    with pytest.raises(Unreachable):
        fixture.new_archivist(Mute(folder)).tick(fixture.term)

    assert len(fixture.rows_of(run_id)) == 3
    assert fixture.reader.read(run_id) == LINES


def test_a_log_that_another_archive_has_is_left_alone(
    fixture: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = fixture.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        fixture.new_archivist(arrange("before the second rows go", fixture, patch)).tick(
            fixture.term
        )
    with pytest.raises(ConfigurationError, match="another archive"):
        fixture.new_archivist(open_archive("memory:///")).tick(fixture.term)

    assert len(fixture.rows_of(run_id)) == 3
    assert fixture.reader.read(run_id) == LINES


def test_its_log_goes_where_the_engines_log_goes_and_not_to_stdout(
    fixture: ArchivingFixture,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run_id = fixture.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        fixture.new_archivist(arrange("before the second rows go", fixture, patch)).tick(
            fixture.term
        )
    (path,) = files_in(folder)
    path.unlink()
    fixture.new_archivist().tick(fixture.term)
    (warning,) = [record for record in caplog.records if record.name == "tsuzuki"]
    assert getattr(warning, FIELDS)["run"] == run_id
    assert capfd.readouterr().out == ""
