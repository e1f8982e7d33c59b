"""Collections of commits in a test: the real handler, on a database with the collector's tables."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from support.executions import a_task
from support.git_oracle import Row
from tsuzuki.collectors.commits.collect import collect
from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.queries import projects, reports, targets
from tsuzuki.collectors.commits.queries.projects import NewProject
from tsuzuki.collectors.commits.queries.reports import Result
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.engine.run_context import RunContext, StopSignal
from tsuzuki.engine.task import Task
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.wiring.collector import CollectorContext


class Crash(BaseException):
    """Stands for the end of the process: not an `Exception`, so that a collection cannot handle it."""


def crash_after(number: int) -> Callable[[int], None]:
    """Crash after transaction `number` is committed."""

    def after(transaction: int) -> None:
        if transaction == number:
            raise Crash

    return after


class RecordingRunIO:
    """The `RunIO` of a run: records log and progress, counts transactions, and calls `after` with the
    number of each."""

    def __init__(self, database: Database, after: Callable[[int], None]) -> None:
        self._database = database
        self._after = after
        self.lines: list[str] = []
        self.reports: list[tuple[int, int | None]] = []
        self.transactions = 0

    def log(self, _task: Task, _stream: str, text: str) -> None:
        self.lines.append(text)

    def wait_for_space(self, _seconds: float) -> bool:
        return True

    def progress(self, _task: Task, processed: int, total: int | None) -> None:
        self.reports.append((processed, total))

    @contextmanager
    def transaction(self, _task: Task) -> Iterator[Connection]:
        with self._database.write() as connection:
            yield connection
        self.transactions += 1
        self._after(self.transactions)


class Collecting:
    """A workspace and database for commits, in which collections run one after another."""

    _numbers = itertools.count(1000)

    def __init__(self, database: Database, workspace: Path, **section: Any) -> None:
        self.database = database
        self.workspace = workspace
        self.section = CommitsSection(**section)
        self.run_io = RecordingRunIO(database, lambda _number: None)
        self.stop_signal = StopSignal()

    def repository(self, location: Path | str, *branches: str, path: str | None = None) -> int:
        """Add a repository, with some of its branches as targets."""
        return self._project(
            NewProject(
                kind=ProjectKind.GIT,
                location=str(location),
                remote_id=None,
                path=path or str(location),
                name=Path(str(location)).name,
                url=str(location),
                default_branch=None,
            ),
            *branches,
        )

    def remote(self, remote_id: int, path: str, *branches: str) -> int:
        """Add a project on the configured GitLab as a target."""
        return self._project(
            NewProject(
                kind=ProjectKind.GITLAB,
                location=self.section.gitlab.url,
                remote_id=remote_id,
                path=path,
                name=path,
                url=path,
                default_branch="main",
            ),
            *branches,
        )

    def _project(self, new: NewProject, *branches: str) -> int:
        with self.database.write() as connection:
            change = projects.record(connection, new, now=self.database.clock.now())
            for branch in branches:
                targets.follow(connection, Target(change.project.project_id, branch))
        return change.project.project_id

    def collect(
        self, *, after: Callable[[int], None] = lambda _number: None, **arguments: Any
    ) -> dict[str, Any]:
        """One run of the handler. `after` is called after each of its transactions."""
        self.run_io = RecordingRunIO(self.database, after)
        self.stop_signal = StopSignal()
        run = RunContext(
            task=a_task("commits", {}, run_id=next(self._numbers), arguments=arguments),
            run_io=self.run_io,  # type: ignore[arg-type]
            clock=self.database.clock,
            stop_signal=self.stop_signal,
        )
        ended = collect(self.context, run)
        # A bug on a branch fails only that branch; a test must notice it.
        assert not any(line.startswith("Traceback") for line in self.run_io.lines), (
            self.run_io.lines
        )
        return ended

    @property
    def context(self) -> CollectorContext:
        return CollectorContext(
            database=self.database, workspace=self.workspace, read_section=lambda: self.section
        )

    def results(self, collection_id: str) -> dict[tuple[str, str], Result]:
        with self.database.read() as connection:
            found = reports.results(connection, collection_id)
        return {(result.path, result.branch_name): result for result in found}

    def only(self, collection_id: str) -> Result:
        (result,) = self.results(collection_id).values()
        return result

    def rows(self, project_id: int, branch: str = "main") -> list[Row]:
        """The stored commits of a branch."""
        statement = text(
            "SELECT sha, author_name, author_email, committed_date_utc, additions, deletions"
            " FROM commits WHERE project_id = :project AND branch_name = :branch"
        )
        with self.database.read() as connection:
            found = connection.execute(statement, {"project": project_id, "branch": branch})
            return [Row(*row) for row in found]

    def ask(self, statement: str, **values: Any) -> list[Any]:
        with self.database.read() as connection:
            return list(connection.execute(text(statement), values))

    def check(self) -> None:
        """Every counter equals the rows it counts; every total the commits it adds up."""
        for row in self.ask("SELECT * FROM bulk_collection_runs"):
            counted = dict(
                self.ask(
                    "SELECT status, count(*) FROM bulk_collection_results"
                    " WHERE run_id = :collection_id GROUP BY status",
                    collection_id=row.run_id,
                )
            )
            assert row.success_count == row.completed_count == counted.get("success", 0)
            assert row.failed_count == counted.get("failed", 0)
            assert row.total_targets == sum(counted.values())
        assert self.ask(
            "SELECT project_id, month, author_email, author_name, commits, additions, deletions"
            " FROM tsuzuki_commit_totals ORDER BY 1, 2, 3, 4"
        ) == self.ask(
            "SELECT project_id, substr(committed_date_utc, 1, 7), author_email, author_name,"
            " count(*), sum(additions), sum(deletions) FROM (SELECT DISTINCT project_id, sha,"
            " author_email, author_name, committed_date_utc, additions, deletions FROM commits)"
            " AS once GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
        )
        self.check_details()

    def check_details(self) -> None:
        """Every stored commit of a project has its parents once; counts per path add up to its own."""
        assert self.ask(
            "SELECT project_id, commit_sha FROM tsuzuki_commit_parents ORDER BY 1, 2"
        ) == self.ask("SELECT DISTINCT project_id, sha FROM commits ORDER BY 1, 2")
        assert (
            self.ask(
                "SELECT c.sha, c.additions, c.deletions, sum(p.additions), sum(p.deletions)"
                " FROM commits c JOIN tsuzuki_commit_path_counts p"
                " ON p.project_id = c.project_id AND p.commit_sha = c.sha"
                " GROUP BY c.project_id, c.branch_name, c.sha, c.additions, c.deletions"
                " HAVING c.additions <> sum(p.additions) OR c.deletions <> sum(p.deletions)"
            )
            == []
        )

    def parents(self) -> set[tuple[str, str]]:
        """Each stored commit with its parents."""
        return {
            tuple(row) for row in self.ask("SELECT commit_sha, parents FROM tsuzuki_commit_parents")
        }

    def path_counts(self) -> set[tuple[str, str, int, int]]:
        """Commit, path, additions, deletions."""
        rows = self.ask(
            "SELECT c.commit_sha, p.path, c.additions, c.deletions FROM tsuzuki_commit_path_counts c"
            " JOIN tsuzuki_commit_paths p ON p.project_id = c.project_id AND p.path_id = c.path_id"
        )
        return {tuple(row) for row in rows}

    def forget_details(self) -> None:
        """Leave what a version before details were stored has left."""
        with self.database.write() as connection:
            for name in ("parents", "path_counts", "paths", "completions"):
                connection.exec_driver_sql(f"DELETE FROM tsuzuki_commit_{name}")
