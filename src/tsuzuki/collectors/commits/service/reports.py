"""Reports of what was collected: statistics, chart, export. Nothing here asks a source."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from tsuzuki.collectors.commits.grouping import Dimension
from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.people.identity import NO_TEAM, Directory, People
from tsuzuki.collectors.commits.people.mailmap import Mailmap
from tsuzuki.collectors.commits.people.people_file import read_people
from tsuzuki.collectors.commits.queries import commit_groups, mailmaps, rollup, statistics
from tsuzuki.collectors.commits.queries.commit_filter import CommitFilter
from tsuzuki.collectors.commits.queries.pages import lock_project
from tsuzuki.collectors.commits.queries.statistics import MERGE_STATES, use_snapshot
from tsuzuki.collectors.commits.report_tables import MergeState
from tsuzuki.collectors.commits.service.chart import Chart, chart_of
from tsuzuki.collectors.commits.service.report import CommitRules, Reporter
from tsuzuki.collectors.commits.service.selection import (
    EVERYTHING,
    CommitSelection,
    Identities,
    filter_of,
    rules_of,
)
from tsuzuki.collectors.commits.service.statistics import Statistics, sort_of
from tsuzuki.store.sql.database import Connection
from tsuzuki.wiring.collector import ServiceContext

RECOUNTS_MAX = 3
Tell: TypeAlias = Callable[[str], None]


class Reports:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._database = context.database

    def statistics(
        self,
        by: Sequence[Dimension],
        selection: CommitSelection = EVERYTHING,
        *,
        sort: str | None = None,
        top: int | None = None,
        tell: Tell | None = None,
    ) -> Statistics:
        """Counts for each value of the dimensions; `sort` is `KEY[:asc|desc]`, `top` how many rows. `tell`
        hears of anything that takes long."""
        order = sort_of(sort, by) if sort else None
        directory = self._directory()
        self._refresh(tell)
        with self._reading() as connection:
            people = _people(connection, directory, selection)
            reporter = Reporter(connection, people)
            rules = rules_of(selection, reporter, people)
            wanted = filter_of(connection, selection, reporter)
            with _without_collector():
                report = reporter.report(by, wanted, rules)
        return Statistics(
            rows=(order.sorted(report.rows) if order else report.rows)[:top],
            total=report.total,
            row_count=len(report.rows),
            left_out=report.left_out,
        )

    def chart(
        self,
        selection: CommitSelection = EVERYTHING,
        *,
        top: int,
        months: int,
        tell: Tell | None = None,
    ) -> Chart:
        """Commits per month of the `top` authors and of the others, in the last `months` months."""
        found = self.statistics((Dimension.MONTH, Dimension.AUTHOR), selection, tell=tell)
        return chart_of(found.rows, top=top, months=months, left_out=found.left_out)

    def export(
        self, selection: CommitSelection = EVERYTHING, *, tell: Tell | None = None
    ) -> Iterator[dict[str, Any]]:
        """Every commit that is asked for, a piece at a time."""
        directory = self._directory()
        self._refresh(tell)
        with self._reading() as connection:
            people = _people(connection, directory, selection)
            reporter = Reporter(connection, people)
            rules = rules_of(selection, reporter, people)
            wanted = filter_of(connection, selection, reporter)
            yield from exported_rows(connection, wanted, rules, reporter)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """One snapshot for all that a report reads."""
        with self._database.stream() as connection:
            use_snapshot(connection)
            yield connection

    def _refresh(self, tell: Tell | None) -> None:
        """Add up anew what the counts lack. Usually nothing."""
        with self._database.read() as connection:
            stale = rollup.stale_projects(connection)
        if stale and tell is not None:
            of = "a project" if len(stale) == 1 else f"{len(stale)} projects"
            tell(f"Counting the commits of {of} once; the next report will be faster.")
        for project_id in stale:
            self._rebuild(project_id)

    def _rebuild(self, project_id: int) -> None:
        """Add a project up anew. Reading takes long, so it holds no lock, unless pages keep coming."""
        for _ in range(RECOUNTS_MAX):
            with self._database.write() as connection:
                author_ids = rollup.intern_all(connection, project_id)
            with self._database.read() as connection:
                found = rollup.recount(connection, project_id, author_ids)
            with self._database.write() as connection:
                lock_project(connection, project_id)
                if found is not None and rollup.replace(connection, project_id, found):
                    return
        with self._database.write() as connection:
            lock_project(connection, project_id)
            rollup.rebuild(connection, project_id)

    def team_names(self) -> list[str]:
        """Of the file of people."""
        return list(self._directory().teams)

    def _directory(self) -> Directory:
        section = self._context.section(CommitsSection, only=("people",))
        if section.people is None:
            return Directory()
        return read_people(Path(self._context.workspace / section.people))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Without the garbage collector: it would walk a hundred thousand rows again and again, and there is no
    garbage in cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _people(connection: Connection, directory: Directory, selection: CommitSelection) -> People:
    found = {project: Mailmap(text) for project, text in mailmaps.contents(connection)}
    return People(directory, found, is_joined=selection.identities is Identities.JOINED)


def exported_rows(
    connection: Connection, wanted: CommitFilter, rules: CommitRules, reporter: Reporter
) -> Iterator[dict[str, Any]]:
    """A commit once for each branch that has it. `is_merge` and `parents` are None while the parents are
    not known."""
    ids = {author[1:]: author.author_id for author in reporter.authors.values()}
    asked = reporter.asked(wanted, rules)
    names = reporter.names(statistics.author_counts(connection, wanted))
    states = MERGE_STATES[rules.merges]
    for row in commit_groups.exported(connection, wanted):
        author_id = ids[row["project_id"], row["author_email"], row["author_name"]]
        state = _state(row.pop("parent_count"))
        if author_id not in asked or state not in states or reporter.is_left_out(author_id, rules):
            continue
        person = reporter.persons[author_id]
        parents = row.pop("parents")
        row["additions"] -= int(row.pop("excluded_additions", 0))
        row["deletions"] -= int(row.pop("excluded_deletions", 0))
        yield {
            **row,
            "is_merge": None if state is MergeState.UNKNOWN else state is MergeState.YES,
            "parents": parents,
            "person": names[person.key],
            "teams": [team for team in person.teams if team != NO_TEAM],
        }


def _state(parent_count: int | None) -> MergeState:
    if parent_count is None:
        return MergeState.UNKNOWN
    return MergeState.YES if parent_count > 1 else MergeState.NO
