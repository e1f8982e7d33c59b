"""Reading a log is the same before, while and after it moves."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.log_archiving import WORDS, ArchivingFixture, files_in, folder_archiving, numbered
from support.moving_clock import MovingClock
from tsuzuki.engine.archive.format import DamagedLog
from tsuzuki.model.errors import ConfigurationError, NotFound, UsageError
from tsuzuki.services.logs import RunLogs
from tsuzuki.store import logs
from tsuzuki.store.logs import LogLine
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database

LINES = numbered(WORDS)
UNKNOWN_RUN = 4242


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def stage(database: Database, clock: MovingClock, folder: Path) -> ArchivingFixture:
    return folder_archiving(database, clock, folder)


@pytest.fixture(params=["in the table", "in the archive"])
def run_id(stage: ArchivingFixture, request: pytest.FixtureRequest) -> int:
    run_id = stage.old_run()
    if request.param == "in the archive":
        stage.tick()
        assert stage.rows_of(run_id) == []
    return run_id


def never(_seconds: float) -> None:
    pytest.fail("there is nothing to wait for")


def script(*acts: Callable[[], object]) -> Callable[[float], None]:
    """A wait in which something happens, each time the next thing."""
    rest = iter(acts)

    def wait(seconds: float) -> None:
        assert 0 < seconds <= 1
        next(rest)()

    return wait


def after_call(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, act: Callable[[], object]
) -> None:
    """Let `act` happen right after the next call of a statement of the store."""
    statement = getattr(place, name)

    def called(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(place, name, statement)
        answer = statement(*args, **kwargs)
        act()
        return answer

    monkeypatch.setattr(place, name, called)


def test_a_log_reads_the_same_wherever_it_is(stage: ArchivingFixture, run_id: int) -> None:
    reader = stage.reader

    assert reader.read(run_id) == LINES
    assert reader.read(run_id, after_seq=3) == LINES[3:]
    assert reader.read(run_id, after_seq=1, limit=2) == LINES[1:3]
    assert reader.read(run_id, after_seq=5) == []
    assert reader.tail(run_id, 2) == LINES[-2:]
    assert reader.tail(run_id, 100) == LINES
    assert list(reader.read_all(run_id)) == LINES
    assert list(reader.follow(run_id, wait=never)) == LINES
    assert list(reader.follow(run_id, wait=never, after_seq=4)) == LINES[4:]


def test_a_run_that_says_nothing_has_an_empty_log(stage: ArchivingFixture) -> None:
    run_id = stage.ended_run([])

    assert stage.reader.read(run_id) == []
    assert stage.reader.tail(run_id, 10) == []
    assert list(stage.reader.follow(run_id, wait=never)) == []


def test_an_unknown_run_is_not_found(stage: ArchivingFixture) -> None:
    for ask in (
        lambda: stage.reader.read(UNKNOWN_RUN),
        lambda: stage.reader.tail(UNKNOWN_RUN, 1),
        lambda: list(stage.reader.follow(UNKNOWN_RUN, wait=never)),
    ):
        with pytest.raises(NotFound, match="there is no run 4242") as caught:
            ask()
        assert caught.value.specific_code == "run_unknown"


@pytest.mark.parametrize("count", [-1, 0, 10_001])
def test_no_answer_is_without_bounds(stage: ArchivingFixture, count: int) -> None:
    run_id = stage.ended_run()

    with pytest.raises(UsageError, match="limit must be from 1 to 10000"):
        stage.reader.read(run_id, limit=count)
    with pytest.raises(UsageError, match="count must be from 1 to 10000"):
        stage.reader.tail(run_id, count)


def test_a_log_that_moves_after_either_look_of_a_reader_is_read_once_and_whole(
    stage: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, name, ask in (
        (logs, "read", stage.reader.read),
        (runs, "get", stage.reader.read),
        (logs, "tail", lambda run_id: stage.reader.tail(run_id, 10)),
        (runs, "get", lambda run_id: stage.reader.tail(run_id, 10)),
        (logs, "read", lambda run_id: list(stage.reader.follow(run_id, wait=never))),
        (runs, "get", lambda run_id: list(stage.reader.follow(run_id, wait=never))),
    ):
        run_id = stage.old_run()
        after_call(monkeypatch, place, name, stage.tick)

        assert ask(run_id) == LINES
        assert stage.rows_of(run_id) == []


def test_pages_of_a_log_that_moves_between_them_fit_together(stage: ArchivingFixture) -> None:
    run_id = stage.old_run()
    pages = [stage.reader.read(run_id, limit=2)]
    stage.tick()
    pages += [stage.reader.read(run_id, after_seq=seq, limit=2) for seq in (2, 4)]

    assert [line for page in pages for line in page] == LINES


def test_following_gives_each_line_once_as_it_comes_and_ends_with_the_run(
    stage: ArchivingFixture,
) -> None:
    run = stage.started_run()
    stage.say(run, LINES[:1])
    wait = script(
        lambda: stage.say(run, LINES[1:3]),
        lambda: None,
        lambda: stage.say(run, LINES[3:4]),
        lambda: stage.end(run, LINES[4:]),
    )

    assert list(stage.reader.follow(run.id, wait=wait)) == LINES


def test_following_misses_no_line_that_came_with_the_end(
    stage: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stage.started_run()
    after_call(monkeypatch, logs, "read", lambda: stage.end(run, LINES))

    assert list(stage.reader.follow(run.id, wait=script(lambda: None))) == LINES


def test_reading_all_ends_with_what_is_there_although_the_run_goes_on(
    stage: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.services.logs.PAGE_LINES", 2)
    run = stage.started_run()
    stage.say(run, LINES)

    assert list(stage.reader.read_all(run.id)) == LINES


def test_reading_all_goes_on_in_the_archive(
    stage: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.services.logs.PAGE_LINES", 2)
    run_id = stage.old_run()
    reading = stage.reader.read_all(run_id)
    first = next(reading)
    stage.tick()

    assert [first, *reading] == LINES


def test_following_goes_on_in_the_archive(
    stage: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.services.logs.PAGE_LINES", 2)
    run_id = stage.old_run()
    following = stage.reader.follow(run_id, wait=never)
    first = next(following)
    stage.tick()

    assert [first, *following] == LINES


def test_following_holds_no_connection_between_two_lines(stage: ArchivingFixture) -> None:
    run_id = stage.ended_run()
    following = stage.reader.follow(run_id, wait=never)
    next(following)

    assert stage.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_a_run_that_is_forgotten_while_it_is_followed_ends_with_not_found(
    stage: ArchivingFixture,
) -> None:
    run = stage.started_run()
    stage.say(run, LINES)

    def forget() -> None:
        stage.end(run)
        stage.days_pass(100)
        stage.settings = stage.settings.with_values({"run_retention_days": 1})
        stage.tick()

    with pytest.raises(NotFound, match="there is no run"):
        list(stage.reader.follow(run.id, wait=script(forget)))


def test_a_damaged_archive_is_said_clearly(stage: ArchivingFixture, folder: Path) -> None:
    run_id = stage.old_run()
    stage.tick()
    (path,) = files_in(folder)
    path.write_bytes(path.read_bytes()[:-8])

    for ask in (
        lambda: stage.reader.read(run_id),
        lambda: stage.reader.tail(run_id, 1),
        lambda: list(stage.reader.follow(run_id, wait=never)),
    ):
        with pytest.raises(DamagedLog, match="is damaged"):
            ask()


def test_a_missing_archive_file_is_said_clearly(stage: ArchivingFixture, folder: Path) -> None:
    run_id = stage.old_run()
    stage.tick()
    files_in(folder)[0].unlink()

    with pytest.raises(NotFound, match="is not there") as caught:
        stage.reader.read(run_id)

    assert caught.value.specific_code == "log_archive_missing"


def test_an_archived_log_without_an_archive_says_what_to_set(stage: ArchivingFixture) -> None:
    run_id = stage.old_run()
    stage.tick()

    with pytest.raises(ConfigurationError, match="no archive is in use") as caught:
        RunLogs(database=stage.database, archive=None).read(run_id)

    assert "log_archive" in str(caught.value.hint)


def test_the_first_lines_of_a_huge_archived_log_are_read_without_the_rest(
    stage: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = stage.old_run()
    stage.tick()
    assert stage.archive is not None
    given: list[int] = []
    read = stage.archive.read

    def watched(ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        for line in read(ref, after_seq=after_seq):
            given.append(line.seq)
            yield line

    monkeypatch.setattr(stage.archive, "read", watched)

    assert stage.reader.read(run_id, limit=2) == LINES[:2]
    assert given == [1, 2]
