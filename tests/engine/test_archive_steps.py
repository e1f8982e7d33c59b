"""A log leaves the database in steps. Wherever they stop, nothing is lost, and the next leader goes on."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import delete

from support.makers import create_run, depose_and_take, read_run, run_in_state
from support.moving_clock import MovingClock
from support.old_logs import (
    LOG_DAYS,
    WORDS,
    Stage,
    files_in,
    folder_stage,
    line,
    numbered,
)
from tsuzuki.engine.archive import FolderArchive, LogArchive
from tsuzuki.engine.archivist import Archived
from tsuzuki.model.errors import ConfigurationError, Unreachable
from tsuzuki.model.states import FINAL_STATES, LIVE_STATES, RunState
from tsuzuki.store import logs
from tsuzuki.store.database import Database
from tsuzuki.store.logs import LogLine
from tsuzuki.store.tables import job_runs

LINES = numbered(WORDS)


class Crash(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def stage(
    database: Database, clock: MovingClock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Stage:
    monkeypatch.setattr("tsuzuki.engine.archivist.PAGE_LINES", 2)
    monkeypatch.setattr("tsuzuki.engine.archivist.SLICE_LINES", 2)
    return folder_stage(database, clock, folder)


class Interposed:
    """An archive that lets something happen around its writing."""

    def __init__(
        self,
        archive: LogArchive,
        *,
        before: Callable[[], object] = lambda: None,
        after_first_line: Callable[[], object] = lambda: None,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self._archive = archive
        self._before = before
        self._after_first_line = after_first_line
        self._after = after

    def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
        self._before()
        ref = self._archive.write(run_id, finished_at, self._interrupted(lines))
        self._after()
        return ref

    def _interrupted(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        for number, each in enumerate(lines):
            if number == 1:
                self._after_first_line()
            yield each

    def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        return self._archive.read(ref, after_seq=after_seq)

    def delete(self, ref: str) -> None:
        self._archive.delete(ref)


def crash() -> None:
    raise Crash


def at_call(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int, act: Callable[[], object]
) -> None:
    """Let `act` happen instead of the call of that number of a statement of the store, once."""
    statement = getattr(logs, name)
    calls = iter(range(1, 1_000))

    def called(*args: object, **kwargs: object) -> object:
        if next(calls) == number:
            act()
        return statement(*args, **kwargs)

    monkeypatch.setattr(logs, name, called)


def arrange_crash(point: str, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> LogArchive:
    assert stage.archive is not None
    match point:
        case "before the file is written":
            return Interposed(stage.archive, before=crash)
        case "while the file is written":
            return Interposed(stage.archive, after_first_line=crash)
        case "after the file is written":
            return Interposed(stage.archive, after=crash)
        case "before the run names it":
            at_call(monkeypatch, "set_ref", 1, crash)
        case "before the first rows go":
            at_call(monkeypatch, "delete_lines", 1, crash)
        case "before the second rows go":
            at_call(monkeypatch, "delete_lines", 2, crash)
        case "before the last rows go":
            at_call(monkeypatch, "delete_lines", 3, crash)
    return stage.archive


POINTS = [
    "before the file is written",
    "while the file is written",
    "after the file is written",
    "before the run names it",
    "before the first rows go",
    "before the second rows go",
    "before the last rows go",
]


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
        doomed = stage.new_archivist(arrange_crash(point, stage, patch))
        with pytest.raises(Crash):
            doomed.tick(stage.term)
    assert stage.reader.read(run_id) == LINES

    term = depose_and_take(stage.database)
    stage.new_archivist().tick(term)

    assert_archived(stage, folder, run_id)


@pytest.mark.parametrize("point", POINTS)
def test_interrupted_anywhere_the_same_leader_tries_again(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run_id = stage.old_run()
    archivist = stage.new_archivist()
    with monkeypatch.context() as patch:
        archivist._archive = arrange_crash(point, stage, patch)
        with pytest.raises(Crash):
            archivist.tick(stage.term)
    archivist._archive = stage.archive

    archivist.tick(stage.term)  # the end of this round
    archivist.tick(stage.term)

    assert_archived(stage, folder, run_id)


@pytest.mark.parametrize("point", POINTS)
def test_a_leader_deposed_at_any_step_changes_nothing_more(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    run_id = stage.old_run()

    def depose() -> None:
        if stage.database.is_sqlite and point.startswith("before the") and "file" not in point:
            pytest.skip("a writer of SQLite has begun: nobody can be deposed before it ends")
        depose_and_take(stage.database)

    monkeypatch.setattr(f"{__name__}.crash", depose)
    late = stage.new_archivist(arrange_crash(point, stage, monkeypatch))
    late.tick(stage.term)

    assert stage.reader.read(run_id) == LINES
    assert len(stage.rows_of(run_id)) == {
        "before the second rows go": 3,
        "before the last rows go": 1,
    }.get(point, 5)


def test_a_late_leader_that_reads_half_deleted_rows_replaces_nothing(
    stage: Stage, folder: Path
) -> None:
    run_id = stage.old_run()
    assert stage.archive is not None

    def another_leads_and_finishes() -> None:
        term = depose_and_take(stage.database)
        assert stage.new_archivist().tick(term) == Archived(runs=1, lines=5)

    late = stage.new_archivist(
        Interposed(stage.archive, after_first_line=another_leads_and_finishes)
    )
    assert late.tick(stage.term) == Archived()

    assert stage.reader.read(run_id) == LINES
    assert len(files_in(folder)) == 2, "its half of a log has a name of its own"


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
            and sum(pages, []) == LINES
            and reader.tail(run_id, 2) == LINES[-2:]
            and list(reader.follow(run_id, wait=lambda _: pytest.fail("it has ended"))) == LINES
        )

    for name in ("set_ref", "delete_lines"):
        for number in (1, 2, 3):
            at_call(monkeypatch, name, number, look)
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
        stage.new_archivist(arrange_crash("before the first rows go", stage, patch)).tick(
            stage.term
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
            other = FolderArchive(folder).write(run_id, stage.clock.now(), LINES[:2])
            (folder / other.removeprefix("folder:")).replace(path)

    stage.new_archivist().tick(stage.term)

    assert_archived(stage, folder, run_id)


def test_an_archive_that_does_not_answer_is_not_mistaken_for_a_lost_log(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stage.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        stage.new_archivist(arrange_crash("before the second rows go", stage, patch)).tick(
            stage.term
        )

    class Mute(FolderArchive):
        def read(self, ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
            raise Unreachable("no answer")

    with pytest.raises(Unreachable):
        stage.new_archivist(Mute(folder)).tick(stage.term)

    assert len(stage.rows_of(run_id)) == 3
    assert stage.reader.read(run_id) == LINES


def test_a_log_that_cannot_be_archived_does_not_hold_up_the_others(stage: Stage) -> None:
    first, second = stage.ended_run(), stage.ended_run()
    stage.days_pass(LOG_DAYS + 1)

    class Picky(FolderArchive):
        def write(self, run_id: int, finished_at: datetime, lines: Iterable[LogLine]) -> str:
            if run_id == first:
                raise Unreachable("not this one")
            return super().write(run_id, finished_at, lines)

    archivist = stage.new_archivist(Picky(Path("/nowhere")))
    archivist._archive = Picky(stage.archive._folder)  # type: ignore[union-attr]
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


@pytest.mark.parametrize("state", sorted(LIVE_STATES))
def test_a_run_that_never_finished_keeps_its_lines(stage: Stage, state: RunState) -> None:
    run = run_in_state(stage.database, state, stage.term)
    with stage.database.write() as connection:
        connection.execute(
            logs.job_run_logs.insert(),
            [{"run_id": run.id, "seq": 1, "at": stage.clock.now(), "stream": "log", "body": "x"}],
        )
    stage.days_pass(1000)

    assert stage.tick() == Archived()
    assert len(stage.rows_of(run.id)) == 1


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_a_run_that_said_nothing_has_nothing_in_the_archive(
    stage: Stage, folder: Path, state: RunState
) -> None:
    run = run_in_state(stage.database, state, stage.term)
    stage.days_pass(1000)

    assert stage.tick() == Archived()
    assert files_in(folder) == []
    assert stage.ref_of(run.id) is None


def test_one_tick_looks_at_so_many_runs_and_asks_to_be_called_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.engine.archivist.LOOKED_AT_MAX", 2)
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


def test_a_log_that_another_archive_has_is_left_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stage.old_run()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        stage.new_archivist(arrange_crash("before the second rows go", stage, patch)).tick(
            stage.term
        )
    from tsuzuki.engine.archive import open_archive

    with pytest.raises(ConfigurationError, match="another archive"):
        stage.new_archivist(open_archive("memory:///")).tick(stage.term)

    assert len(stage.rows_of(run_id)) == 3
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
