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
def archiving(database: Database, clock: MovingClock, folder: Path) -> ArchivingFixture:
    return folder_archiving(database, clock, folder)


@pytest.fixture(params=["in the table", "in the archive"])
def run_id(archiving: ArchivingFixture, request: pytest.FixtureRequest) -> int:
    run_id = archiving.old_run()
    if request.param == "in the archive":
        archiving.tick()
        assert archiving.rows_of(run_id) == []
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


def test_a_log_reads_the_same_wherever_it_is(archiving: ArchivingFixture, run_id: int) -> None:
    reader = archiving.reader

    assert reader.read(run_id) == LINES
    assert reader.read(run_id, after_seq=3) == LINES[3:]
    assert reader.read(run_id, after_seq=1, limit=2) == LINES[1:3]
    assert reader.read(run_id, after_seq=5) == []
    assert reader.tail(run_id, 2) == LINES[-2:]
    assert reader.tail(run_id, 100) == LINES
    assert list(reader.read_all(run_id)) == LINES
    assert list(reader.follow(run_id, wait=never)) == LINES
    assert list(reader.follow(run_id, wait=never, after_seq=4)) == LINES[4:]


def test_the_whole_log_is_searched_wherever_it_is(archiving: ArchivingFixture, run_id: int) -> None:
    search = archiving.reader.search
    word = LINES[1].body

    assert search(run_id, word.upper()) == [line for line in LINES if word in line.body]
    assert search(run_id, "") == LINES
    assert search(run_id, "", after_seq=1, limit=2) == LINES[1:3]
    assert search(run_id, "no such text") == []
    for special in ("%", "_", "\\", "%_"):
        assert search(run_id, special) == [line for line in LINES if special in line.body]


def test_a_run_that_says_nothing_has_an_empty_log(archiving: ArchivingFixture) -> None:
    run_id = archiving.ended_run([])

    assert archiving.reader.read(run_id) == []
    assert archiving.reader.tail(run_id, 10) == []
    assert list(archiving.reader.follow(run_id, wait=never)) == []


def test_an_unknown_run_is_not_found(archiving: ArchivingFixture) -> None:
    for ask in (
        lambda: archiving.reader.read(UNKNOWN_RUN),
        lambda: archiving.reader.tail(UNKNOWN_RUN, 1),
        lambda: list(archiving.reader.follow(UNKNOWN_RUN, wait=never)),
    ):
        with pytest.raises(NotFound, match="there is no run 4242") as caught:
            ask()
        assert caught.value.specific_code == "run_unknown"


@pytest.mark.parametrize("count", [-1, 0, 10_001])
def test_no_answer_is_without_bounds(archiving: ArchivingFixture, count: int) -> None:
    run_id = archiving.ended_run()

    with pytest.raises(UsageError, match="limit must be from 1 to 10000"):
        archiving.reader.read(run_id, limit=count)
    with pytest.raises(UsageError, match="count must be from 1 to 10000"):
        archiving.reader.tail(run_id, count)


