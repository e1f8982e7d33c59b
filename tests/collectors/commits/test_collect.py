"""Many targets in one collection: each has its own result, and one is never another's trouble."""

from pathlib import Path

import pytest

from support import git_oracle
from support.commit_collection import Collecting, Crash, crash_after
from support.git_histories import straight
from tsuzuki.collectors.commits.collect import select_targets
from tsuzuki.collectors.commits.queries import ledger
from tsuzuki.collectors.commits.sources.git import GitSource
from tsuzuki.collectors.commits.tables import ResultStatus
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.errors import Fenced, Unreachable
from tsuzuki.outward.errors import RateLimited


@pytest.fixture
def three(collecting: Collecting, tmp_path: Path) -> list[Path]:
    """Three repositories that are followed; the second is none."""
    folders = [tmp_path / name for name in ("a.git", "b.git", "c.git")]
    for folder in folders:
        straight(folder, 8)
        collecting.repository(folder, "main")
    (folders[1] / "HEAD").unlink()
    return folders


def statuses(collecting: Collecting, collection_id: str) -> dict[str, ResultStatus]:
    return {Path(path).name: r.status for (path, _), r in collecting.results(collection_id).items()}


def test_one_failure_never_stops_the_others(collecting: Collecting, three: list[Path]) -> None:
    ended = collecting.collect()
    assert (ended["success"], ended["failed"], ended["new_commits"]) == (2, 1, 16)
    failed = collecting.results(ended["collection_id"])[str(three[1]), "main"]
    assert failed.error_message == "this is not a git repository (Check the path.)"
    assert collecting.run_io.reports[-1] == (3, 3)
    collecting.check()


def test_an_unexpected_error_of_one_target_is_its_result(
    collecting: Collecting, three: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    head = GitSource.head

    def broken(source: GitSource, branch: str) -> object:
        if source._folder == three[0]:
            raise ZeroDivisionError("of ada@example.org")
        return head(source, branch)

    monkeypatch.setattr(GitSource, "head", broken)
    with pytest.raises(AssertionError, match="Traceback"):
        collecting.collect()
    (collection_id,) = collecting.ask("SELECT run_id FROM bulk_collection_runs")[0]
    result = collecting.results(collection_id)[str(three[0]), "main"]
    assert result.error_message == "unexpected ZeroDivisionError: of ***"
    assert statuses(collecting, collection_id)["c.git"] is ResultStatus.SUCCESS


def test_a_crashed_collection_is_taken_over_and_runs_nothing_twice(
    collecting: Collecting, three: list[Path]
) -> None:
    with pytest.raises(Crash):
        collecting.collect(after=crash_after(5))
    (collection_id,) = collecting.ask("SELECT run_id FROM bulk_collection_runs")[0]
    done = {key: r for key, r in collecting.results(collection_id).items() if r.processed_at_utc}
    ended = collecting.collect()
    assert ended["collection_id"] == collection_id
    after = collecting.results(collection_id)
    assert {key: after[key] for key in done} == done
    assert (ended["success"], ended["failed"]) == (2, 1)
    assert collecting.ask("SELECT count(*) FROM bulk_collection_runs") == [(1,)]
    collecting.check()


def test_a_cancelled_collection_keeps_what_is_done_and_writes_no_more(
    collecting: Collecting, three: list[Path]
) -> None:
    def cancel(number: int) -> None:
        if number == 3:
            with collecting.database.write() as connection:
                collection_id = ledger.running(connection)
                assert collection_id is not None
                ledger.cancel(connection, collection_id, now=collecting.database.clock.now())

    with pytest.raises(Fenced):
        collecting.collect(after=cancel)
    (row,) = collecting.ask("SELECT status, completed_at_utc FROM bulk_collection_runs")
    assert row.status == "cancelled"
    assert row.completed_at_utc is not None
    collecting.check()
    ended = collecting.collect()
    assert (ended["success"], ended["failed"]) == (2, 1)
    for number in (0, 2):
        rows = collecting.rows(number + 1)
        assert sorted(rows) == sorted(git_oracle.rows(three[number], "main"))


def test_asked_to_stop_it_stops_at_the_next_page(collecting: Collecting, three: list[Path]) -> None:
    def pull(number: int) -> None:
        if number == 3:
            collecting.stop_signal.set()

    with pytest.raises(RunStopped):
        collecting.collect(after=pull)
    assert collecting.run_io.transactions < 8
    assert collecting.ask("SELECT status FROM bulk_collection_runs") == [("running",)]


def test_a_run_that_lost_the_collection_writes_nothing(
    collecting: Collecting, three: list[Path]
) -> None:
    def give_away(number: int) -> None:
        if number == 3:
            with collecting.database.write() as connection:
                collection_id = ledger.running(connection)
                assert collection_id is not None
                ledger.set_owner(connection, collection_id, job_run_id=999_999)

    with pytest.raises(Fenced):
        collecting.collect(after=give_away)
    assert collecting.run_io.transactions <= 4
    collecting.check()


def test_a_job_may_be_for_some_projects_only(collecting: Collecting, three: list[Path]) -> None:
    with collecting.database.write() as connection:
        assert [t.project_id for t in select_targets(connection, ["3", str(three[0])])] == [1, 3]
        assert select_targets(connection, [], branch="side") == []


def test_a_branch_with_history_is_a_target_also_without_being_added(
    collecting: Collecting, three: list[Path]
) -> None:
    with collecting.database.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO commits VALUES (1, 'elsewhere', 'abc', 'n', 'e', '2020-01-01T00:00:00Z', 1, 2)"
        )
        found = [(t.project_id, t.branch) for t in select_targets(connection, [])]
    assert found == [(1, "elsewhere"), (1, "main"), (2, "main"), (3, "main")]


def test_a_thread_that_waits_for_a_host_stops_when_another_met_the_end(
    collecting: Collecting, three: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    head = GitSource.head

    def limited(source: GitSource, branch: str) -> object:
        if source._folder == three[0]:
            raise RateLimited("an hour, please", retry_after_seconds=3000)
        if source._folder == three[2]:
            raise Unreachable("the database is away")
        return head(source, branch)

    monkeypatch.setattr(GitSource, "head", limited)
    monkeypatch.setattr(
        "tsuzuki.collectors.commits.collect.host_of", lambda project: project.location
    )
    with pytest.raises(Unreachable):
        collecting.collect()