def test_a_log_that_moves_after_either_look_of_a_reader_is_read_once_and_whole(
    archiving: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, name, ask in (
        (logs, "read", archiving.reader.read),
        (runs, "get", archiving.reader.read),
        (logs, "tail", lambda run_id: archiving.reader.tail(run_id, 10)),
        (runs, "get", lambda run_id: archiving.reader.tail(run_id, 10)),
        (logs, "read", lambda run_id: list(archiving.reader.follow(run_id, wait=never))),
        (runs, "get", lambda run_id: list(archiving.reader.follow(run_id, wait=never))),
    ):
        run_id = archiving.old_run()
        after_call(monkeypatch, place, name, archiving.tick)

        assert ask(run_id) == LINES
        assert archiving.rows_of(run_id) == []


def test_pages_of_a_log_that_moves_between_them_fit_together(archiving: ArchivingFixture) -> None:
    run_id = archiving.old_run()
    pages = [archiving.reader.read(run_id, limit=2)]
    archiving.tick()
    pages += [archiving.reader.read(run_id, after_seq=seq, limit=2) for seq in (2, 4)]

    assert [line for page in pages for line in page] == LINES


def test_following_gives_each_line_once_as_it_comes_and_ends_with_the_run(
    archiving: ArchivingFixture,
) -> None:
    run = archiving.started_run()
    archiving.say(run, LINES[:1])
    wait = script(
        lambda: archiving.say(run, LINES[1:3]),
        lambda: None,
        lambda: archiving.say(run, LINES[3:4]),
        lambda: archiving.end(run, LINES[4:]),
    )

    assert list(archiving.reader.follow(run.id, wait=wait)) == LINES


def test_following_misses_no_line_that_came_with_the_end(
    archiving: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = archiving.started_run()
    after_call(monkeypatch, logs, "read", lambda: archiving.end(run, LINES))

    assert list(archiving.reader.follow(run.id, wait=script(lambda: None))) == LINES


def test_reading_all_ends_with_what_is_there_although_the_run_goes_on(
    archiving: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.services.logs.PAGE_LINES", 2)
    run = archiving.started_run()
    archiving.say(run, LINES)

    assert list(archiving.reader.read_all(run.id)) == LINES


def test_reading_all_goes_on_in_the_archive(
    archiving: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.services.logs.PAGE_LINES", 2)
    run_id = archiving.old_run()
    reading = archiving.reader.read_all(run_id)
    first = next(reading)
    archiving.tick()

    assert [first, *reading] == LINES


def test_following_goes_on_in_the_archive(
    archiving: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.services.logs.PAGE_LINES", 2)
    run_id = archiving.old_run()
    following = archiving.reader.follow(run_id, wait=never)
    first = next(following)
    archiving.tick()

    assert [first, *following] == LINES


def test_following_holds_no_connection_between_two_lines(archiving: ArchivingFixture) -> None:
    run_id = archiving.ended_run()
    following = archiving.reader.follow(run_id, wait=never)
    next(following)

    assert archiving.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_a_run_that_is_forgotten_while_it_is_followed_ends_with_not_found(
    archiving: ArchivingFixture,
) -> None:
    run = archiving.started_run()
    archiving.say(run, LINES)

    def forget() -> None:
        archiving.end(run)
        archiving.days_pass(100)
        archiving.settings = archiving.settings.with_values({"run_retention_days": 1})
        archiving.tick()

    with pytest.raises(NotFound, match="there is no run"):
        list(archiving.reader.follow(run.id, wait=script(forget)))


def test_a_damaged_archive_is_said_clearly(archiving: ArchivingFixture, folder: Path) -> None:
    run_id = archiving.old_run()
    archiving.tick()
    (path,) = files_in(folder)
    path.write_bytes(path.read_bytes()[:-8])

    for ask in (
        lambda: archiving.reader.read(run_id),
        lambda: archiving.reader.tail(run_id, 1),
        lambda: list(archiving.reader.follow(run_id, wait=never)),
    ):
        with pytest.raises(DamagedLog, match="is damaged"):
            ask()


def test_a_missing_archive_file_is_said_clearly(archiving: ArchivingFixture, folder: Path) -> None:
    run_id = archiving.old_run()
    archiving.tick()
    files_in(folder)[0].unlink()

    with pytest.raises(NotFound, match="is missing") as caught:
        archiving.reader.read(run_id)

    assert caught.value.specific_code == "log_archive_missing"


def test_an_archived_log_without_an_archive_says_what_to_set(archiving: ArchivingFixture) -> None:
    run_id = archiving.old_run()
    archiving.tick()

    with pytest.raises(ConfigurationError, match="no archive is configured") as caught:
        RunLogs(database=archiving.database, archive=None).read(run_id)

    assert "log_archive" in str(caught.value.hint)


def test_the_first_lines_of_a_huge_archived_log_are_read_without_the_rest(
    archiving: ArchivingFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = archiving.old_run()
    archiving.tick()
    assert archiving.archive is not None
    given: list[int] = []
    read = archiving.archive.read

    def watched(ref: str, *, after_seq: int = 0) -> Iterator[LogLine]:
        for line in read(ref, after_seq=after_seq):
            given.append(line.seq)
            yield line

    monkeypatch.setattr(archiving.archive, "read", watched)

    assert archiving.reader.read(run_id, limit=2) == LINES[:2]
    assert given == [1, 2]
